"""Rows of a matrix with labels: weighted sums of the rows of each label, and their differences.

No step takes a call for each label. On the host a compiled loop adds each row to the sum of its
label; elsewhere the sums are a product with an indicator matrix, dense for few labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from . import sparsetools
from .backend import Backend
from .cached import cached_property
from .namespace import is_numpy, is_numpy_or_cupy, sparse_module, stored_once, to_numpy
from .typing import Array

_MOST_DENSE = 64  # labels for which a product with a dense indicator is worth its arithmetic


@dataclass(frozen=True)
class RowLabels:
    """The labels of n rows, and their weights.

    Attributes
    ----------
    backend : Backend
        Where the rows are.
    labels : ndarray of integers of shape (n,)
        0..K-1, on the host.
    weights : ndarray of shape (n,), float64, or None
        On the host; None counts each row once.
    n_labels : int
        K.
    """

    backend: Backend
    labels: np.ndarray
    weights: np.ndarray | None
    n_labels: int

    @cached_property
    def weight(self) -> np.ndarray:
        """The weight of each label: (K,), on the host."""
        found = np.bincount(self.labels, weights=self.weights, minlength=self.n_labels)
        return found.astype(np.float64)

    def sums(self, x: Array) -> Array:
        """Weighted sums of the rows of each label: (K, b) from (n, b), float64, C-contiguous."""
        if self._compiled:
            out = np.zeros((self.n_labels, x.shape[1]))
            sparsetools.add_rows(to_numpy(x), self._codes, self._factors, out)
            return out
        return self._indicator @ x

    def less(self, x: Array, table: Array) -> Array:
        """``x - table[labels]``; on the host in the memory of ``x``."""
        if self._compiled:
            sparsetools.subtract_rows(to_numpy(table), self._codes, to_numpy(x))
            return x
        return x - self.backend.xp.take(table, self._index, axis=0)

    @property
    def _compiled(self) -> bool:
        return is_numpy(self.backend.xp) and sparsetools.AVAILABLE

    @cached_property
    def _codes(self) -> np.ndarray:
        return self.labels.astype(np.int32)

    @cached_property
    def _index(self) -> Array:
        return self.backend.asarray(self.labels.astype(np.int64))

    @cached_property
    def _factors(self) -> np.ndarray:
        return np.ones(self.labels.shape[0]) if self.weights is None else self.weights

    @cached_property
    def _indicator(self) -> Any:
        xp, n = self.backend.xp, self.labels.shape[0]
        if self.n_labels > _MOST_DENSE and is_numpy_or_cupy(xp):
            order = np.argsort(self.labels, kind="stable").astype(np.int32)
            bounds = np.searchsorted(self.labels[order], np.arange(self.n_labels + 1))
            parts = self._factors[order], order, bounds.astype(np.int32)
            kind = sparse_module(xp).csr_matrix
            shape = self.n_labels, n
            return stored_once(kind(tuple(map(self.backend.asarray, parts)), shape=shape))
        every = xp.arange(self.n_labels, dtype=xp.int64, device=self.backend.device)
        found = xp.astype(every[:, None] == self._index[None, :], xp.float64)
        return found if self.weights is None else found * self.backend.asarray(self.weights)


def squared_row_norms(x: Array, backend: Backend) -> Array:
    """The sum of the squares of each row: (n,)."""
    if is_numpy(backend.xp):
        host = to_numpy(x)
        return np.einsum("ij,ij->i", host, host)
    return backend.xp.sum(x * x, axis=1)
