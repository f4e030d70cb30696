"""Sparse data: the three arrays of a CSR or CSC matrix, read in runs of stored entries.

Nothing here makes an array of size n x m.

*Major* is the axis that is compressed (rows of CSR, columns of CSC), *minor* the other one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import ClassVar

import numpy as np
import scipy.sparse

from ..arrays import sparsetools
from ..arrays.backend import Backend, backend_of
from ..arrays.cached import cached_property
from ..arrays.context import Context
from ..arrays.functions import repeat_per_row
from ..arrays.inputs import OnDisk
from ..arrays.namespace import is_cupy, is_numpy, to_numpy
from ..arrays.schedule import entry_ranges, partitions, row_ranges
from ..arrays.typing import NumPyOrCuPy as Array
from ..arrays.uploads import Upload, sendable
from .transforms import ValueTransform
from .validation import Place, check_values

INT32 = 2**31  # numbers below it fit into int32
_FEW_ENTRIES = 16  # a search for each entry is cheap if there is one in so many
_FEW_COLUMNS = 8  # a copy of the touched columns is cheap if these are one in so many


@dataclass(frozen=True)
class Entries:
    """Consecutive stored entries of a compressed matrix.

    Attributes
    ----------
    backend : Backend
    minor : array of integers of shape (e,)
        Their columns (CSR) or rows (CSC).
    values : array of shape (e,)
        In the type they are stored in.
    offsets : array of integers of shape (r + 1,)
        Where the entries of each of the rows (columns) begin, from 0 to e.
    first, last : int
        The rows (columns) that they lie in.
    by_row : bool
        Whether the matrix is CSR.
    """

    backend: Backend
    minor: Array
    values: Array
    offsets: Array
    first: int
    last: int
    by_row: bool

    def of_row(self, per_row: Array) -> Array:
        """The value of each entry's row, from an array over all rows."""
        return self._of_axis(per_row, self.by_row)

    def of_column(self, per_column: Array) -> Array:
        """The value of each entry's column, from an array over all columns."""
        return self._of_axis(per_column, not self.by_row)

    def rows(self) -> Array:
        """The row number of each entry."""
        return self._major() if self.by_row else self.minor

    def rows_at(self, index: Array) -> Array:
        """The row numbers of some entries, without those of all where they are few."""
        xp = self.backend.xp
        if not self.by_row or _FEW_ENTRIES * index.shape[0] > self.minor.shape[0]:
            return xp.take(self.rows(), index)
        return xp.searchsorted(self.offsets, index, side="right") + (self.first - 1)

    def columns(self) -> Array:
        """The column number of each entry."""
        return self.minor if self.by_row else self._major()

    def place(self, at: tuple[int, ...]) -> Place:
        """The row and the column of one entry."""
        return int(self.rows()[at]), int(self.columns()[at])

    def _of_axis(self, x: Array, is_major: bool) -> Array:
        return (
            self._repeat(x[self.first : self.last])
            if is_major
            else self.backend.xp.take(x, self.minor)
        )

    def _major(self) -> Array:
        xp = self.backend.xp
        return self._repeat(xp.arange(self.first, self.last, dtype=self.minor.dtype))

    def _repeat(self, per_row: Array) -> Array:
        return repeat_per_row(per_row, self.offsets, self.minor.shape[0], self.minor)


