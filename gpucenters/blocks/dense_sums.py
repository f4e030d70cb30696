"""Class sums and centred squares of dense rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from ..arrays.context import Context
from ..arrays.double_double import two_sum
from ..arrays.functions import clip_negative, row_sums
from ..arrays.row_labels import RowLabels, squared_row_norms
from ..arrays.typing import Array
from .accumulators import CentredSums, RawSums

Part = TypeVar("Part")


@dataclass(frozen=True)
class Strip:
    """Consecutive rows of a dense block.

    Attributes
    ----------
    labels : RowLabels
        Their classes and weights.
    columns : list of slices
        The grid: they can be read side by side.
    read : callable
        ``read(columns)`` gives the rows in a range of columns: float64, C-contiguous, the caller's.
    square_factors : array of shape (n,), or None
        What raw squares of a row are multiplied by.
    """

    labels: RowLabels
    columns: list[slice]
    read: Callable[[slice], Array]
    square_factors: Array | None = None


def _map(
    strips: Iterable[Strip],
    sums_of: Callable[[Strip, slice], Part],
    merge: Callable[[Strip, slice, Part], None],
    ctx: Context,
) -> Iterator[Strip]:
    """Merge the sums of all parts of the grid, those of each column in the order of the rows.

    Ranges of columns are summed and merged side by side; where there is only one, strips of rows
    are summed side by side, and merged one after the other. Yields each strip once it is merged.
    """

    def of_strip(strip: Strip) -> tuple[Strip, Part | None]:
        one = strip.columns[0] if len(strip.columns) == 1 else None
        return strip, None if one is None else sums_of(strip, one)

    for strip, part in ctx.map(of_strip, strips):
        if part is not None:
            merge(strip, strip.columns[0], part)
        else:

            def add(columns: slice, strip: Strip = strip) -> None:
                merge(strip, columns, sums_of(strip, columns))

            for _ in ctx.map(add, strip.columns):
                pass
        yield strip


def add_sums(strips: Iterable[Strip], into: RawSums, ctx: Context) -> None:
    """Add the class sums of strips of rows, in place."""
    total, square, sum_of_squares, nonzero = into

    def sums_of(strip: Strip, columns: slice) -> RawSums:
        x, labels = strip.read(columns), strip.labels
        first, second, summed = labels.sums(x), None, None
        if sum_of_squares is not None:
            norms = squared_row_norms(x, labels.backend)
            summed = labels.sums(norms[:, None])[:, 0]
        if square is not None:
            factors = strip.square_factors
            second = labels.sums(x * x if factors is None else x * x * factors[:, None])
        return RawSums(first, second, summed, None if nonzero is None else _nonzero(x, labels))

    of_columns: dict[int, Array | None] = {}

    def merge(strip: Strip, columns: slice, part: RawSums) -> None:
        total[:, columns] += part.total
        if square is not None:
            square[:, columns] += part.square
        if nonzero is not None:
            nonzero[:, columns] += part.nonzero
        of_columns[columns.start] = part.sum_of_squares

    for strip in _map(strips, sums_of, merge, ctx):
        if sum_of_squares is not None:
            for columns in strip.columns:
                sum_of_squares[...] += of_columns[columns.start]


def _nonzero(x: Array, labels: RowLabels) -> Array:
    """The weighted number of values other than zero of each label: (K, b)."""
    xp = labels.backend.xp
    return labels.sums(xp.astype(x != 0, xp.float64))


class _Part(NamedTuple):
    """Sums of a part of the grid, by class: of x, and about the mean of these rows alone.

    Attributes
    ----------
    total, mean : arrays of shape (K, b)
    centred : array of shape (K, b) or (K,)
    nonzero : array of shape (K, b), or None
    """

    total: Array
    mean: Array
    centred: Array
    nonzero: Array | None


def add_centred(strips: Iterable[Strip], into: CentredSums, ctx: Context) -> None:
    """Add sums and centred squares of strips of rows, in place."""
    backend = ctx.backend
    by_feature = into.centred.ndim == 2
    # What the sums of chunks lose when they are added to large totals.
    low = backend.zeros(into.total.shape)
    before = np.asarray(into.class_weight, dtype=np.float64)
    of_columns: dict[int, Array] = {}

    def sums_of(strip: Strip, columns: slice) -> _Part:
        x, labels = strip.read(columns), strip.labels
        weight = backend.asarray(np.where(labels.weight > 0, labels.weight, 1.0))[:, None]
        total = labels.sums(x)
        mean = total / weight
        nonzero = None if into.nonzero is None else _nonzero(x, labels)
        # Two passes over the chunk, so that the squares do not cancel. Rows that all have weight
        # zero add nothing, but NaN among them shows.
        d = labels.less(x, mean)
        if not by_feature:
            norms = squared_row_norms(d, backend)
            return _Part(total, mean, labels.sums(norms[:, None])[:, 0], nonzero)
        # The sum of the residuals corrects the rounding of the mean.
        error = labels.sums(d)
        centred = clip_negative(labels.sums(d * d) - error * (error / weight))
        return _Part(total, mean + error / weight, centred, nonzero)

    def merge(strip: Strip, columns: slice, part: _Part) -> None:
        # Chan's formula, for all classes at once.
        weight, total = strip.labels.weight, into.total[:, columns]
        both = (before > 0) & (weight > 0)
        harmonic = np.where(both, before * weight / np.where(both, before + weight, 1.0), 0.0)
        centred = part.centred
        if both.any():
            held = backend.asarray(np.where(before > 0, before, 1.0))[:, None]
            shift = part.mean - total / held
            between = shift * shift * backend.asarray(harmonic)[:, None]
            centred = centred + (between if by_feature else row_sums(between))
        new = two_sum(total, part.total)
        into.total[:, columns] = new.high
        low[:, columns] += new.low
        if into.nonzero is not None:
            into.nonzero[:, columns] += part.nonzero
        if by_feature:
            into.centred[:, columns] += centred
        else:
            of_columns[columns.start] = centred

    for strip in _map(strips, sums_of, merge, ctx):
        if not by_feature:
            for columns in strip.columns:
                into.centred[...] += of_columns[columns.start]
        before = before + strip.labels.weight
    into.class_weight[:] = before.tolist()
    into.total[...] += low
