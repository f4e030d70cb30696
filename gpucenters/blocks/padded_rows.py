"""A few rows of a compressed matrix, padded to the length of the longest or filled with zeros."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..arrays import numpy_cupy
from ..arrays.backend import backend_of
from ..arrays.context import Context
from ..arrays.grid import ranges
from ..arrays.namespace import to_numpy
from ..arrays.on_disk import OnDisk
from ..arrays.typing import NumPyOrCuPy as Array
from .compressed import Compressed, Entries


def padded_rows(
    block: Compressed, rows: Array, columns: Array, ctx: Context
) -> Iterator[tuple[Array, Array]]:
    """The rows in their order, some at a time: (values, their positions among ``columns``).

    Values (float64) and positions have the shape (rows, length); zeros at position 0 fill them up.
    """
    if not block.by_row:
        block, rows = as_csr(block, rows, ctx), block.backend.arange(int(rows.shape[0]))
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
        if block.reader is not None:
            values = block.reader(values)
        position = xp.take(position_of, xp.reshape(minor, (-1,)))
        position = xp.reshape(position, minor.shape)
        used = used & (position >= 0)
        zero = xp.zeros_like(position)
        values = xp.where(used, xp.astype(values, xp.float64), there.zeros(()))
        yield values, xp.where(used, position, zero)


def filled_rows(
    block: Compressed, rows: Array, columns: Array, ctx: Context
) -> Iterator[tuple[Array, None]]:
    """The rows, of which some may be wanted twice, with their zeros: (values, None)."""
    xp, backend, d = block.backend.xp, block.backend, int(columns.shape[0])
    if not block.by_row:
        distinct, rows = xp.unique_inverse(rows)
        block = as_csr(block, distinct, ctx)
    for first, last in ranges(int(rows.shape[0]), max(1, ctx.chunk // max(1, d))):
        out, start = backend.zeros((last - first) * d), 0
        for values, position in padded_rows(block, rows[first:last], columns, ctx):
            count = int(values.shape[0])
            place = (start + backend.arange(count))[:, None] * d + position
            # What no value takes adds a zero.
            numpy_cupy.scatter_add(out, xp.reshape(place, (-1,)), xp.reshape(values, (-1,)), xp)
            start += count
        yield xp.reshape(out, (last - first, d)), None


def _from_disk(block: Compressed, start: np.ndarray, slot: np.ndarray) -> tuple[Array, Array]:
    """As many entries from each start on as there are slots; behind the last one, zeros."""
    found = []
    for part in (block.data, block.indices):
        values = np.zeros((len(start), len(slot)), part.dtype)
        for row, first in enumerate(start[:, 0].tolist()):
            held = part[first : first + len(slot)]
            values[row, : len(held)] = held
        found.append(values)
    return found[0], found[1]


def as_csr(block: Compressed, rows: Array, ctx: Context) -> Compressed:
    """The rows of a CSC matrix, in their order, as a CSR matrix."""
    xp, backend = block.backend.xp, block.backend
    place_of = xp.full(block.shape[0], -1, dtype=xp.int64)
    place_of[rows] = backend.arange(int(rows.shape[0]))

    def pick(entries: Entries) -> tuple[Array, Array, Array]:
        place = entries.of_row(place_of)
        keep = xp.nonzero(place >= 0)[0]
        columns, values = xp.take(entries.columns(), keep), xp.take(entries.values, keep)
        return xp.take(place, keep), xp.astype(columns, xp.int64), xp.astype(values, xp.float64)

    empty = xp.zeros(0, dtype=xp.int64)
    parts = [(empty, empty, backend.zeros(0)), *ctx.map(pick, block.entries(ctx))]
    place, columns, values = (xp.concat([p[i] for p in parts]) for i in range(3))
    order = xp.argsort(place, stable=True)
    bounds = backend.arange(int(rows.shape[0]) + 1)
    indptr = xp.searchsorted(xp.take(place, order), bounds)
    shape = (int(rows.shape[0]), block.shape[1])
    taken = xp.take(values, order), xp.take(columns, order)
    return Compressed(*taken, indptr, shape, True, backend)
