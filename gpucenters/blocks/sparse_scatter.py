"""Scatter matrices of sparse rows: on the host by products of sparse matrices, else row by row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import scipy.sparse

from ..arrays.backend import backend_of
from ..arrays.context import Context
from ..arrays.grid import full_width_ranges, row_ranges
from ..arrays.namespace import is_numpy
from .compressed import Compressed
from .conditioning import is_ill_conditioned
from .dense import DenseBlock
from .dense_scatter import add_higher_moments as add_dense_higher_moments
from .dense_scatter import add_rows
from .row_chunk import RowChunk
from .samples import Samples
from .scatter import Scatter, ScatterSums
from .scatter import add_scatter as add_part

# What sparse products cost, in multiplications of dense rows: a pair of stored entries of a row,
# and a number of one more m x m matrix.
_COST_OF_PAIR, _COST_OF_NUMBER = 100, 200
_STRIP_ENTRIES = 2**22  # stored entries of a strip: enough to make adding an m x m matrix cheap


def add_scatter(matrix: Compressed, samples: Samples, into: ScatterSums, ctx: Context) -> None:
    """Add the scatter matrix of each class, in place: see `Block.add_scatter`."""
    strips = _sparse_strips(matrix, samples, ctx)
    if strips is None:
        _add_dense(matrix, samples, into, ctx)
        return
    matrix, cuts = strips
    for part, members in ctx.progress(_cut(matrix, cuts, samples), len(cuts), "strips added"):
        found = _class_scatter(part, members, fourth=into.fourth_moment is not None)
        if found is None:
            _add_dense(part, members, into, replace(ctx, verbose=False))
        else:
            for c, scatter in found:
                add_part(into, c, scatter)


def add_higher_moments(
    matrix: Compressed, samples: Samples, into: ScatterSums, ctx: Context
) -> None:
    """Add third and fourth moments about the class means, in place: see `Block`."""
    strips = _sparse_strips(matrix, samples, ctx)
    for part, members in [(matrix, samples)] if strips is None else _cut(*strips, samples):
        found = None if strips is None else _class_higher_moments(part, members, into)
        if found is None:
            add_dense_higher_moments(_dense_rows(part, members, ctx), into)
            continue
        assert into.third_moment is not None
        assert into.fourth_moment is not None
        for c, third, fourth in found:
            into.third_moment[c, :] += third
            into.fourth_moment[c] += fourth


def _add_dense(matrix: Compressed, samples: Samples, into: ScatterSums, ctx: Context) -> None:
    """Add the scatter of rows that are made dense, a strip at a time."""
    strips = len(full_width_ranges(*matrix.shape, ctx.backend, ctx.chunk))
    chunks = ctx.progress(_dense_rows(matrix, samples, ctx), strips, "rows added")
    add_rows(chunks, into, ctx)


def _dense_rows(matrix: Compressed, samples: Samples, ctx: Context) -> Iterator[RowChunk]:
    n, m = matrix.shape
    xp, backend = ctx.backend.xp, ctx.backend
    matrix = matrix if matrix.by_row else as_rows(matrix, ctx)
    for start, stop in full_width_ranges(n, m, backend, ctx.chunk):
        strip = backend.zeros((stop - start) * m)
        for entries in matrix.major_entries(ctx, start, stop):
            rows = xp.astype(entries.rows(), xp.int64, copy=False) - start
            x = xp.astype(entries.values, xp.float64, copy=False)
            strip[rows * m + entries.columns()] = x  # no position twice: duplicates are summed
        dense = DenseBlock(xp.reshape(strip, (stop - start, m)), backend)
        yield from dense.full_rows(samples.of_rows(start, stop), ctx)


def as_rows(matrix: Compressed, ctx: Context) -> Compressed:
    """The same matrix in CSR, on the backend of its data."""
    here = backend_of(matrix.data)
    ctx = ctx if here == ctx.backend else Context.of(here)
    with here.current():
        every = here.arange(matrix.shape[1])
        found = replace(matrix, backend=here).select(every, ctx, by_row=True)
    return replace(found, backend=matrix.backend)


def _sparse_strips(
    matrix: Compressed, samples: Samples, ctx: Context
) -> tuple[Compressed, list[tuple[int, int]]] | None:
    """(CSR, ranges of rows) for `_class_scatter`, or None where dense rows take less time."""
    if not is_numpy(matrix.backend.xp):
        return None
    n, m = matrix.shape
    matrices = samples.n_classes * (1 + matrix.nnz // _STRIP_ENTRIES)
    dense_cost = float(n) * m * m - _COST_OF_NUMBER * matrices * m * m
    # The pairs of entries of a row are never fewer than nnz^2 / n.
    if _COST_OF_PAIR * matrix.nnz**2 / n >= dense_cost:
        return None
    matrix = matrix if matrix.has_compiled_loops else as_rows(matrix, ctx)
    stored = np.diff(matrix.host_indptr).astype(np.float64)
    if _COST_OF_PAIR * (stored @ stored) >= dense_cost:
        return None
    return matrix, list(row_ranges(matrix.host_indptr, _STRIP_ENTRIES))


def _cut(
    matrix: Compressed, cuts: list[tuple[int, int]], samples: Samples
) -> Iterator[tuple[Compressed, Samples]]:
    indptr = matrix.host_indptr
    for first, last in cuts:
        start, stop = int(indptr[first]), int(indptr[last])
        part = replace(
            matrix,
            data=matrix.data[start:stop],
            indices=matrix.indices[start:stop],
            indptr=indptr[first : last + 1] - indptr.dtype.type(start),
            shape=(last - first, matrix.shape[1]),
        )
        yield part, samples.of_rows(first, last)


def _class_scatter(
    matrix: Compressed, samples: Samples, *, fourth: bool
) -> list[tuple[int, Scatter]] | None:
    """The scatter of each class among some rows, from raw products less those of the mean.

    None where these would cancel, in some column that is stored nearly everywhere: such rows are
    better made dense. ``fourth`` asks for the third and fourth moments too.
    """
    found = []
    for c, rows, s in _rows_by_class(matrix, samples):
        total, weight = rows.T @ s, float(s.sum())
        higher = _higher(rows, s, total / (weight or 1.0)) if fourth else (None, None)
        if samples.sample_weight is not None:
            rows.data *= np.repeat(np.sqrt(s), np.diff(rows.indptr))
        products = (rows.T @ rows).toarray()
        if weight > 0:
            if np.any(is_ill_conditioned(total, np.diagonal(products), weight)):
                return None
            products -= np.outer(total, total / weight)
            products = (products + products.T) / 2
        found.append((c, Scatter(weight, total, products, *higher)))
    return found


def _class_higher_moments(
    matrix: Compressed, samples: Samples, into: ScatterSums
) -> list[tuple[int, np.ndarray, float]] | None:
    """Third and fourth moments of each class among some rows, about the means of ``into``.

    None where they would cancel, as in `_class_scatter`.
    """
    found = []
    for c, rows, s in _rows_by_class(matrix, samples):
        squares = rows.multiply(rows).T @ s
        if np.any(is_ill_conditioned(rows.T @ s, squares, float(s.sum()))):
            return None
        found.append((c, *_higher(rows, s, into.total[c, :] / into.class_weight[c])))
    return found


def _rows_by_class(
    matrix: Compressed, samples: Samples
) -> Iterator[tuple[int, scipy.sparse.csr_array, np.ndarray]]:
    """(class, its rows in float64, their weights)."""
    parts = matrix.data, matrix.indices, matrix.indptr
    csr, weights = scipy.sparse.csr_array(parts, shape=matrix.shape), samples.sample_weight
    for c, members in samples.by_class(0, matrix.shape[0]):
        s = np.ones(len(members)) if weights is None else weights[members]
        yield c, csr[members].astype(np.float64), s


def _higher(
    rows: scipy.sparse.csr_array, s: np.ndarray, mean: np.ndarray
) -> tuple[np.ndarray, float]:
    """Third and fourth moments about the mean, from the squared distances of the rows to it."""
    squares = rows.copy()
    squares.data *= squares.data
    distance = squares.sum(axis=1) - 2 * (rows @ mean) + mean @ mean
    weighted = s * np.maximum(distance, 0.0)
    return rows.T @ weighted - weighted.sum() * mean, float(weighted @ distance)