@dataclass(frozen=True)
class SparseBlock:
    """A `Block` of sparse data: a compressed n x m matrix, worked on at ``backend``.

    Attributes
    ----------
    data, indices, indptr : arrays of one dimension, on any backend
        As SciPy has them; never changed. In any order within each row (or column); no duplicates,
        unless the block serves products alone. The first two may be `OnDisk`.
    shape : tuple of int
        (n, m).
    by_row : bool
        True for CSR, False for CSC.
    backend : Backend
        Where the work is done.
    transform : ValueTransform or None
        Of each value; it leaves 0 as it is.
    """

    data: Array
    indices: Array
    indptr: Array
    shape: tuple[int, int]
    by_row: bool
    backend: Backend
    transform: ValueTransform | None = None

    has_implicit_zeros: ClassVar[bool] = True

    @cached_property
    def host_indptr(self) -> np.ndarray:
        """The indptr as NumPy."""
        return to_numpy(self.indptr)

    @property
    def nnz(self) -> int:
        """How many entries are stored."""
        return int(self.data.shape[0])

    @property
    def resident(self) -> bool:
        """Whether the matrix is in the memory of ``backend`` already."""
        return not isinstance(self.data, OnDisk) and backend_of(self.data) == self.backend

    @property
    def on_host(self) -> bool:
        """Whether runs of entries are NumPy arrays."""
        return isinstance(self.data, np.ndarray | OnDisk)

    @property
    def has_compiled_loops(self) -> bool:
        """Whether SciPy's compiled loops can be used: CSR in NumPy arrays."""
        return is_numpy(self.backend.xp) and self.on_host and self.by_row and sparsetools.AVAILABLE

    def chunk_size(self, ctx: Context) -> int:
        """Entries in one run."""
        each = self.data.dtype.itemsize + self.indices.dtype.itemsize
        return ctx.chunk_size(0 if self.resident else each)

    def entries(self, ctx: Context, start: int = 0, stop: int | None = None) -> Iterator[Entries]:
        """The stored entries start..stop in the stored order, in runs of one chunk.

        A run of a host matrix that is sent to a device stays valid for one further iteration.
        """
        stop = self.nnz if stop is None else stop
        if self.resident and start == 0 and stop == self.nnz <= ctx.chunk:
            yield self.all_entries()
            return
        for cut in entry_ranges(self.host_indptr, start, stop, self.chunk_size(ctx)):
            yield self._run(*cut)

    def all_entries(self) -> Entries:
        """All entries of a resident matrix in one run."""
        major = self.shape[0 if self.by_row else 1]
        values = self.data if self.transform is None else self.transform(self.data)
        return Entries(self.backend, self.indices, values, self.indptr, 0, major, self.by_row)

    def major_entries(
        self, ctx: Context, first: int = 0, last: int | None = None
    ) -> Iterator[Entries]:
        """The entries of rows (columns) first..last in runs of whole rows (columns)."""
        if self.resident and last is None and first == 0 and self.nnz <= ctx.chunk:
            yield self.all_entries()
            return
        indptr = self.host_indptr[first:] if last is None else self.host_indptr[first : last + 1]
        for a, b in row_ranges(indptr, self.chunk_size(ctx)):
            yield self._run(int(indptr[a]), int(indptr[b]), first + a, first + b)

    def _run(self, left: int, right: int, first: int, last: int) -> Entries:
        minor, values = self.indices[left:right], self.data[left:right]
        with backend_of(self.data).current():
            offsets = self.indptr[first : last + 1] - self.host_indptr.dtype.type(left)
            # A row that is cut begins before the run or ends behind it.
            offsets[0], offsets[-1] = 0, right - left
        if self._upload is not None:
            minor, values, offsets = self._upload.send(minor, sendable(values), offsets)
        elif not self.resident:
            minor, values, offsets = (self.backend.move(part) for part in (minor, values, offsets))
        values = values if self.transform is None else self.transform(values)
        return Entries(self.backend, minor, values, offsets, first, last, self.by_row)

    @cached_property
    def _upload(self) -> Upload | None:
        return Upload() if self.on_host and is_cupy(self.backend.xp) else None

    def position_table(self, columns: Array) -> Array:
        """The position of each column among ``columns``, -1 for others: shape (m,)."""
        xp = self.backend.xp
        kind = xp.int32 if max(self.shape) < INT32 else xp.int64
        table = xp.full(self.shape[1], -1, dtype=kind)
        table[columns] = xp.arange(int(columns.shape[0]), dtype=kind)
        return table

    def select(
        self, columns: Array, ctx: Context, *, by_row: bool, ascending: bool = True
    ) -> SparseBlock:
        """Some columns (no duplicates) on ``backend``, in the given layout.

        ``ascending``: whether their numbers are. Others need the layout by column.
        """
        xp, backend = self.backend.xp, self.backend
        position = self.position_table(columns)
        kind = position.dtype
        wanted = position >= 0  # a smaller table for the lookup of all entries

        def pick(entries: Entries) -> tuple[Array, Array, Array]:
            keep = xp.nonzero(entries.of_column(wanted))[0]
            rows, cols, values = (
                xp.take(part, keep) for part in (entries.rows(), entries.columns(), entries.values)
            )
            if values.dtype not in (xp.float32, xp.float64):  # which both sparse modules take
                values = xp.astype(values, xp.float64)
            return xp.astype(rows, kind), xp.take(position, cols), values

        parts = list(ctx.map(pick, self.entries(ctx)))
        empty = backend.zeros(0, kind)
        parts = parts or [(empty, empty, backend.zeros(0))]
        rows, cols, values = (xp.concat([p[i] for p in parts]) for i in range(3))
        shape = (self.shape[0], int(columns.shape[0]))
        if is_numpy(xp):
            matrix = scipy.sparse.coo_matrix((values, (rows, cols)), shape=shape)
            matrix.has_canonical_format = True  # SciPy would sort, and sum what is stored once
            matrix = matrix.tocsr() if by_row else matrix.tocsc()
            return SparseBlock(matrix.data, matrix.indices, matrix.indptr, shape, by_row, backend)
        # cupyx would sort pairs by comparison; a sort of one number is a radix sort.
        kind = kind if values.shape[0] < INT32 else xp.int64
        major, minor = (xp.astype(p, kind) for p in ((rows, cols) if by_row else (cols, rows)))
        if by_row != self.by_row or not ascending:
            order = xp.argsort(major, stable=True)
            major, minor, values = (xp.take(part, order) for part in (major, minor, values))
        bounds = xp.arange(shape[0 if by_row else 1] + 1, dtype=kind)
        indptr = xp.astype(xp.searchsorted(major, bounds), kind)
        return SparseBlock(values, minor, indptr, shape, by_row, backend)

    def columns(self, start: int, stop: int) -> tuple[Array, Array, Array]:
        """(rows, values, offsets) of the columns start..stop of a CSC matrix."""
        left, right = int(self.host_indptr[start]), int(self.host_indptr[stop])
        offsets = self.indptr[start : stop + 1] - self.host_indptr.dtype.type(left)
        return self.indices[left:right], self.data[left:right], offsets

    # --- parts of the matrix -------------------------------------------------------------------

    def rows(self, start: int, stop: int, ctx: Context) -> SparseBlock:
        """The rows start..stop: see `Block`."""
        if not self.by_row:
            return self.take_rows(self.backend.arange(self.shape[0])[start:stop], ctx)
        first, last = (int(end) for end in self.host_indptr[[start, stop]])
        return replace(
            self,
            data=self.data[first:last],
            indices=self.indices[first:last],
            indptr=self.indptr[start : stop + 1] - self.indptr[start],
            shape=(stop - start, self.shape[1]),
        )

    def take_rows(self, rows: Array, ctx: Context) -> SparseBlock:
        """Some rows of a CSC matrix (no duplicates), in their order, as a CSR matrix."""
        # They are columns of the transpose, which has the same arrays as CSR.
        turned = replace(self, shape=self.shape[::-1], by_row=True)
        part = turned.select(rows, ctx, by_row=False, ascending=False)
        return replace(part, shape=part.shape[::-1], by_row=True)

    def narrowed(self, also: Array | None = None) -> tuple[Array, SparseBlock] | None:
        """The columns with stored entries, and the block of these alone: see `Block`."""
        xp, backend = self.backend.xp, self.backend
        # Entries of many partitions would be cut in another way in fewer columns.
        in_parts = len(partitions(self.nnz, 1, backend)) > 1
        if not self.by_row or _FEW_COLUMNS * self.nnz > self.shape[1] or in_parts:
            return None
        indices = backend.move(self.indices[:])
        columns = xp.unique_values(indices if also is None else xp.concat([indices, also]))
        position = xp.astype(xp.searchsorted(columns, indices), self.indptr.dtype)
        indices = backend_of(self.indptr).move(position)
        return columns, replace(self, indices=indices, shape=(self.shape[0], columns.shape[0]))

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
        for entries in replace(self, transform=None).entries(ctx):
            check_values(entries.values, squares, self.transform, entries.place)
