"""The scale of each feature: Section IV-A of Calafiore & Fracastoro, with the constant rule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Self

from ..arrays.backend import Backend
from ..arrays.context import Context
from ..arrays.functions import EPS, array_namespace, to_host
from ..arrays.typing import Array
from ..blocks.samples import Samples
from ..statistics.base import Statistics
from ..statistics.moments import ClassMoments
from .selection import warn

# A value of X. Squares of smaller ones come near to 2^-1022 = 2e-308, below which digits are lost.
SMALLEST_SIZE = 1e-140
# Degrees of freedom. Those of numbers of repetitions are whole, so that 1/2 tells 0 from 1.
_LEAST_DIVISOR = 0.5


class Scale(NamedTuple):
    """The scale of some features.

    Attributes
    ----------
    sigma : array of shape (b,), float64, positive
        Standard deviation; 1 where a feature is constant over all samples up to rounding.
    separates : array of shape (b,), bool
        Where a pooled variance is zero up to rounding, but the feature is not constant: it is
        constant within each class, and separates the classes.
    rounding : array of shape (b,), float64
        A bound on the differences of class means of a feature that is constant over all samples up
        to rounding; 0 for other features.
    """

    sigma: Array
    separates: Array
    rounding: Array

    @classmethod
    def zeros(cls, m: int, backend: Backend) -> Self:
        """Of m features, to be filled."""
        return cls(backend.zeros(m), backend.zeros(m, backend.xp.bool), backend.zeros(m))

    def put(self, part: slice, other: Scale) -> None:
        """Set the scale of some features."""
        for own, new in zip(self, other, strict=True):
            own[part] = new


def zero_up_to(bound: Array, gain: Array) -> Array:
    """The gain, with 0 where it is at most its bound on rounding."""
    xp = array_namespace(gain)
    return xp.where(gain <= bound, xp.zeros_like(gain), gain)


def feature_scale(moments: ClassMoments, scale: str, ctx: Context) -> Scale:
    """The scale of each feature, over all samples or within the classes.

    "std": sigma^2 = (sum of M_c + sum of W_c (mean_c - mean)^2) / W. "pooled": sigma^2 is the
    larger of sum of M_c / (W - K) and n eps times the variance of "std". W_c is the weight of
    class c, W their sum, M_c its sum of squares about its mean, mean the mean of all samples, n the
    number of samples of positive weight. (Section IV-A.) ``moments`` have second moments for each
    feature.

    Raises
    ------
    ValueError
        For "pooled" where each class has one sample, and for squares that underflow.
    """
    divisor = scale_divisor(moments, scale)
    check_underflow(moments, ctx)
    k, m = moments.shape
    found = Scale.zeros(m, moments.backend)

    def fill(part: slice) -> None:
        total, centred = moments.total[:, part], moments.centred_at(part)
        found.put(part, scale_of_sums(total, centred, moments, scale, divisor))

    ctx.map_columns(fill, m, k)
    return found


def check_underflow(moments: ClassMoments, ctx: Context, added: float = 0.0) -> None:
    """Raise a ValueError for a feature of which the squares, and with them its scale, underflow.

    Nothing is lost where scales are far larger by what is ``added`` to each of them.
    """
    if added > SMALLEST_SIZE / EPS:
        return
    xp, weight = moments.backend.xp, moments.backend.asarray(moments.class_weight)[:, None]

    def is_small(part: slice) -> Array:
        size = xp.max(xp.abs(moments.total[:, part] / weight), axis=0)
        return (size > 0) & (size < SMALLEST_SIZE)

    small = xp.concat(ctx.map_columns(is_small, moments.shape[1], moments.shape[0]))
    if bool(xp.any(small)):
        raise ValueError(
            f"the values of {first_features(small)} are too small: their squares underflow. "
            "Rescale X, or leave such features out."
        )


def scale_divisor(moments: Statistics | Samples, scale: str) -> float:
    """What the sums of squares are divided by; a ValueError where each class has one sample."""
    weight = moments.class_weight
    if scale == "std":
        return sum(weight)
    if max(moments.count) < 2:
        raise ValueError(
            "scale='pooled' needs a class of two samples at least: each of the "
            f"{len(weight)} classes has one sample of positive weight."
        )
    return variance_divisor(weight, len(weight), "scale='pooled'")


def variance_divisor(weight: Sequence[float], means: int, name: str) -> float:
    """The divisor of a variance about estimated means: the sum W of the weights, less their number.

    Where the weights are no numbers of repetitions it is W, with a warning that ``name`` asks for
    it.
    """
    total = sum(weight)
    if are_repetitions(weight, means):
        return total - means
    warn(
        f"{name}: the sample weights sum to {total:g}, which is too little for numbers of "
        f"repetitions. Sums of squares are divided by this sum, not by the sum less {means}."
    )
    return total


def are_repetitions(weight: Sequence[float], means: int) -> bool:
    """Whether weights can be numbers of repetitions, of which so many means are estimated.

    Their sum less the number of means, the degrees of freedom, is then 1/2 or more.
    """
    return sum(weight) - means >= _LEAST_DIVISOR


def scale_of_sums(
    total: Array,
    centred: Array,
    classes: Statistics | Samples,
    scale: str,
    divisor: float,
    shift: Array | float = 0.0,
) -> Scale:
    """`feature_scale` of some features, from their class sums and centred squares: two (K, b).

    The sums may be those of the values less a ``shift``.
    """
    backend, xp = classes.backend, classes.backend.xp
    weight, n = classes.class_weight, sum(classes.count)
    within = xp.sum(centred, axis=0)
    variance, mean, _ = variance_over_all(total, within, weight, backend)
    mean = mean + shift
    constant = is_constant(variance, xp.abs(mean), n)
    separates = xp.zeros_like(constant)
    if scale == "pooled":
        pooled, least = within / divisor, n * EPS * variance
        separates = ~constant & (pooled <= least)
        variance = xp.maximum(pooled, least)
    # A product of tiny numbers may underflow to zero.
    one = constant | (variance <= 0)
    sigma = xp.sqrt(xp.where(one, xp.ones_like(variance), variance))
    rounding = 2 * len(weight) * n * EPS * xp.abs(mean)
    return Scale(sigma, separates, xp.where(constant, rounding, xp.zeros_like(mean)))


def separation(classes: Statistics | Samples) -> float:
    """The distance of the means of two classes, in units of sigma, of a feature that separates.

    With no variance within the classes, that over all samples is W_0 W_1 / W^2 times the squared
    distance, so that the distance is W / sqrt(W_0 W_1 n eps) for each such feature.
    """
    w0, w1 = classes.class_weight
    return (w0 + w1) / math.sqrt(w0) / math.sqrt(w1) / math.sqrt(sum(classes.count) * EPS)


def warn_of_separating(separates: Array) -> None:
    """Warn of features that have no variance within the classes, if there are any."""
    which = first_features(separates)
    if which:
        warn(
            "scale='pooled': some features are constant up to rounding within each class but "
            f"differ between classes: {which}. Their scale is that of rounding, so that they rank "
            "first."
        )


def first_features(chosen: Array) -> str:
    """The numbers of the first features of a mask, and how many more there are; "" for none."""
    xp = array_namespace(chosen)
    count = int(xp.count_nonzero(chosen))
    if count == 0:
        return ""
    first = to_host(xp.nonzero(chosen)[0]).tolist()[:3]
    more = f" and {count - len(first)} more" if count > len(first) else ""
    return f"feature{'s' * (count > 1)} {', '.join(map(str, first))}{more}"


def variance_over_all(
    total: Array, within: Array, weight: list[float], backend: Backend
) -> tuple[Array, Array, Array]:
    """The variance over all samples, (b,), their mean, (b,), and the class means, (K, b)."""
    xp, total_weight = backend.xp, sum(weight)
    w = backend.asarray(weight)[:, None]
    means = total / w
    mean = means[0, :] + xp.sum(w * (means - means[0, :]), axis=0) / total_weight
    between = xp.sum(w * (means - mean) ** 2, axis=0)
    return (within + between) / total_weight, mean, means


def is_constant(variance: Array, size: Array, n: int) -> Array:
    """The bound of scikit-learn's StandardScaler for a constant feature of values of some size."""
    return variance <= n * EPS * variance + (n * EPS * size) ** 2
