"""Blocks of sparse data, on SciPy's or cupyx's three arrays, for the numpy-and-cupy family.

Nothing here makes an array of size n x m: sums run over the stored values, chunk by chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from . import errors, family
from .devices import Place
from .entries import Entries
from .grid import chunk_size, entry_ranges, lanes, ranges, row_ranges
from .groups import Groups
from .namespace import array_namespace, sparse_module, to_numpy
from .ordering import SortedColumns
from .segments import sort_segments
from .threads import run, thread_count
from .typing import Array

_INT32 = 2**31


@dataclass(frozen=True)
class SparseBlock:
    """A compressed sparse n x m matrix without duplicates, worked on at ``place``.

    Attributes
    ----------
    data, indices, indptr : arrays of one dimension, anywhere
        As SciPy has them; never changed. Sorted within each row (or column), no duplicates.
    shape : tuple of int
        (n, m).
    by_row : bool
        True for CSR, False for CSC.
    place : Place
        Where the work is done.
    """

    data: Array
    indices: Array
    indptr: Array
    shape: tuple[int, int]
    by_row: bool
    place: Place

    @cached_property
    def host_indptr(self) -> np.ndarray:
        """The indptr as NumPy."""
        return to_numpy(self.indptr)

    def entries(self, start: int = 0, stop: int | None = None) -> Iterator[Entries]:
        """The stored entries start..stop in the stored order, chunk by chunk."""
        stop = int(self.host_indptr[-1]) if stop is None else stop
        size = chunk_size(self.place)
        for left, right, first, last in entry_ranges(self.host_indptr, start, stop, size):
            yield self._entries(left, right, first, last)

    def row_entries(self) -> Iterator[Entries]:
        """All stored entries, cut between rows (columns) only, a chunk or a row at a time."""
        for first, last in row_ranges(self.host_indptr, chunk_size(self.place)):
            left, right = int(self.host_indptr[first]), int(self.host_indptr[last])
            yield self._entries(left, right, first, last)

    def _entries(self, left: int, right: int, first: int, last: int) -> Entries:
        xp, move = self.place.xp, self.place.move
        offsets = xp.astype(move(self.indptr[first : last + 1]), xp.int64) - left
        # (A cut row begins before the run or ends behind it.)
        offsets[0], offsets[-1] = 0, right - left
        minor, values = move(self.indices[left:right]), move(self.data[left:right])
        return Entries(self.place, minor, values, offsets, first, last, self.by_row)

    # --- sums ----------------------------------------------------------------------------------

    def add_class_sums(
        self,
        groups: Groups,
        total: Array,
        square: Array | None,
        energy: Array | None,
        budget: int,
    ) -> None:
        """Add sums of each class and feature, in place.

        The entries are cut into lanes, by their number alone. The first lane adds to the given
        accumulators, each other one to its own, merged in order: the same bits whether the lanes
        run one after the other or side by side.

        Parameters
        ----------
        groups : Groups
        total : array of shape (K, m), float64
            Sums of x.
        square : array of shape (K, m), float64, or None
            Sums of the squares of x.
        energy : array of shape (K,), float64, or None
            Sums of the squares of x over all features.
        budget : int
            Bytes that the accumulators of further lanes may take.
        """
        targets = [a for a in (total, square, energy) if a is not None]
        cuts = lanes(self.host_indptr, total.shape[0] * total.shape[1], self.place)
        size = sum(a.nbytes for a in targets) if len(cuts) > 1 else 1
        width = max(1, min(thread_count(self.place), 1 + budget // size))
        xp = self.place.xp
        kind = xp.int32 if total.shape[0] * total.shape[1] < _INT32 else xp.int64
        base = xp.astype(groups.device_codes, kind) * self.shape[1]

        def add_lane(job: tuple[tuple[int, int], list[Array | None]]) -> list[Array | None]:
            (start, stop), into = job
            self._add_entries(start, stop, groups, base, into)
            return into

        def jobs() -> Iterator[tuple[tuple[int, int], list[Array | None]]]:
            waiting = iter(cuts)
            yield next(waiting), [total, square, energy]
            for cut in waiting:
                yield (
                    cut,
                    [None if a is None else xp.zeros_like(a) for a in (total, square, energy)],
                )

        coming = jobs()
        while wave := list(islice(coming, width)):
            for sums in run(add_lane, wave, self.place, width):
                for target, part in zip((total, square, energy), sums, strict=True):
                    if target is not None and target is not part:
                        self._merge(target, part)

    def _add_entries(
        self, start: int, stop: int, groups: Groups, base: Array, into: list[Array | None]
    ) -> None:
        xp = self.place.xp
        total, square, energy = (None if a is None else xp.reshape(a, (-1,)) for a in into)
        weights = groups.device_weights
        for entries in self.entries(start, stop):
            key = entries.of_row(base) + xp.astype(entries.columns(), base.dtype, copy=False)
            x = xp.astype(entries.values, xp.float64, copy=False)
            sx = x if weights is None else x * entries.of_row(weights)
            family.scatter_add(total, key, sx, xp)
            if square is None and energy is None:
                continue
            sx = sx * x
            if square is not None:
                family.scatter_add(square, key, sx, xp)
            if energy is not None:
                energy += entries.sums_by_class(sx, groups.device_codes, groups.n_classes)

    def _merge(self, target: Array, part: Array) -> None:
        """``target += part``, by slices on all threads."""
        xp = self.place.xp
        target, part = xp.reshape(target, (-1,)), xp.reshape(part, (-1,))

        def add(cut: tuple[int, int]) -> None:
            target[cut[0] : cut[1]] += part[cut[0] : cut[1]]

        for _ in run(add, ranges(target.shape[0], 2**22), self.place):
            pass

    def loss_at_zero(self, groups: Groups) -> Array:
        """The l1 loss of centers at zero, (m,): sums of weight / W_c times abs(x).

        Reads every value, so a value that is not finite shows in it.
        """
        xp = self.place.xp
        share = 1.0 / np.asarray(groups.weight)[groups.codes]
        share = self.place.asarray(share if groups.weights is None else share * groups.weights)

        def add_lane(cut: tuple[int, int]) -> Array:
            sums = self.place.zeros(self.shape[1])
            for entries in self.entries(*cut):
                terms = xp.abs(xp.astype(entries.values, xp.float64)) * entries.of_row(share)
                family.scatter_add(sums, entries.columns(), terms, xp)
            return sums

        return self._sum_lanes(add_lane)

    def stored_per_column(self) -> Array:
        """How many entries each column stores: int64, shape (m,)."""
        xp = self.place.xp
        if not self.by_row:
            indptr = xp.astype(self.place.move(self.indptr), xp.int64)
            return indptr[1:] - indptr[:-1]

        def count_lane(cut: tuple[int, int]) -> Array:
            counts = self.place.zeros(self.shape[1], xp.int64)
            for start, stop in ranges(cut[1] - cut[0], chunk_size(self.place)):
                indices = self.place.move(self.indices[cut[0] + start : cut[0] + stop])
                family.scatter_add(counts, indices, xp.ones(stop - start, dtype=xp.int64), xp)
            return counts

        return self._sum_lanes(count_lane)

    def _sum_lanes(self, lane: Callable[[tuple[int, int]], Array]) -> Array:
        sums = None
        for part in run(lane, lanes(self.host_indptr, self.shape[1], self.place), self.place):
            if sums is None:
                sums = part
            else:
                self._merge(sums, part)
        assert sums is not None
        return sums

    # --- columns -------------------------------------------------------------------------------

    def touched_columns(self) -> Array | None:
        """The columns with stored entries, ascending; None where they are not few."""
        if not self.by_row or 8 * int(self.host_indptr[-1]) > self.shape[1]:
            return None
        return self.place.xp.unique_values(self.place.move(self.indices))

    def centred_moments(self, columns: Array, groups: Groups) -> tuple[Array, Array]:
        """Sums and second moments about the mean of each class in some columns: two (K, d) arrays.

        Two passes over the stored entries. Implicit zeros exist in a column of a class only if
        fewer rows of positive weight are stored than exist: a count, which is exact.
        """
        xp, place = self.place.xp, self.place
        k, d = groups.n_classes, int(columns.shape[0])
        lookup = self._lookup(columns)
        total, held, spread, error = (place.zeros(k * d) for _ in range(4))
        stored = place.zeros(k * d, xp.int64)

        def parts() -> Iterator[tuple[Array, Array, Array]]:
            for entries in self.entries():
                position = entries.of_column(lookup)
                keep = position >= 0
                code = xp.astype(entries.of_row(groups.device_codes)[keep], xp.int64)
                x = xp.astype(entries.values[keep], xp.float64)
                weights = groups.device_weights
                s = xp.ones_like(x) if weights is None else entries.of_row(weights)[keep]
                yield code * d + position[keep], x, s

        for key, x, s in parts():
            family.scatter_add(total, key, s * x, xp)
            family.scatter_add(held, key, s, xp)
            family.scatter_add(stored, key, xp.astype(s > 0, xp.int64), xp)
        weight = xp.repeat(place.asarray([w or 1.0 for w in groups.weight]), d)
        rows = xp.repeat(place.asarray(groups.count, dtype=xp.int64), d)
        zeros = weight - held
        zeros = xp.where((stored < rows) & (zeros > 0), zeros, xp.zeros_like(zeros))
        mean = total / weight
        for key, x, s in parts():
            away = x - xp.take(mean, key)
            family.scatter_add(error, key, s * away, xp)
            family.scatter_add(spread, key, s * away * away, xp)
        error = error - zeros * mean
        spread = spread + zeros * mean * mean - error * error / weight
        spread = xp.where(spread < 0, xp.zeros_like(spread), spread)
        return xp.reshape(total, (k, d)), xp.reshape(spread, (k, d))

    def _lookup(self, columns: Array) -> Array:
        """The place of each column among ``columns``, -1 for others: shape (m,)."""
        xp = self.place.xp
        kind = xp.int32 if max(self.shape) < _INT32 else xp.int64
        lookup = self.place.asarray(np.full(self.shape[1], -1), dtype=kind)
        lookup[columns] = xp.arange(int(columns.shape[0]), dtype=kind)
        return lookup

    def select(self, columns: Array, *, by_row: bool) -> SparseBlock:
        """Some columns (ascending, no duplicates) as a block at ``place``, in the given layout."""
        xp, place = self.place.xp, self.place
        width = int(columns.shape[0])
        lookup = self._lookup(columns)
        kind = lookup.dtype

        def pick(entries: Entries) -> tuple[Array, Array, Array]:
            position = entries.of_column(lookup)
            keep = position >= 0
            rows = xp.astype(entries.rows()[keep], kind)
            return rows, position[keep], _storable(entries.values[keep], xp)

        parts = list(run(pick, self.entries(), place))
        empty = place.zeros(0, kind)
        parts = parts or [(empty, empty, place.zeros(0))]
        rows, cols, values = (xp.concat([p[i] for p in parts]) for i in range(3))
        matrix = sparse_module(xp).coo_matrix((values, (rows, cols)), shape=(self.shape[0], width))
        matrix = matrix.tocsr() if by_row else matrix.tocsc()
        return SparseBlock(matrix.data, matrix.indices, matrix.indptr, matrix.shape, by_row, place)

    def sorting_tasks(
        self, groups: Groups, budget: int
    ) -> Iterator[Callable[[], tuple[Array, SortedColumns] | None]]:
        """Tasks that each sort some columns, without those whose medians are zero beyond doubt.

        More than half of a class' weight at zero makes its median zero (MATH: counting settles
        nearly every column of text). Columns that store too little for anything else are settled
        by one count; those left are put in column order and counted by class; the rest is sorted.
        """
        stored = self.stored_per_column()
        smallest = min(groups.count)
        enough = stored > 0 if groups.weights is not None else 2 * stored >= smallest
        columns = self.place.xp.nonzero(enough)[0]
        if columns.shape[0] == 0:
            return
        block = self.select(columns, by_row=False)
        # Each entry takes part in about twelve arrays of 8 bytes, each list in about sixteen.
        cost = 96 * np.diff(block.host_indptr.astype(np.int64)) + 128 * groups.n_classes
        cost = np.concatenate([[0], np.cumsum(cost)])
        for left, right in row_ranges(cost, budget):

            def task(left: int = left, right: int = right) -> tuple[Array, SortedColumns] | None:
                kept, lists = sort_segments(*block.columns(left, right), groups, block.place)
                return None if lists is None else (columns[left:right][kept], lists)

            yield task

    def columns(self, left: int, right: int) -> tuple[Array, Array, Array]:
        """(rows, values, offsets) of the columns left..right of a CSC block."""
        start, stop = int(self.host_indptr[left]), int(self.host_indptr[right])
        offsets = self.place.xp.astype(self.indptr[left : right + 1], self.place.xp.int64) - start
        return self.indices[start:stop], self.data[start:stop], offsets

    # --- scores --------------------------------------------------------------------------------

    def linear_scores(self, columns: Array, shift: Array, coef: Array) -> Array:
        """``(X[:, columns] - shift) @ coef``: shape (n, q), float64.

        One product over the stored values less one constant: implicit zeros cost nothing.
        """
        xp, place = self.place.xp, self.place
        n, m = self.shape
        wide = place.zeros((m, coef.shape[1]))
        wide[columns, :] = coef
        if coef.shape[1] == 1:
            wide = wide[:, 0]  # a product with a vector is the faster one
        out = place.zeros((n, coef.shape[1]))
        sparse = sparse_module(xp)
        kind = sparse.csr_matrix if self.by_row else sparse.csc_matrix

        def product(entries: Entries) -> tuple[Entries, Array]:
            count = entries.last - entries.first
            x = xp.astype(entries.values, xp.float64)
            offsets = xp.astype(entries.offsets, entries.minor.dtype)
            shape = (count, m) if self.by_row else (n, count)
            part = kind((x, entries.minor, offsets), shape=shape)
            return entries, part @ (wide if self.by_row else wide[entries.first : entries.last])

        for entries, part in run(product, self.row_entries(), place):
            part = xp.reshape(part, (part.shape[0], coef.shape[1]))
            if self.by_row:
                out[entries.first : entries.last, :] = part
            else:
                out += part
        return out - shift @ coef

    def l1_scores(self, columns: Array, theta: Array, scale: Array | None) -> Array:
        """Minus the l1 distances to K centers, (n, K); for K = 2 their difference, (n, 1).

        The score of a row of zeros, and a correction for each stored entry of the columns.
        """
        xp, place = self.place.xp, self.place
        n = self.shape[0]
        two = theta.shape[0] == 2
        lookup = self._lookup(columns)
        inverse = xp.ones(theta.shape[1]) if scale is None else 1.0 / scale
        at_zero = xp.sum(xp.abs(theta) * inverse, axis=1)
        base = at_zero[:1] - at_zero[1:] if two else -at_zero
        out = place.zeros((base.shape[0], n))

        def corrections(entries: Entries) -> tuple[Array, list[Array]]:
            position = entries.of_column(lookup)
            keep = position >= 0
            rows, position = entries.rows()[keep], position[keep]
            x = xp.astype(entries.values[keep], xp.float64)
            changes = []
            for c in range(theta.shape[0]):
                center = xp.take(theta[c, :], position)
                changes.append(xp.abs(x - center) - xp.abs(center))
            terms = [changes[0] - changes[1]] if two else [-change for change in changes]
            return rows, [term * xp.take(inverse, position) for term in terms]

        for rows, terms in run(corrections, self.entries(), place):
            for q, term in enumerate(terms):
                family.scatter_add(out[q, :], rows, term, xp)
        return xp.permute_dims(out + base[:, None], (1, 0))

    def check_finite(self, squares: bool) -> None:
        """Raise for the first value that is not finite, or whose square overflows."""
        for entries in self.entries():
            bad = errors.first_bad(entries.values, squares, array_namespace(entries.values))
            if bad is not None:
                row, column = int(entries.rows()[bad]), int(entries.columns()[bad])
                errors.raise_bad_value(float(entries.values[bad]), column, row)


def _storable(values: Array, xp: Any) -> Array:
    """Values in a type that both sparse modules take: float32 where exact, else float64."""
    if values.dtype in (xp.float32, xp.float64):
        return values
    return xp.astype(values, xp.float64)
