"""Scatter matrices of dense rows, by products of their residuals."""

from __future__ import annotations

from collections.abc import Iterable

from ..arrays.context import Context
from ..arrays.linalg import add_gram
from ..arrays.namespace import array_namespace
from ..arrays.typing import Array
from .row_chunk import RowChunk
from .scatter import ScatterSums, add_fourth


def add_rows(chunks: Iterable[RowChunk], into: ScatterSums, ctx: Context) -> None:
    """Add the scatter of strips of rows in their full width, in place."""
    xp, backend = ctx.backend.xp, ctx.backend
    for chunk in chunks:
        together = []
        for c, x, s, w in chunk.by_class(chunk.columns[0]):
            residuals = _add_sums(into, c, x, s, w)
            into.class_weight[c] += w
            if into.final is None:
                add_gram(residuals, into.scatter[c, :, :], backend)
            else:
                together.append((residuals, into.final[c]))
        if together:
            add_gram(xp.concat([r for r, _ in together]), into.scatter[0, :, :], backend)
            divided = xp.concat([r / w**0.5 for r, w in together])
            add_gram(divided, into.scatter[1, :, :], backend)


def _add_sums(into: ScatterSums, c: int, x: Array, s: Array | None, w: float) -> Array:
    """Add rows of one class to its sums; returns R, so that its scatter grows by R' R.

    R holds the residuals from the mean of these rows, each times the root of its weight, and one
    more row for the term of Chan's formula with the difference of the means.
    """
    xp = array_namespace(x)
    total = xp.sum(x if s is None else x * s, axis=0)
    # Two passes: the second one corrects the rounding of the mean. Rows that all have weight zero
    # add nothing, but NaN among them shows.
    d = x - total / (w or 1.0)
    error = xp.sum(d if s is None else d * s, axis=0)
    d = d - error / (w or 1.0)
    residuals = d if s is None else d * xp.sqrt(s)
    before, shift = into.class_weight[c], None
    if before > 0 and w > 0:
        shift = (total + error) / w - into.total[c, :] / before
    if into.fourth_moment is not None:
        sd = d if s is None else d * s
        size = xp.sum(d * d, axis=1)
        weighted = xp.sum(sd * d, axis=1)
        moments = xp.sum(weighted), size @ sd, size @ weighted
        add_fourth(into, c, w, shift, *moments, lambda e: (d @ e) @ sd)
    if shift is not None:
        lead = shift * (before * w / (before + w)) ** 0.5
        residuals = xp.concat([residuals, lead[None, :]])
    into.total[c, :] += total
    return residuals


def add_higher_moments(chunks: Iterable[RowChunk], into: ScatterSums) -> None:
    """Add third and fourth moments of strips of rows about the class means of all, in place."""
    assert into.third_moment is not None
    assert into.fourth_moment is not None
    for chunk in chunks:
        for c, x, s, _ in chunk.by_class(chunk.columns[0]):
            xp = array_namespace(x)
            d = x - into.total[c, :] / into.class_weight[c]
            size = xp.sum(d * d, axis=1)
            weighted = size if s is None else size * s[:, 0]
            into.third_moment[c, :] += weighted @ d
            into.fourth_moment[c] += weighted @ size
