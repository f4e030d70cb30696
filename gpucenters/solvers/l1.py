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
from ..reductions.half_weight import ClassHalf, JointHalf
from ..reductions.labelled_columns import LabelledColumns
from ..reductions.medians import map_sorted_columns, zero_center_loss
from ..reductions.segment_sums import DistanceTerms
from ..reductions.sorted_columns import SortedColumns
from ..statistics.base import Recipe, Statistics
from .centers import SparseCenters
from .data import check_scale, solve_from_data
from .decisions import Decision, PathTerms
from .scaling import Scale, feature_scale, separation, warn_of_separating, zero_up_to

# --- weighted medians of sorted columns: of each class, and of all classes together ------------
#
# Prop. 2 of Calafiore & Fracastoro, with every tie settled: W(z) is the weight of the values up
# to z. The smallest value zbar with W(zbar) >= W/2 is the median if W(zbar) > W/2, else the
# median is the midpoint of zbar and the next larger value. Whole-number weights are compared
# exactly.


def midpoint(low: Array, high: Array) -> Array:
    """The middle of an interval; the value itself where both ends are equal."""
    return array_namespace(low).where(low == high, low, 0.5 * low + 0.5 * high)


def class_intervals(
    columns: SortedColumns | LabelledColumns, half: ClassHalf
) -> tuple[Array, Array]:
    """Ends of the interval of medians of each class and column: two arrays of shape (K, b)."""
    if isinstance(columns, LabelledColumns):
        return columns.class_intervals()
    xp = columns.backend.xp
    ends = columns.class_intervals(half)
    if ends is not None:
        return ends
    if columns.plain:  # the number of items is their weight
        item = (columns.size + 1) // 2 - 1
    else:
        start = xp.zeros_like(columns.size)
        item = columns.first(lambda i: half.reached(columns.mass(i + 1)), start, columns.size)
    low = columns.value(item)
    more = half.exceeded(columns.mass(item + 1))
    last = item + 1 >= columns.size
    return low, xp.where(more | last, low, columns.value(item + 1))


def tied_interval(
    columns: SortedColumns | LabelledColumns, half: JointHalf, low: Array, high: Array
) -> tuple[Array, Array]:
    """Ends of the interval of joint medians, each class with total weight one: two (b,).

    ``low`` and ``high`` are values between which the interval lies: (b,).
    """
    if isinstance(columns, LabelledColumns):
        return columns.tied_interval()
    xp, backend = columns.backend.xp, columns.backend
    k, b = columns.shape
    ends = columns.joint_interval(half, low, high)
    if ends is not None:
        return ends
    search = _search_two if columns.plain and k == 2 and not half.tolerance else _search
    found = search(columns, half, low, high)
    zero = xp.zeros_like(columns.size)
    # The next larger value, where exactly half of the weight lies at or below ``found``.
    upto = columns.first(lambda i: columns.value(i) > found, zero, columns.size)
    infinity = xp.full((k, b), float("inf"), dtype=xp.float64, device=backend.device)
    following = xp.min(xp.where(upto < columns.size, columns.value(upto), infinity), axis=0)
    more = half.exceeded(columns.mass(upto)) | ~xp.isfinite(following)
    return found, xp.where(more, found, following)


def _search(columns: SortedColumns, half: JointHalf, low: Array, high: Array) -> Array:
    """The smallest value with at least half of the weight up to it, among any number of lists.

    A bisection over the K sorted lists at once, without merging them. Each round takes the middle
    item of what is left of each list, takes the weighted median of these K as the pivot, and drops
    all items on the wrong side of it: at least a quarter of what is left.
    """
    xp, backend = columns.backend.xp, columns.backend
    k = columns.shape[0]
    zero = xp.zeros_like(columns.size)
    classes = xp.arange(k, dtype=xp.int64, device=backend.device)[:, None]
    left = columns.first(lambda i: columns.value(i) >= low, zero, columns.size)
    right = columns.first(lambda i: columns.value(i) > high, left, columns.size)
    found = high
    most = int(xp.max(xp.sum(right - left, axis=0)))
    rounds = math.ceil(math.log(max(most, 1)) / math.log(4 / 3)) + 2
    for _ in range(rounds):
        active = right - left
        pivot, owner, own = _pivot(columns, left, active)
        is_owner = classes == owner

        # A total order on items: by value, then class, then position in the list.
        def after(i: Array, pivot: Array = pivot, owner: Array = owner) -> Array:
            value = columns.value(i)
            return (value > pivot) | ((value == pivot) & (classes > owner))

        split = columns.first(after, left, right)
        split = xp.where(is_owner, own + 1, split)
        some = xp.sum(active, axis=0) > 0
        reached = half.reached(columns.mass(split))
        found = xp.where(some & reached, pivot, found)
        right = xp.where(some & reached, xp.where(is_owner, own, split), right)
        left = xp.where(some & ~reached, split, left)
    return found


