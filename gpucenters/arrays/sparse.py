"""Blocks of sparse data, on SciPy's or cupyx's three arrays, for the numpy-and-cupy family.

Nothing here makes an array of size n x m: sums run over the stored values, chunk by chunk.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from . import errors, family
from .dense import DenseBlock
from .devices import Place
from .grid import chunk_size, entry_ranges, row_ranges
from .groups import Groups
from .namespace import array_namespace, sparse_module, to_numpy
from .ordering import SparseSortedColumns
from .typing import Array


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
    def _host_indptr(self) -> np.ndarray:
        return to_numpy(self.indptr)

    def entries(self) -> Iterator[tuple[Array, Array, Array]]:
        """(rows, columns, values) of the stored entries, chunk by chunk, in the stored order."""
        xp, move = self.place.xp, self.place.move
        for start, stop, first, last in entry_ranges(self._host_indptr, chunk_size(self.place)):
            indptr = move(self.indptr[first : last + 1])
            major = family.expand(indptr, start, stop, 0, last - first, xp) + first
            minor = move(self.indices[start:stop])
            values = move(self.data[start:stop])
            yield (major, minor, values) if self.by_row else (minor, major, values)

    def add_class_sums(
        self, groups: Groups, total: Array, square: Array | None, energy: Array
    ) -> None:
        """Add sums of each class and feature, in place.

        Parameters
        ----------
        groups : Groups
        total : array of shape (K, m), float64
            Sums of x.
        square : array of shape (K, m), float64, or None
            Sums of the squares of x.
        energy : array of shape (K,), float64
            Sums of the squares of x over all features.
        """
        xp, m = self.place.xp, self.shape[1]
        codes, weights = groups.device_codes, groups.device_weights
        total, square = (None if a is None else xp.reshape(a, (-1,)) for a in (total, square))
        for rows, columns, values in self.entries():
            code = xp.astype(xp.take(codes, rows), xp.int64)
            key = code * m + columns
            x = xp.astype(values, xp.float64)
            sx = x if weights is None else x * xp.take(weights, rows)
            family.scatter_add(total, key, sx, xp)
            sx = sx * x
            if square is not None:
                family.scatter_add(square, key, sx, xp)
            energy += xp.bincount(code, weights=sx, minlength=groups.n_classes)

    def absolute_sums(self, groups: Groups) -> Array:
        """Sum of weight / W_c times abs(x) over each column: the l1 loss of centers at zero.

        Reads every value once, so a value that is not finite shows in it.
        """
        sums = self.place.zeros(self.shape[1])
        xp, share = self.place.xp, self._row_shares(groups)
        for rows, columns, values in self.entries():
            terms = xp.abs(xp.astype(values, xp.float64)) * xp.take(share, rows)
            family.scatter_add(sums, columns, terms, xp)
        return sums

    def _row_shares(self, groups: Groups) -> Array:
        share = 1.0 / np.asarray(groups.weight)[groups.codes]
        return self.place.asarray(share if groups.weights is None else share * groups.weights)

    def stored_per_column(self) -> Array:
        """How many entries each column stores: int64, shape (m,)."""
        xp = self.place.xp
        if not self.by_row:
            indptr = xp.astype(self.place.move(self.indptr), xp.int64)
            return indptr[1:] - indptr[:-1]
        counts = self.place.zeros(self.shape[1], xp.int64)
        for start, stop, _, _ in entry_ranges(self._host_indptr, chunk_size(self.place)):
            family.scatter_add(counts, self.place.move(self.indices[start:stop]), 1, xp)
        return counts

    def dense_columns(self, share: float) -> Array:
        """The columns that store more than ``share`` of their rows, ascending."""
        return self.place.xp.nonzero(self.stored_per_column() > share * self.shape[0])[0]

    def densified(self, columns: Array) -> DenseBlock:
        """A dense block of some columns, filled in chunk by chunk."""
        return DensifiedBlock(self.select(columns, by_row=True), self.place)

    def select(self, columns: Array, *, by_row: bool) -> SparseBlock:
        """Some columns (ascending, no duplicates) as a block at ``place``, in the given layout."""
        xp, place = self.place.xp, self.place
        width = int(columns.shape[0])
        lookup = place.asarray(np.full(self.shape[1], -1, dtype=np.int64))
        lookup[columns] = xp.arange(width, dtype=xp.int64)
        kind = xp.int32 if max(self.shape) < 2**31 else xp.int64
        parts: list[tuple[Array, ...]] = []
        for rows, cols, values in self.entries():
            position = xp.take(lookup, cols)
            keep = position >= 0
            found = (rows[keep], position[keep])
            parts.append((*(xp.astype(i, kind) for i in found), _storable(values[keep], xp)))
        empty = place.zeros(0, kind)
        parts = parts or [(empty, empty, place.zeros(0))]
        rows, cols, values = (xp.concat([p[i] for p in parts]) for i in range(3))
        sparse = sparse_module(xp)
        matrix = sparse.coo_matrix((values, (rows, cols)), shape=(self.shape[0], width))
        matrix = matrix.tocsr() if by_row else matrix.tocsc()
        return SparseBlock(matrix.data, matrix.indices, matrix.indptr, matrix.shape, by_row, place)

    def sorted_columns(
        self, groups: Groups, budget: int
    ) -> Iterator[tuple[Array, SparseSortedColumns]]:
        """Sorted columns, without those whose median is zero in each class beyond doubt.

        More than half of a class' weight at zero makes its median zero (MATH: counting settles
        nearly every column of text). Columns that store too little for anything else are settled
        by one count; those left are put in column order and counted by class; the rest is sorted.
        """
        xp = self.place.xp
        smallest = min(groups.count)
        stored = self.stored_per_column()
        enough = stored > 0 if groups.weights is not None else 2 * stored >= smallest
        columns = xp.nonzero(enough)[0]
        if columns.shape[0] == 0:
            return
        block = self.select(columns, by_row=False)
        # Each entry takes part in about twelve arrays of 8 bytes, each list in about sixteen.
        lists = 128 * groups.n_classes
        indptr = block._host_indptr.astype(np.int64)
        cost = np.concatenate([[0], np.cumsum(96 * np.diff(indptr) + lists)])
        for left, right in row_ranges(cost, budget):
            part = block._columns(left, right)
            kept, lists_ = part._sort(groups)
            if lists_ is not None:
                yield columns[left:right][kept], lists_

    def _columns(self, left: int, right: int) -> SparseBlock:
        start, stop = int(self._host_indptr[left]), int(self._host_indptr[right])
        return SparseBlock(
            self.data[start:stop],
            self.indices[start:stop],
            self.indptr[left : right + 1] - start,
            (self.shape[0], right - left),
            self.by_row,
            self.place,
        )

    def _sort(self, groups: Groups) -> tuple[Array, SparseSortedColumns | None]:
        """Which columns are not settled, and those sorted. For a CSC block."""
        xp, place, k, b = self.place.xp, self.place, groups.n_classes, self.shape[1]
        nnz = int(self._host_indptr[-1])
        rows = self.indices
        column = family.expand(self.indptr, 0, nnz, 0, b, xp)
        code = xp.astype(xp.take(groups.device_codes, rows), xp.int64)
        x = xp.astype(self.data, xp.float64)
        counts = xp.int64 if groups.whole else xp.float64
        weight = None
        keep = x != 0
        if groups.weights is not None:
            weight = xp.take(groups.device_weights, rows)
            keep = keep & (weight > 0)
        held = place.zeros(k * b, counts)
        segment = code * b + column
        one = 1 if weight is None else xp.astype(weight[keep], counts)
        family.scatter_add(held, segment[keep], one, xp)
        total = place.asarray(groups.weight)[:, None]
        open_ = xp.any(2 * xp.reshape(held, (k, b)) >= (1 - 1e-9) * total, axis=0)
        kept = xp.nonzero(open_)[0]
        width = int(kept.shape[0])
        if width == 0:
            return kept, None
        # Renumber the columns that are left and drop all other entries.
        position = xp.cumsum(xp.astype(open_, xp.int64)) - 1
        keep = keep & xp.take(open_, column)
        segment = code[keep] * width + xp.take(position, column[keep])
        weight = None if weight is None else weight[keep]
        held = xp.reshape(xp.take(xp.reshape(held, (k, b)), kept, axis=1), (-1,))
        return kept, self._lists(x[keep], segment, weight, held, width, groups)

    def _lists(
        self,
        x: Array,
        segment: Array,
        weight: Array | None,
        held: Array,
        width: int,
        groups: Groups,
    ) -> SparseSortedColumns:
        xp, place, k = self.place.xp, self.place, groups.n_classes
        shape = (k, width)
        stored = place.zeros(k * width, xp.int64)
        family.scatter_add(stored, segment, 1, xp)
        negative = place.zeros(k * width, xp.int64)
        family.scatter_add(negative, segment[x < 0], 1, xp)
        values, weights = family.segment_sort(x, segment, xp, weight)
        start = xp.cumsum(stored) - stored
        owner = family.expand(
            xp.concat([start, place.asarray([int(x.shape[0])], xp.int64)]),
            0,
            int(x.shape[0]),
            0,
            k * width,
            xp,
        )
        # A list has a zero item if fewer rows of positive weight are stored than exist.
        rows = place.asarray(groups.count, dtype=xp.int64)[:, None]
        stored = xp.reshape(stored, shape)
        negative = xp.reshape(negative, shape)
        has_zero = stored < rows
        mass = place.asarray(groups.weight, dtype=held.dtype)[:, None] - xp.reshape(held, shape)
        mass = xp.where(has_zero & (mass > 0), mass, xp.zeros_like(mass))
        size = stored + xp.astype(has_zero, xp.int64)
        cumulative = None
        if weights is not None:
            unit = place.asarray([1.0 if groups.whole else w / 2**52 for w in groups.weight])
            unit = xp.take(unit, owner // width)
            cumulative = xp.astype(_running(weights / unit, start, owner, xp), held.dtype)
            if not groups.whole:
                cumulative = cumulative * unit
        return SparseSortedColumns(
            place=place,
            values=values,
            start=xp.reshape(start, shape),
            size=size,
            depth=int(xp.max(size)).bit_length() + 1,
            zero_at=xp.where(has_zero, negative, size),
            zero_mass=mass,
            weights=weights,
            cumulative=cumulative,
            segment=owner,
        )

    def linear_scores(self, columns: Array, shift: Array, coef: Array) -> Array:
        """``(X[:, columns] - shift) @ coef``: shape (n, q), float64.

        One product over the stored values less one constant: implicit zeros cost nothing.
        """
        xp, place = self.place.xp, self.place
        n, m = self.shape
        wide = place.zeros((m, coef.shape[1]))
        wide[columns, :] = coef
        out = place.zeros((n, coef.shape[1]))
        sparse = sparse_module(xp)
        kind = sparse.csr_matrix if self.by_row else sparse.csc_matrix
        for first, last in row_ranges(self._host_indptr, 4 * chunk_size(place)):
            start, stop = int(self._host_indptr[first]), int(self._host_indptr[last])
            shape = (last - first, m) if self.by_row else (n, last - first)
            indptr = place.move(self.indptr[first : last + 1]) - start
            part = kind(
                (
                    xp.astype(place.move(self.data[start:stop]), xp.float64),
                    place.move(self.indices[start:stop]),
                    indptr,
                ),
                shape=shape,
            )
            if self.by_row:
                out[first:last, :] = part @ wide
            else:
                out += part @ wide[first:last, :]
        return out - shift @ coef

    def l1_scores(self, columns: Array, theta: Array, scale: Array | None) -> Array:
        """Minus the l1 distances to K centers, (n, K); for K = 2 their difference, (n, 1).

        The score of a row of zeros, and a correction for each stored entry of the columns.
        """
        xp, place = self.place.xp, self.place
        n, m = self.shape
        d = int(columns.shape[0])
        two = theta.shape[0] == 2
        lookup = place.asarray(np.full(m, d, dtype=np.int64))
        lookup[columns] = xp.arange(d, dtype=xp.int64)
        inverse = xp.ones(d) if scale is None else 1.0 / scale
        at_zero = xp.sum(xp.abs(theta) * inverse, axis=1)
        base = at_zero[:1] - at_zero[1:] if two else -at_zero
        out = place.zeros((base.shape[0], n))
        for rows, cols, values in self.entries():
            position = xp.take(lookup, cols)
            keep = position < d
            rows, position = rows[keep], position[keep]
            x = xp.astype(values[keep], xp.float64)
            changes = []
            for c in range(theta.shape[0]):
                center = xp.take(theta[c, :], position)
                changes.append(xp.abs(x - center) - xp.abs(center))
            terms = [changes[0] - changes[1]] if two else [-change for change in changes]
            for q, term in enumerate(terms):
                family.scatter_add(out[q, :], rows, term * xp.take(inverse, position), xp)
        return xp.permute_dims(out + base[:, None], (1, 0))

    def check_finite(self, squares: bool) -> None:
        """Raise for the first value that is not finite, or whose square overflows."""
        for rows, columns, values in self.entries():
            bad = errors.first_bad(values, squares, array_namespace(values))
            if bad is not None:
                errors.raise_bad_value(float(values[bad]), int(columns[bad]), int(rows[bad]))


class DensifiedBlock(DenseBlock):
    """A CSR block read as a dense one, for columns that are nearly full."""

    def chunk(self, rows: tuple[int, int], columns: tuple[int, int]) -> Array:
        block: SparseBlock = self.array
        xp, place = self.place.xp, self.place
        start, stop = (int(block._host_indptr[r]) for r in rows)
        indptr = block.indptr[rows[0] : rows[1] + 1]
        row = family.expand(indptr, start, stop, 0, rows[1] - rows[0], xp)
        column = block.indices[start:stop] - columns[0]
        width = columns[1] - columns[0]
        keep = (column >= 0) & (column < width)
        out = place.zeros((rows[1] - rows[0], width))
        values = xp.astype(block.data[start:stop], xp.float64)
        out[row[keep], column[keep]] = values[keep]
        return out


def _storable(values: Array, xp: Any) -> Array:
    """Values in a type that both sparse modules take: float32 where exact, else float64."""
    if values.dtype in (xp.float32, xp.float64):
        return values
    return xp.astype(values, xp.float64)


def _running(weights: Array, start: Array, owner: Array, xp: Any) -> Array:
    """Running sums of whole numbers that begin anew in each list.

    In int64, where the difference of two sums is exact even if both have wrapped around: sums of
    floats over all lists would drown a light one. Real weights come as multiples of their class'
    weight / 2**52.
    """
    sums = xp.cumsum(xp.astype(xp.round(weights), xp.int64))
    before = xp.take(xp.concat([xp.zeros(1, dtype=sums.dtype), sums]), start)
    return sums - xp.take(before, owner)
