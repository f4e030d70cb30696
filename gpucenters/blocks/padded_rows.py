"""A few rows of a block, padded to the length of the longest or filled with zeros."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..arrays.backend import backend_of
from ..arrays.context import Context
from ..arrays.functions import add_at
from ..arrays.inputs import OnDisk
from ..arrays.namespace import array_namespace, to_numpy
from ..arrays.schedule import ranges
from ..arrays.typing import Array
from ..arrays.typing import NumPyOrCuPy as SparseArray
from . import Block
from .dense import DenseBlock
from .sparse import SparseBlock


def padded_rows(
    block: Block, rows: Array, columns: Array, ctx: Context, *, filled: bool = False
) -> Iterator[tuple[Array, Array | None]]:
    """A few rows in their order, some at a time: (values, positions).

    Parameters
    ----------
    rows : array of shape (r,)
    columns : array of shape (d,)
        Ascending.
    ctx : Context
    filled : bool
        Whether each row is wanted with all d values, implicit zeros among them.

    Yields
    ------
    values : array of shape (b, w), float64
    positions : array of shape (b, w), or None
        The position of each value among ``columns``; a place that no value takes holds the
        value 0 and a position of some column. None where each row has all d values in order.
    """
    if isinstance(block, DenseBlock):
        return _dense_rows(block, rows, columns, ctx)
    return (_filled_rows if filled else _padded_rows)(block, rows, columns, ctx)


def _dense_rows(
    block: DenseBlock, rows: Array, columns: Array, ctx: Context
) -> Iterator[tuple[Array, None]]:
    d, here = int(columns.shape[0]), backend_of(block.array)
    rows, columns = here.move(rows), here.move(columns)
    for first, last in ranges(int(rows.shape[0]), max(1, ctx.chunk // max(1, d))):
        with here.current():
            xp = array_namespace(block.array)
            some, part = rows[first:last], block.array
            on_disk = isinstance(part, OnDisk)
            part = part.take(some) if on_disk else xp.take(part, some, axis=0)
            part = xp.take(part, columns, axis=1)
        part = block.widen(part, 0, columns)
        yield block.backend.xp.astype(part, block.backend.xp.float64), None


def _padded_rows(
    block: SparseBlock, rows: SparseArray, columns: SparseArray, ctx: Context
) -> Iterator[tuple[SparseArray, SparseArray]]:
    """The rows in their order, some at a time: (values, their positions among ``columns``).

    Values (float64) and positions have the shape (rows, length); zeros at position 0 fill them up.
    """
    if not block.by_row:
        block, rows = block.take_rows(rows, ctx), block.backend.arange(int(rows.shape[0]))
    here, there = backend_of(block.data), block.backend
    index = to_numpy(rows)
    starts = block.host_indptr[index].astype(np.int64)
    counts = block.host_indptr[index + 1] - starts
    position_of = block.position_table(columns)
    longest = max(1, int(counts.max(initial=0)))
    for first, last in ranges(len(index), max(1, ctx.chunk // longest)):
        start, count = starts[first:last, None], counts[first:last, None]
        slot = np.arange(max(1, int(count.max(initial=0))))
        used = there.asarray(slot < count)
        with here.current():
            entry = here.asarray(np.where(slot < count, start + slot, 0))
            if block.nnz == 0:
                values, minor = here.zeros(entry.shape), entry
            elif isinstance(block.data, OnDisk):
                values, minor = _from_disk(block, start, slot)
            else:
                values, minor = block.data[entry], block.indices[entry]
        values, minor = there.move(values), there.move(minor)
        xp = there.xp
        if block.transform is not None:
            values = block.transform(values)
        position = xp.take(position_of, xp.reshape(minor, (-1,)))
        position = xp.reshape(position, minor.shape)
        used = used & (position >= 0)
        zero = xp.zeros_like(position)
        values = xp.where(used, xp.astype(values, xp.float64), there.zeros(()))
        yield values, xp.where(used, position, zero)


def _filled_rows(
    block: SparseBlock, rows: SparseArray, columns: SparseArray, ctx: Context
) -> Iterator[tuple[SparseArray, None]]:
    """The rows, of which some may be wanted twice, with their zeros: (values, None)."""
    xp, backend, d = block.backend.xp, block.backend, int(columns.shape[0])
    if not block.by_row:
        distinct, rows = xp.unique_inverse(rows)
        block = block.take_rows(distinct, ctx)
    for first, last in ranges(int(rows.shape[0]), max(1, ctx.chunk // max(1, d))):
        out, start = backend.zeros((last - first) * d), 0
        for values, position in _padded_rows(block, rows[first:last], columns, ctx):
            count = int(values.shape[0])
            place = (start + backend.arange(count))[:, None] * d + position
            # What no value takes adds a zero.
            add_at(out, xp.reshape(place, (-1,)), xp.reshape(values, (-1,)))
            start += count
        yield xp.reshape(out, (last - first, d)), None


def _from_disk(
    block: SparseBlock, start: np.ndarray, slot: np.ndarray
) -> tuple[SparseArray, SparseArray]:
    """As many entries from each start on as there are slots; behind the last one, zeros."""
    found = []
    for part in (block.data, block.indices):
        values = np.zeros((len(start), len(slot)), part.dtype)
        for row, first in enumerate(start[:, 0].tolist()):
            held = part[first : first + len(slot)]
            values[row, : len(held)] = held
        found.append(values)
    return found[0], found[1]
