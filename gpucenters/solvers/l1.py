"""Sparse l1 centers: Definition 2, Prop. 2 and 3 and Algorithm 2 of Calafiore & Fracastoro."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..arrays import errors
from ..arrays.convert import Block, as_block
from ..arrays.devices import Place, resolve_place
from ..arrays.groups import Groups, check_every_class, group_rows
from ..arrays.ops import not_negative, to_float
from ..arrays.ordering import SortedColumns
from ..arrays.threads import run, thread_count
from ..arrays.typing import Array
from ..arrays.work import SortingPlan, Work, carry_out
from .centers import SparseCenters
from .l2 import class_moments
from .medians import Half, class_intervals, midpoint, tied_interval
from .scaling import check_scale, feature_scale

_WORTH_THREADS = 2**22  # values below which a pool of threads takes longer to set up than it saves


@dataclass(frozen=True)
class L1Centers(SparseCenters):
    """Sparse l1 centers; medians cannot be formed from sums, so both arrays are kept.

    Attributes
    ----------
    free_ : array of shape (K, m), float64
    tied_ : array of shape (m,), float64
    """

    free_: Array
    tied_: Array

    def at(self, columns: Array | None = None) -> tuple[Array, Array]:
        if columns is None:
            return self.free_, self.tied_
        xp = self.place.xp
        return xp.take(self.free_, columns, axis=1), xp.take(self.tied_, columns)

    def to(self, place: Place) -> L1Centers:
        scale = None if self.scale is None else place.move(self.scale)
        return replace(
            self,
            place=place,
            gain=place.move(self.gain),
            scale=scale,
            free_=place.move(self.free_),
            tied_=place.move(self.tied_),
        )


def solve_l1(block: Block, groups: Groups, work: Work, scale: str | None = None) -> L1Centers:
    """Sparse l1 centers of a block.

    Parameters
    ----------
    block : Block
    groups : Groups
        Each class with weight.
    work : Work
        The memory it may take.
    scale : {None, "std", "pooled"}

    Returns
    -------
    L1Centers
    """
    check_scale(scale)
    place, xp = block.place, block.place.xp
    sigma = None
    if scale is not None:
        moments = class_moments(block, groups, work, per_feature=True)
        sigma = feature_scale(moments.centred(), scale)
    groups = groups.with_equal_weights_as_one()
    k, (n, m) = groups.n_classes, block.shape
    # Right for each column whose medians all are zero; the others are sorted and overwritten.
    loss = block.loss_at_zero(groups)
    finite = bool(xp.all(xp.isfinite(loss)))
    free, tied, gain = place.zeros((k, m)), place.zeros(m), place.zeros(m)

    if finite:
        threads = thread_count(place) if n * m >= _WORTH_THREADS else 1
        for plan in block.sorting_plans(groups, work.shared_by(threads)):
            results = run(partial(_solve_range, plan, groups), plan.ranges, place, threads)
            for found in work.progress(results, len(plan.ranges), "columns sorted"):
                for columns, parts in found:
                    free[:, columns], tied[columns], gain[columns], loss[columns] = parts
        # The loss has read every value.
        finite = bool(xp.all(xp.isfinite(loss)))
    if not finite:
        block.check_finite(squares=False)
        errors.raise_overflow(int(xp.nonzero(~xp.isfinite(loss))[0][0]))
    if sigma is not None:
        gain, loss = gain / sigma, loss / sigma
    total = to_float(xp.sum(loss))
    if not bool(xp.all(xp.isfinite(gain))) or total - total != 0:
        bad = xp.nonzero(~(xp.isfinite(gain) & xp.isfinite(loss)))[0]
        errors.raise_overflow(int(bad[0]) if bad.shape[0] else 0)
    return L1Centers(place, tuple(groups.weight), gain, total, sigma, free, tied)


def _solve_range(
    plan: SortingPlan, groups: Groups, cut: tuple[int, int]
) -> list[tuple[Any, tuple[Array, Array, Array, Array]]]:
    """Columns and their centers, for a range of columns; in halves where memory runs out."""
    left, right = cut
    try:
        found = plan.sort(left, right)
        return [] if found is None else [(found[0], _medians(found[1], groups))]
    except MemoryError as error:
        found = None  # it would take up what the halves need
        if right - left == 1:
            raise MemoryError(
                f"a column of {len(groups.codes)} samples does not fit into memory while it is "
                "sorted."
            ) from error
    middle = (left + right) // 2
    halves = ((left, middle), (middle, right))
    return [part for half in halves for part in _solve_range(plan, groups, half)]


def _medians(lists: SortedColumns, groups: Groups) -> tuple[Array, Array, Array, Array]:
    """(free, tied, gain, loss of free) of some sorted columns."""
    place, xp = lists.place, lists.place.xp
    weight, n, whole = groups.weight, sum(groups.count), groups.whole
    low, high = class_intervals(lists, weight, n, whole)
    free = midpoint(low, high, lists)
    # Prop. 3 with its ties: freeing a feature saves nothing, exactly, where the intervals of the
    # classes share a point. Else all joint medians lie between them.
    common_low, common_high = xp.max(low, axis=0), xp.min(high, axis=0)
    shared = common_low <= common_high
    w = place.asarray(weight)[:, None]
    tied = midpoint(common_low, common_high, lists)
    (losses,) = lists.weighted_sums(lambda x, center: (xp.abs(x - center),), free)
    loss = xp.sum(losses / w, axis=0)
    if not place.stalls and bool(xp.all(shared)):
        return free, tied, xp.zeros_like(tied), loss
    half = Half.of(lists, weight, n, whole)
    # (Where nothing is to be searched, an interval of one point costs no rounds.)
    start = xp.where(shared, common_low, common_high)
    tied_low, tied_high = tied_interval(lists, half, start, common_low)
    tied = xp.where(shared, tied, midpoint(tied_low, tied_high, lists))
    excess = lists.excess(free, tied[None, :] + xp.zeros_like(free))
    gain = xp.where(shared, xp.zeros_like(tied), not_negative(xp.sum(excess / w, axis=0)))
    return free, tied, gain, loss


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
    X : array or CSR/CSC matrix of shape (n, m)
        Of any library and any real type. Left as it is.
    y : array of integers of shape (n,)
        Classes 0..K-1.
    n_classes : int, optional
        K; by default the largest code + 1.
    sample_weight : array of shape (n,), optional
        Weights count as repetitions; 0 leaves a sample out.
    scale : {None, "std", "pooled"}, optional
        Divide each feature by its standard deviation, over all samples or pooled within classes.
    device : {None, "cpu", "cuda", "cuda:N", "auto"}, optional
        Where to work; None follows X.
    memory_budget : int or str, optional
        Workspace beyond X and the result, in bytes or as "2GB"; a quarter of what is free.

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

    def solve(place: Place, work: Work) -> L1Centers:
        block = as_block(X, place)
        groups = group_rows(y, block.shape[0], place, n_classes=n_classes, weights=sample_weight)
        check_every_class(groups)
        return solve_l1(block, groups, work, scale)

    return carry_out(solve, resolve_place(device, X), memory_budget)
