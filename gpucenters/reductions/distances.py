"""Sums of distances to centers over some features, of each row.

Those of sparse rows are that of a row of zeros with a correction for each stored value. Where the
centers of some features are far from zero, both are as large as the distance from the center to
zero, and cancel where a row is near to the center.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..arrays.context import Context
from ..arrays.functions import add_at, row_sums
from ..arrays.schedule import ranges
from ..arrays.typing import Array
from ..arrays.typing import NumPyOrCuPy as SparseArray
from ..blocks import Block
from ..blocks.dense import DenseBlock
from ..blocks.padded_rows import padded_rows
from ..blocks.sparse import Entries, SparseBlock

Params = tuple[Array, ...]

FAR = 512.0  # distances to zero above it are too large to be added and subtracted again
_LARGEST_LOSS = 8.0  # how many times as large as a score what cancels in it may be
_DISTANCE_PARTS = 2  # of a chunk: of it and of its distances more would not fit into a cache


def distance_scores(
    block: Block,
    columns: Array,
    distance: Callable[..., Array],
    params: Params,
    scale: Array | None,
    ctx: Context,
) -> Array:
    """Minus the sum over the columns of ``distance(x, *params of class c) / scale``: (n, K).

    For two classes (n, 1), the score of class 1 less that of class 0: the distances are
    subtracted feature by feature, before they are summed.

    Parameters
    ----------
    columns : array of shape (d,)
        Ascending.
    distance : callable, elementwise
    params : tuple of arrays of shape (K, d)
    scale : array of shape (d,), or None
    ctx : Context
    """
    if isinstance(block, DenseBlock):
        return _dense_scores(block, columns, distance, params, scale, ctx)

    def expanded(columns: Array, params: Params, scale: Array | None) -> Array:
        return _corrected_scores(block, columns, distance, params, scale, ctx)

    return with_far_features(expanded, block, columns, distance, params, scale, ctx)


def _dense_scores(
    block: DenseBlock,
    columns: Array,
    distance: Callable[..., Array],
    params: Params,
    scale: Array | None,
    ctx: Context,
) -> Array:
    xp, (k, d) = block.backend.xp, params[0].shape
    # Some rows and classes at a time, so that what is between the steps stays in the cache.
    size = max(1, block.chunk_size(ctx) // _DISTANCE_PARTS)
    step = k if k == 2 else min(k, max(1, size // max(1, d)))
    own = [tuple(p[a:b, :] for p in params) for a, b in ranges(k, step)]
    rows = max(1, size // max(1, d * step))

    def sums(x: Array, of_classes: Params) -> Array:
        terms = distance(x, *of_classes)
        terms = terms[:, 1:, :] - terms[:, :1, :] if k == 2 else terms
        return xp.sum(terms if scale is None else terms / scale, axis=2)

    def scores(x: Array) -> Array:
        parts = []
        for a, b in ranges(int(x.shape[0]), rows):
            found = [sums(x[a:b, None, :], of_classes) for of_classes in own]
            parts.append(found[0] if len(found) == 1 else xp.concat(found, axis=1))
        return -xp.concat(parts)

    return block.map_rows(columns, 1 if k == 2 else k, scores, ctx)


def _corrected_scores(
    matrix: SparseBlock,
    columns: SparseArray,
    distance: Callable[..., SparseArray],
    params: tuple[SparseArray, ...],
    scale: SparseArray | None,
    ctx: Context,
) -> SparseArray:
    """The score of a row of zeros, and a correction for each stored entry of the columns."""
    xp, backend = matrix.backend.xp, matrix.backend
    k, d = params[0].shape
    position_of = matrix.position_table(columns)
    inverse = xp.ones(d) if scale is None else 1.0 / scale
    # A row for each feature: what an entry reads and adds to lies side by side.
    own = [xp.asarray(p.T, order="C") for p in params]
    at_zero = distance(backend.zeros(()), *own)
    of_zero_row = row_sums(xp.asarray(at_zero.T, order="C") * inverse)
    base = of_zero_row[:1] - of_zero_row[1:] if k == 2 else -of_zero_row
    q, n = int(base.shape[0]), matrix.shape[0]
    out, every = backend.zeros(n * q), backend.arange(q)

    def corrections(entries: Entries) -> tuple[SparseArray, SparseArray]:
        position = entries.of_column(position_of)
        keep = xp.nonzero(position >= 0)[0]
        rows, position = entries.rows_at(keep), xp.take(position, keep)
        x = xp.astype(xp.take(entries.values, keep), xp.float64)[:, None]
        changes = distance(x, *(xp.take(p, position, axis=0) for p in own))
        changes = changes - xp.take(at_zero, position, axis=0)
        terms = changes[:, :1] - changes[:, 1:] if k == 2 else -changes
        rows = xp.astype(rows, xp.int64)
        return rows[:, None] * q + every, terms * xp.take(inverse, position)[:, None]

    # Of fewer entries at a time where each has many distances.
    some = replace(ctx, chunk=max(1, ctx.chunk // k))
    for index, terms in ctx.map(corrections, matrix.entries(some)):
        flat = xp.reshape(index, (-1,)), xp.reshape(terms, (-1,))
        add_at(out, *flat)
    return xp.reshape(out, (n, q)) + base


def with_far_features(
    expanded: Callable[[Array, Params, Array | None], Array],
    block: Block,
    columns: Array,
    distance: Callable[..., Array],
    params: Params,
    scale: Array | None,
    ctx: Context,
) -> Array:
    """Scores of `distance_scores`, where ``expanded`` cancels from the distances themselves.

    A score is formed again if it is less than an eighth of what the features far from zero add to a
    row of zeros: from the values of these features, and from ``expanded`` of the others. Nearly all
    values of a class are stored where its center is far from zero, unless the class is small.

    Parameters
    ----------
    expanded : callable
        ``expanded(columns, params, scale)``: scores of all rows with some of the features.
    block : Block
    columns : array of shape (d,), ascending
    distance : callable
    params : tuple of arrays of shape (K, d)
    scale : array of shape (d,), or None
    ctx : Context
    """
    found, xp = expanded(columns, params, scale), block.backend.xp
    size = xp.abs(distance(block.backend.zeros(()), *params))
    size = size if scale is None else size / scale
    far = xp.any(size > FAR, axis=0)
    size = xp.sum(xp.where(far, size, xp.zeros_like(size)), axis=1)
    if size.shape[0] == 2:
        size = xp.sum(size, keepdims=True)
    rows, classes = xp.nonzero(size > _LARGEST_LOSS * (1 + xp.abs(found)))
    if rows.shape[0] == 0:
        return found

    def of(chosen: Array) -> tuple[Array, Params, Array | None]:
        some = tuple(p[:, chosen] for p in params)
        return columns[chosen], some, None if scale is None else scale[chosen]

    near, (columns, params, scale) = expanded(*of(~far)), of(far)
    own = [params] if near.shape[1] > 1 else [tuple(p[c:, :] for p in params) for c in (0, 1)]
    start, parts = 0, []
    for x, _ in padded_rows(block, rows, columns, ctx, filled=True):
        of_rows = classes[start : start + x.shape[0]]
        terms = [distance(x, *(xp.take(p, of_rows, axis=0) for p in some)) for some in own]
        change = -terms[0] if len(terms) == 1 else terms[0] - terms[1]
        parts.append(xp.sum(change if scale is None else change / scale, axis=1))
        start += x.shape[0]
    found[rows, classes] = near[rows, classes] + xp.concat(parts)
    return found
