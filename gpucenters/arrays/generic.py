"""What the standard lacks, in pure array API: for any dense namespace."""

from __future__ import annotations

from .threads import Scratch
from .typing import Array, Namespace


def top_k(key: Array, k: int, xp: Namespace) -> Array:
    """Indices of the k largest keys, ascending; among equal keys the lower index is taken."""
    order = xp.argsort(-key, stable=True)
    return xp.sort(order[:k])


def members(index: Array, size: int, xp: Namespace) -> Array:
    """A mask of shape (size,): True at ``index``."""
    order = xp.sort(index)
    every = xp.arange(size, dtype=index.dtype, device=order.device)
    # (The standard has no scattered assignment.)
    return xp.searchsorted(order, every, side="right") > xp.searchsorted(order, every, side="left")


def sorted_lines(chunk: Array, rows: list[Array], xp: Namespace, scratch: Scratch) -> Array:
    """Each column of a chunk as a line, the rows of each class sorted within it: (b, n)."""
    lines = [xp.permute_dims(xp.take(chunk, r, axis=0), (1, 0)) for r in rows]
    return xp.concat([xp.sort(line, axis=1, stable=False) for line in lines], axis=1)
