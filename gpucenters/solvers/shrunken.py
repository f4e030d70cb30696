"""Nearest shrunken centroids of Tibshirani et al. (2002), for every threshold at once."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from .._docstrings import filled
from ..arrays.backend import Backend
from ..arrays.context import Context
from ..arrays.functions import (
    EPS,
    array_namespace,
    clip_negative,
    index_mask,
    row_sums,
    to_float,
    top_k,
)
from ..arrays.typing import Array
from ..blocks import Block
from ..blocks.samples import Samples
from ..blocks.validation import raise_overflow
from ..statistics.base import Statistics
from ..statistics.moments import ClassMoments
from ..statistics.recipe import Recipe
from .centers import Centers
from .decisions import LinearForm
from .l2 import class_deviations, zero_if_constant
from .scaling import check_underflow, variance_divisor
from .selection import (
    Selection,
    UninformativeFeaturesWarning,
    ranking_key,
    resolve_k,
    warn,
    warn_of_no_gain,
)
from .user_input import as_number, solve_from_data


@dataclass(frozen=True)
class ShrunkenCenters(Centers):
    """Nearest shrunken centroids: the support decides the threshold, unless one is given.

    Attributes
    ----------
    size : array of shape (m,), float64
        ``max_c |d_c|``: the threshold from which on a feature is left out.
    total : array of shape (K, m), float64
        Class sums.
    scale : array of shape (m,), float64
        sigma = s + s0, by which deviations are standardised.
    n_samples : int
        Samples of positive weight.
    offset : float
        s0.
    threshold : float or None
        A given one. None: the largest size of the features that are left out.
    least : float
        The largest size of those of which nothing is kept here.
    rest : float
        What these add to the objective.
    """

    ARRAYS: ClassVar[dict[str, tuple[str, ...]]] = {
        "size": ("candidate",),
        "total": ("class", "candidate"),
        "scale": ("candidate",),
    }

    size: Array
    total: Array
    scale: Array
    n_samples: int
    offset: float
    threshold: float | None = None
    least: float = 0.0
    rest: float = 0.0

    def select(self, k: Any, ctx: Context | None = None) -> Selection:
        """The features that survive: of the k largest those above the next one.

        With a given threshold those above it; k must be "all" then.
        """
        xp, m = self.backend.xp, self.size.shape[0]
        key, count = ranking_key(self.size), resolve_k(k, m)
        if self.threshold is not None:
            if not isinstance(k, str):
                raise ValueError(
                    f"k={k!r} cannot be chosen beside threshold={self.threshold!r}, which decides "
                    "what survives: use threshold=None, or k='all'."
                )
            above = self.size > self.threshold
        elif count == m:
            above = self.size > 0
        else:
            # The least of the count + 1 largest keys, and what is above it.
            edge = xp.min(xp.take(key, top_k(key, count + 1)))
            above = key > edge
        support = xp.nonzero(above)[0]
        if self.threshold is None and not isinstance(k, str):
            warn_of_no_gain(self.size, count, m)
        if support.shape[0] == 0:
            warn(
                "no feature survives: all class centroids are shrunken to the mean of all samples, "
                "and the priors decide. Use a smaller threshold, or more features.",
                UninformativeFeaturesWarning,
            )
        return Selection(support, xp.take(self.size, support))

    def feature_scores(self, selection: Selection, ctx: Context | None = None) -> Array:
        return self.size

    def threshold_of(self, support: Array) -> float:
        """Delta: what standardised deviations are reduced by where ``support`` is what survives."""
        if self.threshold is not None:
            return self.threshold
        xp, m = self.backend.xp, self.size.shape[0]
        if support.shape[0] == m:
            return self.least
        outside = xp.where(index_mask(support, m), xp.zeros_like(self.size), self.size)
        return to_float(xp.max(outside))

    def _deviations(self, total: Array) -> tuple[Array, Array]:
        """Class means less the mean of all samples, and this mean, from class sums."""
        return _deviations(total, self.class_weight, self.n_samples, self.backend)

    def _shrunken(self, support: Array) -> tuple[Array, Array]:
        """(a, mean of all samples) of the support: a_c = sign(d_c) (|d_c| - Delta)+ m_c sigma."""
        xp = self.backend.xp
        deviation, grand = self._deviations(xp.take(self.total, support, axis=1))
        unit = _unit(self.class_weight, self.backend) * xp.take(self.scale, support)
        kept = clip_negative(xp.abs(deviation) - self.threshold_of(support) * unit)
        return xp.where(deviation < 0, -kept, kept), grand

    def centers_at(self, columns: Array) -> tuple[Array, Array]:
        a, grand = self._shrunken(columns)
        return grand + a, grand

    def linear_form(self, support: Array, log_prior: list[float]) -> LinearForm:
        """The discriminant scores: ``2 log pi_c + sum_i [2 a_c (x - grand) - a_c^2] / sigma^2``.

        Minus the squared standardised distance to the centroid, less a term common to all classes.
        """
        xp, (a, grand) = self.backend.xp, self._shrunken(support)
        square = xp.take(self.scale, support) ** 2
        coef, offset = 2 * a / square, row_sums(-a * a / square)
        offset = offset + 2 * self.backend.asarray(log_prior)
        if len(log_prior) == 2:
            coef, offset = coef[1:, :] - coef[:1, :], offset[1:] - offset[:1]
        return LinearForm(grand, xp.permute_dims(coef, (1, 0)), offset)

    def objective(self, support: Array, ctx: Context | None = None) -> float:
        """``sum_i sum_c [W_c (dev_c - a_c)^2 / (2 sigma^2) + Delta W_c m_c |a_c| / sigma]``.

        What the shrunken centroids minimise for this threshold.
        """
        xp, weight = self.backend.xp, self.backend.asarray(list(self.class_weight))[:, None]
        delta, unit = self.threshold_of(support), _unit(self.class_weight, self.backend)
        deviation, _ = self._deviations(xp.take(self.total, support, axis=1))
        d = xp.abs(deviation) / xp.take(self.scale, support)
        a = clip_negative(d - delta * unit)
        inside = xp.sum(weight * ((d - a) ** 2 / 2 + delta * unit * a))
        return self._outside(support, ctx) + to_float(inside)

    def _outside(self, support: Array, ctx: Context | None) -> float:
        """What the features that do not survive add to the objective."""
        xp, (k, m) = self.backend.xp, self.total.shape
        weight = self.backend.asarray(list(self.class_weight))[:, None]
        chosen = index_mask(support, m)

        def part_of_sum(part: slice) -> Array:
            d = self._deviations(self.total[:, part])[0] / self.scale[part]
            terms = xp.where(chosen[part], xp.zeros_like(d), weight * d * d / 2)
            return row_sums(terms)

        if support.shape[0] == m:
            return self.rest
        sums = (ctx or Context.of(self.backend)).sum_columns(part_of_sum, m, k)
        return self.rest + to_float(xp.sum(sums))

    def restricted(self, columns: Array, ctx: Context | None = None) -> Self:
        least, rest = self.threshold_of(columns), self._outside(columns, ctx)
        return replace(super().restricted(columns, ctx), least=least, rest=rest)


def _unit(weight: tuple[float, ...], backend: Backend) -> Array:
    """Factors m_c = sqrt(1 / W_c - 1 / W): (K, 1). The paper prints a plus, a misprint."""
    whole = sum(weight)
    return backend.asarray([math.sqrt(1 / w - 1 / whole) for w in weight])[:, None]


def _deviations(
    total: Array, weight: tuple[float, ...], n: int, backend: Backend, shift: Array | float = 0.0
) -> tuple[Array, Array]:
    """`class_deviations`, with 0 for those that are rounding of n values."""
    xp = backend.xp
    deviation, grand = class_deviations(total, weight, backend)
    rounding = xp.abs(deviation) <= n * EPS * xp.abs(grand + shift)
    return xp.where(rounding, xp.zeros_like(deviation), deviation), grand


def solve_shrunken(
    moments: ClassMoments, ctx: Context, offset: float | str = "median"
) -> ShrunkenCenters:
    """Nearest shrunken centroids from class moments, for every threshold.

    ``d_c = dev_c / (m_c (s + s0))`` with ``s^2 = sum_c M_c / (W - K)``, where dev_c is the mean of
    class c less that of all samples.

    Parameters
    ----------
    moments : ClassMoments
        With second moments for each feature.
    ctx : Context
    offset : float or "median"
        s0: a number, or the median of s over the features.

    Raises
    ------
    ValueError
        Where each class has one sample, and for a feature whose squares underflow where s0 is 0.
    """
    backend, xp, weight = moments.backend, moments.backend.xp, moments.class_weight
    (k, m), n, total = moments.shape, sum(moments.count), moments.total
    if max(moments.count) < 2:
        raise ValueError(
            f"shrunken centroids need a class of two samples at least: each of the {k} classes has "
            "one sample of positive weight."
        )
    divisor = variance_divisor(weight, k, "shrunken centroids")
    scale, size = backend.zeros(m), backend.zeros(m)

    def spread(part: slice) -> None:
        scale[part] = standard_scale(total[:, part], moments.centred_at(part), moments, divisor)

    ctx.map_columns(spread, m, k)
    s0 = _median(scale) if isinstance(offset, str) else float(offset)
    check_underflow(moments, ctx, s0)

    def fill(part: slice) -> None:
        sigma = _or_one(scale[part] + s0)
        scale[part], size[part] = sigma, shrunken_size(total[:, part], sigma, moments)

    ctx.map_columns(fill, m, k)
    if not bool(xp.all(xp.isfinite(size))):
        raise_overflow(xp.isfinite(size))
    return ShrunkenCenters(backend, tuple(weight), size, total, scale, n, s0)


def _or_one(sigma: Array) -> Array:
    xp = array_namespace(sigma)
    return xp.where(sigma > 0, sigma, xp.ones_like(sigma))


def standard_scale(
    total: Array,
    centred: Array,
    classes: Statistics | Samples,
    divisor: float,
    shift: Array | float = 0.0,
) -> Array:
    """Deviations s of some features, (b,), from class sums and centred squares, both (K, b).

    The sums may be those of the values less a ``shift``.
    """
    xp, w = classes.backend.xp, classes.backend.asarray(classes.class_weight)[:, None]
    size, n = xp.max(xp.abs(total / w + shift), axis=0), sum(classes.count)
    return xp.sqrt(zero_if_constant(xp.sum(centred, axis=0) / divisor, size, n))


def shrunken_size(
    total: Array, sigma: Array, classes: Statistics | Samples, shift: Array | float = 0.0
) -> Array:
    """Sizes max_c |d_c| of some features, (b,), where sigma is s + s0; 1 in place of 0."""
    xp, backend, weight = classes.backend.xp, classes.backend, tuple(classes.class_weight)
    deviation, _ = _deviations(total, weight, sum(classes.count), backend, shift)
    return xp.max(xp.abs(deviation) / _unit(weight, backend), axis=0) / _or_one(sigma)


def _median(values: Array) -> float:
    xp, m = array_namespace(values), values.shape[0]
    ascending = xp.sort(values, stable=False)
    return to_float(ascending[(m - 1) // 2] + ascending[m // 2]) / 2


def check_threshold(threshold: Any, name: str = "threshold") -> None:
    """Raise a ValueError unless it is a finite number of 0 or more."""
    if not 0 <= as_number(threshold) < math.inf:
        raise ValueError(f"{name}={threshold!r} is not valid: use a number of 0 or more.")


def check_offset(offset: Any) -> None:
    """Raise a ValueError unless it is "median" or a number of 0 or more."""
    if isinstance(offset, str) and offset == "median":
        return
    if isinstance(offset, str):
        raise ValueError(f"offset={offset!r} is not valid: use 'median' or a number of 0 or more.")
    check_threshold(offset, "offset")


@filled
def shrunken_centroids(
    X: Any,
    y: Any,
    *,
    offset: float | str = "median",
    n_classes: int | None = None,
    sample_weight: Any = None,
    device: str | None = None,
    memory_budget: int | str | None = None,
) -> ShrunkenCenters:
    """Nearest shrunken centroids of labelled data, for every threshold and every k at once.

    The class means are moved towards the mean of all samples, by a threshold in units of their
    standard errors; features that arrive there in all classes are left out (Tibshirani et al.
    [1]_).

    Parameters
    ----------
    offset : float or "median", default="median"
        Added to the standard deviation of each feature: a number, or the median of all.

    Returns
    -------
    ShrunkenCenters
        ``size`` is the threshold at which a feature is left out.

    Raises
    ------
    ValueError
        For NaN, infinity or values whose squares overflow (named by feature and row), a class
        without weight, classes of one sample each.

    References
    ----------
    .. [1] R. Tibshirani, T. Hastie, B. Narasimhan and G. Chu, "Diagnosis of multiple cancer types
       by shrunken centroids of gene expression", PNAS 99, 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from gpucenters.solvers import shrunken_centroids
    >>> X = np.asarray([[0.0, 0.0], [2.0, 1.0], [4.0, 0.0], [10.0, 1.0]])
    >>> shrunken_centroids(X, [0, 0, 1, 1]).size.round(6)
    array([1.17717, 0.     ])
    """
    check_offset(offset)

    def solve(block: Block, samples: Samples, ctx: Context) -> ShrunkenCenters:
        moments = Recipe("class moments", per_feature=True).of(block, samples, ctx)
        return solve_shrunken(moments, ctx, offset)

    return solve_from_data(solve, X, y, n_classes, sample_weight, device, memory_budget)
