"""Class sums and centred squares of dense rows."""

from __future__ import annotations

from collections.abc import Iterable

from ..arrays.context import Context
from ..arrays.double_double import two_sum
from ..arrays.functions import clip_negative
from ..arrays.namespace import array_namespace
from ..arrays.typing import Array
from .accumulators import CentredSums, RawSums
from .row_chunk import RowChunk


def add_sums(chunks: Iterable[RowChunk], into: RawSums, ctx: Context) -> None:
    """Add the class sums of strips of rows, in place: side by side over columns, rows in order."""
    xp, (total, square, sum_of_squares) = ctx.backend.xp, into
    for chunk in chunks:

        def add(columns: slice, chunk: RowChunk = chunk) -> list[tuple[int, Array]]:
            squares = []
            for c, x, s, _ in chunk.by_class(columns):
                sx = x if s is None else x * s
                total[c, columns] += xp.sum(sx, axis=0)
                if square is None and sum_of_squares is None:
                    continue
                of_columns = xp.sum(sx * x, axis=0)
                if square is not None:
                    square[c, columns] += of_columns
                squares.append((c, xp.sum(of_columns)))
            return squares

        for squares in ctx.map(add, chunk.columns):
            if sum_of_squares is not None:
                for c, s in squares:
                    sum_of_squares[c] += s


def add_centred(chunks: Iterable[RowChunk], into: CentredSums, ctx: Context) -> None:
    """Add sums and centred squares of strips of rows, in place."""
    low = ctx.backend.zeros(into.total.shape)
    for chunk in chunks:
        before = list(into.class_weight)

        def add(
            columns: slice, chunk: RowChunk = chunk, before: list[float] = before
        ) -> list[tuple[int, Array]]:
            return _add_columns(chunk, columns, before, into, low)

        for sums in ctx.map(add, chunk.columns):
            if into.centred.ndim == 1:
                for c, centred in sums:
                    into.centred[c] += centred
        for c, _, _, w in chunk.parts:
            into.class_weight[c] += w
    into.total[...] += low


def _add_columns(
    chunk: RowChunk, columns: slice, before: list[float], into: CentredSums, low: Array
) -> list[tuple[int, Array]]:
    """Add a chunk in some columns; returns the centred squares summed over these columns."""
    xp, found = chunk.backend.xp, []
    parts = [
        (c, *_part(into.total[c, columns], before[c], x, s, w))
        for c, x, s, w in chunk.by_class(columns)
    ]
    for c, total, centred in parts:
        new = two_sum(into.total[c, columns], total)
        into.total[c, columns] = new.high
        low[c, columns] += new.low
        if into.centred.ndim == 2:
            into.centred[c, columns] += centred
        found.append((c, xp.sum(centred)))
    return found


def _part(
    total_before: Array, before: float, x: Array, s: Array | None, w: float
) -> tuple[Array, Array]:
    """The sums of some rows of one class, and what the centred squares of the class grow by."""
    xp = array_namespace(x)
    sx = x if s is None else x * s
    total = xp.sum(sx, axis=0)
    # Two passes over the chunk: the second sum corrects the rounding of the mean. Rows that all
    # have weight zero add nothing, but NaN among them shows.
    w_or_one = w or 1.0
    d = x - total / w_or_one
    sd = d if s is None else d * s
    error = xp.sum(sd, axis=0)
    centred = clip_negative(xp.sum(sd * d, axis=0) - error * (error / w_or_one))
    if before > 0 and w > 0:
        # Chan's formula, with the corrected mean.
        shift = (total + error) / w - total_before / before
        centred = centred + shift * shift * (before * w / (before + w))
    return total, centred
