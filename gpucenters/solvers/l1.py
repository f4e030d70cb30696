"""Sparse l1 centers: Definition 2, Prop. 2 and 3 and Algorithm 2 of Calafiore & Fracastoro."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from .._docstrings import filled
from ..arrays.context import Context
from ..arrays.functions import UNIT_ROUNDOFF, array_namespace, clip_negative, to_float
from ..arrays.typing import Array
from ..blocks import Block
from ..blocks.samples import Samples
from ..blocks.validation import raise_overflow
from ..reductions.distances import distance_scores
from ..reductions.medians import map_sorted_columns, zero_center_loss
from ..reductions.permuted_columns import PermutedColumns
from ..reductions.segment_sums import DistanceTerms
from ..reductions.sorted_columns import SortedColumns
from ..statistics.base import Statistics
from ..statistics.recipe import Recipe
from .centers import SparseCenters
from .decisions import Decision, PathTerms
from .scaling import Scale, feature_scale, separation, warn_of_separating, zero_up_to
from .user_input import check_scale, solve_from_data


def midpoint(low: Array, high: Array) -> Array:
    """The middle of an interval; the value itself where both ends are equal."""
    return array_namespace(low).where(low == high, low, 0.5 * low + 0.5 * high)


@dataclass(frozen=True)
class L1Centers(SparseCenters):
    """Sparse l1 centers; medians cannot be formed from sums, so both arrays are kept.

    Attributes
    ----------
    free_ : array of shape (K, m), float64
    tied_ : array of shape (m,), float64
    """

    ARRAYS: ClassVar[dict[str, tuple[str, ...]]] = {
        **SparseCenters.ARRAYS,
        "free_": ("class", "candidate"),
        "tied_": ("candidate",),
    }

    free_: Array
    tied_: Array

    def centers_at(self, columns: Array) -> tuple[Array, Array]:
        take = self.backend.xp.take
        return take(self.free_, columns, axis=1), take(self.tied_, columns)

    def decision(self, support: Array, log_prior: list[float]) -> Decision:
        return DistanceDecision(support, self.centers_at(support)[0], self.scale_at(support))

    def path_terms(
        self, ranking: Array, log_prior: list[float], block: Block, ctx: Context
    ) -> PathTerms:
        free, _ = self.centers_at(ranking)
        xp, (k, d), scale = self.backend.xp, free.shape, self.scale_at(ranking)
        size = 4 * UNIT_ROUNDOFF * (d + 16)
        # Sums of halves are exact.
        if scale is None and bool(xp.all(2 * free == xp.round(2 * free))):
            size = 0.0 if block.holds_integers(ctx) else size
        inverse = xp.ones_like(free[0, :]) if scale is None else 1.0 / scale
        terms = DistanceTerms(_distance, free, inverse, size)
        offset = self.backend.zeros(1 if k == 2 else k)
        return PathTerms(terms, ranking, None, offset, 0.0, [] if k == 2 else [free])


@dataclass(frozen=True)
class DistanceDecision:
    """Minus the l1 distances to the centers: ``score_c = - sum_i |x_i - free_ci| / sigma_i``."""

    columns: Array
    free: Array
    scale: Array | None

    def scores(self, block: Block, ctx: Context, *, relative: bool) -> Array:
        """Scores of the rows: see `Decision`."""
        return distance_scores(block, self.columns, _distance, (self.free,), self.scale, ctx)


def _distance(x: Array, center: Array) -> Array:
    return abs(x - center)


def solve_l1(block: Block, samples: Samples, ctx: Context, scale: str | None = None) -> L1Centers:
    """Sparse l1 centers of a block.

    free_c are the class medians, tied is the median of all samples where each class has weight one
    (Prop. 2), and the objective with all features free is ``loss = sum_c (1 / W_c) sum_j s_j |x_j -
    free_c| / sigma``, summed over the features.

    Parameters
    ----------
    block : Block
    samples : Samples
        Each class with weight.
    ctx : Context
    scale : {None, "std", "pooled"}
    """
    backend, xp = block.backend, block.backend.xp
    sigma = None
    if scale is not None:
        moments = Recipe("class moments", per_feature=True).of(block, samples, ctx)
        scales = feature_scale(moments, scale, ctx)
        sigma = scales.sigma
        if scale == "pooled":
            warn_of_separating(scales.separates)
    samples = samples.with_equal_weights_as_one()
    k, m = samples.n_classes, block.shape[1]
    # Right for each column whose medians all are zero; the others are sorted and overwritten.
    loss = zero_center_loss(block, samples, ctx)
    finite = bool(xp.all(xp.isfinite(loss)))
    free, tied, gain = backend.zeros((k, m)), backend.zeros(m), backend.zeros(m)
    if finite:
        for columns, parts in map_sorted_columns(block, _medians, samples, ctx):
            free[:, columns], tied[columns], gain[columns], loss[columns] = parts
        # The loss has read every value.
        finite = bool(xp.all(xp.isfinite(loss)))
    if not finite:
        block.check_finite(False, ctx)
        raise_overflow(xp.isfinite(loss))
    if sigma is not None:
        gain = scaled_l1_gain(gain, loss, scales, moments)
        loss = loss / sigma
    total_loss = to_float(xp.sum(loss))
    if not bool(xp.all(xp.isfinite(gain))) or not math.isfinite(total_loss):
        raise_overflow(xp.isfinite(gain) & xp.isfinite(loss))
    return L1Centers(backend, tuple(samples.class_weight), gain, total_loss, sigma, free, tied)


def scaled_l1_gain(gain: Array, loss: Array, scale: Scale, classes: Statistics | Samples) -> Array:
    """The gain with each feature divided by its scale; ``loss`` is that of its class medians."""
    gain = zero_up_to(scale.rounding, gain / scale.sigma)
    if len(classes.class_weight) > 2:
        return gain
    # Features that are constant in each of two classes have one gain, to the bit.
    xp = classes.backend.xp
    equal = xp.ones_like(gain) * separation(classes)
    return xp.where(scale.separates & (loss == 0), equal, gain)


def _medians(columns: SortedColumns) -> tuple[Array, Array, Array, Array]:
    """(free, tied, gain, loss of free) of some sorted columns, unscaled."""
    free, tied, gain = l1_medians(columns)
    return free, tied, gain, l1_loss(columns, free)


def l1_loss(columns: SortedColumns | PermutedColumns, free: Array) -> Array:
    """The sum over the classes of the mean distance to centers ``free`` (K, b): (b,)."""
    weight = columns.backend.asarray(columns.samples.class_weight)[:, None]
    return columns.backend.xp.sum(columns.distances(free) / weight, axis=0)


def l1_medians(columns: SortedColumns | PermutedColumns) -> tuple[Array, Array, Array]:
    """(free, tied, gain) of some sorted columns, unscaled.

    ``gain = sum_c (1 / W_c) sum_j s_j (|x_j - tied| - |x_j - free_c|)``: eq. 18 with the other
    sign, summed term by term, so that nothing cancels. It is exactly zero where the intervals of
    medians of all classes share a point (Prop. 3 with its ties).
    """
    backend, xp = columns.backend, columns.backend.xp
    low, high = columns.class_intervals()
    free = midpoint(low, high)
    common_low, common_high = xp.max(low, axis=0), xp.min(high, axis=0)
    shared = common_low <= common_high
    w = backend.asarray(columns.samples.class_weight)[:, None]
    tied = midpoint(common_low, common_high)
    if not backend.sync_is_expensive and bool(xp.all(shared)):
        return free, tied, xp.zeros_like(tied)
    # Elsewhere all joint medians lie between the intervals. (Where they share a point nothing is to
    # be searched, and an interval of one point costs no rounds.)
    start = xp.where(shared, common_low, common_high)
    joint = columns.joint_interval(start, common_low)
    tied = xp.where(shared, tied, midpoint(*joint))
    difference = columns.loss_difference(free, tied[None, :] + xp.zeros_like(free))
    gain = xp.where(shared, xp.zeros_like(tied), clip_negative(xp.sum(difference / w, axis=0)))
    return free, tied, gain


@filled
def l1_centers(
    X: Any,
    y: Any,
    *,
    n_classes: int | None = None,
    sample_weight: Any = None,
    scale: str | None = None,
    device: str | None = None,
    memory_budget: int | str | None = None,
) -> L1Centers:
    """Sparse l1 centers of labelled data, for every k at once.

    Solves, for every k, the problem of Definition 2 of Calafiore & Fracastoro [1]_ (for any number
    of classes): the K centers with the least weighted mean l1 distance to their classes, of which
    at most k coordinates may differ between classes.

    Parameters
    ----------
    scale : {None, "std", "pooled"}, optional
        Divide each feature by its standard deviation, over all samples or pooled within classes.

    Returns
    -------
    L1Centers
        ``gain`` ranks the features: see `select`.

    Raises
    ------
    ValueError
        For NaN or infinity (named by feature and row), negative weights, a class without weight,
        lengths that differ, a damaged sparse matrix.

    References
    ----------
    .. [1] G. Calafiore and G. Fracastoro, "Sparse l1 and l2 Center Classifiers", IEEE Trans. Neural
       Networks and Learning Systems 33(3), 2022. Prop. 2, Prop. 3 and Algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> from gpucenters.solvers import l1_centers
    >>> X = np.asarray([[0.0, 0.0], [0.0, 2.0], [2.0, 0.0], [2.0, 2.0]])
    >>> l1_centers(X, [0, 0, 1, 1]).free
    array([[0., 1.],
           [2., 1.]])
    """
    check_scale(scale)
    solve = partial(solve_l1, scale=scale)
    return solve_from_data(solve, X, y, n_classes, sample_weight, device, memory_budget)
