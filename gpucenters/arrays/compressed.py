"""The three arrays of a CSR or CSC matrix, and the runs of stored entries they are read in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from . import host
from .devices import Place, place_of
from .entries import Entries
from .grid import chunk_size, entry_ranges, row_ranges
from .namespace import is_cupy, is_numpy, to_numpy
from .reading import Reading
from .threads import run
from .typing import Array
from .uploads import Upload, sendable

INT32 = 2**31


@dataclass(frozen=True)
class Compressed:
    """A compressed sparse n x m matrix, worked on at ``place``.

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
    reading : Reading or None
        What the entries are read as; it must leave 0 as it is.
    """

    data: Array
    indices: Array
    indptr: Array
    shape: tuple[int, int]
    by_row: bool
    place: Place
    reading: Reading | None = None

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
        """Whether the matrix is at ``place`` already."""
        return place_of(self.data) == self.place

    @property
    def on_host(self) -> bool:
        """Whether the host's own loops can be used: CSR in NumPy arrays."""
        here = is_numpy(self.place.xp) and isinstance(self.data, np.ndarray)
        return here and self.by_row and host.AVAILABLE

    def entries(self, start: int = 0, stop: int | None = None) -> Iterator[Entries]:
        """The stored entries start..stop in the stored order, chunk by chunk.

        Those of a host matrix on their way to a device are valid until the next but one.
        """
        stop = self.nnz if stop is None else stop
        size = chunk_size(self.place, uploaded=not self.resident)
        if self.resident and start == 0 and stop == self.nnz <= size:
            yield self.whole()
            return
        for cut in entry_ranges(self.host_indptr, start, stop, size):
            yield self._run(*cut)

    def whole(self) -> Entries:
        """All entries of a matrix that is at ``place``, in one run."""
        major = self.shape[0 if self.by_row else 1]
        values = self.data if self.reading is None else self.reading(self.data)
        return Entries(self.place, self.indices, values, self.indptr, 0, major, self.by_row)

    def row_entries(self, first: int = 0, last: int | None = None) -> Iterator[Entries]:
        """The entries of rows (columns) first..last, cut between rows, a chunk or a row a time."""
        if self.resident and last is None and first == 0 and self.nnz <= chunk_size(self.place):
            yield self.whole()
            return
        indptr = self.host_indptr[first:] if last is None else self.host_indptr[first : last + 1]
        for a, b in row_ranges(indptr, chunk_size(self.place, uploaded=not self.resident)):
            yield self._run(int(indptr[a]), int(indptr[b]), first + a, first + b)

    def _run(self, left: int, right: int, first: int, last: int) -> Entries:
        minor, values = self.indices[left:right], self.data[left:right]
        with place_of(self.data).current():
            offsets = self.indptr[first : last + 1] - self.host_indptr.dtype.type(left)
            # (A cut row begins before the run or ends behind it.)
            offsets[0], offsets[-1] = 0, right - left
        if self._upload is not None:
            minor, values, offsets = self._upload.send(minor, sendable(values), offsets)
        elif not self.resident:
            minor, values, offsets = (self.place.move(part) for part in (minor, values, offsets))
        values = values if self.reading is None else self.reading(values)
        return Entries(self.place, minor, values, offsets, first, last, self.by_row)

    @cached_property
    def _upload(self) -> Upload | None:
        here = isinstance(self.data, np.ndarray)
        return Upload(uneven=True) if here and is_cupy(self.place.xp) else None

    def touched_columns(self) -> Array | None:
        """The columns with stored entries, ascending; None where they are not few."""
        if not self.by_row or 8 * self.nnz > self.shape[1]:
            return None
        return self.place.xp.unique_values(self.place.move(self.indices))

    def lookup(self, columns: Array) -> Array:
        """The place of each column among ``columns``, -1 for others: shape (m,)."""
        xp = self.place.xp
        kind = xp.int32 if max(self.shape) < INT32 else xp.int64
        lookup = xp.full(self.shape[1], -1, dtype=kind)
        lookup[columns] = xp.arange(int(columns.shape[0]), dtype=kind)
        return lookup

    def select(self, columns: Array, *, by_row: bool) -> Compressed:
        """Some columns (ascending, no duplicates) at ``place``, in the given layout."""
        xp, place = self.place.xp, self.place
        lookup = self.lookup(columns)
        kind = lookup.dtype
        wanted = lookup >= 0  # a smaller table to look most entries up in

        def pick(entries: Entries) -> tuple[Array, Array, Array]:
            keep = xp.nonzero(entries.of_column(wanted))[0]
            rows, cols, values = (
                xp.take(part, keep) for part in (entries.rows(), entries.columns(), entries.values)
            )
            return xp.astype(rows, kind), xp.take(lookup, cols), _storable(values, xp)

        parts = list(run(pick, self.entries(), place))
        empty = place.zeros(0, kind)
        parts = parts or [(empty, empty, place.zeros(0))]
        rows, cols, values = (xp.concat([p[i] for p in parts]) for i in range(3))
        shape = (self.shape[0], int(columns.shape[0]))
        if is_numpy(xp):
            matrix = scipy.sparse.coo_matrix((values, (rows, cols)), shape=shape)
            matrix = matrix.tocsr() if by_row else matrix.tocsc()
            return Compressed(matrix.data, matrix.indices, matrix.indptr, shape, by_row, place)
        # (cupyx would sort by comparing pairs; one number is sorted by its digits.)
        kind = kind if values.shape[0] < INT32 else xp.int64
        major, minor = (xp.astype(p, kind) for p in ((rows, cols) if by_row else (cols, rows)))
        if by_row != self.by_row:
            order = xp.argsort(major, stable=True)
            major, minor, values = (xp.take(part, order) for part in (major, minor, values))
        bounds = xp.arange(shape[0 if by_row else 1] + 1, dtype=kind)
        indptr = xp.astype(xp.searchsorted(major, bounds), kind)
        return Compressed(values, minor, indptr, shape, by_row, place)

    def columns(self, left: int, right: int) -> tuple[Array, Array, Array]:
        """(rows, values, offsets) of the columns left..right of a CSC matrix."""
        start, stop = int(self.host_indptr[left]), int(self.host_indptr[right])
        offsets = self.place.xp.astype(self.indptr[left : right + 1], self.place.xp.int64) - start
        return self.indices[start:stop], self.data[start:stop], offsets


def _storable(values: Array, xp: Any) -> Array:
    """Values in a type that both sparse modules take: float32 where exact, else float64."""
    if values.dtype in (xp.float32, xp.float64):
        return values
    return xp.astype(values, xp.float64)
