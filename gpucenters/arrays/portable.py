"""Operations that the standard lacks, in pure array API: for any dense namespace."""

from __future__ import annotations

from .threads import Scratch
from .typing import Array, Namespace


def top_k(key: Array, k: int, xp: Namespace) -> Array:
    """Indices of the k largest keys, ascending; among equal keys the lower index is taken."""
    order = xp.argsort(-key, stable=True)
    return xp.sort(order[:k])


def index_mask(index: Array, size: int, xp: Namespace) -> Array:
    """A mask of shape (size,): True at ``index``."""
    order = xp.sort(index)
    every = xp.arange(size, dtype=index.dtype, device=order.device)
    # The standard has no scattered assignment.
    return xp.searchsorted(order, every, side="right") > xp.searchsorted(order, every, side="left")


def running_max(x: Array, xp: Namespace) -> Array:
    """The largest of the first rows of ``x``, for each number of rows: of the shape of ``x``."""
    step = 1
    while step < x.shape[0]:
        x = xp.concat([x[:step, ...], xp.maximum(x[step:, ...], x[:-step, ...])])
        step *= 2
    return x


def sorted_lines(chunk: Array, rows: list[Array], xp: Namespace, scratch: Scratch) -> Array:
    """Each column of a chunk as a line, the rows of each class sorted within it: (b, n)."""
    lines = [xp.permute_dims(xp.take(chunk, r, axis=0), (1, 0)) for r in rows]
    return xp.concat([xp.sort(line, axis=1, stable=False) for line in lines], axis=1)


def sorted_lines_of_rows(chunk: Array, rows: list[Array], xp: Namespace) -> tuple[Array, Array]:
    """`sorted_lines`, and the row of the chunk that each value is from: two (b, n) arrays."""
    # One line a column, so that each sort runs over contiguous memory.
    lines = [xp.permute_dims(xp.take(chunk, r, axis=0), (1, 0)) for r in rows]
    orders = [xp.argsort(line, axis=1, stable=True) for line in lines]
    lines = [xp.take_along_axis(a, o, axis=1) for a, o in zip(lines, orders, strict=True)]
    origin = [
        xp.reshape(xp.take(r, xp.reshape(o, (-1,))), o.shape)
        for r, o in zip(rows, orders, strict=True)
    ]
    return xp.concat(lines, axis=1), xp.concat(origin, axis=1)
