"""Scatter matrices of sparse rows on the host, by products of sparse matrices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse

from .grid import row_ranges
from .groups import Groups
from .namespace import is_numpy
from .sparse import SparseBlock

# What these cost, in multiplications of dense rows: a pair of stored entries of a row, and a number
# of one more m x m matrix.
_PAIR, _NUMBER = 100, 200
_ENTRIES = 2**22  # stored entries of a strip: enough to make adding an m x m matrix cheap
_CANCELS = 0.9  # share of a mean square that is the square of the mean: beyond it raw sums cancel


class Scatter(NamedTuple):
    """What the rows of one class add up to; the last three are about their mean.

    Attributes
    ----------
    c : int
    weight : float
    total : ndarray of shape (m,)
    products : ndarray of shape (m, m)
    cubic : ndarray of shape (m,), or None
    quartic : float, or None
    """

    c: int
    weight: float
    total: np.ndarray
    products: np.ndarray
    cubic: np.ndarray | None
    quartic: float | None


def sparse_strips(block: SparseBlock, groups: Groups) -> list[tuple[SparseBlock, Groups]] | None:
    """The block in strips of rows for `class_scatter`, or None where dense rows take less time."""
    if not is_numpy(block.place.xp):
        return None
    n, m = block.shape
    rest = float(n) * m * m - _NUMBER * groups.n_classes * (1 + block.nnz // _ENTRIES) * m * m
    if _PAIR * block.nnz**2 / n >= rest:  # the pairs are never fewer than nnz^2 / n
        return None
    matrix = block if block.on_host else block.as_rows()
    stored = np.diff(matrix.host_indptr).astype(np.float64)
    if _PAIR * (stored @ stored) >= rest:
        return None
    return list(_cut(matrix, groups))


def _cut(matrix: SparseBlock, groups: Groups) -> Iterator[tuple[SparseBlock, Groups]]:
    indptr = matrix.host_indptr
    for first, last in row_ranges(indptr, _ENTRIES):
        start, stop = int(indptr[first]), int(indptr[last])
        part = replace(
            matrix,
            data=matrix.data[start:stop],
            indices=matrix.indices[start:stop],
            indptr=indptr[first : last + 1] - indptr.dtype.type(start),
            shape=(last - first, matrix.shape[1]),
        )
        yield part, groups.of_rows(first, last)


def class_scatter(block: SparseBlock, groups: Groups, *, fourth: bool) -> list[Scatter] | None:
    """Sums and scatter of each class among some rows, from raw products less those of the mean.

    None where these would cancel, in some column that is stored nearly everywhere: such rows are
    better made dense. ``fourth`` asks for the third and fourth moments too.
    """
    matrix = scipy.sparse.csr_array((block.data, block.indices, block.indptr), shape=block.shape)
    found = []
    for c, members in groups.by_class(0, block.shape[0]):
        rows = matrix[members].astype(np.float64)
        s = np.ones(len(members)) if groups.weights is None else groups.weights[members]
        total, weight = rows.T @ s, float(s.sum())
        higher = _higher(rows, s, total / (weight or 1.0)) if fourth else (None, None)
        if groups.weights is not None:
            rows.data *= np.repeat(np.sqrt(s), np.diff(rows.indptr))
        products = (rows.T @ rows).toarray()
        if weight > 0:
            if np.any(total * total > _CANCELS * weight * np.diagonal(products)):
                return None
            products -= np.outer(total, total / weight)
            products = (products + products.T) / 2
        found.append(Scatter(c, weight, total, products, *higher))
    return found


def _higher(
    rows: scipy.sparse.csr_array, s: np.ndarray, mean: np.ndarray
) -> tuple[np.ndarray, float]:
    """Third and fourth moments about the mean, from the squared distances of the rows to it."""
    squares = rows.copy()
    squares.data *= squares.data
    distance = squares.sum(axis=1) - 2 * (rows @ mean) + mean @ mean
    weighted = s * np.maximum(distance, 0.0)
    return rows.T @ weighted - weighted.sum() * mean, float(weighted @ distance)
