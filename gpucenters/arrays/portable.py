"""Operations that the standard lacks, in pure array API: for any dense namespace."""

from __future__ import annotations

from .class_lists import ClassLists, Group
from .namespace import array_namespace
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


def sorted_lines(chunk: Array, lists: ClassLists, xp: Namespace, scratch: Scratch) -> Array:
    """Each column of a chunk as a line, the rows of each class sorted within it: (b, n)."""
    line = xp.permute_dims(xp.take(chunk, lists.order, axis=0), (1, 0))
    b, parts = line.shape[0], []
    for group in lists.groups:
        part = _by_list(line, group)
        parts.append(xp.reshape(xp.sort(part, axis=2, stable=False), (b, -1)))
    return xp.concat(parts, axis=1)


def sorted_lines_of_rows(chunk: Array, lists: ClassLists, xp: Namespace) -> tuple[Array, Array]:
    """`sorted_lines`, and the row of the chunk that each value is from: two (b, n) arrays."""
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
