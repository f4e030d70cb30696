"""A few columns of X, centred and scaled, in memory: what an iterative solver works on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ..arrays import numpy_cupy
from ..arrays.backend import Backend
from ..arrays.grid import ranges
from ..arrays.linalg import gram
from ..arrays.namespace import is_numpy, sparse_module, stored_once
from ..arrays.typing import Array, SparseMatrix
from ..arrays.typing import NumPyOrCuPy as SparseArray

_STRIP = 2**22  # values of the dense rows that a device makes of sparse ones at a time


class WorkingColumns(Protocol):
    """Z = (X[:, columns] - shift) / scale, (n, d), on a backend."""

    def product(self, w: Array) -> Array:
        """``Z @ w``: (n,) from (d,)."""

    def transposed_product(self, v: Array) -> Array:
        """``Z.T @ v``: (d,) from (n,)."""

    def gram(self, h: Array) -> Array:
        """``Z.T @ diag(h) @ Z``: (d, d), for h >= 0 of shape (n,)."""

    def squares(self, h: Array) -> Array:
        """The diagonal of the same matrix: (d,)."""

    def take(self, chosen: Array) -> WorkingColumns:
        """Some of these columns."""

    @property
    def size(self) -> int:
        """How many values are stored."""


@dataclass(frozen=True)
class DenseColumns:
    """Working columns as an array.

    Attributes
    ----------
    backend : Backend
    array : array of shape (n, d), float64
        Z.
    """

    backend: Backend
    array: Array

    def product(self, w: Array) -> Array:
        """``Z @ w``."""
        return self.array @ w

    def transposed_product(self, v: Array) -> Array:
        """``Z.T @ v``."""
        return v @ self.array

    def gram(self, h: Array) -> Array:
        """``Z.T @ diag(h) @ Z``."""
        return gram(self.array * self.backend.xp.sqrt(h)[:, None], self.backend)

    def squares(self, h: Array) -> Array:
        """The diagonal of ``Z.T @ diag(h) @ Z``."""
        return h @ (self.array * self.array)

    def take(self, chosen: Array) -> DenseColumns:
        """Some of these columns."""
        return DenseColumns(self.backend, self.backend.xp.take(self.array, chosen, axis=1))

    @property
    def size(self) -> int:
        """How many values are stored."""
        return self.array.shape[0] * self.array.shape[1]


@dataclass(frozen=True)
class SparseColumns:
    """Working columns as a sparse matrix that is not centred: the shift is applied to results.

    Attributes
    ----------
    backend : Backend
    matrix : CSR matrix of shape (n, d), float64
        X[:, columns] / scale.
    transposed : CSR matrix of shape (d, n), float64
    shift : array of shape (d,), float64
        In units of the scale.
    """

    backend: Backend
    matrix: SparseMatrix
    transposed: SparseMatrix
    shift: SparseArray

    def __post_init__(self) -> None:
        for matrix in (self.matrix, self.transposed):
            stored_once(matrix)

    def product(self, w: SparseArray) -> SparseArray:
        """``Z @ w``."""
        return self.matrix @ w - self.shift @ w

    def transposed_product(self, v: SparseArray) -> SparseArray:
        """``Z.T @ v``."""
        return self.transposed @ v - self.shift * self.backend.xp.sum(v)

    def gram(self, h: SparseArray) -> SparseArray:
        """``Z.T @ diag(h) @ Z``: by a sparse product on the host, from dense strips elsewhere."""
        shift, found = self.shift, self._raw_gram(h)
        cross = (self.transposed @ h - shift * (h.sum() / 2))[:, None] * shift
        found -= cross
        found -= cross.T
        return found

    def squares(self, h: SparseArray) -> SparseArray:
        """The diagonal of ``Z.T @ diag(h) @ Z``."""
        t = self.transposed
        squared = sparse_module(self.backend.xp).csr_matrix(
            (t.data * t.data, t.indices, t.indptr), shape=t.shape
        )
        return stored_once(squared) @ h - self.shift * (2 * (t @ h) - self.shift * h.sum())

    def take(self, chosen: SparseArray) -> SparseColumns:
        """Some of these columns."""
        transposed = self.transposed[chosen]
        return SparseColumns(self.backend, transposed.T.tocsr(), transposed, self.shift[chosen])

    @property
    def size(self) -> int:
        """How many values are stored."""
        return self.matrix.nnz

    def _raw_gram(self, h: SparseArray) -> SparseArray:
        xp, (n, d) = self.backend.xp, self.matrix.shape
        if is_numpy(xp):
            counts = self.matrix.indptr[1:] - self.matrix.indptr[:-1]
            parts = self.matrix.data * xp.repeat(h, counts), self.matrix.indices, self.matrix.indptr
            weighted = sparse_module(xp).csr_matrix(parts, shape=self.matrix.shape)
            return (self.transposed @ weighted).toarray()
        root, out = xp.sqrt(h), self.backend.zeros((d, d))
        for start, stop in ranges(n, max(1, _STRIP // d)):
            rows = numpy_cupy.filled(self.matrix[start:stop], xp) * root[start:stop, None]
            out += gram(rows, self.backend)
        return out
