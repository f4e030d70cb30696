"""The scale of each feature: Section IV-A of Calafiore & Fracastoro, with the constant rule."""

from __future__ import annotations

from ..arrays.backend import Backend
from ..arrays.context import Context
from ..arrays.typing import Array
from ..statistics.moments import ClassMoments

_EPS = 2.0**-52

SCALES = (None, "std", "pooled")


def check_scale(scale: str | None) -> None:
    """Raise a ValueError for an unknown scale."""
    if not (scale is None or isinstance(scale, str)) or scale not in SCALES:
        raise ValueError(f"scale={scale!r} is not valid: use None, 'std' or 'pooled'.")


def feature_scale(moments: ClassMoments, scale: str, ctx: Context) -> Array:
    """Standard deviation of each feature; 1 where a feature is constant up to rounding.

    "std": sigma^2 = (sum of M_c + sum of W_c (mean_c - mean)^2) / W, over all samples. "pooled":
    sigma^2 = sum of M_c / (W - K), within classes. W_c is the weight of class c, W their sum, M_c
    its sum of squares about its mean, mean the mean of all samples. (Section IV-A.)

    Parameters
    ----------
    moments : ClassMoments
        With second moments for each feature.
    scale : {"std", "pooled"}
    ctx : Context

    Returns
    -------
    array of shape (m,), float64, positive

    Raises
    ------
    ValueError
        For "pooled" where sum W_c - K is not positive.
    """
    check_divisor(moments.class_weight, scale)
    m, k = moments.shape[1], moments.shape[0]
    sigma = moments.backend.zeros(m)

    def fill(part: slice) -> None:
        sigma[part] = scale_at(moments, moments.centred_at(part), part, scale)

    ctx.map_columns(fill, m, k)
    return sigma


def check_divisor(weight: list[float], scale: str) -> None:
    """Raise a ValueError for an unknown scale, and for "pooled" unless sum W_c - K is positive."""
    check_scale(scale)
    total_weight, k = sum(weight), len(weight)
    if scale == "pooled" and total_weight - k <= 0:
        raise ValueError(
            f"scale='pooled' needs more weight than classes: the weights sum to {total_weight:g}, "
            f"and there are {k} classes."
        )


def scale_at(moments: ClassMoments, centred: Array, part: slice, scale: str) -> Array:
    """`feature_scale` of some features, with their centred squares at hand: (b,)."""
    weight, n = moments.class_weight, sum(moments.count)
    total = moments.total[:, part]
    return _standard_deviation(total, centred, weight, n, scale, moments.backend)


def _standard_deviation(
    total: Array, centred: Array, weight: list[float], n: int, scale: str, backend: Backend
) -> Array:
    """Standard deviation of some features from their class sums and centred squares."""
    xp = backend.xp
    total_weight, k = sum(weight), len(weight)
    within = xp.sum(centred, axis=0)
    w = backend.asarray(weight)[:, None]
    means = total / w
    if scale == "std":
        mean = means[0, :] + xp.sum(w * (means - means[0, :]), axis=0) / total_weight
        between = xp.sum(w * (means - mean) ** 2, axis=0)
        variance = (within + between) / total_weight
        size = xp.abs(mean)
    else:
        variance = within / (total_weight - k)
        size = xp.max(xp.abs(means), axis=0)
    # The bound of scikit-learn's StandardScaler for a constant feature.
    constant = variance <= n * _EPS * variance + (n * _EPS * size) ** 2
    return xp.sqrt(xp.where(constant, xp.ones_like(variance), variance))
