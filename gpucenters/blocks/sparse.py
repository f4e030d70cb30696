"""Blocks of sparse data, on SciPy's or cupyx's three arrays.

Nothing here makes an array of size n x m: sums run over the stored values, chunk by chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Any, ClassVar, TypeVar

import numpy as np

from ..arrays import numpy_cupy
from ..arrays.backend import backend_of
from ..arrays.context import Context
from ..arrays.functions import row_sums
from ..arrays.grid import partitions, ranges, row_ranges
from ..arrays.namespace import array_namespace, sparse_module, stored_once, to_numpy
from ..arrays.typing import NumPyOrCuPy as Array
from . import errors, sparse_host, sparse_scatter, sparse_sums
from .accumulators import CentredSums, RawSums
from .compressed import Compressed, Entries
from .far_features import with_far_features
from .half_weight import ClassHalf, enough_stored
from .padded_rows import as_csr, filled_rows, padded_rows
from .readers import Magnitude, Reader, refuse
from .samples import Samples
from .scatter import ScatterSums
from .segment_terms import Terms, segment_totals
from .sorted_columns import SortedColumns, SortingPlan, column_too_large
from .sparse_sorting import sort_segments
from .strips import SparseStrip
from .working_columns import DenseColumns, SparseColumns

_SORT_ENTRIES = 2**20  # entries in one range of columns: enough for each step of the search
_SORT_BYTES = 96  # workspace for each of them

Result = TypeVar("Result")


@dataclass(frozen=True)
class SparseBlock(Compressed):
    """A `Block` of sparse data without duplicates."""

    has_implicit_zeros: ClassVar[bool] = True

    def read_as(self, reader: Reader) -> SparseBlock:
        """The block with its stored values read by ``reader``."""
        return replace(self, reader=reader)

    def rows(self, start: int, stop: int, ctx: Context) -> SparseBlock:
        """The rows start..stop: see `Block`."""
        if not self.by_row:
            part = as_csr(self, self.backend.arange(self.shape[0])[start:stop], ctx)
            return SparseBlock(part.data, part.indices, part.indptr, part.shape, True, self.backend)
        first, last = (int(end) for end in self.host_indptr[[start, stop]])
        return replace(
            self,
            data=self.data[first:last],
            indices=self.indices[first:last],
            indptr=self.indptr[start : stop + 1] - self.indptr[start],
            shape=(stop - start, self.shape[1]),
        )

    # --- sums ----------------------------------------------------------------------------------

    def add_sums(self, samples: Samples, into: RawSums, ctx: Context) -> None:
        """Add sums of each class and feature, in place: see `Block`."""
        sparse_sums.add_class_sums(self, samples, into, ctx)

    def add_centred(self, samples: Samples, into: CentredSums, ctx: Context) -> None:
        """Add sums and centred squares of each class, in place: see `Block`."""
        every = self.backend.arange(self.shape[1])
        total, centred = self.centred_moments(samples, every, ctx)
        if into.centred.ndim == 1:
            centred = row_sums(centred)
        into.add_classes(samples.class_weight, total, centred)
        if into.nonzero is not None:
            unused = self.backend.xp.zeros_like(into.total)
            self.add_sums(samples, RawSums(unused, nonzero=into.nonzero), ctx)

    def centred_moments(
        self, samples: Samples, columns: Array, ctx: Context
    ) -> tuple[Array, Array]:
        """Sums and centred squares of each class in some columns: see `Block`."""
        return sparse_sums.centred_moments(self, columns, samples, ctx)

    def add_scatter(self, samples: Samples, into: ScatterSums, ctx: Context) -> None:
        """Add the scatter matrix of each class, in place: see `Block`."""
        sparse_scatter.add_scatter(self, samples, into, ctx)

    def add_higher_moments(self, samples: Samples, into: ScatterSums, ctx: Context) -> None:
        """Add third and fourth moments about the class means, in place: see `Block`."""
        sparse_scatter.add_higher_moments(self, samples, into, ctx)

    def narrowed(self, also: Array | None = None) -> tuple[Array, SparseBlock] | None:
        """The columns with stored entries, and the block of these alone: see `Block`."""
        xp, backend = self.backend.xp, self.backend
        # Entries of many partitions would be cut in another way in fewer columns.
        in_parts = len(partitions(self.nnz, 1, backend)) > 1
        if not self.by_row or 8 * self.nnz > self.shape[1] or in_parts:
            return None
        indices = backend.move(self.indices[:])
        columns = xp.unique_values(indices if also is None else xp.concat([indices, also]))
        position = xp.astype(xp.searchsorted(columns, indices), self.indptr.dtype)
        indices = backend_of(self.indptr).move(position)
        return columns, replace(self, indices=indices, shape=(self.shape[0], columns.shape[0]))

    # --- sorted columns ------------------------------------------------------------------------

    def zero_center_loss(self, samples: Samples, ctx: Context) -> Array:
        """The l1 loss of centers at zero: see `Block`."""
        return sparse_sums.absolute_sums(self, samples.share, ctx)

    def map_sorted_columns(
        self, task: Callable[[SortedColumns], Result], samples: Samples, ctx: Context
    ) -> Iterator[tuple[Any, Result]]:
        """``task`` of the columns that may have a median other than zero, sorted: see `Block`.

        More than half of a class's weight at zero makes its median zero, and counting shows this
        for nearly every column of text. One count finds the columns that store too little for
        anything else. Those left are put in column order, as many at a time as the budget allows,
        and counted by class; the rest is sorted.
        """
        ctx = ctx.shared_by_threads(self.shape[0] * self.shape[1])
        columns, stored = self._perhaps_not_zero(samples, ctx)
        # Put in order, an entry takes about 48 bytes on the way.
        cost = np.concatenate([[0], np.cumsum(48 * to_numpy(stored))])
        passes = list(row_ranges(cost, max(1, ctx.budget // 2)))
        for start, stop in ctx.progress(passes, len(passes), f"{len(passes)} passes over X"):
            block = self.select(columns[start:stop], ctx, by_row=False)
            yield from _sorting_plan(block, columns[start:stop], samples, ctx).map(task, ctx)

    def _perhaps_not_zero(self, samples: Samples, ctx: Context) -> tuple[Array, Array]:
        """The columns that may have a median other than zero in some class, and their entries."""
        xp, backend = self.backend.xp, self.backend
        stored = sparse_sums.stored_per_column(self, ctx)
        enough = enough_stored(stored, samples)
        size = samples.n_classes * self.shape[1]
        if size > self.nnz or 8 * int(xp.sum(xp.where(enough, stored, stored * 0))) < self.nnz:
            columns = xp.nonzero(enough)[0]
            return columns, xp.take(stored, columns)
        # Many entries are in question: a count by class leaves fewer to be put in order.
        held = backend.zeros((samples.n_classes, self.shape[1]))
        replace(self, data=self._ones(), reader=None).add_sums(samples, RawSums(held), ctx)
        reached = ClassHalf.of(samples).perhaps_reached(held)
        columns = xp.nonzero(xp.any(reached, axis=0))[0]
        return columns, xp.take(stored, columns)

    def _ones(self) -> Array:
        """As many ones as there are entries, on the backend of the data, in little memory."""
        if self.on_host:
            return np.broadcast_to(np.ones(1), (self.nnz,))
        here = backend_of(self.data)
        with here.current():
            return here.xp.ones(self.nnz, dtype=here.xp.bool)

    def strips(self, columns: Array, ctx: Context) -> Iterator[tuple[slice, SparseStrip]]:
        """The columns in the given order, as many at a time as memory allows: see `Block`."""
        stored = self.backend.xp.take(sparse_sums.stored_per_column(self, ctx), columns)
        # Put in order, an entry takes about 48 bytes on the way.
        cost = np.concatenate([[0], np.cumsum(48 * to_numpy(stored) + 64)])
        for start, stop in row_ranges(cost, max(1, ctx.budget // 2)):
            part = self.select(columns[start:stop], ctx, by_row=False, ascending=False)
            yield slice(start, stop), SparseStrip(part)

    # --- products and scores -------------------------------------------------------------------

    def product(
        self,
        columns: Array,
        shift: Array,
        coef: Array,
        ctx: Context,
        *,
        size: Array | None = None,
    ) -> Array:
        """``(X[:, columns] - shift) @ coef``: see `Block`.

        One product over the stored values less one constant: implicit zeros cost nothing. Where
        coefficients of all m features exceed the budget, the columns are put in a matrix first.
        """
        m, d = self.shape[1], int(columns.shape[0])
        if 8 * m * coef.shape[1] > ctx.budget and 4 * d <= m:
            self.check_finite(False, ctx)  # in the other columns too
            chosen = self.select(columns, ctx, by_row=self.by_row)
            parts = (chosen.data, chosen.indices, chosen.indptr, chosen.shape)
            block = SparseBlock(*parts, self.by_row, self.backend)
            return block.product(self.backend.arange(d), shift, coef, ctx, size=size)
        sizes = None if size is None else [size]
        return self.products([(columns, shift, coef)], ctx, sizes=sizes)[0]

    def products(
        self,
        parts: list[tuple[Array, Array, Array]],
        ctx: Context,
        *,
        sizes: list[Array] | None = None,
    ) -> list[Array]:
        """The product for each (columns, shift, coef): see `Block`."""
        found: list[Array] = []
        widest = max((coef.shape[1] for _, _, coef in parts), default=1)
        most = max(1, ctx.budget // (32 * widest * sum(self.shape)))
        for first, last in ranges(len(parts), most):
            group = parts[first:last]
            wide = self._wide_product([(columns, coef) for columns, _, coef in group], ctx)
            ends = np.cumsum([coef.shape[1] for _, _, coef in group]).tolist()
            for (a, b), (_, shift, coef) in zip(pairwise([0, *ends]), group, strict=True):
                found.append(wide[:, a:b] - shift @ coef)
        if sizes is None:
            return found
        # |x| size + |shift| size, where implicit zeros cost nothing.
        xp = self.backend.xp
        absolute = [(c, -xp.abs(s), b[:, None]) for (c, s, _), b in zip(parts, sizes, strict=True)]
        bounds = self.read_as(Magnitude("products")).products(absolute, ctx)
        return [xp.concat(pair, axis=1) for pair in zip(found, bounds, strict=True)]

    def product_and_bound(
        self, columns: Array, shift: Array, coef: Array, size: Array, ctx: Context
    ) -> tuple[Array, Array]:
        """The product, and the largest value times the longest row: see `Block`."""
        xp, wide = self.backend.xp, 8 * self.shape[1] * coef.shape[1]
        if not self.has_compiled_loops or wide > ctx.budget:
            found = self.product(columns, shift, coef, ctx, size=size)
            return found[:, :-1], found[:, -1]
        product, largest = self._host_product(self._spread([(columns, coef)]), ctx, largest=True)
        longest = float(np.max(np.diff(self.host_indptr)))
        bound = largest * longest * xp.max(size) + xp.abs(shift) @ size
        return product - shift @ coef, bound

    def add_products(self, columns: Array, coef: Array, out: Array, ctx: Context) -> None:
        """Add ``X[:, columns] @ coef``, of a few columns: see `Block`.

        Rows without a value in these columns cost nothing.
        """
        xp, (d, *shape) = self.backend.xp, coef.shape
        part = self.select(columns, ctx, by_row=True)
        rows = xp.nonzero(part.indptr[1:] - part.indptr[:-1])[0]
        if rows.shape[0] == 0:
            return
        ends = xp.concat([xp.take(part.indptr, rows), part.indptr[-1:]])
        x = xp.astype(part.data, xp.float64)
        held = sparse_module(xp).csr_matrix((x, part.indices, ends), shape=(rows.shape[0], d))
        found = xp.reshape(stored_once(held) @ xp.reshape(coef, (d, -1)), (-1, *shape))
        out[:, :, rows] += xp.permute_dims(found, (1, 2, 0))

    def _wide_product(self, parts: list[tuple[Array, Array]], ctx: Context) -> Array:
        """``X[:, columns] @ coef`` of each part, side by side."""
        wide = self._spread(parts)
        if self.has_compiled_loops:
            return self._host_product(wide, ctx)[0]
        return self._product(wide, ctx)

    def _spread(self, parts: list[tuple[Array, Array]]) -> Array:
        """Coefficients of all features, zero but for those of each part, side by side: (m, q)."""
        q = sum(coef.shape[1] for _, coef in parts)
        wide: Array = self.backend.zeros((self.shape[1], q))
        first = 0
        for columns, coef in parts:
            wide[columns, first : first + coef.shape[1]] = coef
            first += coef.shape[1]
        return wide

    def working_columns(
        self, columns: Array, shift: Array, scale: Array, rows: np.ndarray | None, ctx: Context
    ) -> DenseColumns | SparseColumns:
        """``(X[rows, columns] - shift) / scale`` in memory: see `Block`.

        As an array only where that takes no more memory than the stored entries do.
        """
        xp, backend = self.backend.xp, self.backend
        part = self.select(columns, ctx, by_row=True)
        kind = sparse_module(xp).csr_matrix
        values = xp.astype(part.data, xp.float64) / xp.take(scale, part.indices)
        matrix = kind((values, part.indices, part.indptr), shape=part.shape)
        if rows is not None:
            matrix = matrix[backend.asarray(rows)]
        if 2 * matrix.nnz >= matrix.shape[0] * matrix.shape[1]:
            return DenseColumns(backend, numpy_cupy.filled(matrix, xp) - shift / scale)
        return SparseColumns(backend, matrix, matrix.T.tocsr(), shift / scale)

    def padded_rows(
        self, rows: Array, columns: Array, ctx: Context, *, filled: bool = False
    ) -> Iterator[tuple[Array, Array | None]]:
        """A few rows, some at a time: see `Block`."""
        return (filled_rows if filled else padded_rows)(self, rows, columns, ctx)

    def _product(self, coef: Array, ctx: Context) -> Array:
        """``X @ coef`` by the library's own products, a run of entries at a time."""
        xp = self.backend.xp
        n, m = self.shape
        q = coef.shape[1]
        out: Array = self.backend.zeros((n, q))
        factor = coef[:, 0] if q == 1 else coef  # a product with a vector is the faster one
        sparse = sparse_module(xp)
        kind = sparse.csr_matrix if self.by_row else sparse.csc_matrix

        def product(entries: Entries) -> tuple[slice, Array]:
            rows = slice(entries.first, entries.last)
            count = entries.last - entries.first
            x = xp.astype(entries.values, xp.float64)
            shape = (count, m) if self.by_row else (n, count)
            part = stored_once(kind((x, entries.minor, entries.offsets), shape=shape))
            return rows, part @ (factor if self.by_row else factor[rows])

        for rows, part in ctx.map(product, self.major_entries(ctx)):
            part = xp.reshape(part, (part.shape[0], q))
            if self.by_row:
                out[rows, :] += part
            else:
                out += part
        return out

    def _host_product(
        self, coef: Array, ctx: Context, *, largest: bool = False
    ) -> tuple[Array, float]:
        """``X @ coef`` by compiled loops, some rows a thread; and the largest absolute value."""
        out: Array = self.backend.zeros((self.shape[0], coef.shape[1]))

        def add(rows: tuple[int, int]) -> float:
            runs = self.major_entries(ctx, *rows)
            return sparse_host.add_product(runs, coef, out, largest=largest)

        return out, max(ctx.map(add, row_ranges(self.host_indptr, 16 * ctx.chunk)))

    def distance_scores(
        self,
        columns: Array,
        distance: Callable[..., Array],
        params: tuple[Array, ...],
        scale: Array | None,
        ctx: Context,
    ) -> Array:
        """Minus the sums of distances over the columns: see `Block`."""

        def expanded(columns: Array, params: tuple[Array, ...], scale: Array | None) -> Array:
            return self._corrected_scores(columns, distance, params, scale, ctx)

        return with_far_features(expanded, self, columns, distance, params, scale, ctx)

    def _corrected_scores(
        self,
        columns: Array,
        distance: Callable[..., Array],
        params: tuple[Array, ...],
        scale: Array | None,
        ctx: Context,
    ) -> Array:
        """The score of a row of zeros, and a correction for each stored entry of the columns."""
        xp, backend = self.backend.xp, self.backend
        k, d = params[0].shape
        position_of = self.position_table(columns)
        inverse = xp.ones(d) if scale is None else 1.0 / scale
        # A row for each feature: what an entry reads and adds to lies side by side.
        own = [xp.asarray(p.T, order="C") for p in params]
        at_zero = distance(backend.zeros(()), *own)
        of_zero_row = row_sums(xp.asarray(at_zero.T, order="C") * inverse)
        base = of_zero_row[:1] - of_zero_row[1:] if k == 2 else -of_zero_row
        q, n = int(base.shape[0]), self.shape[0]
        out, every = backend.zeros(n * q), backend.arange(q)

        def corrections(entries: Entries) -> tuple[Array, Array]:
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
        for index, terms in ctx.map(corrections, self.entries(some)):
            flat = xp.reshape(index, (-1,)), xp.reshape(terms, (-1,))
            numpy_cupy.scatter_add(out, *flat, xp)
        return xp.reshape(out, (n, q)) + base

    def segment_sums(self, columns: Array, cuts: list[int], terms: Terms, ctx: Context) -> Array:
        """Sums of terms over segments of features: see `Block`.

        Those of a row of zeros; and each stored entry adds to the segment of its feature.
        """
        xp, backend, n = self.backend.xp, self.backend, self.shape[0]
        position_of = self.position_table(columns)
        segments, every = len(cuts) - 1, int(columns.shape[0]) == self.shape[1]
        sizes = [b - a for a, b in pairwise(cuts)]
        segment_of = backend.asarray(np.repeat(np.arange(segments), sizes) * n)
        out = backend.zeros((terms.rows, segments * n))

        def beyond_zero(entries: Entries) -> tuple[Array, list[Array]]:
            position = entries.of_column(position_of)
            if every:
                rows, x = entries.rows(), xp.astype(entries.values, xp.float64)
            else:
                keep = xp.nonzero(position >= 0)[0]
                rows, position = entries.rows_at(keep), xp.take(position, keep)
                x = xp.astype(xp.take(entries.values, keep), xp.float64)
            return xp.take(segment_of, position) + rows, terms.beyond_zero(x, position)

        for index, parts in ctx.map(beyond_zero, self.entries(ctx)):
            for row, part in enumerate(parts):
                numpy_cupy.scatter_add(out[row, :], index, part, xp)
        out = xp.reshape(out, (terms.rows, segments, n))
        if terms.at_zero is not None:
            out += segment_totals(terms.at_zero, cuts)[:, :, None]
        return out

    # --- checks --------------------------------------------------------------------------------

    def holds_integers(self, ctx: Context) -> bool:
        """Whether all values are integers."""
        xp = self.backend.xp
        are: Iterator[Array]
        are = (xp.all(e.values == xp.round(e.values)) for e in self.entries(ctx))
        if not all(map(bool, islice(are, 1))):
            return False
        if self.backend.sync_is_expensive and (rest := list(are)):  # one wait for all the others
            are = iter([xp.all(xp.stack(rest))])
        return all(map(bool, are))

    def check_finite(self, squares: bool, ctx: Context) -> None:
        """Raise for the first value that is not finite, or is refused: see `Block`."""
        for entries in replace(self, reader=None).entries(ctx):
            xp = array_namespace(entries.values)
            bad = errors.first_bad(entries.values, squares, xp)
            if bad is not None:
                row, column = int(entries.rows()[bad]), int(entries.columns()[bad])
                errors.raise_bad_value(float(entries.values[bad]), column, row)
            if self.reader is None:
                continue
            bad = errors.first_bad(self.reader(entries.values), False, xp)
            if bad is not None:
                row, column = int(entries.rows()[bad]), int(entries.columns()[bad])
                refuse(self.reader, entries.values[bad], column, row)


def _sorting_plan(block: Compressed, columns: Array, samples: Samples, ctx: Context) -> SortingPlan:
    """How to sort some columns, given in column order."""
    # Each entry takes part in about twelve arrays of 8 bytes, each list in about sixteen.
    stored = np.diff(block.host_indptr.astype(np.int64))
    cost = np.concatenate([[0], np.cumsum(_SORT_BYTES * stored + 128 * samples.n_classes)])

    def sort(start: int, stop: int) -> tuple[Array, SortedColumns] | None:
        kept, lists = sort_segments(*block.columns(start, stop), samples)
        return None if lists is None else (columns[start:stop][kept], lists)

    # On a device each range waits for some numbers: there as few as there is memory for.
    size = ctx.budget
    if not block.backend.sync_is_expensive:
        size = min(size, _SORT_BYTES * _SORT_ENTRIES)
    return SortingPlan(list(row_ranges(cost, size)), sort, column_too_large(block.shape[0]))