def _search_two(columns: SortedColumns, half: JointHalf, low: Array, high: Array) -> Array:
    """The same for two lists of unit weights: one bisection for each, a step of two look-ups.

    With i + 1 items of one list at or below its item i, the other must have a known number there.
    """
    xp, backend = columns.backend.xp, columns.backend
    goal = backend.asarray(half.goal, dtype=xp.int64)
    other = xp.flip(half.factor, axis=0)
    start, size = xp.flip(columns.start, axis=0), xp.flip(columns.size, axis=0)

    def enough(item: Array) -> Array:
        lacking = goal - (item + 1) * half.factor
        need = (lacking + other - 1) // other  # of the other list, rounded up
        last = columns.look_up(start + need - 1)
        return (need <= 0) | ((need <= size) & (last <= columns.value(item)))

    item = columns.first(enough, xp.zeros_like(columns.size), columns.size)
    infinity = xp.full(item.shape, float("inf"), dtype=xp.float64, device=backend.device)
    return xp.min(xp.where(item < columns.size, columns.value(item), infinity), axis=0)


def _pivot(columns: SortedColumns, left: Array, active: Array) -> tuple[Array, Array, Array]:
    """Value, class and position of the median of the lists' middles, weighted by their lengths."""
    xp = columns.backend.xp
    middle = left + active // 2
    infinity = xp.full(active.shape, float("inf"), dtype=xp.float64, device=columns.backend.device)
    value = xp.where(active > 0, columns.value(middle), infinity)
    # Stable: among equal middles the lower class comes first, as in the order on items.
    order = xp.argsort(value, axis=0, stable=True)
    length = xp.take_along_axis(active, order, axis=0)
    behind = xp.cumulative_sum(length, axis=0)
    at = xp.sum(xp.astype(2 * behind < xp.sum(active, axis=0), xp.int64), axis=0)
    last = xp.zeros_like(at) + (active.shape[0] - 1)
    at = xp.minimum(at, last)[None, :]
    owner = xp.take_along_axis(order, at, axis=0)
    pivot = xp.take_along_axis(value, owner, axis=0)
    own = xp.take_along_axis(middle, owner, axis=0)
    return pivot[0, :], owner, own


# --- centers -----------------------------------------------------------------------------------


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
        medians = partial(_medians, samples)
        for columns, parts in map_sorted_columns(block, medians, samples, ctx):
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


def _medians(samples: Samples, columns: SortedColumns) -> tuple[Array, Array, Array, Array]:
    """(free, tied, gain, loss of free) of some sorted columns, unscaled."""
    free, tied, gain = l1_medians(samples, columns)
    return free, tied, gain, l1_loss(samples, columns, free)


def l1_loss(samples: Samples, columns: SortedColumns | LabelledColumns, free: Array) -> Array:
    """The sum over the classes of the mean distance to centers ``free`` (K, b): (b,)."""
    backend, xp = columns.backend, columns.backend.xp
    return xp.sum(columns.distances(free) / backend.asarray(samples.class_weight)[:, None], axis=0)


def l1_medians(
    samples: Samples, columns: SortedColumns | LabelledColumns
) -> tuple[Array, Array, Array]:
    """(free, tied, gain) of some sorted columns, unscaled.

    ``gain = sum_c (1 / W_c) sum_j s_j (|x_j - tied| - |x_j - free_c|)``: eq. 18 with the other
    sign, summed term by term, so that nothing cancels. It is exactly zero where the intervals of
    medians of all classes share a point (Prop. 3 with its ties).
    """
    backend, xp = columns.backend, columns.backend.xp
    low, high = class_intervals(columns, ClassHalf.of(samples))
    free = midpoint(low, high)
    common_low, common_high = xp.max(low, axis=0), xp.min(high, axis=0)
    shared = common_low <= common_high
    w = backend.asarray(samples.class_weight)[:, None]
    tied = midpoint(common_low, common_high)
    if not backend.sync_is_expensive and bool(xp.all(shared)):
        return free, tied, xp.zeros_like(tied)
    # Elsewhere all joint medians lie between the intervals. (Where they share a point nothing is to
    # be searched, and an interval of one point costs no rounds.)
    start = xp.where(shared, common_low, common_high)
    joint = tied_interval(columns, JointHalf.of(samples), start, common_low)
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
