"""Scatter matrices of classes, with third and fourth moments, and how parts of them are merged.

Chan's formula, generalised to matrices: the scatter of two sets of samples is the sum of theirs and
``shift shift' a b / (a + b)``, where shift is the difference of their means and a, b their weights.
Rows are added by products of their residuals; on the host sparse rows by products of sparse
matrices, where these take less time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from operator import matmul
from typing import Any, Protocol

import numpy as np
import scipy.sparse

from ..arrays.backend import backend_of
from ..arrays.context import Context
from ..arrays.linalg import add_gram
from ..arrays.namespace import array_namespace, is_numpy
from ..arrays.schedule import full_width_ranges, row_ranges
from ..arrays.typing import Array
from ..blocks import Block
from ..blocks.dense import DenseBlock
from ..blocks.samples import Samples
from ..blocks.sparse import SparseBlock
from .moments import is_ill_conditioned

# What sparse products cost, in multiplications of dense rows: a pair of stored entries of a row,
# and a number of one more m x m matrix.
_COST_OF_PAIR, _COST_OF_NUMBER = 100, 200
_STRIP_ENTRIES = 2**22  # stored entries of a strip: enough to make adding an m x m matrix cheap

#: Rows of one class: the class, their values, their weights as a column, and the sum of these.
ClassRows = tuple[int, Array, Array | None, float]


class ScatterSums(Protocol):
    """What scatter matrices are added to, in place.

    Attributes
    ----------
    class_weight : list of K floats
    total : array of shape (K, m), float64
        Weighted sums.
    scatter : array of shape (K, m, m) or (2, m, m), float64
        Weighted sums of (x - mean)(x - mean)' of each class; or, where ``final`` is given, their
        sum over the classes, and their sum with each divided by its final weight.
    final : sequence of K floats, or None
        W_c of the complete data.
    third_moment : array of shape (K, m), float64, or None
        Weighted sums of ``|x - mean|^2 (x - mean)``.
    fourth_moment : array of shape (K,), float64, or None
        Weighted sums of ``|x - mean|^4``.
    """

    class_weight: list[float]
    total: Array
    scatter: Array
    third_moment: Array | None
    fourth_moment: Array | None

    @property
    def final(self) -> Sequence[float] | None: ...


@dataclass(frozen=True)
class Scatter:
    """What the samples of one class add up to; all but ``total`` are about their mean.

    Attributes
    ----------
    weight : float
    total : array of shape (m,)
    products : array of shape (m, m)
    third_moment : array of shape (m,), or None
    fourth_moment : float or array of no dimension, or None
    """

    weight: float
    total: Array
    products: Array
    third_moment: Array | None
    fourth_moment: Array | None


def add_scatter(block: Block, samples: Samples, into: ScatterSums, ctx: Context) -> None:
    """Add weights, sums and scatter matrices of each class, in place."""
    strips = _sparse_strips(block, samples, ctx)
    if strips is None:
        _add_dense(block, samples, into, ctx)
        return
    matrix, cuts = strips
    for cut in ctx.progress(cuts, len(cuts), "rows added"):
        part, members = matrix.rows(*cut, ctx), samples.take(slice(*cut))
        found = _class_scatter(part, members, fourth=into.fourth_moment is not None)
        if found is None:
            _add_dense(part, members, into, replace(ctx, verbose=False))
        else:
            for c, scatter in found:
                add_class_scatter(into, c, scatter)


def add_higher_moments(block: Block, samples: Samples, into: ScatterSums, ctx: Context) -> None:
    """Add third and fourth moments about the class means, which ``into`` has already, in place."""
    assert into.third_moment is not None
    assert into.fourth_moment is not None
    strips = _sparse_strips(block, samples, ctx)
    if strips is None:
        parts = iter([_dense_higher_moments(block, samples, into, ctx)])
    else:
        matrix, cuts = strips
        parts = (
            _class_higher_moments(matrix.rows(*cut, ctx), samples.take(slice(*cut)), into, ctx)
            for cut in cuts
        )
    for c, third, fourth in chain.from_iterable(parts):
        into.third_moment[c, :] += third
        into.fourth_moment[c] += fourth


# --- merging ---------------------------------------------------------------------------------


def add_class_scatter(into: ScatterSums, c: int, part: Scatter) -> None:
    """Add the scatter of more samples to that of class c, in place."""
    before, w, shift = into.class_weight[c], part.weight, None
    if before > 0 and w > 0:
        shift = part.total / w - into.total[c, :] / before
    products = part.products
    if into.fourth_moment is not None:
        trace = array_namespace(products).linalg.trace(products)
        times = partial(matmul, products)
        assert part.third_moment is not None
        assert part.fourth_moment is not None
        add_fourth(into, c, w, shift, trace, part.third_moment, part.fourth_moment, times)
    if shift is not None:
        products = products + shift[:, None] * (shift * (before * w / (before + w)))
    into.total[c, :] += part.total
    into.class_weight[c] += w
    if into.final is None:
        into.scatter[c, :, :] += products
    else:
        into.scatter[0, :, :] += products
        into.scatter[1, :, :] += products / into.final[c]


def add_fourth(
    into: ScatterSums,
    c: int,
    w: float,
    shift: Array | None,
    trace: Array,
    third: Array,
    fourth: Array,
    times: Callable[[Array], Array],
) -> None:
    """Add third and fourth moments of more samples to those of class c, before their scatter.

    Parameters
    ----------
    into : ScatterSums
    c : int
    w : float
        The weight of the samples.
    shift : array of shape (m,), or None
        Their mean less that of the class so far.
    trace : array of no dimension
        The trace of their scatter.
    third, fourth : arrays of shape (m,) and ()
        Their moments about their mean.
    times : callable
        Multiplies their scatter by a vector.
    """
    assert into.third_moment is not None
    assert into.fourth_moment is not None
    if shift is not None:
        before, scatter, xp = into.class_weight[c], into.scatter[c, :, :], array_namespace(shift)
        here, there = shift * (before / (before + w)), -shift * (w / (before + w))
        old = into.third_moment[c, :], into.fourth_moment[c]
        moved = _moments_about(there, before, xp.linalg.trace(scatter), scatter @ there, *old)
        into.third_moment[c, :], into.fourth_moment[c] = moved
        third, fourth = _moments_about(here, w, trace, times(here), third, fourth)
    into.third_moment[c, :] += third
    into.fourth_moment[c] += fourth


def _moments_about(
    e: Array, weight: float, trace: Array, scatter_e: Array, third: Array, fourth: Array
) -> tuple[Array, Array]:
    """Third and fourth moments about the point ``mean - e``, from those about the mean.

    By expansion of ``|r + e|^2 (r + e)`` and ``|r + e|^4``, where the residuals r sum to zero.
    ``trace`` is that of their scatter, and ``scatter_e`` the product of their scatter with e.
    """
    norm2 = e @ e
    new_third = third + trace * e + 2 * scatter_e + (weight * norm2) * e
    new_fourth = fourth + 4 * (e @ third) + 4 * (e @ scatter_e)
    return new_third, new_fourth + 2 * norm2 * trace + weight * norm2 * norm2


# --- dense rows ------------------------------------------------------------------------------


def _add_dense(block: Block, samples: Samples, into: ScatterSums, ctx: Context) -> None:
    """Add the scatter of rows that are dense or made so, a strip at a time in its full width."""
    xp, backend = ctx.backend.xp, ctx.backend
    strips = len(full_width_ranges(*block.shape, backend, ctx.chunk))
    for strip in ctx.progress(_dense_strips(block, samples, ctx), strips, "rows added"):
        together = []
        for c, x, s, w in strip:
            residuals = _add_sums(into, c, x, s, w)
            into.class_weight[c] += w
            if into.final is None:
                add_gram(residuals, into.scatter[c, :, :], backend)
            else:
                together.append((residuals, into.final[c]))
        if together:
            add_gram(xp.concat([r for r, _ in together]), into.scatter[0, :, :], backend)
            divided = xp.concat([r / w**0.5 for r, w in together])
            add_gram(divided, into.scatter[1, :, :], backend)


def _add_sums(into: ScatterSums, c: int, x: Array, s: Array | None, w: float) -> Array:
    """Add rows of one class to its sums; returns R, so that its scatter grows by R' R.

    R holds the residuals from the mean of these rows, each times the root of its weight, and one
    more row for the term of Chan's formula with the difference of the means.
    """
    xp = array_namespace(x)
    total = xp.sum(x if s is None else x * s, axis=0)
    # Two passes: the second one corrects the rounding of the mean. Rows that all have weight zero
    # add nothing, but NaN among them shows.
    d = x - total / (w or 1.0)
    error = xp.sum(d if s is None else d * s, axis=0)
    d = d - error / (w or 1.0)
    residuals = d if s is None else d * xp.sqrt(s)
    before, shift = into.class_weight[c], None
    if before > 0 and w > 0:
        shift = (total + error) / w - into.total[c, :] / before
    if into.fourth_moment is not None:
        sd = d if s is None else d * s
        size = xp.sum(d * d, axis=1)
        weighted = xp.sum(sd * d, axis=1)
        moments = xp.sum(weighted), size @ sd, size @ weighted
        add_fourth(into, c, w, shift, *moments, lambda e: (d @ e) @ sd)
    if shift is not None:
        lead = shift * (before * w / (before + w)) ** 0.5
        residuals = xp.concat([residuals, lead[None, :]])
    into.total[c, :] += total
    return residuals


def _dense_higher_moments(
    block: Block, samples: Samples, into: ScatterSums, ctx: Context
) -> Iterable[tuple[int, Array, Any]]:
    for strip in _dense_strips(block, samples, ctx):
        for c, x, s, _ in strip:
            xp = array_namespace(x)
            d = x - into.total[c, :] / into.class_weight[c]
            size = xp.sum(d * d, axis=1)
            weighted = size if s is None else size * s[:, 0]
            yield c, weighted @ d, weighted @ size


def _dense_strips(block: Block, samples: Samples, ctx: Context) -> Iterator[Iterator[ClassRows]]:
    """The classes of each strip of rows, each strip one chunk in its full width."""
    (n, m), backend = block.shape, ctx.backend
    if isinstance(block, DenseBlock):
        for cut in full_width_ranges(n, m, backend, ctx.chunk):
            yield _class_rows(block, samples, cut)
        return
    xp, matrix = backend.xp, block if block.by_row else as_rows(block, ctx)
    for start, stop in full_width_ranges(n, m, backend, ctx.chunk):
        strip = backend.zeros((stop - start) * m)
        for entries in matrix.major_entries(ctx, start, stop):
            rows = xp.astype(entries.rows(), xp.int64, copy=False) - start
            x = xp.astype(entries.values, xp.float64, copy=False)
            strip[rows * m + entries.columns()] = x  # no position twice: duplicates are summed
        dense = DenseBlock(xp.reshape(strip, (stop - start, m)), backend)
        yield from _dense_strips(dense, samples.take(slice(start, stop)), ctx)


def _class_rows(block: DenseBlock, samples: Samples, rows: tuple[int, int]) -> Iterator[ClassRows]:
    xp, backend = block.backend.xp, block.backend
    chunk = block.chunk(rows, (0, block.shape[1]))
    for c, members in samples.by_class(*rows):
        s, weight = None, float(len(members))
        if samples.sample_weight is not None:
            w = samples.sample_weight[rows[0] : rows[1]][members]
            s, weight = backend.asarray(w)[:, None], float(w.sum())
        x = xp.astype(xp.take(chunk, backend.asarray(members), axis=0), xp.float64)
        yield c, x, s, weight


# --- sparse rows on the host -----------------------------------------------------------------


def as_rows(matrix: SparseBlock, ctx: Context) -> SparseBlock:
    """The same matrix in CSR, on the backend of its data."""
    here = backend_of(matrix.data)
    ctx = ctx if here == ctx.backend else Context.of(here)
    with here.current():
        every = here.arange(matrix.shape[1])
        found = replace(matrix, backend=here).select(every, ctx, by_row=True)
    return replace(found, backend=matrix.backend)


def _sparse_strips(
    matrix: Block, samples: Samples, ctx: Context
) -> tuple[SparseBlock, list[tuple[int, int]]] | None:
    """(CSR, ranges of rows) for `_class_scatter`, or None where dense rows take less time."""
    if isinstance(matrix, DenseBlock) or not is_numpy(matrix.backend.xp):
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


def _class_scatter(
    matrix: SparseBlock, samples: Samples, *, fourth: bool
) -> list[tuple[int, Scatter]] | None:
    """The scatter of each class among some rows, from raw products less those of the mean.

    None where these would cancel, in some column that is stored nearly everywhere: such rows are
    better made dense. ``fourth`` asks for the third and fourth moments too.
    """
    found = []
    for c, rows, s in _rows_by_class(matrix, samples):
        total, weight = rows.T @ s, float(s.sum())
        higher = _higher_moments(rows, s, total / (weight or 1.0)) if fourth else (None, None)
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
    matrix: SparseBlock, samples: Samples, into: ScatterSums, ctx: Context
) -> Iterable[tuple[int, Array, Any]]:
    """Third and fourth moments of each class among some rows, about the means of ``into``.

    Of rows that are made dense where they would cancel, as in `_class_scatter`.
    """
    found = []
    for c, rows, s in _rows_by_class(matrix, samples):
        squares = rows.multiply(rows).T @ s
        if np.any(is_ill_conditioned(rows.T @ s, squares, float(s.sum()))):
            return _dense_higher_moments(matrix, samples, into, ctx)
        found.append((c, *_higher_moments(rows, s, into.total[c, :] / into.class_weight[c])))
    return found


def _rows_by_class(
    matrix: SparseBlock, samples: Samples
) -> Iterator[tuple[int, scipy.sparse.csr_array, np.ndarray]]:
    """(class, its rows in float64, their weights)."""
    parts = matrix.data, matrix.indices, matrix.indptr
    csr, weights = scipy.sparse.csr_array(parts, shape=matrix.shape), samples.sample_weight
    for c, members in samples.by_class(0, matrix.shape[0]):
        s = np.ones(len(members)) if weights is None else weights[members]
        yield c, csr[members].astype(np.float64), s


def _higher_moments(
    rows: scipy.sparse.csr_array, s: np.ndarray, mean: np.ndarray
) -> tuple[np.ndarray, float]:
    """Third and fourth moments about the mean, from the squared distances of the rows to it."""
    squares = rows.copy()
    squares.data *= squares.data
    distance = squares.sum(axis=1) - 2 * (rows @ mean) + mean @ mean
    weighted = s * np.maximum(distance, 0.0)
    return rows.T @ weighted - weighted.sum() * mean, float(weighted @ distance)
