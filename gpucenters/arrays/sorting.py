"""Sorting: chunks column by column and class by class, values within segments, and thresholds."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from . import kernels
from .backend import Backend
from .cached import cached_property
from .namespace import array_namespace, is_cupy, is_numpy
from .schedule import Scratch
from .typing import Namespace
from .typing import NumPyOrCuPy as Array

_SEPARATE_CLASSES = 8  # up to which each is a group: its values fit better into the cache
_LONG_SEGMENT = 32  # entries from which on one sort call a segment costs less than a joint sort
_CELLS_PER_THRESHOLD = 2**7
_MOST_CELLS = 2**18
_BELOW_CELLS = 64  # one threshold in so many lies below the cells


class Group(NamedTuple):
    """Lists with equally many rows, which lie side by side.

    Attributes
    ----------
    lists : slice
        Their numbers, in the order in which they lie.
    rows : slice
        Where their rows lie.
    """

    lists: slice
    rows: slice

    @property
    def n_lists(self) -> int:
        """How many lists there are."""
        return self.lists.stop - self.lists.start


@dataclass(frozen=True)
class ClassLists:
    """The rows of K classes, a list each; of many classes, those of equal size lie side by side.

    So one call sorts the lists of all classes of one size.

    Attributes
    ----------
    backend : Backend
    rows : list of K arrays of integers
        The rows of each class, on the host.
    """

    backend: Backend
    rows: list[np.ndarray]

    @cached_property
    def counts(self) -> np.ndarray:
        """The number of rows of each class: (K,), on the host."""
        return np.asarray([len(r) for r in self.rows], dtype=np.int64)

    @cached_property
    def _classes(self) -> np.ndarray:
        """The class of each list."""
        if len(self.rows) <= _SEPARATE_CLASSES:
            return np.arange(len(self.rows))
        return np.argsort(self.counts, kind="stable")

    @cached_property
    def offsets(self) -> np.ndarray:
        """Where the rows of each class begin: (K,), on the host."""
        ends = np.cumsum(self.counts[self._classes])
        found = np.empty_like(ends)
        found[self._classes] = ends - self.counts[self._classes]
        return found

    @property
    def n_rows(self) -> int:
        """The number of rows of all classes."""
        return int(self.counts.sum())

    @cached_property
    def order(self) -> Array:
        """The rows as they lie: (n,)."""
        return self.backend.asarray(np.concatenate([self.rows[c] for c in self._classes]))

    @cached_property
    def codes(self) -> Array:
        """The class of each row as they lie: (n,)."""
        return self.backend.asarray(np.repeat(self._classes, self.counts[self._classes]))

    @cached_property
    def place(self) -> Array:
        """The number of the list of each row as they lie: (n,)."""
        lists = np.arange(len(self.rows), dtype=np.int32)
        return self.backend.asarray(np.repeat(lists, self.counts[self._classes]))

    @cached_property
    def _index(self) -> tuple[Array, Array] | None:
        """The class of each list and the list of each class; None where these are the same."""
        if len(self.rows) <= _SEPARATE_CLASSES:
            return None
        both = self._classes, np.argsort(self._classes)
        return self.backend.asarray(both[0]), self.backend.asarray(both[1])

    def by_list(self, of_classes: Array) -> Array:
        """An array of K rows, one for each class, in the order of the lists."""
        index = self._index
        return of_classes if index is None else self.backend.xp.take(of_classes, index[0], axis=0)

    def by_class(self, of_lists: Array) -> Array:
        """An array of K rows, one for each list, in the order of the classes."""
        index = self._index
        return of_lists if index is None else self.backend.xp.take(of_lists, index[1], axis=0)

    @cached_property
    def groups(self) -> list[Group]:
        """The lists of each size; where there are few classes, each list."""
        sizes, k = self.counts[self._classes], len(self.rows)
        first = np.arange(k) if k <= _SEPARATE_CLASSES else np.unique(sizes, return_index=True)[1]
        found, start = [], 0
        for left, right in itertools.pairwise([*first.tolist(), k]):
            stop = start + int(sizes[left]) * (right - left)
            found.append(Group(slice(left, right), slice(start, stop)))
            start = stop
        return found


def sorted_lines(chunk: Array, lists: ClassLists, scratch: Scratch) -> Array:
    """Each column of a chunk as a line, the rows of each class sorted within it: (b, n).

    On the host in the memory of ``scratch``. CuPy uses a radix sort for one-dimensional arrays of
    numbers, and a much slower sort by comparison: so the lines are sorted as one array there.
    """
    xp = array_namespace(chunk)
    if is_cupy(xp):
        return _sort_flat(chunk, lists, xp)
    if is_numpy(xp):
        table = scratch.empty((chunk.shape[1], lists.n_rows), chunk.dtype)
        for group in lists.groups:
            part = table[:, group.rows]
            # (`take` would copy the whole of a chunk that is not contiguous.)
            part[...] = chunk[lists.order[group.rows], :].T
            part.reshape(part.shape[0], group.n_lists, -1).sort(axis=2)  # a view
        return table
    line = xp.permute_dims(xp.take(chunk, lists.order, axis=0), (1, 0))
    b, parts = line.shape[0], []
    for group in lists.groups:
        part = _by_list(line, group)
        parts.append(xp.reshape(xp.sort(part, axis=2, stable=False), (b, -1)))
    return xp.concat(parts, axis=1)


def _sort_flat(chunk: Array, lists: ClassLists, xp: Namespace) -> Array:
    """`sorted_lines` by sorts of one dimension.

    float32: keys of list and value in one number, sorted once; 16 bytes of workspace an element,
    and as much for the sort. float64: by value, and then, stable, by list; 40 bytes and the sorts'.
    """
    n, b = lists.n_rows, chunk.shape[1]
    if chunk.dtype == xp.float32:
        keys = xp.sort(_keys(chunk, lists, xp), stable=False)
        return xp.reshape(kernels.unpack_values(keys[: n * b]), (b, n))
    values, segment = _in_lists(chunk, lists, xp)
    return xp.reshape(xp.take(values, _by_segment(values, segment, xp)), (b, n))


def sorted_lines_of_rows(chunk: Array, lists: ClassLists) -> tuple[Array, Array]:
    """`sorted_lines`, and the row of the chunk that each value is from: two (b, n) arrays."""
    xp = array_namespace(chunk)
    if is_cupy(xp):
        return _sort_flat_with_rows(chunk, lists, xp)
    # One line a column, so that each sort runs over contiguous memory.
    line = xp.permute_dims(xp.take(chunk, lists.order, axis=0), (1, 0))
    rows = lists.order[None, :] + xp.zeros(line.shape, dtype=lists.order.dtype, device=line.device)
    b, values, origin = line.shape[0], [], []
    for group in lists.groups:
        part, of_rows = _by_list(line, group), _by_list(rows, group)
        order = xp.argsort(part, axis=2, stable=True)
        values.append(xp.reshape(xp.take_along_axis(part, order, axis=2), (b, -1)))
        origin.append(xp.reshape(xp.take_along_axis(of_rows, order, axis=2), (b, -1)))
    return xp.concat(values, axis=1), xp.concat(origin, axis=1)


def _by_list(line: Array, group: Group) -> Array:
    """The part of lines that holds the classes of one size: (b, lists, size)."""
    xp = array_namespace(line)
    return xp.reshape(line[:, group.rows], (line.shape[0], group.n_lists, -1))


def _sort_flat_with_rows(chunk: Array, lists: ClassLists, xp: Namespace) -> tuple[Array, Array]:
    """`sorted_lines_of_rows` by sorts of one dimension."""
    n, b = lists.n_rows, chunk.shape[1]
    if chunk.dtype == xp.float32:
        keys = _keys(chunk, lists, xp)
        order = xp.argsort(keys, stable=True)[: n * b]
        values, origin = kernels.unpack_values(xp.take(keys, order)), order // b
    else:
        values, segment = _in_lists(chunk, lists, xp)
        order = _by_segment(values, segment, xp)
        values, origin = xp.take(values, order), xp.take(lists.order, order % n)
    return xp.reshape(values, (b, n)), xp.reshape(origin, (b, n))


def _keys(chunk: Array, lists: ClassLists, xp: Namespace) -> Array:
    """A number for each value of a float32 chunk, row by row, that sorts by list and value."""
    codes = xp.full(chunk.shape[0], -1, dtype=xp.int32)
    codes[lists.order] = lists.place
    return kernels.pack_lists(chunk, codes, len(lists.rows))


def _in_lists(chunk: Array, lists: ClassLists, xp: Namespace) -> tuple[Array, Array]:
    """The values of some rows, column by column and list by list, and the list of each."""
    k = len(lists.rows)
    values = xp.reshape(xp.take(chunk, lists.order, axis=0).T + 0.0, (-1,))
    kind = xp.int32 if chunk.shape[1] * k < 2**31 else xp.int64
    column = xp.arange(chunk.shape[1], dtype=kind)[:, None]
    return values, xp.reshape(column * k + lists.place, (-1,))


def _by_segment(values: Array, segment: Array, xp: Namespace) -> Array:
    """The order that sorts by segment, and by value within each: two stable radix sorts."""
    order = xp.argsort(values, stable=True)
    return xp.take(order, xp.argsort(xp.take(segment, order), stable=True))


def segment_sort(
    values: Array, segment: Array, count: int, weights: Array | None = None
) -> tuple[Array, Array | None]:
    """Values sorted within their segments, the segments one after the other (and weights along).

    Parameters
    ----------
    values : array of shape (n,), float32 or float64, without NaN and negative zero
    segment : array of integers of shape (n,), from 0 to count - 1
    count : int, below 2**31
    weights : array of shape (n,), optional
    """
    xp = array_namespace(values)
    if is_numpy(xp) and count < 2**16 and values.shape[0] >= _LONG_SEGMENT * count:
        return _sort_each_segment(values, segment, count, weights)
    if values.dtype != xp.float32:
        order = _by_segment(values, segment, xp)
        return values[order], None if weights is None else weights[order]
    # One key each: the segment in the upper bits, and below it an order-preserving encoding of the
    # value (all bits inverted if it is negative, else the sign bit alone).
    sign = xp.asarray(-(2**31), dtype=xp.int32)
    bits = values.view(xp.int32)
    bits = xp.where(bits < 0, ~bits, bits ^ sign).view(xp.uint32)
    key = (segment.astype(xp.uint64) << xp.asarray(32, dtype=xp.uint64)) | bits.astype(xp.uint64)
    if weights is not None:
        order = xp.argsort(key)
        return values[order], weights[order]
    bits = xp.sort(key, stable=False).astype(xp.uint32).view(xp.int32)
    return xp.where(bits < 0, bits ^ sign, ~bits).view(xp.float32), None


def _sort_each_segment(
    values: np.ndarray, segment: np.ndarray, count: int, weights: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Each list sorted on its own: on a CPU many short sorts take less than one long one."""
    order = np.argsort(segment.astype(np.uint16), kind="stable")  # a radix sort
    values = values[order]
    weights = None if weights is None else weights[order]
    ends = np.cumsum(np.bincount(segment, minlength=count)).tolist()
    for start, stop in itertools.pairwise([0, *ends]):
        if weights is None:
            values[start:stop].sort()
        else:
            order = np.argsort(values[start:stop])
            values[start:stop] = values[start:stop][order]
            weights[start:stop] = weights[start:stop][order]
    return values, weights


