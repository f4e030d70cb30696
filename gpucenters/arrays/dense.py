"""Blocks of dense data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from . import errors
from .devices import Place, place_of
from .grid import chunk_size, dense_grid, ranges, strip_ranges
from .groups import Groups
from .namespace import array_namespace, is_cupy, to_numpy
from .ordering import SortedColumns, sort_columns
from .reading import Reading, refuse
from .threads import Scratch, run
from .typing import Array
from .uploads import Upload, sendable
from .work import SortingPlan, Work

_SORT_COLUMNS = 64  # at least: fewer make the search's steps too small


@dataclass(frozen=True)
class DenseBlock:
    """A dense n x m array, worked on at ``place`` chunk by chunk.

    Attributes
    ----------
    array : array of shape (n, m), anywhere, of any real type
        Never changed, never copied whole; chunks are widened and moved on their own.
    place : Place
        Where the work is done.
    reading : Reading or None
        What the values are read as.
    """

    array: Array
    place: Place
    reading: Reading | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """(n, m)."""
        return self.array.shape

    def chunk(self, rows: tuple[int, int], columns: tuple[int, int]) -> Array:
        """A rectangle of the array at ``place``, in its own type if that is a floating one."""
        part = self.array[rows[0] : rows[1], columns[0] : columns[1]]
        return self._widen(part, rows[0], range(*columns))

    def _widen(self, part: Array, row: int, columns: Any) -> Array:
        if part.dtype == object:
            part = _numbers(part, row, columns)
        if self._upload is not None:
            part = self._upload.send(sendable(part))[0]
        with place_of(part).current():
            xp = array_namespace(part)
            if not xp.isdtype(part.dtype, (xp.float32, xp.float64)):
                part = xp.astype(part, xp.float64)
        part = self.place.move(part)
        return part if self.reading is None else self.reading(part)

    @cached_property
    def _upload(self) -> Upload | None:
        here = isinstance(self.array, np.ndarray)
        return Upload() if here and is_cupy(self.place.xp) else None

    @property
    def _chunk_size(self) -> int:
        return chunk_size(self.place, uploaded=self._upload is not None)

    @property
    def strips(self) -> int:
        """How many strips of rows `row_chunks` gives."""
        n, m = self.shape
        return -(-n // dense_grid(n, m, self._chunk_size)[0])

    def row_chunks(self, groups: Groups) -> Iterator[RowChunk]:
        """The fixed grid of chunks, a strip of rows at a time."""
        n, m = self.shape
        rows, width = dense_grid(n, m, self._chunk_size)
        columns = [slice(*cut) for cut in ranges(m, width)]
        for cut in ranges(n, rows):
            yield self._row_chunk(groups, cut, columns)

    def full_rows(self, groups: Groups) -> Iterator[RowChunk]:
        """Strips of rows, each one chunk in its full width: see `strip_ranges`."""
        n, m = self.shape
        for cut in strip_ranges(n, m, self.place):
            yield self._row_chunk(groups, cut, [slice(0, m)])

    def _row_chunk(self, groups: Groups, rows: tuple[int, int], columns: list[slice]) -> RowChunk:
        parts = []
        for c, members in groups.by_class(*rows):
            s, weight = None, float(len(members))
            if groups.weights is not None:
                w = groups.weights[rows[0] : rows[1]][members]
                s, weight = self.place.asarray(w)[:, None], float(w.sum())
            parts.append((c, self.place.asarray(members), s, weight))
        return RowChunk(self, rows, columns, parts)

    def loss_at_zero(self, groups: Groups) -> Array:
        """Zeros, (m,): every column of a dense block is sorted, and has its loss from there."""
        return self.place.zeros(self.shape[1])

    def sorting_plans(self, groups: Groups, work: Work) -> Iterator[SortingPlan]:
        """Plans to sort each column within each class; more than one where X is read in passes.

        Rows of weight zero are left out: they never count, not as the next value either. A memory
        map in C order is read a strip of columns at a time, as wide as the budget allows.
        """
        n, m = self.shape
        if _is_mapped(self.array) and self.array.flags.c_contiguous and m > 1:
            width = max(1, min(m, work.budget // (2 * n * self.array.itemsize)))
            work = work.shared_by(2)
            for left, right in work.progress(
                ranges(m, width), -(-m // width), f"{-(-m // width)} passes over X"
            ):
                strip = replace(self, array=np.array(self.array[:, left:right]))
                yield strip._sorting_plan(groups, work, left)
            return
        yield self._sorting_plan(groups, work, 0)

    def _sorting_plan(self, groups: Groups, work: Work, first: int) -> SortingPlan:
        n, m = self.shape
        rows = groups.positive_by_class()
        weights, given = None, groups.weights
        if given is not None and not all(bool((given[r] == 1).all()) for r in rows):
            weights = groups.device_weights
        index, scratch = [self.place.asarray(r) for r in rows], Scratch()

        out = None
        if groups.weights is not None and not np.all(groups.weights > 0):
            out = self.place.asarray(np.flatnonzero(groups.weights == 0))

        def sort(left: int, right: int) -> tuple[slice, SortedColumns]:
            chunk = self.chunk((0, n), (left, right))
            if out is not None:  # what is left out must still be a number
                xp = self.place.xp
                if not bool(xp.all(xp.isfinite(xp.take(chunk, out, axis=0)))):
                    self.check_finite(squares=False)
            lists = sort_columns(chunk, index, weights, groups, self.place, scratch)
            return slice(first + left, first + right), lists

        # A sort, its input, and the temporaries of the search.
        fit = work.budget // (48 * n)
        width = max(1, min(m, fit, _SORT_COLUMNS + 4 * self._chunk_size // n))
        return SortingPlan(list(ranges(m, width)), sort)

    def linear_scores(self, columns: Array, shift: Array, coef: Array) -> Array:
        """``(X[:, columns] - shift) @ coef``: shape (n, q), float64."""
        return self._by_rows(columns, coef.shape[1], lambda x: (x - shift) @ coef)

    def l1_scores(self, columns: Array, theta: Array, scale: Array | None) -> Array:
        """Minus the l1 distances to K centers, (n, K); for K = 2 their difference, (n, 1).

        For two classes the terms are subtracted feature by feature, not the sums at the end.
        """
        xp = self.place.xp

        def scores(x: Array) -> Array:
            distances = [xp.abs(x - theta[c, :]) for c in range(theta.shape[0])]
            terms = (
                [distances[0] - distances[1]] if len(distances) == 2 else [-d for d in distances]
            )
            if scale is not None:
                terms = [t / scale for t in terms]
            return xp.stack([xp.sum(t, axis=1) for t in terms], axis=1)

        q = 1 if theta.shape[0] == 2 else theta.shape[0]
        return self._by_rows(columns, q, scores)

    def _by_rows(self, columns: Array, q: int, scores: Callable[[Array], Array]) -> Array:
        n, m = self.shape
        xp = self.place.xp
        out = self.place.zeros((n, q))
        d = int(columns.shape[0])
        rows = max(1, self._chunk_size // d)  # by the shape alone: see grid
        here = place_of(self.array).move(columns) if d < m else range(m)

        def score(cut: tuple[int, int]) -> None:
            part = self.array[cut[0] : cut[1], :]
            if d < m:
                with place_of(part).current():
                    part = array_namespace(part).take(part, here, axis=1)
            out[cut[0] : cut[1], :] = scores(xp.astype(self._widen(part, cut[0], here), xp.float64))

        for _ in run(score, ranges(n, rows), self.place):
            pass
        return out

    def check_finite(self, squares: bool) -> None:
        """Raise for the first value that is not finite, whose square overflows, or is refused."""
        n, m = self.shape
        plain = replace(self, reading=None)
        rows, columns = dense_grid(n, m, self._chunk_size)
        for left, right in ranges(m, columns):
            for start, stop in ranges(n, rows):
                chunk = plain.chunk((start, stop), (left, right))
                bad = errors.first_bad(chunk, squares, self.place.xp)
                if bad is not None:
                    errors.raise_bad_value(float(chunk[bad]), left + bad[1], start + bad[0])
                if self.reading is None:
                    continue
                bad = errors.first_bad(self.reading(chunk), False, self.place.xp)
                if bad is not None:
                    refuse(self.reading, chunk[bad], left + bad[1], start + bad[0])


@dataclass(frozen=True)
class RowChunk:
    """Some rows of a dense block, to be read column slice by column slice.

    Attributes
    ----------
    block : DenseBlock
    rows : tuple of int
        (start, stop).
    columns : list of slices
        The grid: they can be read side by side.
    parts : list of (c, members, s, weight)
        For each class among the rows: its row numbers, their weights as a column (None counts each
        once), and the sum of these.
    """

    block: DenseBlock
    rows: tuple[int, int]
    columns: list[slice]
    parts: list[tuple[int, Array, Array | None, float]]

    def by_class(self, columns: slice) -> Iterator[tuple[int, Array, Array | None, float]]:
        """(c, x, s, weight) of each class: x its values in these columns, (r, b), float64."""
        xp = self.block.place.xp
        chunk = self.block.chunk(self.rows, (columns.start, columns.stop))
        for c, members, s, weight in self.parts:
            yield c, xp.astype(xp.take(chunk, members, axis=0), xp.float64), s, weight


def _is_mapped(array: Array) -> bool:
    """Whether an array is a view of a file: a slice or a check leaves only its base to tell."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return True
        array = array.base
    return False


def _numbers(part: Array, first_row: int, columns: Any) -> Array:
    """Objects as float64, or an error that says which is none."""
    try:
        return to_numpy(part).astype("float64")
    except (TypeError, ValueError, OverflowError) as error:
        for row, line in enumerate(part):
            for column, value in zip(columns, line, strict=True):
                try:
                    float(value)
                except OverflowError:
                    raise ValueError(
                        f"X holds a number in feature {column}, row {first_row + row}, that "
                        "float64 cannot hold."
                    ) from error
                except (TypeError, ValueError):
                    raise type(error)(
                        f"X holds {value!r} in feature {column}, row {first_row + row}, which is "
                        "no number: argument must be a string or a number that float() takes."
                    ) from error
        raise
