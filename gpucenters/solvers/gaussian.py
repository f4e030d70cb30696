"""Sparse Gaussian naive Bayes: mean and variance of at most k features differ between classes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from .._docstrings import filled
from ..arrays.cached import cached_property
from ..arrays.context import Context
from ..arrays.functions import EPS, UNIT_ROUNDOFF, array_namespace, index_mask, row_sums, to_float
from ..arrays.typing import Array
from ..blocks import Block
from ..blocks.samples import Samples
from ..blocks.transforms import Squared
from ..blocks.validation import raise_overflow
from ..reductions.distances import FAR, distance_scores, with_far_features
from ..reductions.products import product
from ..statistics.base import Statistics
from ..statistics.moments import ClassMoments
from ..statistics.recipe import Recipe
from .centers import SparseCenters
from .decisions import Decision, PathTerms, of_priors
from .divergence import log_excess
from .l2 import class_deviations, zero_if_constant
from .scaling import check_underflow, zero_up_to
from .user_input import as_number, solve_from_data

#: Tied mean, deviation of the class mean, 1 / variance and log(variance) / 2: four (K, d).
Params = tuple[Array, ...]


@dataclass(frozen=True)
class GaussianCenters(SparseCenters):
    """Sparse Gaussian naive Bayes: centers are class means, each class with its own variance.

    Attributes
    ----------
    total : array of shape (K, m), float64
        Class sums.
    variance : array of shape (K, m), float64
        u_c: pooled and smoothed variances; 0 where a feature is constant, which tells nothing.
    epsilon : float
        What is added to the variances.
    """

    ARRAYS: ClassVar[dict[str, tuple[str, ...]]] = {
        "gain": ("candidate",),
        "total": ("class", "candidate"),
        "variance": ("class", "candidate"),
    }

    total: Array
    variance: Array
    epsilon: float

    def _at(self, columns: Array | None) -> tuple[Array, Array, Array]:
        """(variances, deviations of the class means, tied means) of some columns."""
        total, variance = self.total, self.variance
        if columns is not None:
            total, variance = (self.backend.xp.take(a, columns, axis=1) for a in (total, variance))
        return variance, *class_deviations(total, self.class_weight, self.backend)

    def centers_at(self, columns: Array) -> tuple[Array, Array]:
        _, deviation, tied = self._at(columns)
        return tied + deviation, tied

    def variances_at(self, columns: Array | None) -> tuple[Array, Array]:
        """Those of the classes, (K, d), and u + b, which all share where a feature is tied."""
        variance, deviation, _ = self._at(columns)
        p = self.backend.asarray([w / sum(self.class_weight) for w in self.class_weight])[:, None]
        return variance, self.backend.xp.sum(p * (variance + deviation * deviation), axis=0)

    def decision(self, support: Array, log_prior: list[float]) -> Decision:
        return GaussianDecision(support, self.density_params(support), log_prior)

    def density_params(self, columns: Array | None) -> Params:
        """Tied means, deviations of the class means, 1 / variance and log(variance) / 2: (K, d)."""
        xp, (variance, deviation, tied) = self.backend.xp, self._at(columns)
        some = variance > 0
        safe, zero = xp.where(some, variance, xp.ones_like(variance)), xp.zeros_like(variance)
        return tied + zero, deviation, xp.where(some, 1 / safe, zero), xp.log(safe) / 2

    def likelihood_form(self, support: Array) -> tuple[Params, float]:
        """(parameters of all features, tied outside of the support, constant) of the likelihood.

        The variance of features that are constant is what is added to all, and they are taken to
        stay constant: how far they do not is the same for each class, and would swamp the rest.
        """
        xp, (mean, deviation, inverse, half_log) = self.backend.xp, self.density_params(None)
        free, zero = index_mask(support, mean.shape[1]), xp.zeros_like(mean)
        _, tied = self.variances_at(None)
        varies = xp.any(inverse > 0, axis=0)
        tied = xp.where(varies, tied, xp.full_like(tied, self.epsilon or 1.0))
        own = free & varies
        params = (
            mean,
            xp.where(free, deviation, zero),
            xp.where(own, inverse, xp.where(varies, 1 / tied, 0 * tied)),
            xp.where(own, half_log, xp.log(tied) / 2),
        )
        n = mean.shape[1] if self.epsilon else int(xp.count_nonzero(varies))
        return params, math.log(2 * math.pi) / 2 * n

    def path_terms(
        self, ranking: Array, log_prior: list[float], block: Block, ctx: Context
    ) -> PathTerms:
        params = self.density_params(ranking)
        terms = DensityTerms(params, 8 * UNIT_ROUNDOFF * (ranking.shape[0] + 16))
        offset, bound = self.backend.asarray(_offset(log_prior)), 4 * of_priors(log_prior)
        equal = [] if len(log_prior) == 2 else list(params[1:3])
        return PathTerms(terms, ranking, None, offset, bound, equal)


@dataclass(frozen=True)
class GaussianDecision:
    """The decision of Gaussian densities of some features of X.

    ``score_c = log pi_c - 1/2 sum_i [log u_ci + (x_i - tied_i - dev_ci)^2 / u_ci]``.
    """

    columns: Array
    params: Params
    log_prior: list[float]

    def scores(self, block: Block, ctx: Context, *, relative: bool) -> Array:
        """Scores of the rows: see `Decision`."""
        offset = block.backend.asarray(_offset(self.log_prior))
        distance = self.columns, negative_log_density, self.params, None, ctx
        if not block.has_implicit_zeros:
            return distance_scores(block, *distance) + offset

        def expanded(columns: Array, params: Params, scale: Array | None) -> Array:
            """The score of a row of zeros, and for each stored value x (2 mean - x) / (2 u)."""
            xp, (tied, deviation, inverse, half_log) = block.backend.xp, params
            mean = tied + deviation
            slope, curve, base = mean * inverse, -inverse / 2, -half_log - mean * mean * inverse / 2
            if mean.shape[0] == 2:
                slope, curve, base = (a[1:, :] - a[:1, :] for a in (slope, curve, base))
            zeros = xp.zeros_like(base[0, :])
            found = product(block, columns, zeros, xp.permute_dims(slope, (1, 0)), ctx)
            squares = replace(block, transform=Squared())
            found = found + product(squares, columns, zeros, xp.permute_dims(curve, (1, 0)), ctx)
            return found + row_sums(base)

        return with_far_features(expanded, block, *distance) + offset


def _offset(log_prior: list[float]) -> list[float]:
    return [log_prior[1] - log_prior[0]] if len(log_prior) == 2 else log_prior


def negative_log_density(
    x: Array, tied: Array, deviation: Array, inverse: Array, half_log: Array
) -> Array:
    """Minus the log density of x, up to a constant, from the elements of `Params`."""
    # Relative to the tied mean: the means of classes far from zero would be rounded apart.
    d = x - tied - deviation
    return half_log + 0.5 * (d * d * inverse)


@dataclass(frozen=True)
class DensityTerms:
    """Log densities of x_i in K classes; for two, that of class 1 less that of class 0.

    The bound is ``relative_bound`` times the largest of what is summed.
    """

    params: Params
    relative_bound: float

    @property
    def n_sums(self) -> int:
        """2 for two classes, else K + 1."""
        k = int(self.params[0].shape[0])
        return 2 if k == 2 else k + 1

    def _terms(self, x: Array, params: Params) -> list[Array]:
        """Scores of values x of some features, and their bound, from params (K, ...)."""
        found, largest = [], abs(x) * 0
        for c in range(params[0].shape[0]):
            own = [p[c, ...] for p in params]
            d = negative_log_density(x, *own)
            largest = array_namespace(x).maximum(largest, d - own[3] + abs(own[3]))
            found.append(d)
        scores = [found[0] - found[1]] if len(found) == 2 else [-d for d in found]
        return [*scores, largest * self.relative_bound]

    def of_columns(self, x: Array, part: slice) -> Array:
        """Sums over a run of features: see `Terms`."""
        xp, params = array_namespace(x), tuple(p[:, part] for p in self.params)
        return xp.stack([xp.sum(t, axis=1) for t in self._terms(x, params)], axis=1)

    @cached_property
    def at_zero(self) -> Array:
        """The terms at zero: see `Terms`. No bound serves features that are far from zero."""
        xp = array_namespace(self.params[0])
        *scores, bound = self._terms(xp.zeros_like(self.params[0][0, :]), self.params)
        no_bound = xp.full_like(bound, math.inf)
        return xp.stack([*scores, xp.where(bound > FAR * self.relative_bound, no_bound, bound)])

    def beyond_zero(self, x: Array, position: Array) -> list[Array]:
        """The terms less those at zero: see `Terms`."""
        xp = array_namespace(x)
        params = tuple(xp.take(p, position, axis=1) for p in self.params)
        here, there = self._terms(x, params), self._terms(xp.zeros_like(x), params)
        scores = [a - b for a, b in zip(here[:-1], there[:-1], strict=True)]
        return [*scores, here[-1] + there[-1]]


def gaussian_gain(
    variance: Array,
    between: Array,
    classes: Statistics | Samples,
    pooling: float,
    epsilon: float,
) -> tuple[Array, Array]:
    """(gain, pooled and smoothed variances of the classes) of some features: shapes (b,), (K, b).

    From v_c, the variances of the classes, (K, b), and b, that of the class means, (b,):
    ``gain = W/2 [log(1 + b/u) + sum_c p_c g(z_c)]`` with ``g(z) = z - log(1 + z)``, where u is the
    mean u_c, ``u_c = (1 - a) v_c + a vbar + e``, and ``z_c = u_c / u - 1``. The first term is that
    of one-way analysis of variance, the second that of Bartlett's test. Up to W (n eps)^2 it is the
    rounding of sums of n samples, and 0. (a is ``pooling``, e ``epsilon``.)
    """
    xp, weight, total = array_namespace(variance), classes.class_weight, sum(classes.class_weight)
    off = variance - variance[0, :]
    p = classes.backend.asarray([w / total for w in weight])[:, None]
    mean_off = xp.sum(p * off, axis=0)
    mean = variance[0, :] + mean_off
    smoothed = (1 - pooling) * variance + pooling * mean + epsilon
    floor = mean + epsilon
    safe = xp.where(floor > 0, floor, xp.ones_like(floor))
    z = (1 - pooling) * (off - mean_off) / safe
    # 1 + z has lost the digits of small variances.
    small = (z < -0.5) & (smoothed > 0)
    one = xp.ones_like(z)
    ratio = xp.where(small, smoothed, one) / xp.where(small, safe * one, one)
    excess = xp.where(small, z - xp.log(ratio), log_excess(z))
    spread = xp.sum(p * excess, axis=0)
    gain = total / 2 * (xp.log1p(between / safe) + spread)
    return zero_up_to_rounding(gain, classes), smoothed


def zero_up_to_rounding(gain: Array, classes: Statistics | Samples) -> Array:
    """The gain, with 0 up to W (n eps)^2."""
    bound = sum(classes.class_weight) * (sum(classes.count) * EPS) ** 2
    return zero_up_to(array_namespace(gain).zeros_like(gain) + bound, gain)


def class_variances(
    total: Array,
    centred: Array,
    classes: Statistics | Samples,
    ddof: float,
    shift: Array | float = 0.0,
) -> tuple[Array, Array, Array]:
    """(v_c, variance of the class means, variance of all samples) of some features.

    From class sums and sums of squares about the class means, (K, b), of values that were reduced
    by a ``shift``, (b,). Variances that are those of rounding are 0; all three where a feature is
    constant.
    """
    backend, weight, n = classes.backend, classes.class_weight, sum(classes.count)
    xp, w = backend.xp, backend.asarray(weight)[:, None]
    deviation, grand = class_deviations(total, weight, backend)
    between = xp.sum(w * deviation * deviation, axis=0) / sum(weight)
    variance = zero_if_constant(centred / (w - ddof), total / w + shift, n)
    of_all = zero_if_constant(xp.sum(centred, axis=0) / sum(weight) + between, grand + shift, n)
    zero = xp.zeros_like(of_all)
    return (
        xp.where(of_all > 0, variance, zero),
        xp.where(of_all > 0, between, zero),
        of_all,
    )


def solve_gaussian(
    moments: ClassMoments,
    ctx: Context,
    pooling: float = 0.0,
    var_smoothing: float = 1e-9,
    ddof: int = 0,
) -> GaussianCenters:
    """Sparse Gaussian naive Bayes from class moments.

    The loss is the negative log-likelihood with all features free, those that are constant left
    out: ``sum_i sum_c W_c/2 (log(2 pi u_ci) + 1)``. The moments have second ones for each feature.

    Raises
    ------
    ValueError
        For a class of no degrees of freedom, for a feature without variance in a class, and for one
        whose squares underflow where nothing smooths it.
    """
    backend, xp, weight = moments.backend, moments.backend.xp, moments.class_weight
    (k, m), total = moments.shape, moments.total
    _check_freedom(moments, ddof)
    variance, gain, of_all = backend.zeros((k, m)), backend.zeros(m), backend.zeros(m)

    def spread(part: slice) -> None:
        found = class_variances(total[:, part], moments.centred_at(part), moments, ddof)
        variance[:, part], gain[part], of_all[part] = found  # the gain holds b for now

    ctx.map_columns(spread, m, k)
    epsilon = var_smoothing * to_float(xp.max(of_all))
    check_underflow(moments, ctx, math.sqrt(epsilon))
    w = backend.asarray(weight)[:, None]

    def fill(part: slice) -> Array:
        some = of_all[part] > 0
        between = gain[part]
        gain[part], u = gaussian_gain(variance[:, part], between, moments, pooling, epsilon)
        variance[:, part] = xp.where(some, u, xp.zeros_like(u))
        logs = xp.log(2 * math.pi * xp.where(u > 0, u, xp.ones_like(u))) + 1
        return xp.sum(xp.where(some, w * logs / 2, xp.zeros_like(u)), keepdims=True)[0, :]

    loss = to_float(ctx.sum_columns(fill, m, k)[0])
    if epsilon == 0:
        _require_variance(variance, of_all, moments)
    if not math.isfinite(loss) or not bool(xp.all(xp.isfinite(gain))):
        raise_overflow(xp.isfinite(gain))
    return GaussianCenters(backend, tuple(weight), gain, loss, None, total, variance, epsilon)


def gaussian_ratio(moments: ClassMoments, ctx: Context, pooling: float) -> Array:
    """The gain without smoothing, half of a likelihood-ratio statistic: (m,).

    Infinite where a feature that varies has a variance of zero.
    """
    xp, (k, m) = moments.backend.xp, moments.shape

    def gain(part: slice) -> Array:
        sums = moments.total[:, part], moments.centred_at(part)
        variance, between, of_all = class_variances(*sums, moments, 0)
        found, u = gaussian_gain(variance, between, moments, pooling, 0.0)
        infinite = (of_all > 0) & xp.any(u <= 0, axis=0)
        return xp.where(infinite, xp.full_like(found, math.inf), found)

    return xp.concat(ctx.map_columns(gain, m, k))


def _check_freedom(moments: ClassMoments, ddof: int) -> None:
    for c, w in enumerate(moments.class_weight):
        if w - ddof <= 0:
            raise ValueError(
                f"ddof={ddof} leaves class {_label(moments, c)}, of weight {w:g}, no degrees of "
                "freedom: use ddof=0, or more samples of it."
            )


def _label(moments: ClassMoments, c: int) -> Any:
    return c if moments.classes is None else moments.classes[c]


def _require_variance(variance: Array, of_all: Array, moments: ClassMoments) -> None:
    xp = array_namespace(variance)
    bad = xp.any(variance <= 0, axis=0) & (of_all > 0)
    if bool(xp.any(bad)):
        feature = int(xp.nonzero(bad)[0][0])
        c = int(xp.argmin(variance[:, feature]))
        raise ValueError(
            f"feature {feature} has no variance in class {_label(moments, c)}, so that its density "
            "there has no bound: use var_smoothing or pooling above 0."
        )


def check_gaussian(pooling: Any, var_smoothing: Any, ddof: Any) -> None:
    """Raise a ValueError for parameters that are not valid."""
    if not 0 <= as_number(pooling) <= 1:
        raise ValueError(f"pooling={pooling!r} is not valid: use a number from 0 to 1.")
    if not 0 <= as_number(var_smoothing) <= 1e100:
        raise ValueError(
            f"var_smoothing={var_smoothing!r} is not valid: use a number of 0 or more."
        )
    if isinstance(ddof, bool) or ddof not in (0, 1):
        raise ValueError(f"ddof={ddof!r} is not valid: use 0 or 1.")


@filled
def gaussian_nb(
    X: Any,
    y: Any,
    *,
    pooling: float = 0.0,
    var_smoothing: float = 1e-9,
    ddof: int = 0,
    n_classes: int | None = None,
    sample_weight: Any = None,
    device: str | None = None,
    memory_budget: int | str | None = None,
) -> GaussianCenters:
    """Sparse Gaussian naive Bayes of labelled data, for every k at once.

    Maximises, for every k, the likelihood of Gaussian features, of which at most k may have a mean
    and a variance that differ between classes.

    Parameters
    ----------
    pooling : float, default=0.0
        0: each class has its own variance. 1: all classes share their mean variance. Between: a
        mixture of both.
    var_smoothing : float, default=1e-9
        This share of the largest variance of all features is added to the variances.
    ddof : {0, 1}, default=0
        The variance of a class is divided by its weight less this.

    Returns
    -------
    GaussianCenters
        ``gain`` ranks the features: see `select`.

    Raises
    ------
    ValueError
        For NaN, infinity or values whose squares overflow (named by feature and row), a class
        without weight, a feature without variance in a class where nothing smooths it.

    Examples
    --------
    >>> import numpy as np
    >>> from gpucenters.solvers import gaussian_nb
    >>> X = np.asarray([[0.0], [2.0], [4.0], [10.0]])
    >>> gaussian_nb(X, [0, 0, 1, 1], var_smoothing=0).gain.round(6)
    array([3.08089])
    """
    check_gaussian(pooling, var_smoothing, ddof)

    def solve(block: Block, samples: Samples, ctx: Context) -> GaussianCenters:
        moments = Recipe("class moments", per_feature=True).of(block, samples, ctx)
        return solve_gaussian(moments, ctx, float(pooling), float(var_smoothing), int(ddof))

    return solve_from_data(solve, X, y, n_classes, sample_weight, device, memory_budget)
