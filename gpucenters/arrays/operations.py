"""Operations that the standard lacks, for blocks and reductions: each with all its ways.

Every name used on ``xp`` for both NumPy and CuPy exists in both, so that the tests on the CPU cover
the code that runs on CUDA. Faster ways that only NumPy has are separate branches.
"""

from __future__ import annotations

import itertools

import numpy as np

from . import kernels, sparsetools
from .backend import Backend
from .grid import CUDA_CHUNK, row_ranges
from .namespace import array_namespace, is_cupy, is_numpy, to_numpy
from .row_labels import ClassLists, Group
from .threads import Scratch, run
from .typing import Namespace, SparseMatrix
from .typing import NumPyOrCuPy as Array


def add_at(target: Array, index: Array, values: Array) -> None:
    """``target[index[j]] += values[j]``, with repeated indices summed, in place and in order.

    Parameters
    ----------
    target : array of shape (m,), float64 or int64, contiguous
    index : array of int32 or int64 of shape (n,)
        Not checked: whoever made it knows that it lies in 0..m-1.
    values : array of shape (n,), of the target's type
    """
    xp = array_namespace(target)
    if is_numpy(xp) and sparsetools.AVAILABLE:
        sparsetools.add_at(target, index, values)
        return
    xp.add.at(target, index, values)


def stores_twice(indices: Array, indptr: Array, size: int, backend: Backend) -> bool:
    """Whether a row of a CSR matrix (a column of CSC) stores an index more than once.

    Rows may have any order. Compiled loops look each entry up in a table; elsewhere entries are
    sorted.

    Parameters
    ----------
    indices : array of integers of shape (e,), or one on disk
    indptr : array of integers of shape (r + 1,), of the type of ``indices``
    size : int
        All indices are below it.
    backend : Backend
        That of the indices.
    """
    xp, starts = backend.xp, to_numpy(indptr)
    stored = int(starts[-1])
    by_table = is_numpy(xp) and sparsetools.AVAILABLE and size <= _WIDE * stored
    step = CUDA_CHUNK if backend.sync_is_expensive else _SORTED
    if by_table:  # which takes no more memory than a few numbers for each entry of its rows
        step = max(_LOOK_UPS, size, stored // _MOST_TABLES)

    def any_twice(rows: tuple[int, int]) -> bool:
        first, last = rows
        left, right = int(starts[first]), int(starts[last])
        part, offsets = indices[left:right], indptr[first : last + 1] - indptr[first]
        if by_table:
            return sparsetools.count_distinct(offsets, part, size) < right - left
        row = repeat_per_row(xp.arange(last - first), offsets, right - left, part)
        pairs = xp.sort(row * size + part)
        return bool(xp.any(pairs[1:] == pairs[:-1]))

    return any(run(any_twice, row_ranges(starts, step), backend))


_WIDE = 8  # indices for each entry, from which on a sort takes less time than a table
_MOST_TABLES = 8
_LOOK_UPS = 2**21  # entries that a thread looks up in one go: fewer take less than its start
_SORTED = 2**20  # entries that a thread of the host sorts in one go


def repeat_per_row(
    per_row: Array, offsets: Array, count: int, indices: Array | None = None
) -> Array:
    """Each row's value once for each entry of the row.

    Parameters
    ----------
    per_row : array of shape (r,)
    offsets : array of integers of shape (r + 1,)
        Where the entries of the rows begin, from 0 to ``count``.
    count : int
        The number of entries.
    indices : array of shape (count,), of the type of ``offsets``, optional
        The entries' columns, if there are any at hand.
    """
    xp = array_namespace(per_row)
    if is_numpy(xp):
        if not sparsetools.AVAILABLE:
            return np.repeat(per_row, offsets[1:] - offsets[:-1])
        if indices is None or indices.dtype != offsets.dtype:
            indices = np.zeros(count, offsets.dtype)
        out = np.empty(count, dtype=per_row.dtype)
        sparsetools.repeat_per_row(per_row, offsets, indices, out)
        return out
    # CuPy's repeat would copy the counts to the host: mark where rows begin, and sum up.
    marks = xp.zeros(count + 1, dtype=xp.int64)
    xp.add.at(marks, offsets[1:-1], 1)
    return xp.take(per_row, xp.cumsum(marks[:-1]))


def filled(matrix: SparseMatrix) -> Array:
    """A CSR matrix, in which each entry is stored once, as an array of shape (n, d)."""
    xp = array_namespace(matrix)
    if is_numpy(xp):
        return np.ascontiguousarray(matrix.toarray())
    # (That of cupyx sorts pairs of row and column.)
    n, d = matrix.shape
    row = repeat_per_row(xp.arange(n), matrix.indptr, matrix.indices.shape[0])
    out = xp.zeros(n * d, dtype=matrix.dtype)
    out[row * d + matrix.indices] = matrix.data
    return xp.reshape(out, (n, d))


def sorted_lines(chunk: Array, lists: ClassLists, scratch: Scratch) -> Array:
    """Each column of a chunk as a line, the rows of each class sorted within it: (b, n).

    On the host in the memory of ``scratch``. CuPy uses a radix sort for one-dimensional arrays of
    numbers, and a much slower sort by comparison: so the lines are sorted as one array there.
    """
    xp = array_namespace(chunk)
    if is_cupy(xp):
        return _sort_flat(chunk, lists, xp)
    if is_numpy(xp):
        table = scratch.empty((chunk.shape[1], lists.size), chunk.dtype)
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
    n, b = lists.size, chunk.shape[1]
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
    n, b = lists.size, chunk.shape[1]
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


_LONG_SEGMENT = 32  # entries from which on one sort call a segment costs less than a joint sort


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
