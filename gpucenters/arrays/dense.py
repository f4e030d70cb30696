"""Blocks of dense data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from . import errors
from .devices import Place, place_of
from .grid import chunk_size, dense_grid, ranges
from .groups import Groups
from .namespace import array_namespace, to_numpy
from .ordering import DenseSortedColumns
from .typing import Array


@dataclass(frozen=True)
class DenseBlock:
    """A dense n x m array, worked on at ``place`` chunk by chunk.

    Attributes
    ----------
    array : array of shape (n, m), anywhere, of any real type
        Never changed, never copied whole; chunks are widened and moved on their own.
    place : Place
        Where the work is done.
    """

    array: Array
    place: Place

    @property
    def shape(self) -> tuple[int, int]:
        """(n, m)."""
        return self.array.shape

    def chunk(self, rows: tuple[int, int], columns: tuple[int, int]) -> Array:
        """A rectangle of the array at ``place``, in its own type if that is a floating one."""
        return self._widen(self.array[rows[0] : rows[1], columns[0] : columns[1]])

    def _widen(self, part: Array) -> Array:
        xp = array_namespace(part)
        if part.dtype == object:
            part = _numbers(part)
        elif not xp.isdtype(part.dtype, (xp.float32, xp.float64)):
            part = xp.astype(part, xp.float64)
        return self.place.move(part)

    def class_chunks(
        self, groups: Groups
    ) -> Iterator[tuple[slice, int, Array, Array | None, float]]:
        """The fixed grid of chunks, each split by class.

        Yields
        ------
        columns : slice
        c : int
            The class.
        x : array of shape (r, b), float64
            Its rows in this chunk.
        s : array of shape (r, 1) or None
            Their weights.
        weight : float
            Their sum.
        """
        n, m = self.shape
        xp = self.place.xp
        rows, columns = dense_grid(n, m, self.place)
        for start, stop in ranges(n, rows):
            parts = []
            for c, members in groups.by_class(start, stop):
                s, weight = None, float(len(members))
                if groups.weights is not None:
                    w = groups.weights[start:stop][members]
                    s, weight = self.place.asarray(w)[:, None], float(w.sum())
                parts.append((c, self.place.asarray(members), s, weight))
            for left, right in ranges(m, columns):
                chunk = self.chunk((start, stop), (left, right))
                for c, members, s, weight in parts:
                    x = xp.astype(xp.take(chunk, members, axis=0), xp.float64)
                    yield slice(left, right), c, x, s, weight

    def absolute_sums(self, groups: Groups) -> Array:
        """Sum of weight / W_c times abs(x) over each column: the l1 loss of centers at zero.

        Reads every value once, so a value that is not finite shows in it.
        """
        sums = self.place.zeros(self.shape[1])
        xp = self.place.xp
        for columns, c, x, s, _ in self.class_chunks(groups):
            absolute = xp.abs(x) if s is None else xp.abs(x) * s
            sums[columns] += xp.sum(absolute, axis=0) / groups.weight[c]
        return sums

    def sorted_columns(
        self, groups: Groups, budget: int
    ) -> Iterator[tuple[slice, DenseSortedColumns]]:
        """Every column's values sorted within each class, as many columns at a time as fit.

        Rows of weight zero are left out: they never count, not as the next value either.
        """
        n, m = self.shape
        rows = groups.positive_by_class()
        counts = tuple(len(r) for r in rows)
        weights = None
        if groups.weights is not None:
            weights = [groups.weights[r] for r in rows]
            if all(bool((w == 1).all()) for w in weights):
                weights = None
        index = [self.place.asarray(r) for r in rows]
        # A sort, its input, and the temporaries of a sum: about eight arrays of float64.
        width = max(1, min(m, budget // (64 * n)))
        for left, right in ranges(m, width):
            chunk = self.chunk((0, n), (left, right))
            yield slice(left, right), self._sort(chunk, index, counts, weights, groups.whole)

    def _sort(
        self,
        chunk: Array,
        index: list[Array],
        counts: tuple[int, ...],
        weights: list | None,
        whole: bool,
    ) -> DenseSortedColumns:
        xp, place = self.place.xp, self.place
        b = chunk.shape[1]
        # One line a column, so that each sort runs over contiguous memory.
        lines = [xp.permute_dims(xp.take(chunk, rows, axis=0), (1, 0)) for rows in index]
        sorted_weights = cumulative = None
        if weights is None:
            lines = [xp.sort(line, axis=1) for line in lines]
        else:
            orders = [xp.argsort(line, axis=1, stable=True) for line in lines]
            lines = [xp.take_along_axis(a, o, axis=1) for a, o in zip(lines, orders, strict=True)]
            kind = xp.int64 if whole else xp.float64
            ws = [
                xp.reshape(xp.take(place.asarray(w), xp.reshape(o, (-1,))), o.shape)
                for w, o in zip(weights, orders, strict=True)
            ]
            sums = [xp.cumulative_sum(xp.astype(w, kind), axis=1) for w in ws]
            sorted_weights = xp.reshape(xp.concat(ws, axis=1), (-1,))
            cumulative = xp.reshape(xp.concat(sums, axis=1), (-1,))
        total = sum(counts)
        offsets = [sum(counts[:c]) for c in range(len(counts))]
        start = place.asarray(offsets, dtype=xp.int64)[:, None] + total * xp.arange(
            b, dtype=xp.int64, device=place.device
        )
        size = place.asarray(counts, dtype=xp.int64)[:, None] + xp.zeros_like(start)
        return DenseSortedColumns(
            place=place,
            values=xp.reshape(xp.concat(lines, axis=1), (-1,)),
            start=start,
            size=size,
            depth=max(counts).bit_length() + 1,
            weights=sorted_weights,
            cumulative=cumulative,
            counts=counts,
        )

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
        rows = max(1, chunk_size(self.place) // d)  # by the shape alone: see grid
        here = _beside(columns, self.array)
        for start, stop in ranges(n, rows):
            part = self.array[start:stop, :]
            if d < m:
                part = array_namespace(part).take(part, here, axis=1)
            out[start:stop, :] = scores(xp.astype(self._widen(part), xp.float64))
        return out

    def check_finite(self, squares: bool) -> None:
        """Raise for the first value that is not finite, or whose square overflows."""
        n, m = self.shape
        rows, columns = dense_grid(n, m, self.place)
        for left, right in ranges(m, columns):
            for start, stop in ranges(n, rows):
                chunk = self.chunk((start, stop), (left, right))
                bad = errors.first_bad(chunk, squares, self.place.xp)
                if bad is not None:
                    errors.raise_bad_value(float(chunk[bad]), left + bad[1], start + bad[0])


def _beside(columns: Array, array: Array) -> Array:
    """Column numbers where ``array`` lives."""
    return place_of(array).move(columns)


def _numbers(part: Array) -> Array:
    """Objects as float64, or an error that says which is none."""
    try:
        return to_numpy(part).astype("float64")
    except (TypeError, ValueError) as error:
        for row, line in enumerate(part):
            for value in line:
                try:
                    float(value)
                except (TypeError, ValueError):
                    raise type(error)(
                        f"X holds {value!r} (row {row} of a block), which is no number: argument "
                        "must be a string or a number that float() takes."
                    ) from error
        raise