class Thresholds:
    """Ascending thresholds, float64 and not negative.

    On the host a table tells the numbers apart that lie in cells without a threshold: a sort of all
    numbers, which a device does fast, takes several times as long. The bits of such numbers, read
    as integers, ascend as they do.

    Parameters
    ----------
    ascending : array of shape (m,), float64
    """

    def __init__(self, ascending: Array) -> None:
        self._ascending = ascending
        if not is_numpy(array_namespace(ascending)):
            return
        bits, m = (ascending + 0.0).view(np.int64), ascending.shape[0]
        cells = min(_MOST_CELLS, _CELLS_PER_THRESHOLD * m)
        self._base = bits[m // _BELOW_CELLS]
        self._shift = (int(bits[-1] - self._base) // cells).bit_length()
        held = np.bincount(self._cell(bits, cells), minlength=cells)
        below = np.cumsum(held) - held
        #: One more than how many thresholds the numbers of a cell reach; 0 where it does not tell.
        self._place = np.where(held > 0, 0, below + 1).astype(np.int32)

    def _cell(self, bits: np.ndarray, cells: int) -> np.ndarray:
        found = (bits - self._base) >> self._shift
        return np.clip(found, 0, cells - 1, out=found)

    def count(self, x: Array) -> Array:
        """How many of x are at or above each threshold: int64, (m,).

        Parameters
        ----------
        x : array of shape (n,), float64, not negative, without NaN
        """
        xp = array_namespace(x)
        found: Array | int = 0
        if is_numpy(xp):
            cell = self._cell((x + 0.0).view(np.int64), self._place.shape[0])
            place = np.take(self._place, cell)
            counts = np.bincount(place, minlength=self._ascending.shape[0] + 2)[1:]
            found = np.sum(counts) - np.cumsum(counts[:-1])
            x = x[place == 0]
        in_order = xp.sort(x, stable=False)
        return found + (in_order.shape[0] - xp.searchsorted(in_order, self._ascending))
