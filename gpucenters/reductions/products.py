"""Products of X with coefficients: (X - shift) @ coef, where implicit zeros cost nothing."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from ..arrays import sparsetools
from ..arrays.context import Context
from ..arrays.namespace import assume_canonical, sparse_module
from ..arrays.schedule import ranges, row_ranges
from ..arrays.typing import Array
from ..arrays.typing import NumPyOrCuPy as SparseArray
from ..blocks import Block
from ..blocks.dense import DenseBlock
from ..blocks.sparse import Entries, SparseBlock
from ..blocks.transforms import Magnitude

Part = tuple[Array, Array, Array]  # columns, shift and coefficients of a product


def product(
    block: Block,
    columns: Array,
    shift: Array,
    coef: Array,
    ctx: Context,
    *,
    bound_coef: Array | None = None,
) -> Array:
    """``(X[:, columns] - shift) @ coef``: float64, (n, q).

    Parameters
    ----------
    columns : array of shape (d,)
        Ascending.
    shift : array of shape (d,)
    coef : array of shape (d, q)
    ctx : Context
    bound_coef : array of shape (d,), not negative, optional
        If given, the result has one more column: the sum of the absolute values of what was
        summed, with ``bound_coef`` in place of the coefficients, for a bound on the rounding.
    """
    if not isinstance(block, DenseBlock):
        return _sparse_product(block, columns, shift, coef, ctx, bound_coef)
    xp, q = block.backend.xp, coef.shape[1]
    if bound_coef is None:
        return block.map_rows(columns, q, lambda x: (x - shift) @ coef, ctx)

    def with_bound(x: Array) -> Array:
        x = x - shift
        return xp.concat([x @ coef, (xp.abs(x) @ bound_coef)[:, None]], axis=1)

    return block.map_rows(columns, q + 1, with_bound, ctx)


def products(
    block: Block, parts: list[Part], ctx: Context, *, bound_coefs: list[Array] | None = None
) -> list[Array]:
    """The `product` for each (columns, shift, coef), with bounds if asked: to the bit on the host.

    Sparse data are read once for as many as the budget allows, and once more for the bounds.
    """
    if not isinstance(block, DenseBlock):
        return _sparse_products(block, parts, ctx, bound_coefs)
    if bound_coefs is None:
        return [product(block, *part, ctx) for part in parts]
    pairs = zip(parts, bound_coefs, strict=True)
    return [product(block, *part, ctx, bound_coef=b) for part, b in pairs]


def product_and_bound(
    block: Block, columns: Array, shift: Array, coef: Array, bound_coef: Array, ctx: Context
) -> tuple[Array, Array]:
    """The `product`, and what the sums of ``|x - shift| bound_coef`` do not exceed, at little cost.

    The bounds have the shape (n,), or none if one number bounds all rows: of dense data the largest
    value of each row times all of ``bound_coef``, of sparse data the largest times the longest row.
    """
    if not isinstance(block, DenseBlock):
        return _sparse_product_and_bound(block, columns, shift, coef, bound_coef, ctx)
    xp, q = block.backend.xp, coef.shape[1]

    def with_largest(x: Array) -> Array:
        x = x - shift
        # (A norm would be a call of BLAS a row, with threads of its own.)
        most = xp.maximum(xp.max(x, axis=1, keepdims=True), -xp.min(x, axis=1, keepdims=True))
        return xp.concat([x @ coef, most], axis=1)

    found = block.map_rows(columns, q + 1, with_largest, ctx)
    return found[:, :q], found[:, q] * xp.sum(bound_coef)


def add_products(block: Block, columns: Array, coef: Array, out: Array, ctx: Context) -> None:
    """Add ``X[:, columns] @ coef``, of a few columns, in place.

    Parameters
    ----------
    columns : array of shape (d,)
        Ascending.
    coef : array of shape (d, r, S)
    out : array of shape (r, S, n), float64
    ctx : Context
    """
    if not isinstance(block, DenseBlock):
        _add_sparse_products(block, columns, coef, out, ctx)
        return
    xp, (d, *shape) = block.backend.xp, coef.shape
    flat = xp.reshape(coef, (d, -1))
    found = block.map_rows(columns, flat.shape[1], lambda x: x @ flat, ctx)
    out += xp.permute_dims(xp.reshape(found, (-1, *shape)), (1, 2, 0))


# --- stored entries --------------------------------------------------------------------------


def _sparse_product(
    matrix: SparseBlock,
    columns: SparseArray,
    shift: SparseArray,
    coef: SparseArray,
    ctx: Context,
    bound_coef: SparseArray | None,
) -> SparseArray:
    """`product`; where coefficients of all m features exceed the budget, of the columns alone."""
    m, d = matrix.shape[1], int(columns.shape[0])
    if 8 * m * coef.shape[1] > ctx.budget and 4 * d <= m:
        matrix.check_finite(False, ctx)  # in the other columns too
        chosen = matrix.select(columns, ctx, by_row=matrix.by_row)
        return _sparse_product(chosen, matrix.backend.arange(d), shift, coef, ctx, bound_coef)
    bound_coefs = None if bound_coef is None else [bound_coef]
    return _sparse_products(matrix, [(columns, shift, coef)], ctx, bound_coefs)[0]


def _sparse_products(
    matrix: SparseBlock,
    parts: list[tuple[SparseArray, SparseArray, SparseArray]],
    ctx: Context,
    bound_coefs: list[SparseArray] | None,
) -> list[SparseArray]:
    found: list[Array] = []
    widest = max((coef.shape[1] for _, _, coef in parts), default=1)
    most = max(1, ctx.budget // (32 * widest * sum(matrix.shape)))
    for first, last in ranges(len(parts), most):
        group = parts[first:last]
        wide = _spread(matrix, [(columns, coef) for columns, _, coef in group])
        if matrix.has_compiled_loops:
            wide, _ = _product_by_loops(matrix, wide, ctx)
        else:
            wide = _product_by_library(matrix, wide, ctx)
        ends = np.cumsum([coef.shape[1] for _, _, coef in group]).tolist()
        for (a, b), (_, shift, coef) in zip(pairwise([0, *ends]), group, strict=True):
            found.append(wide[:, a:b] - shift @ coef)
    if bound_coefs is None:
        return found
    # |x| bound_coef + |shift| bound_coef, where implicit zeros cost nothing.
    xp = matrix.backend.xp
    absolute = [
        (c, -xp.abs(s), b[:, None]) for (c, s, _), b in zip(parts, bound_coefs, strict=True)
    ]
    bounds = _sparse_products(replace(matrix, transform=Magnitude()), absolute, ctx, None)
    return [xp.concat(pair, axis=1) for pair in zip(found, bounds, strict=True)]


def _sparse_product_and_bound(
    matrix: SparseBlock,
    columns: SparseArray,
    shift: SparseArray,
    coef: SparseArray,
    bound_coef: SparseArray,
    ctx: Context,
) -> tuple[SparseArray, SparseArray]:
    xp, wide = matrix.backend.xp, 8 * matrix.shape[1] * coef.shape[1]
    if not matrix.has_compiled_loops or wide > ctx.budget:
        found = _sparse_product(matrix, columns, shift, coef, ctx, bound_coef)
        return found[:, :-1], found[:, -1]
    spread = _spread(matrix, [(columns, coef)])
    product, largest = _product_by_loops(matrix, spread, ctx, largest=True)
    longest = float(np.max(np.diff(matrix.host_indptr)))
    bound = largest * longest * xp.max(bound_coef) + xp.abs(shift) @ bound_coef
    return product - shift @ coef, bound


def _add_sparse_products(
    matrix: SparseBlock, columns: SparseArray, coef: SparseArray, out: SparseArray, ctx: Context
) -> None:
    """`add_products`, where rows without a value in these columns cost nothing."""
    xp, (d, *shape) = matrix.backend.xp, coef.shape
    part = matrix.select(columns, ctx, by_row=True)
    rows = xp.nonzero(part.indptr[1:] - part.indptr[:-1])[0]
    if rows.shape[0] == 0:
        return
    ends = xp.concat([xp.take(part.indptr, rows), part.indptr[-1:]])
    x = xp.astype(part.data, xp.float64)
    held = sparse_module(xp).csr_matrix((x, part.indices, ends), shape=(rows.shape[0], d))
    found = xp.reshape(assume_canonical(held) @ xp.reshape(coef, (d, -1)), (-1, *shape))
    out[:, :, rows] += xp.permute_dims(found, (1, 2, 0))


def _spread(matrix: SparseBlock, parts: list[tuple[SparseArray, SparseArray]]) -> SparseArray:
    """Coefficients of all features, zero but for those of each part, side by side: (m, q)."""
    q = sum(coef.shape[1] for _, coef in parts)
    wide: SparseArray = matrix.backend.zeros((matrix.shape[1], q))
    first = 0
    for columns, coef in parts:
        wide[columns, first : first + coef.shape[1]] = coef
        first += coef.shape[1]
    return wide


def _product_by_library(matrix: SparseBlock, coef: SparseArray, ctx: Context) -> SparseArray:
    """``X @ coef`` by the library's own products, a run of entries at a time."""
    xp = matrix.backend.xp
    n, m = matrix.shape
    q = coef.shape[1]
    out: SparseArray = matrix.backend.zeros((n, q))
    factor = coef[:, 0] if q == 1 else coef  # a product with a vector is the faster one
    sparse = sparse_module(xp)
    kind = sparse.csr_matrix if matrix.by_row else sparse.csc_matrix

    def product(entries: Entries) -> tuple[slice, SparseArray]:
        rows = slice(entries.first, entries.last)
        count = entries.last - entries.first
        x = xp.astype(entries.values, xp.float64)
        shape = (count, m) if matrix.by_row else (n, count)
        part = assume_canonical(kind((x, entries.minor, entries.offsets), shape=shape))
        return rows, part @ (factor if matrix.by_row else factor[rows])

    for rows, part in ctx.map(product, matrix.major_entries(ctx)):
        part = xp.reshape(part, (part.shape[0], q))
        if matrix.by_row:
            out[rows, :] += part
        else:
            out += part
    return out


def _product_by_loops(
    matrix: SparseBlock, coef: SparseArray, ctx: Context, *, largest: bool = False
) -> tuple[SparseArray, float]:
    """``X @ coef`` by compiled loops, some rows a thread; and the largest absolute value."""
    out: SparseArray = matrix.backend.zeros((matrix.shape[0], coef.shape[1]))

    def add(rows: tuple[int, int]) -> float:
        buffer, found = np.empty(0), 0.0
        for e in matrix.major_entries(ctx, *rows):
            count = e.minor.shape[0]
            buffer = buffer if buffer.shape[0] >= count else np.empty(count)
            x = buffer[:count]
            x[:] = e.values
            sparsetools.add_product(e.offsets, e.minor, x, coef, out[e.first : e.last])
            if largest and count:
                found = max(found, float(x.max()), -float(x.min()))
        return found

    return out, max(ctx.map(add, row_ranges(matrix.host_indptr, 16 * ctx.chunk)))
