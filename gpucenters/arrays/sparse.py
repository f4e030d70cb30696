"""Blocks of sparse data, on SciPy's or cupyx's three arrays, for the numpy-and-cupy family.

Nothing here makes an array of size n x m: sums run over the stored values, chunk by chunk.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from . import errors, family, host, sums
from .compressed import Compressed
from .dense import DenseBlock, RowChunk
from .devices import place_of
from .entries import Entries
from .grid import chunk_size, row_ranges, strip_ranges
from .groups import Groups
from .namespace import array_namespace, sparse_module, to_numpy
from .ordering import SortedColumns
from .reading import refuse
from .segments import sort_segments
from .threads import run
from .typing import Array
from .work import SortingPlan, Work

_SORT_ENTRIES = 2**20  # entries in one range of columns: enough for each step of the search


@dataclass(frozen=True)
class SparseBlock(Compressed):
    """A compressed sparse n x m matrix without duplicates, worked on at ``place``."""

    def add_class_sums(
        self,
        groups: Groups,
        total: Array,
        square: Array | None,
        energy: Array | None,
        work: Work,
    ) -> None:
        """Add sums of each class and feature, in place.

        Parameters
        ----------
        groups : Groups
        total : array of shape (K, m), float64
            Sums of x.
        square : array of shape (K, m), float64, or None
            Sums of the squares of x.
        energy : array of shape (K,), float64, or None
            Sums of the squares of x over all features.
        work : Work
            Its budget is what further accumulators may take.
        """
        sums.add_class_sums(self, groups, total, square, energy, work)

    def centred_moments(self, columns: Array, groups: Groups) -> tuple[Array, Array]:
        """Sums and second moments about the mean of each class in some columns: two (K, d)."""
        return sums.centred_moments(self, columns, groups)

    def loss_at_zero(self, groups: Groups) -> Array:
        """The l1 loss of centers at zero, (m,): sums of weight / W_c times abs(x).

        Reads every value, so a value that is not finite shows in it.
        """
        return sums.absolute_sums(self, groups)

    def sorting_plans(self, groups: Groups, work: Work) -> Iterator[SortingPlan]:
        """Plans to sort the columns, without those whose medians are zero beyond doubt.

        More than half of a class' weight at zero makes its median zero, and counting settles nearly
        every column of text. Columns that store too little for anything else are settled by one
        count; those left are put in column order, as many at a time as the budget allows, and
        counted by class; the rest is sorted.
        """
        columns, stored = self._perhaps_not_zero(groups, work)
        # Put in order, an entry takes about 48 bytes on the way.
        cost = np.concatenate([[0], np.cumsum(48 * to_numpy(stored))])
        passes = list(row_ranges(cost, max(1, work.budget // 2)))
        for left, right in work.progress(passes, len(passes), f"{len(passes)} passes over X"):
            block = self.select(columns[left:right], by_row=False)
            yield _plan(block, columns[left:right], groups, work)

    def _perhaps_not_zero(self, groups: Groups, work: Work) -> tuple[Array, Array]:
        """The columns that may have a median other than zero in some class, and their entries."""
        xp, place = self.place.xp, self.place
        stored = sums.stored_per_column(self)
        enough = stored > 0 if groups.weights is not None else 2 * stored >= min(groups.count)
        size = groups.n_classes * self.shape[1]
        if size > self.nnz or 8 * int(xp.sum(xp.where(enough, stored, stored * 0))) < self.nnz:
            columns = xp.nonzero(enough)[0]
            return columns, xp.take(stored, columns)
        # Many entries are in question: a count by class leaves fewer to be put in order.
        held = place.zeros((groups.n_classes, self.shape[1]))
        indicator = replace(self, data=self._ones())
        sums.add_class_sums(indicator, groups, held, None, None, work)
        total = place.asarray(groups.weight)[:, None]
        columns = xp.nonzero(xp.any(2 * held >= (1 - 1e-9) * total, axis=0))[0]
        return columns, xp.take(stored, columns)

    def _ones(self) -> Array:
        """As many ones as there are entries, where these are; they take no memory worth naming."""
        if isinstance(self.data, np.ndarray):
            return np.broadcast_to(np.ones(1), (self.nnz,))
        here = place_of(self.data)
        with here.current():
            return here.xp.ones(self.nnz, dtype=here.xp.bool)

    def as_rows(self) -> SparseBlock:
        """The same block in CSR; it stays where its data are."""
        here = self.place if self.resident else place_of(self.data)
        with here.current():
            every = here.xp.arange(self.shape[1], dtype=here.xp.int64)
            found = replace(self, place=here).select(every, by_row=True)
        return SparseBlock(found.data, found.indices, found.indptr, found.shape, True, self.place)

    def full_rows(self, groups: Groups) -> Iterator[RowChunk]:
        """Strips of rows made dense, one after the other, for models that need products."""
        n, m = self.shape
        xp, place = self.place.xp, self.place
        matrix = self if self.by_row else self.as_rows()
        for start, stop in strip_ranges(n, m, place):
            strip = place.zeros((stop - start) * m)
            for entries in matrix.row_entries(start, stop):
                rows = xp.astype(entries.rows(), xp.int64, copy=False) - start
                x = xp.astype(entries.values, xp.float64, copy=False)
                strip[rows * m + entries.columns()] = x  # no place twice: duplicates are summed
            dense = DenseBlock(xp.reshape(strip, (stop - start, m)), place)
            yield from dense.full_rows(groups.of_rows(start, stop))

    def linear_scores(self, columns: Array, shift: Array, coef: Array) -> Array:
        """``(X[:, columns] - shift) @ coef``: shape (n, q), float64.

        One product over the stored values less one constant: implicit zeros cost nothing.
        """
        place = self.place
        n, m = self.shape
        wide = place.zeros((m, coef.shape[1]))
        wide[columns, :] = coef
        out = place.zeros((n, coef.shape[1]))
        (self._host_product if self.on_host else self._product)(wide, out)
        return out - shift @ coef

    def _product(self, coef: Array, out: Array) -> None:
        """``out += X @ coef`` by the library's own products, a run of entries at a time."""
        xp = self.place.xp
        n, m = self.shape
        q = coef.shape[1]
        factor = coef[:, 0] if q == 1 else coef  # a product with a vector is the faster one
        sparse = sparse_module(xp)
        kind = sparse.csr_matrix if self.by_row else sparse.csc_matrix

        def product(entries: Entries) -> tuple[slice, Array]:
            rows = slice(entries.first, entries.last)
            count = entries.last - entries.first
            x = xp.astype(entries.values, xp.float64)
            shape = (count, m) if self.by_row else (n, count)
            part = kind((x, entries.minor, entries.offsets), shape=shape)
            return rows, part @ (factor if self.by_row else factor[rows])

        for rows, part in run(product, self.row_entries(), self.place):
            part = xp.reshape(part, (part.shape[0], q))
            if self.by_row:
                out[rows, :] += part
            else:
                out += part

    def _host_product(self, coef: np.ndarray, out: np.ndarray) -> None:
        """``out += X @ coef`` by the host's loops, some rows a thread."""

        def product(rows: tuple[int, int]) -> None:
            host.add_product(self.row_entries(*rows), coef, out)

        for _ in run(
            product, row_ranges(self.host_indptr, 16 * chunk_size(self.place)), self.place
        ):
            pass

    def l1_scores(self, columns: Array, theta: Array, scale: Array | None) -> Array:
        """Minus the l1 distances to K centers, (n, K); for K = 2 their difference, (n, 1).

        The score of a row of zeros, and a correction for each stored entry of the columns.
        """
        xp, place = self.place.xp, self.place
        n = self.shape[0]
        two = theta.shape[0] == 2
        lookup = self.lookup(columns)
        inverse = xp.ones(theta.shape[1]) if scale is None else 1.0 / scale
        at_zero = xp.sum(xp.abs(theta) * inverse, axis=1)
        base = at_zero[:1] - at_zero[1:] if two else -at_zero
        out = place.zeros((base.shape[0], n))

        def corrections(entries: Entries) -> tuple[Array, list[Array]]:
            position = entries.of_column(lookup)
            keep = xp.nonzero(position >= 0)[0]
            rows, position = xp.take(entries.rows(), keep), xp.take(position, keep)
            x = xp.astype(xp.take(entries.values, keep), xp.float64)
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

    def holds_whole_numbers(self) -> bool:
        """Whether all stored values are whole numbers."""
        xp = self.place.xp
        whole: Iterator[Array]
        whole = (xp.all(e.values == xp.round(e.values)) for e in self.entries())
        if not all(map(bool, islice(whole, 1))):
            return False
        if self.place.stalls and (rest := list(whole)):  # one wait for all the others
            whole = iter([xp.all(xp.stack(rest))])
        return all(map(bool, whole))

    def check_finite(self, squares: bool) -> None:
        """Raise for the first value that is not finite, whose square overflows, or is refused."""
        for entries in replace(self, reading=None).entries():
            xp = array_namespace(entries.values)
            bad = errors.first_bad(entries.values, squares, xp)
            if bad is not None:
                row, column = int(entries.rows()[bad]), int(entries.columns()[bad])
                errors.raise_bad_value(float(entries.values[bad]), column, row)
            if self.reading is None:
                continue
            bad = errors.first_bad(self.reading(entries.values), False, xp)
            if bad is not None:
                row, column = int(entries.rows()[bad]), int(entries.columns()[bad])
                refuse(self.reading, entries.values[bad], column, row)


def _plan(block: Compressed, columns: Array, groups: Groups, work: Work) -> SortingPlan:
    """How to sort some columns, given in column order."""
    # Each entry takes part in about twelve arrays of 8 bytes, each list in about sixteen.
    cost = 96 * np.diff(block.host_indptr.astype(np.int64)) + 128 * groups.n_classes
    cost = np.concatenate([[0], np.cumsum(cost)])

    def sort(left: int, right: int) -> tuple[Array, SortedColumns] | None:
        kept, lists = sort_segments(*block.columns(left, right), groups, block.place)
        return None if lists is None else (columns[left:right][kept], lists)

    # (On a device each range waits for some numbers: there as few of them as there is memory for.)
    size = work.budget if block.place.stalls else min(work.budget, 96 * _SORT_ENTRIES)
    return SortingPlan(list(row_ranges(cost, size)), sort)
