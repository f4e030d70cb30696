"""Sparse l2 centers: Definition 1, Prop. 1 and Algorithm 1 of Calafiore & Fracastoro."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from .._docstrings import filled
from ..arrays.backend import Backend
from ..arrays.context import Context
from ..arrays.double_double import Double, divide
from ..arrays.functions import array_namespace, row_sums, scaled_differences, to_float, to_floats
from ..arrays.typing import Array
from ..blocks import Block
from ..blocks.samples import Samples
from ..blocks.validation import raise_overflow
from ..statistics.base import Statistics
from ..statistics.moments import ClassMoments
from ..statistics.recipe import Recipe
from .centers import SparseCenters
from .close_scores import PairForm, pair_form
from .decisions import LinearForm, squared_distance_form
from .scaling import (
    SMALLEST_SIZE,
    Scale,
    check_underflow,
    is_constant,
    scale_divisor,
    scale_of_sums,
    separation,
    warn_of_separating,
    zero_up_to,
)
from .user_input import check_scale, solve_from_data


@dataclass(frozen=True)
class L2Centers(SparseCenters):
    """Sparse l2 centers; free and tied are formed from the class sums when asked for.

    Attributes
    ----------
    total : array of shape (K, m), float64
        Class sums.
    """

    ARRAYS: ClassVar[dict[str, tuple[str, ...]]] = {
        **SparseCenters.ARRAYS,
        "total": ("class", "candidate"),
    }

    total: Array

    def centers_at(self, columns: Array) -> tuple[Array, Array]:
        total = self.backend.xp.take(self.total, columns, axis=1)
        free = total / self.backend.asarray(list(self.class_weight))[:, None]
        return free, tied_mean(free)

    def linear_form(self, columns: Array, log_prior: list[float]) -> LinearForm:
        scale = self.scale_at(columns)
        return squared_distance_form(*self.centers_at(columns), scale, log_prior, self.backend)

    def pair_forms(self, support: Array) -> Callable[[int, int], PairForm]:
        """The comparison of two classes, with the features of ``support`` free."""
        sums, scale = self.backend.xp.take(self.total, support, axis=1), self.scale_at(support)

        def metric(x: Double) -> Double:
            return x if scale is None else divide(x, scale * scale)

        return lambda c, r: pair_form(sums, self.class_weight, (c, r), metric)


def tied_mean(free: Array) -> Array:
    """The tied center: ``tied = free_0 + (1 / K) sum_c (free_c - free_0)``, (m,) from (K, m).

    The mean of the class means, exact where they are equal.
    """
    first = free[:1, :]
    return free[0, :] + array_namespace(free).sum(free - first, axis=0) / free.shape[0]


def solve_l2(moments: ClassMoments, ctx: Context, scale: str | None = None) -> L2Centers:
    """Sparse l2 centers from class moments: Prop. 1 and Algorithm 1.

    The objective with all features free is ``loss = sum_c (1 / W_c) sum_i M_ci / sigma_i^2``, where
    M_ci is the sum of squares of feature i about its mean in class c.

    Parameters
    ----------
    moments : ClassMoments
        With second moments for each feature if there is a ``scale``.
    ctx : Context
    scale : {None, "std", "pooled"}

    Raises
    ------
    ValueError
        Where values are so large that the sums leave float64, or so small that their squares do.
    """
    backend, weight = moments.backend, moments.class_weight
    total, m = moments.total, moments.shape[1]
    gain, sigma = backend.zeros(m), None
    if scale is None:

        def fill(part: slice) -> None:
            gain[part] = l2_gain(total[:, part], weight, backend)

        ctx.map_columns(fill, m, len(weight))
        squares = moments.within_sum_of_squares(ctx)
    else:
        divisor = scale_divisor(moments, scale)
        check_underflow(moments, ctx)
        scales = Scale.zeros(m, backend)
        sigma = scales.sigma

        def fill_scaled(part: slice) -> Array:
            centred = moments.centred_at(part)
            found = scale_of_sums(total[:, part], centred, moments, scale, divisor)
            scales.put(part, found)
            gain[part] = scaled_l2_gain(total[:, part], found, moments)
            return row_sums(centred / (found.sigma * found.sigma))

        squares = to_floats(ctx.sum_columns(fill_scaled, m, len(weight)))
        if scale == "pooled":
            warn_of_separating(scales.separates)
    loss = sum(s / w for s, w in zip(squares, weight, strict=True))
    _check(gain, loss, total)
    return L2Centers(backend, tuple(weight), gain, loss, sigma, total)


def scaled_l2_gain(total: Array, scale: Scale, classes: Statistics | Samples) -> Array:
    """`l2_gain` with each feature divided by its scale."""
    weight, xp = classes.class_weight, classes.backend.xp
    gain = l2_gain(total, weight, classes.backend) / (scale.sigma * scale.sigma)
    gain = zero_up_to(scale.rounding * scale.rounding, gain)
    if len(weight) > 2:
        return gain
    # Features that separate two classes have one gain, to the bit.
    equal = xp.ones_like(gain) * (0.5 * separation(classes) ** 2)
    return xp.where(scale.separates, equal, gain)


def l2_gain(total: Array, weight: list[float], backend: Backend) -> Array:
    """How much the objective falls if a feature is free, unscaled: Prop. 1.

    ``gain_i = sum_c (free_ci - tied_i)^2``, where free_c are the class means and tied is their
    mean; for two classes ``(free_1i - free_0i)^2 / 2``: (d,), from class sums (K, d) and W_c.
    """
    if len(weight) == 2:
        delta = mean_differences(total, weight, backend)[0, :]
        return 0.5 * (delta * delta)
    centred = centred_means(total, weight, backend)
    return backend.xp.sum(centred * centred, axis=0)


def mean_differences(total: Array, weight: list[float], backend: Backend) -> Array:
    """The class means less the first one: ``(W_0 T_c - W_c T_0) / (W_0 W_c)``, (K - 1, d).

    T are the class sums. Exact for integer data, where the difference of two rounded means is not:
    so features that differ by a constant alone have equal gains.
    """
    # Weights and sums of a class are divided by one power of two, so that no product overflows.
    parts = [math.frexp(w) for w in weight]
    share = backend.asarray([mantissa for mantissa, _ in parts])
    unit = backend.asarray([math.ldexp(1.0, -e) for _, e in parts])
    return scaled_differences(total, share, unit)


def centred_means(total: Array, weight: list[float], backend: Backend) -> Array:
    """The class means less their mean, ``free_c - tied``: (K, m), from class sums."""
    xp, delta = backend.xp, mean_differences(total, weight, backend)
    mean = xp.sum(delta, axis=0, keepdims=True) / len(weight)
    return xp.concat([-mean, delta - mean])


def _check(gain: Array, loss: float, total: Array) -> None:
    xp = array_namespace(gain)
    saved = to_float(xp.sum(gain))
    if loss + saved < SMALLEST_SIZE**2 and 0 < to_float(xp.max(xp.abs(total))) < SMALLEST_SIZE:
        raise ValueError("the values of X are too small: their squares underflow. Rescale X.")
    if not math.isfinite(saved) and not bool(xp.all(xp.isfinite(gain))):
        raise_overflow(xp.isfinite(gain))
    if not math.isfinite(loss):
        raise ValueError("the values of X are too large: their squares overflow float64.")


@filled
def l2_centers(
    X: Any,
    y: Any,
    *,
    n_classes: int | None = None,
    sample_weight: Any = None,
    scale: str | None = None,
    device: str | None = None,
    memory_budget: int | str | None = None,
) -> L2Centers:
    """Sparse l2 centers of labelled data, for every k at once.

    Solves, for every k, the problem of Definition 1 of Calafiore & Fracastoro [1]_ (for any number
    of classes): the K centers with the least weighted mean squared distance to their classes, of
    which at most k coordinates may differ between classes.

    Parameters
    ----------
    scale : {None, "std", "pooled"}, optional
        Divide each feature by its standard deviation, over all samples or pooled within classes.
        No centring: sparse data stay sparse.

    Returns
    -------
    L2Centers
        ``gain`` ranks the features: see `select`.

    Raises
    ------
    ValueError
        For NaN, infinity or values whose squares overflow (named by feature and row), values whose
        squares all underflow, negative weights, a class without weight, lengths that differ, a
        damaged sparse matrix.

    References
    ----------
    .. [1] G. Calafiore and G. Fracastoro, "Sparse l1 and l2 Center Classifiers", IEEE Trans. Neural
       Networks and Learning Systems 33(3), 2022. Prop. 1 and Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from gpucenters.solvers import l2_centers, select
    >>> X = np.asarray([[0.0, 0.0], [0.0, 2.0], [2.0, 0.0], [2.0, 2.0]])
    >>> centers = l2_centers(X, [0, 0, 1, 1])
    >>> centers.gain
    array([2., 0.])
    >>> select(centers, 1).support
    array([0])
    """
    check_scale(scale)

    def solve(block: Block, samples: Samples, ctx: Context) -> L2Centers:
        recipe = Recipe("class moments", per_feature=scale is not None)
        return solve_l2(recipe.of(block, samples, ctx), ctx, scale)

    return solve_from_data(solve, X, y, n_classes, sample_weight, device, memory_budget)


# --- class means relative to the mean of all samples, from class sums -------------------------


def class_deviations(
    total: Array, weight: list[float] | tuple[float, ...], backend: Backend
) -> tuple[Array, Array]:
    """Class means less the mean of all samples, (K, b), and this mean, (b,).

    ``dev_c = q_c - sum_c p_c q_c`` with ``q_c = (W_0 T_c - W_c T_0) / (W_0 W_c)`` and ``p_c = W_c /
    W``, from class sums T_c, (K, b): exactly 0 where the means of integer data are equal.
    """
    xp, delta = backend.xp, mean_differences(total, list(weight), backend)
    p = backend.asarray([w / sum(weight) for w in weight])[1:, None]
    mean = xp.sum(p * delta, axis=0, keepdims=True)
    deviation = xp.concat([-mean, delta - mean])
    return deviation, total[0, :] / weight[0] - deviation[0, :]


def zero_if_constant(variance: Array, size: Array, n: int) -> Array:
    """The variance of n values of some size, with 0 where it is that of rounding."""
    constant = is_constant(variance, size, n)
    return array_namespace(variance).where(constant, variance * 0, variance)
