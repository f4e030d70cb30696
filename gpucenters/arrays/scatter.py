"""Scatter matrices of sparse rows on the host, by products of sparse matrices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import scipy.sparse

from .grid import row_ranges
from .groups import Groups
from .namespace import is_numpy
from .sparse import SparseBlock

_PAIR = 100  # multiplications of dense rows that cost as much as a pair of stored entries
_ENTRIES = 2**22  # stored entries of a strip: enough to make adding an m x m matrix cheap
_CANCELS = 0.9  # share of a mean square that is the square of the mean: beyond it raw sums cancel

Scatter = tuple[int, float, np.ndarray, np.ndarray]


def sparse_strips(block: SparseBlock, groups: Groups) -> list[tuple[SparseBlock, Groups]] | None:
    """The block in strips of rows for `class_scatter`, or None where dense rows take less time."""
    if not is_numpy(block.place.xp):
        return None
    n, m = block.shape
    if block.nnz**2 * _PAIR >= (n * m) ** 2:  # the pairs are never fewer than nnz^2 / n
        return None
    matrix = block if block.on_host else block.as_rows()
    stored = np.diff(matrix.host_indptr).astype(np.float64)
    if _PAIR * (stored @ stored) >= float(n) * m * m:
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


def class_scatter(block: SparseBlock, groups: Groups) -> list[Scatter] | None:
    """(c, weight, sums, scatter about the mean) of each class among some rows.

    From raw products less those of the mean. None where these would cancel, in some column that is
    stored nearly everywhere: such rows are better made dense.
    """
    matrix = scipy.sparse.csr_array((block.data, block.indices, block.indptr), shape=block.shape)
    found = []
    for c, members in groups.by_class(0, block.shape[0]):
        rows = matrix[members].astype(np.float64)
        s = np.ones(len(members)) if groups.weights is None else groups.weights[members]
        total, weight = rows.T @ s, float(s.sum())
        if groups.weights is not None:
            rows.data *= np.repeat(np.sqrt(s), np.diff(rows.indptr))
        scatter = (rows.T @ rows).toarray()
        if weight > 0:
            if np.any(total * total > _CANCELS * weight * np.diagonal(scatter)):
                return None
            scatter -= np.outer(total, total / weight)
            scatter = (scatter + scatter.T) / 2
        found.append((c, weight, total, scatter))
    return found
