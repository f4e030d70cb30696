"""Rows with a label each: sums by label, and the order in which the rows of a label are sorted."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from . import sparsetools
from .backend import Backend
from .cached import cached_property
from .namespace import is_numpy, is_numpy_or_cupy, sparse_module, stored_once, to_numpy
from .typing import Array

_FEW_CLASSES = 8  # that are each a group: the values of one fit better into the cache
_MOST_DENSE = 64  # labels for which a product with a dense indicator is worth its arithmetic


# The order in which the rows of many classes lie side by side, to be sorted class by class.


class Group(NamedTuple):
    """Lists with equally many rows, which lie side by side.

    Attributes
    ----------
    lists : slice
        Their numbers, in the order in which they lie.
    rows : slice
        Where their rows lie.
    """

    lists: slice
    rows: slice

    @property
    def n_lists(self) -> int:
        """How many lists there are."""
        return self.lists.stop - self.lists.start


@dataclass(frozen=True)
class ClassLists:
    """The rows of K classes, a list each; of many classes, those of equal size lie side by side.

    So one call sorts the lists of all classes of one size.

    Attributes
    ----------
    backend : Backend
    rows : list of K arrays of integers
        The rows of each class, on the host.
    """

    backend: Backend
    rows: list[np.ndarray]

    @cached_property
    def counts(self) -> np.ndarray:
        """The number of rows of each class: (K,), on the host."""
        return np.asarray([len(r) for r in self.rows], dtype=np.int64)

    @cached_property
    def _classes(self) -> np.ndarray:
        """The class of each list."""
        if len(self.rows) <= _FEW_CLASSES:
            return np.arange(len(self.rows))
        return np.argsort(self.counts, kind="stable")

    @cached_property
    def offsets(self) -> np.ndarray:
        """Where the rows of each class begin: (K,), on the host."""
        ends = np.cumsum(self.counts[self._classes])
        found = np.empty_like(ends)
        found[self._classes] = ends - self.counts[self._classes]
        return found

    @property
    def size(self) -> int:
        """The number of rows of all classes."""
        return int(self.counts.sum())

    @cached_property
    def order(self) -> Array:
        """The rows as they lie: (n,)."""
        return self.backend.asarray(np.concatenate([self.rows[c] for c in self._classes]))

    @cached_property
    def codes(self) -> Array:
        """The class of each row as they lie: (n,)."""
        return self.backend.asarray(np.repeat(self._classes, self.counts[self._classes]))

    @cached_property
    def place(self) -> Array:
        """The number of the list of each row as they lie: (n,)."""
        lists = np.arange(len(self.rows), dtype=np.int32)
        return self.backend.asarray(np.repeat(lists, self.counts[self._classes]))

    @cached_property
    def _index(self) -> tuple[Array, Array] | None:
        """The class of each list and the list of each class; None where these are the same."""
        if len(self.rows) <= _FEW_CLASSES:
            return None
        both = self._classes, np.argsort(self._classes)
        return self.backend.asarray(both[0]), self.backend.asarray(both[1])

    def by_list(self, of_classes: Array) -> Array:
        """An array of K rows, one for each class, in the order of the lists."""
        index = self._index
        return of_classes if index is None else self.backend.xp.take(of_classes, index[0], axis=0)

    def by_class(self, of_lists: Array) -> Array:
        """An array of K rows, one for each list, in the order of the classes."""
        index = self._index
        return of_lists if index is None else self.backend.xp.take(of_lists, index[1], axis=0)

    @cached_property
    def groups(self) -> list[Group]:
        """The lists of each size; where there are few classes, each list."""
        sizes, k = self.counts[self._classes], len(self.rows)
        first = np.arange(k) if k <= _FEW_CLASSES else np.unique(sizes, return_index=True)[1]
        found, start = [], 0
        for left, right in itertools.pairwise([*first.tolist(), k]):
            stop = start + int(sizes[left]) * (right - left)
            found.append(Group(slice(left, right), slice(start, stop)))
            start = stop
        return found


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
