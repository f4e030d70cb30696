"""Two classes of samples, and the products with X that a margin classifier needs.

An iterative solver works on a few columns of X, which are centred and scaled, in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ..arrays.backend import Backend
from ..arrays.cached import cached_property
from ..arrays.context import Context
from ..arrays.functions import to_dense
from ..arrays.linalg import gram
from ..arrays.namespace import assume_canonical, is_numpy, sparse_module, to_numpy
from ..arrays.schedule import ranges
from ..arrays.typing import Array, SparseMatrix
from ..arrays.typing import NumPyOrCuPy as SparseArray
from ..blocks import Block
from ..blocks.dense import DenseBlock
from ..blocks.samples import Samples
from .class_sums import RawSums, add_class_sums

_DENSE_VALUES = 2**22  # values of the dense rows that a device makes of sparse ones at a time


@dataclass(frozen=True)
class DenseColumns:
    """Z = (X[:, columns] - shift) / scale of a few columns, as an array."""

    backend: Backend
    array: Array  # Z, (n, d), float64

    def product(self, w: Array) -> Array:
        """``Z @ w``: (n,) from (d,)."""
        return self.array @ w

    def transposed_product(self, v: Array) -> Array:
        """``Z.T @ v``: (d,) from (n,)."""
        return v @ self.array

    def gram(self, h: Array) -> Array:
        """``Z.T @ diag(h) @ Z``: (d, d), for h >= 0 of shape (n,)."""
        return gram(self.array * self.backend.xp.sqrt(h)[:, None], self.backend)

    def squares(self, h: Array) -> Array:
        """The diagonal of the same matrix: (d,)."""
        return h @ (self.array * self.array)

    def take(self, chosen: Array) -> DenseColumns:
        """Some of these columns."""
        return DenseColumns(self.backend, self.backend.xp.take(self.array, chosen, axis=1))

    @property
    def stored_values(self) -> int:
        """How many values are in memory."""
        return self.array.shape[0] * self.array.shape[1]


@dataclass(frozen=True)
class SparseColumns:
    """The same as a sparse matrix that is not centred: the shift is applied to results."""

    backend: Backend
    matrix: SparseMatrix  # CSR of shape (n, d), float64: X[:, columns] / scale
    transposed: SparseMatrix  # CSR of shape (d, n), float64
    shift: SparseArray  # (d,), in units of the scale

    def __post_init__(self) -> None:
        for matrix in (self.matrix, self.transposed):
            assume_canonical(matrix)

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
        return assume_canonical(squared) @ h - self.shift * (2 * (t @ h) - self.shift * h.sum())

    def take(self, chosen: SparseArray) -> SparseColumns:
        """Some of these columns."""
        part, shift = self.transposed[chosen], self.shift[chosen]
        return SparseColumns(self.backend, part.T.tocsr(), part, shift)

    @property
    def stored_values(self) -> int:
        """How many values are in memory."""
        return self.matrix.nnz

    def _raw_gram(self, h: SparseArray) -> SparseArray:
        xp, (n, d) = self.backend.xp, self.matrix.shape
        if is_numpy(xp):
            counts = self.matrix.indptr[1:] - self.matrix.indptr[:-1]
            parts = self.matrix.data * xp.repeat(h, counts), self.matrix.indices, self.matrix.indptr
            weighted = sparse_module(xp).csr_matrix(parts, shape=self.matrix.shape)
            return (self.transposed @ weighted).toarray()
        root, out = xp.sqrt(h), self.backend.zeros((d, d))
        for start, stop in ranges(n, max(1, _DENSE_VALUES // d)):
            rows = to_dense(self.matrix[start:stop]) * root[start:stop, None]
            out += gram(rows, self.backend)
        return out


WorkingColumns: TypeAlias = DenseColumns | SparseColumns


@dataclass(frozen=True)
class TwoClasses:
    """The samples of positive weight: class +1 and class -1."""

    block: Block
    codes: np.ndarray  # uint8 of shape (n,), of all rows of the block: 1 for class +1, else 0
    rows: np.ndarray | None  # int64 of shape (l,): those of positive weight; None for all
    host_weight: np.ndarray  # (l,), float64

    @classmethod
    def of(cls, block: Block, samples: Samples, positive: int) -> TwoClasses:
        """One class of the samples against all others."""
        codes = (samples.codes == positive).astype(np.uint8)
        weight, rows = samples.sample_weight, None
        if weight is None:
            weight = np.ones(len(codes))
        elif not np.all(weight):
            rows = np.flatnonzero(weight)
            weight = weight[rows]
        return cls(block, codes, rows, weight)

    @property
    def backend(self) -> Backend:
        """That of the block."""
        return self.block.backend

    @cached_property
    def weight(self) -> Array:
        """The sample weights: (l,), on the backend."""
        return self.backend.asarray(self.host_weight)

    @cached_property
    def sign(self) -> Array:
        """+1.0 or -1.0: (l,), on the backend."""
        codes = self.codes if self.rows is None else self.codes[self.rows]
        return self.backend.asarray(2.0 * codes - 1.0)

    def signed_sums(self, mu: Array, ctx: Context) -> Array:
        """``X.T @ (sign * mu)`` for mu >= 0: float64, (m,). One pass over X."""
        weight = to_numpy(mu)
        if self.rows is not None:
            weight = np.zeros(len(self.codes))
            weight[self.rows] = to_numpy(mu)
        total = self.backend.zeros((2, self.block.shape[1]))
        samples = Samples(self.backend, self.codes, weight, 2)
        add_class_sums(self.block, samples, RawSums(total), ctx)
        return total[1, :] - total[0, :]

    def columns(self, columns: Array, shift: Array, scale: Array, ctx: Context) -> WorkingColumns:
        """``(X[:, columns] - shift) / scale`` of the samples of positive weight, in memory.

        Sparse data stay sparse, unless an array takes no more memory than their stored entries do.

        Parameters
        ----------
        columns : array of shape (d,)
            Ascending.
        shift, scale : arrays of shape (d,)
        ctx : Context
        """
        xp, backend = self.backend.xp, self.backend
        if isinstance(self.block, DenseBlock):
            parts = [
                xp.astype(array, xp.float64) for _, array in self.block.take_columns(columns, ctx)
            ]
            values = parts[0] if len(parts) == 1 else xp.concat(parts, axis=1)
            if self.rows is not None:
                values = xp.take(values, backend.asarray(self.rows), axis=0)
            return DenseColumns(backend, (values - shift) / scale)
        part = self.block.select(columns, ctx, by_row=True)
        kind = sparse_module(xp).csr_matrix
        values = xp.astype(part.data, xp.float64) / xp.take(scale, part.indices)
        matrix = kind((values, part.indices, part.indptr), shape=part.shape)
        if self.rows is not None:
            matrix = matrix[backend.asarray(self.rows)]
        if 2 * matrix.nnz >= matrix.shape[0] * matrix.shape[1]:
            return DenseColumns(backend, to_dense(matrix) - shift / scale)
        return SparseColumns(backend, matrix, matrix.T.tocsr(), shift / scale)
