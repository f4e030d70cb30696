"""Sums of distances of sparse rows, where the centers of some features are far from zero.

They are that of a row of zeros with a correction for each stored value. Both are as large as the
distance from the center to zero, and cancel where a row is near to the center.
"""

from __future__ import annotations

from collections.abc import Callable

from ..arrays.context import Context
from ..arrays.typing import NumPyOrCuPy as Array
from .block import Block

Params = tuple[Array, ...]

FAR = 512.0  # distances to zero above it are too large to be added and subtracted again
_LARGEST_LOSS = 8.0  # how many times as large as a score what cancels in it may be


def with_far_features(
    expanded: Callable[[Array, Params, Array | None], Array],
    block: Block,
    columns: Array,
    distance: Callable[..., Array],
    params: Params,
    scale: Array | None,
    ctx: Context,
) -> Array:
    """Scores of `Block.distance_scores`, where ``expanded`` cancels from the distances themselves.

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
    for x, _ in block.padded_rows(rows, columns, ctx, filled=True):
        of_rows = classes[start : start + x.shape[0]]
        terms = [distance(x, *(xp.take(p, of_rows, axis=0) for p in some)) for some in own]
        change = -terms[0] if len(terms) == 1 else terms[0] - terms[1]
        parts.append(xp.sum(change if scale is None else change / scale, axis=1))
        start += x.shape[0]
    found[rows, classes] = near[rows, classes] + xp.concat(parts)
    return found
