"""A run of stored entries of a compressed matrix."""

from __future__ import annotations

from dataclasses import dataclass

from . import family
from .devices import Place
from .typing import Array


@dataclass(frozen=True)
class Entries:
    """Stored entries that follow each other in a CSR (or CSC) matrix.

    Attributes
    ----------
    place : Place
        Where all arrays are.
    minor : array of integers of shape (e,)
        Their columns (CSR) or rows (CSC).
    values : array of shape (e,)
        In the type they are stored in.
    offsets : array of int64 of shape (r + 1,)
        Where the entries of each of the rows (columns) begin, from 0 to e.
    first, last : int
        The rows (columns) that they lie in.
    by_row : bool
        Whether the matrix is CSR.
    """

    place: Place
    minor: Array
    values: Array
    offsets: Array
    first: int
    last: int
    by_row: bool

    def of_row(self, per_row: Array) -> Array:
        """The value of each entry's row, from an array over all rows."""
        return self._of_major(per_row) if self.by_row else self._of_minor(per_row)

    def of_column(self, per_column: Array) -> Array:
        """The value of each entry's column, from an array over all columns."""
        return self._of_minor(per_column) if self.by_row else self._of_major(per_column)

    def rows(self) -> Array:
        """The row number of each entry."""
        return self._numbers() if self.by_row else self.minor

    def columns(self) -> Array:
        """The column number of each entry."""
        return self.minor if self.by_row else self._numbers()

    def sums_by_class(self, values: Array, codes: Array, n_classes: int) -> Array:
        """Sums over the entries of each class; ``codes`` over all rows."""
        xp = self.place.xp
        if self.by_row:
            here = codes[self.first : self.last]
            return family.sums_by_class(values, here, self.offsets, n_classes, xp)
        return xp.bincount(self.of_row(codes), weights=values, minlength=n_classes)

    def _of_minor(self, per_minor: Array) -> Array:
        return self.place.xp.take(per_minor, self.minor)

    def _of_major(self, per_major: Array) -> Array:
        part = per_major[self.first : self.last]
        return family.spread(part, self.offsets, self.minor.shape[0], self.place.xp)

    def _numbers(self) -> Array:
        xp = self.place.xp
        numbers = xp.arange(self.first, self.last, dtype=self.minor.dtype)
        return family.spread(numbers, self.offsets, self.minor.shape[0], xp)
