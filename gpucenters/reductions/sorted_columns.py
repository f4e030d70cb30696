"""Sorted columns: the values of each class in each column, ascending, with their weights.

Medians are computed from this form, which dense and sparse data share. A column of one class is a
list of *items*. In a dense block an item is a sample. In a sparse block all zeros of the column,
stored or not, are one item with their joint weight.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ..arrays import kernels
from ..arrays.backend import Backend
from ..arrays.context import Context
from ..arrays.functions import add_at, to_floats
from ..arrays.grid import ranges
from ..arrays.sorting import ClassLists, sorted_lines, sorted_lines_of_rows
from ..arrays.threads import Scratch
from ..arrays.typing import Array
from ..blocks.samples import Samples
from .half_weight import ClassHalf, JointHalf, weighted_interval

_CACHED = 2  # chunks that a cache holds while few values of each line are sorted
_LONG_LIST = 256  # items from which on a search for the relevant ones saves time


@dataclass(frozen=True)
class SortedColumns:
    """Items of K classes in b columns.

    Attributes
    ----------
    backend : Backend
    values : array of shape (N,)
        All stored values; those of one class and column are contiguous and ascending.
    start : array of int64 of shape (K, b)
        Where they begin.
    size : array of int64 of shape (K, b)
        How many items there are, the zero item included.
    depth : int
        Bound on the steps of a bisection over the items of one list.
    zero_at : array of int64 of shape (K, b) or None
        Position of the zero item; not below ``size`` where there is none. None: no list has one.
    zero_mass : array of shape (K, b) or None
        Its weight, int64 where weights are counts.
    weights, cumulative : array of shape (N,) or None
        Weights of the stored values and their running sum within each list; None counts each once.
    """

    backend: Backend
    values: Array
    start: Array
    size: Array
    depth: int
    zero_at: Array | None = None
    zero_mass: Array | None = None
    weights: Array | None = None
    cumulative: Array | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """(K, b)."""
        return self.size.shape

    def _stored(self, item: Array) -> Array:
        """How many stored values come before ``item``: all items but the zero item are stored."""
        if self.zero_at is None:
            return item
        xp = self.backend.xp
        return item - xp.astype(item > self.zero_at, xp.int64)

    def _take(self, array: Array, position: Array) -> Array:
        xp = self.backend.xp
        if array.shape[0] == 0:
            return self.backend.zeros(position.shape, array.dtype)
        zero = xp.zeros_like(position)
        inside = xp.minimum(xp.maximum(position, zero), zero + (array.shape[0] - 1))
        return xp.reshape(xp.take(array, xp.reshape(inside, (-1,))), position.shape)

    @property
    def plain(self) -> bool:
        """Whether each item is one stored value of weight one."""
        return self.zero_at is None and self.cumulative is None

    def look_up(self, position: Array) -> Array:
        """Stored values (float64) by their position; unspecified for positions out of range."""
        return self.backend.xp.astype(self._take(self.values, position), self.backend.xp.float64)

    def value(self, item: Array) -> Array:
        """The value of each item (float64); unspecified for items out of range."""
        xp = self.backend.xp
        stored = self.look_up(self.start + self._stored(item))
        if self.zero_at is None:
            return stored
        return xp.where(item == self.zero_at, self.backend.asarray(0.0), stored)

    def mass(self, item: Array) -> Array:
        """The weight of all items before ``item``."""
        xp = self.backend.xp
        stored = self._stored(item)
        if self.cumulative is None:
            mass = stored
        else:
            before = self._take(self.cumulative, self.start + stored - 1)
            mass = xp.where(stored > 0, before, self.backend.zeros((), before.dtype))
        if self.zero_at is None:
            return mass
        passed = xp.astype(item > self.zero_at, mass.dtype)
        return mass + passed * self.zero_mass

    def first(self, predicate: Callable[[Array], Array], low: Array, high: Array) -> Array:
        """The first item in low..high for which a monotone predicate holds, by bisection."""
        xp = self.backend.xp
        for _ in range(self.depth):
            middle = (low + high) // 2
            holds = predicate(middle)
            open_ = low < high
            high = xp.where(open_ & holds, middle, high)
            low = xp.where(open_ & ~holds, middle + 1, low)
        return low

    def class_intervals(self, half: ClassHalf) -> tuple[Array, Array] | None:
        """Ends of the interval of medians of each list, two of shape (K, b), by one kernel.

        None where there is no CUDA.
        """
        if not self.backend.sync_is_expensive:
            return None
        return kernels.class_intervals(self, half.least, half.most)

    def joint_interval(
        self, half: JointHalf, low: Array, high: Array
    ) -> tuple[Array, Array] | None:
        """Ends of the interval of joint medians, two of shape (b,), without a search step by step.

        By one kernel on CUDA, or from all items of a column. None where these do not lie side by
        side, or two lists are searched as fast.

        Parameters
        ----------
        half : JointHalf
        low, high : arrays of shape (b,)
            Items between which the interval lies.
        """
        if not self.backend.sync_is_expensive:
            return None
        least, most = half.goal - half.tolerance, half.goal + half.tolerance
        return kernels.joint_intervals(self, half.factor, least, most, low, high)

    def weighted_sums(self, f: Callable[..., Array], *parameters: Array) -> Array:
        """Sums over the items x of their weight times ``f(x, *p)``.

        Parameters
        ----------
        f : callable, elementwise
            Its p are the list's own parameters.
        *parameters : arrays of shape (K, b)

        Returns
        -------
        array of shape (K, b), float64
        """
        raise NotImplementedError

    def _sums(self, f: Callable[..., Array], ends: tuple[Array, ...], *parameters: Array) -> Array:
        """`weighted_sums` of a function of distances to ``ends``; on CUDA by one kernel."""
        if not self.backend.sync_is_expensive:
            return self.weighted_sums(f, *parameters)
        stored = self._stored(self.size)
        sums = kernels.distance_sums(self.values, self.start, stored, self.weights, *ends)
        if self.zero_mass is None:
            return sums
        at_zero = f(self.backend.zeros(self.shape), *parameters)
        return sums + self.backend.xp.astype(self.zero_mass, sums.dtype) * at_zero

    def distances(self, center: Array) -> Array:
        """Sums of weight times |x - center| over the items: (K, b), as the centers."""
        return self._sums(lambda x, center: abs(x - center), (center,), center)

    def loss_difference(self, center: Array, other: Array) -> Array:
        """Sum of weight times (|x - other| - |x - center|) over the items, without cancellation.

        Beyond the two points it is plus or minus their distance, so x may be clipped to the
        interval between them, however far away it is.
        """
        xp, towards = self.backend.xp, other - center
        nothing = xp.zeros_like(towards)
        ends = xp.minimum(towards, nothing), xp.maximum(towards, nothing)

        def terms(x: Array, center: Array, low: Array, high: Array, half: Array) -> Array:
            return half - xp.minimum(xp.maximum(x - center, low), high)

        halves = self._sums(terms, (center, other), center, *ends, 0.5 * towards)
        return 2 * xp.where(other < center, -halves, halves)


@dataclass(frozen=True)
class DenseSortedColumns(SortedColumns):
    """Lists that lie side by side: column after column, each with its K classes.

    Attributes
    ----------
    lists : ClassLists
        How they lie in a column.
    chunk : int
        Elements that are summed in one go.
    """

    lists: ClassLists | None = None
    chunk: int = 0

    @property
    def table(self) -> Array:
        """The values, a line for each column: (b, n)."""
        return self.backend.xp.reshape(self.values, (self.shape[1], -1))

    def joint_interval(
        self, half: JointHalf, low: Array, high: Array
    ) -> tuple[Array, Array] | None:
        xp, lists, table = self.backend.xp, self.lists, self.table
        assert lists is not None
        two = self.plain and self.shape[0] == 2 and not half.tolerance
        if two or self.backend.sync_is_expensive:
            return super().joint_interval(half, low, high)
        weight = xp.take(half.factor[:, 0], lists.codes)[None, :]
        one_of_each = math.hypot(*to_floats(half.factor[:, 0]))
        if self.weights is not None:
            own = xp.reshape(self.weights, table.shape)
            weight, one_of_each = weight * xp.astype(own, weight.dtype), math.inf
        ends = half.goal - half.tolerance, half.goal + half.tolerance
        return weighted_interval(
            table, weight, *ends, (low, high), _CACHED * self.chunk, one_of_each
        )

    def weighted_sums(self, f: Callable[..., Array], *parameters: Array) -> Array:
        xp, lists = self.backend.xp, self.lists
        assert lists is not None
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

    def loss_difference(self, center: Array, other: Array) -> Array:
        xp = self.backend.xp
        assert self.lists is not None
        counts, offsets = self.lists.counts.tolist(), self.lists.offsets.tolist()
        if not self.plain or max(counts) < _LONG_LIST or self.backend.sync_is_expensive:
            return super().loss_difference(center, other)
        # The items are in order: only those between the two points in some column need a look.
        low, high = xp.minimum(center, other), xp.maximum(center, other)
        nothing = xp.zeros_like(self.size)
        first = self.first(lambda item: self.value(item) > low, nothing, self.size)
        last = self.first(lambda item: self.value(item) >= high, first, self.size)
        towards = other - center
        outside = xp.astype(first - (self.size - last), xp.float64) * towards
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


@dataclass(frozen=True)
class SparseSortedColumns(SortedColumns):
    """Lists of any length, one after the other.

    Attributes
    ----------
    segment : array of int64 of shape (N,)
        The list of each stored value: class times b plus column.
    """

    segment: Array | None = None

    def weighted_sums(self, f: Callable[..., Array], *parameters: Array) -> Array:
        xp = self.backend.xp
        x = xp.astype(self.values, xp.float64)
        terms = f(x, *(xp.take(xp.reshape(p, (-1,)), self.segment) for p in parameters))
        terms = terms if self.weights is None else terms * self.weights
        stored = self.backend.zeros(self.shape[0] * self.shape[1])
        add_at(stored, self.segment, terms)
        at_zero = f(self.backend.zeros(self.shape), *parameters)
        return xp.reshape(stored, self.shape) + xp.astype(self.zero_mass, xp.float64) * at_zero


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
    backend, b = ctx.backend, chunk.shape[1]
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
    line_starts = lists.size * xp.arange(b, dtype=xp.int64, device=backend.device)
    start = backend.asarray(lists.offsets, dtype=xp.int64)[:, None] + line_starts
    size = backend.asarray(lists.counts, dtype=xp.int64)[:, None] + xp.zeros_like(start)
    return DenseSortedColumns(
        backend=backend,
        values=xp.reshape(table, (-1,)),
        start=start,
        size=size,
        depth=int(lists.counts.max()).bit_length() + 1,
        weights=sorted_weights,
        cumulative=cumulative,
        lists=lists,
        chunk=ctx.chunk,
    )
