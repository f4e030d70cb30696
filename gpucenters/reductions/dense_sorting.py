"""Sorted columns of dense data: all lists of a column lie side by side."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..arrays.backend import backend_of
from ..arrays.context import Context
from ..arrays.functions import to_floats
from ..arrays.namespace import array_namespace, is_numpy, to_numpy
from ..arrays.schedule import Scratch, ranges
from ..arrays.sorting import ClassLists, sorted_lines, sorted_lines_of_rows
from ..arrays.typing import Array
from ..blocks.samples import Samples
from .sorted_columns import JointHalf, SortedColumns

_CACHED_CHUNKS = 2  # that a cache holds while few values of each line are sorted
_FEW_VALUES = 2**16  # of all lists, which are compared in less time than bisections take
_LONG_LIST = 256  # items from which on a search for the relevant ones saves time
_WORTH_SAMPLING = 512  # values of a line
_DEVIATIONS = 1.5  # three standard deviations of a sample, each value of which is at random
_OF_RUNS = 1.6  # the same of one from ascending runs, where each run misses by a value at most


@dataclass(frozen=True, kw_only=True)
class DenseSortedColumns(SortedColumns):
    """Lists that lie side by side: column after column, each with its K classes.

    Attributes
    ----------
    lists : ClassLists
        How they lie in a column.
    chunk : int
        Elements that are summed in one go.
    """

    lists: ClassLists
    chunk: int

    @property
    def table(self) -> Array:
        """The values, a line for each column: (b, n)."""
        return self.backend.xp.reshape(self.values, (self.shape[1], -1))

    def _joint_interval(self, half: JointHalf, low: Array, high: Array) -> tuple[Array, Array]:
        xp, table = self.backend.xp, self.table
        if (
            self.has_unit_items and self.shape[0] == 2 and half.is_exact
        ):  # two lists are searched as fast
            return super()._joint_interval(half, low, high)
        weight = xp.take(half.factor[:, 0], self.lists.codes)[None, :]
        one_of_each = math.hypot(*to_floats(half.factor[:, 0]))
        if self.weights is not None:
            own = xp.reshape(self.weights, table.shape)
            weight, one_of_each = weight * xp.astype(own, weight.dtype), math.inf
        ends, size = (half.least, half.most), _CACHED_CHUNKS * self.chunk
        return weighted_interval(table, weight, *ends, (low, high), size, one_of_each)

    def weighted_sums(self, f: Callable[..., Array], *parameters: Array) -> Array:
        xp, lists = self.backend.xp, self.lists
        b, table = self.shape[1], self.table
        weights = None if self.weights is None else xp.reshape(self.weights, table.shape)
        groups: list[Array] = []
        of_lists = [xp.permute_dims(lists.by_list(p), (1, 0)) for p in parameters]
        for group in lists.groups:
            sums, shape = [], (b, group.n_lists, -1)
            # As many columns at a time as a cache holds.
            cuts = ranges(b, max(1, self.chunk // (4 * (group.rows.stop - group.rows.start))))
            values = xp.reshape(table[:, group.rows], shape)
            own = [p[:, group.lists][:, :, None] for p in of_lists]
            s = None if weights is None else xp.reshape(weights[:, group.rows], shape)
            for left, right in cuts:
                x = xp.astype(values[left:right, :, :], xp.float64)
                terms = f(x, *(p[left:right, :, :] for p in own))
                terms = terms if s is None else terms * s[left:right, :, :]
                sums.append(xp.sum(terms, axis=2))
            groups.append(xp.concat(sums))
        return lists.by_class(xp.permute_dims(xp.concat(groups, axis=1), (1, 0)))

    def items_below(self, bound: Array, *, or_equal: bool = False) -> Array:
        xp = self.backend.xp
        many = self.values.shape[0] > _FEW_VALUES or self.backend.sync_is_expensive
        if many or self.weights is not None:
            return super().items_below(bound, or_equal=or_equal)

        def is_below(x: Array, bound: Array) -> Array:
            return xp.astype(x <= bound if or_equal else x < bound, xp.float64)

        counts = self.weighted_sums(is_below, xp.broadcast_to(bound, self.shape))
        return xp.astype(counts, xp.int64)

    def loss_difference(self, center: Array, other: Array) -> Array:
        xp = self.backend.xp
        counts, offsets = self.lists.counts.tolist(), self.lists.offsets.tolist()
        if not self.has_unit_items or max(counts) < _LONG_LIST or self.backend.sync_is_expensive:
            return super().loss_difference(center, other)
        # The items are in order: only those between the two points in some column need a look.
        low, high = xp.minimum(center, other), xp.maximum(center, other)
        # (Without a value between them, as where they are equal, the last is not before the first.)
        first = self.items_below(low, or_equal=True)
        last = xp.maximum(first, self.items_below(high))
        towards = other - center
        outside = xp.astype(first - (self.n_items - last), xp.float64) * towards
        table, sums = self.table, []
        for c, start in enumerate(offsets):
            left, right = int(xp.min(first[c, :])), int(xp.max(last[c, :]))
            right = max(left, right)
            x = xp.astype(table[:, start + left : start + right], xp.float64)
            item = xp.arange(left, right, dtype=xp.int64, device=self.backend.device)
            between = (item >= first[c, :][:, None]) & (item < last[c, :][:, None])
            terms = xp.abs(x - other[c, :][:, None]) - xp.abs(x - center[c, :][:, None])
            sums.append(xp.sum(xp.where(between, terms, xp.zeros_like(terms)), axis=1))
        return outside + xp.stack(sums)


def sort_columns(
    chunk: Array,
    lists: ClassLists,
    weights: Array | None,
    samples: Samples,
    ctx: Context,
    scratch: Scratch,
) -> DenseSortedColumns:
    """The columns of a dense chunk, sorted within each class.

    Values alone are sorted; only unequal weights make them be sorted with their positions.

    Parameters
    ----------
    chunk : array of shape (n, b)
    lists : ClassLists
        The rows of each class.
    weights : array of shape (n,), float64, or None
        Those of all rows, where they differ.
    samples : Samples
    ctx : Context
    scratch : Scratch
        Holds the values: they are valid until the thread sorts the next columns.
    """
    backend, b = samples.backend, chunk.shape[1]
    xp = backend.xp
    sorted_weights = cumulative = None
    if weights is None:
        table = sorted_lines(chunk, lists, scratch)
    else:
        table, origin = sorted_lines_of_rows(chunk, lists)
        ws = xp.reshape(xp.take(weights, xp.reshape(origin, (-1,))), origin.shape)
        exact = xp.astype(ws, xp.int64 if samples.has_integer_weights else xp.float64)
        sums = []
        for group in lists.groups:
            part = xp.reshape(exact[:, group.rows], (b, group.n_lists, -1))
            sums.append(xp.reshape(xp.cumulative_sum(part, axis=2), (b, -1)))
        sorted_weights = xp.reshape(ws, (-1,))
        cumulative = xp.reshape(xp.concat(sums, axis=1), (-1,))
    line_starts = lists.n_rows * xp.arange(b, dtype=xp.int64, device=backend.device)
    start = backend.asarray(lists.offsets, dtype=xp.int64)[:, None] + line_starts
    n_items = backend.asarray(lists.counts, dtype=xp.int64)[:, None] + xp.zeros_like(start)
    return DenseSortedColumns(
        samples=samples,
        values=xp.reshape(table, (-1,)),
        start=start,
        n_items=n_items,
        bisections=int(lists.counts.max()).bit_length() + 1,
        weights=sorted_weights,
        cumulative=cumulative,
        lists=lists,
        chunk=ctx.chunk,
    )


# Where the weights of unordered values reach half: without sorting more than a few of the values.
#
# Bounds come from a sample; the weight below them is summed, and the values between them are
# sorted. So the result is exact, and how good the sample is decides on the time alone.


def weighted_interval(
    table: Array,
    weight: Array,
    least: float,
    most: float,
    bounds: tuple[Array, Array],
    size: int,
    run_weight: float = math.inf,
) -> tuple[Array, Array]:
    """Ends of the interval, for each line, where the weights up to a value are from least to most.

    Its low end is the smallest value up to which the weights sum to ``least`` or more. Its high end
    is the next larger value if they sum to no more than ``most``, else the same.

    Parameters
    ----------
    table : array of shape (b, n)
        A line of values for each column.
    weight : array of shape (1, n) or (b, n)
        Those of the values, float64 or int64, positive.
    least, most : int or float
    bounds : two arrays of shape (b,)
        Values of the line between which the interval lies.
    size : int
        Values that are worked on in one go.
    run_weight : float
        Where lines are runs of ascending values with equal weights: the norm of one of each run.
    """
    xp, (b, n) = array_namespace(table), table.shape
    low, high = (xp.astype(bound, table.dtype) for bound in bounds)
    ends = []
    for cut in ranges(b, max(1, size // n)):
        part = slice(*cut)
        own = weight if weight.shape[0] == 1 else weight[part, :]
        ends.append(_of_lines(table[part, :], own, least, most, low[part], high[part], run_weight))
    one, other = (xp.astype(xp.concat(list(end)), xp.float64) for end in zip(*ends, strict=True))
    return one, other


def _of_lines(
    table: Array,
    weight: Array,
    least: float,
    most: float,
    low: Array,
    high: Array,
    run_weight: float,
) -> tuple[Array, Array]:
    xp, near = array_namespace(table), (low, high)
    if table.shape[1] >= _WORTH_SAMPLING:
        left, right = _estimate(table, weight, least, run_weight)
        near = xp.minimum(xp.maximum(low, left), high), xp.maximum(xp.minimum(high, right), low)
    found, following, sure = _between(table, weight, least, most, *near)
    if not bool(xp.all(sure)):
        line = xp.nonzero(~sure)[0]
        own = weight if weight.shape[0] == 1 else xp.take(weight, line, axis=0)
        bounds = (xp.take(bound, line) for bound in (low, high))
        again = _between(xp.take(table, line, axis=0), own, least, most, *bounds)
        place = xp.cumulative_sum(xp.astype(~sure, xp.int64))
        place = xp.maximum(place, xp.ones_like(place)) - 1
        found, following = (
            xp.where(sure, one, xp.take(other, place))
            for one, other in zip((found, following), again[:2], strict=True)
        )
    return found, following


def _estimate(table: Array, weight: Array, least: float, run_weight: float) -> tuple[Array, Array]:
    """Values of each line between which the weights most likely reach ``least``."""
    xp, n = array_namespace(table), table.shape[1]
    step = max(1, round(n ** (1 / 3)))
    x, w = table[:, step // 2 :: step], xp.astype(weight[:, step // 2 :: step], xp.float64)
    spread = _DEVIATIONS * xp.sqrt(xp.sum(w * w, axis=1))
    if math.isfinite(run_weight):
        spread = xp.minimum(spread, xp.full_like(spread, _OF_RUNS * run_weight))
    goal = xp.sum(w, axis=1) * (float(least) / xp.sum(xp.astype(weight, xp.float64), axis=1))
    x, w = _in_order(x, xp.broadcast_to(w, x.shape))
    upto = xp.cumulative_sum(w, axis=1)

    def at(weight: Array) -> Array:
        item = xp.sum(xp.astype(upto < weight[:, None], xp.int64), axis=1)[:, None]
        item = xp.minimum(item, xp.zeros_like(item) + (x.shape[1] - 1))
        return xp.take_along_axis(x, item, axis=1)[:, 0]

    left, middle, right = at(goal - spread), at(goal), at(goal + spread)
    # A value that many samples have is most likely the one.
    tied = (left == middle) | (middle == right)
    return xp.where(tied, middle, left), xp.where(tied, middle, right)


def _in_order(x: Array, w: Array) -> tuple[Array, Array]:
    """The values of each line, ascending, and their weights."""
    xp, (b, n) = array_namespace(x), x.shape
    order = xp.argsort(x, axis=1, stable=False)
    # (`take_along_axis` takes several times as long.)
    at = xp.reshape(order + n * backend_of(x).arange(b)[:, None], (-1,))
    x, w = (xp.reshape(xp.take(xp.reshape(a, (-1,)), at), (b, n)) for a in (x, w))
    return x, w


def _sum_where(mask: Array, weight: Array) -> Array:
    """The weights of each line where the mask is true, added up: (b,)."""
    xp = array_namespace(weight)
    if is_numpy(xp):  # several times as fast, for it makes no array of all weights
        host = to_numpy(mask)
        return np.einsum("ij,ij->i", host, np.broadcast_to(to_numpy(weight), host.shape))
    return xp.sum(xp.where(mask, weight, xp.zeros_like(weight[:1, :1])), axis=1)


def _between(
    table: Array, weight: Array, least: float, most: float, low: Array, high: Array
) -> tuple[Array, Array, Array]:
    """The ends of the interval, and whether they are sure to lie between these bounds.

    Only values strictly between the bounds are sorted: those of data with few values are few.
    """
    xp, backend, (b, n) = array_namespace(table), backend_of(table), table.shape
    low, high = low[:, None], high[:, None]
    upto_low = table <= low
    before, at_low, total = (
        _sum_where(mask, weight)[:, None] for mask in (table < low, upto_low, table <= high)
    )
    entry = xp.nonzero(xp.reshape((table < high) & ~upto_low, (-1,)))[0]
    values, behind = [low, high], [at_low, total]
    if entry.shape[0]:
        first = xp.searchsorted(entry, n * backend.arange(b + 1))
        start, count = first[:-1, None], (first[1:] - first[:-1])[:, None]
        slot = xp.zeros_like(start) + backend.arange(int(xp.max(count)))[None, :]
        used = slot < count
        position = xp.reshape(xp.where(used, start + slot, xp.zeros_like(slot)), (-1,))
        entry = xp.take(entry, position)
        x = xp.reshape(xp.take(xp.reshape(table, (-1,)), entry), used.shape)
        index = entry % n if weight.shape[0] == 1 else entry
        w = xp.reshape(xp.take(xp.reshape(weight, (-1,)), index), used.shape)
        x, w = _in_order(xp.where(used, x, high), xp.where(used, w, xp.zeros_like(w[:1, :1])))
        values.insert(1, x)
        behind.insert(1, at_low + xp.cumulative_sum(w, axis=1))
    x, upto = xp.concat(values, axis=1), xp.concat(behind, axis=1)

    def number(mask: Array) -> Array:
        return xp.sum(xp.astype(mask, xp.int64), axis=1)[:, None]

    at = number(upto < least)
    last = xp.zeros_like(at) + (x.shape[1] - 1)
    found = xp.take_along_axis(x, xp.minimum(at, last), axis=1)
    after = number(x <= found)
    more = xp.take_along_axis(upto, after - 1, axis=1) > most
    following = xp.take_along_axis(x, xp.minimum(after, last), axis=1)
    sure = (before < least) & (at <= last) & (more | (after <= last))
    found, following, sure = (a[:, 0] for a in (found, xp.where(more, found, following), sure))
    return found, following, sure
