"""From what users pass as X to blocks, and columns of X back in its own kind."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import scipy.sparse

from ..arrays.backend import Backend, backend_of
from ..arrays.context import Context
from ..arrays.functions import stores_twice
from ..arrays.inputs import CSROnDisk, OnDisk, check_input
from ..arrays.namespace import (
    array_namespace,
    is_array,
    is_host_sparse,
    is_sparse,
    sparse_module,
    to_numpy,
)
from ..arrays.typing import NumPyOrCuPy as Array
from ..arrays.typing import SparseMatrix
from . import Block
from .dense import DenseBlock
from .sparse import SparseBlock
from .validation import check_dense, checked_sparse


def as_block(X: Any, backend: Backend, *, summed: bool = True, checked: bool = False) -> Block:
    """X as a block that is worked on at ``backend``.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, m)
        Left as it is. Entries may have any order within a row; a matrix with duplicates is summed
        in a copy; formats other than CSR and CSC become CSR.
    backend : Backend
    summed : bool, default=True
        Whether duplicates must be summed; products do not need that.
    checked : bool, default=False
        Whether X comes from `checked_sparse` or `check_dense`.

    Raises
    ------
    TypeError
        For values that are no real numbers.
    ValueError
        For complex data, other than two dimensions, no samples or no features, and sparse matrices
        whose arrays are damaged.
    """
    if not checked:
        check_input(X, "X")
    if isinstance(X, OnDisk):
        return DenseBlock(X, backend)
    if isinstance(X, CSROnDisk):
        return SparseBlock(X.data, X.indices, X.indptr, X.shape, True, backend)
    if is_sparse(X):
        return _sparse_block(X if checked else checked_sparse(X), backend, summed)
    if not is_array(X):
        X = np.asarray(X)
    if not checked:
        check_dense(X)
    return DenseBlock(X, backend)


def _sparse_block(X: SparseMatrix, backend: Backend, summed: bool = True) -> SparseBlock:
    if not backend.is_numpy_or_cupy:
        raise TypeError(f"sparse matrices cannot be moved to {backend}.")
    by_row, canonical = X.format == "csr", X.has_canonical_format
    here = backend_of(X)
    xp, sparse = here.xp, sparse_module(here.xp)
    with here.current():
        data, indices, indptr = X.data, X.indices, X.indptr
        data = data.astype(_known_to_scipy(data.dtype), copy=False)
        if not _can_read(data, indices, indptr):
            parts = tuple(xp.ascontiguousarray(part) for part in (data, indices, indptr))
            view = _matrix(sparse, by_row, parts, X.shape)
            data, indices, indptr = view.data, view.indices, view.indptr
        if not canonical and (summed or _may_wrap(data, indptr, xp)):
            minor = X.shape[1 if by_row else 0]
            if stores_twice(indices, indptr, minor, here):
                # A matrix of our own: the caller's stays as it is.
                view = _matrix(sparse, by_row, (data, indices, indptr), X.shape).copy()
                view.sum_duplicates()
                data, indices, indptr = view.data, view.indices, view.indptr
    return SparseBlock(data, indices, indptr, X.shape, by_row, backend)


def _matrix(sparse: Any, by_row: bool, parts: tuple[Array, ...], shape: tuple[int, int]) -> Any:
    """A matrix of SciPy or cupyx, which finds the order of its entries out from its arrays."""
    return (sparse.csr_matrix if by_row else sparse.csc_matrix)(parts, shape=shape)


def _may_wrap(data: Array, indptr: Array, xp: Any) -> bool:
    """Whether a sum of entries of a row (column), in their own type, may differ from the true one.

    Duplicates are summed in that type, as SciPy does, by fit and predict alike.
    """
    if data.dtype.kind not in "biu" or data.shape[0] == 0:
        return False
    greatest = max(int(xp.max(data)), -int(xp.min(data)))
    limit = 1 if data.dtype.kind == "b" else np.iinfo(data.dtype).max
    return greatest * int(xp.max(indptr[1:] - indptr[:-1])) > limit


def _known_to_scipy(dtype: np.dtype) -> np.dtype:
    """The type that holds these values and that SciPy's routines for sparse matrices know."""
    native = dtype.newbyteorder("=")
    return np.dtype(np.float32) if native == np.float16 else native


def _with_type(X: SparseMatrix, dtype: np.dtype) -> SparseMatrix:
    """The matrix with its values in another type, which SciPy itself need not know."""
    X = copy.copy(X)
    X.data = X.data.astype(dtype, copy=False)
    return X


def _can_read(data: Array, indices: Array, indptr: Array) -> bool:
    """Whether native code takes these arrays as they are."""
    parts = (data, indices, indptr)
    return (
        all(part.flags.c_contiguous and part.dtype.isnative for part in parts)
        and indices.dtype == indptr.dtype
        and indices.dtype in (np.int32, np.int64)
    )


def take_columns(X: Any, columns: Array, ctx: Context) -> Any:
    """``X[:, columns]`` (ascending) in X's own library, layout and type, on its own backend."""
    if is_host_sparse(X):
        known = _with_type(X, _known_to_scipy(X.dtype))
        return _with_type(known[:, to_numpy(columns)], X.dtype)
    if isinstance(X, OnDisk):
        return X.take_columns(0, X.shape[0], to_numpy(columns))
    if is_sparse(X) or isinstance(X, CSROnDisk):
        # cupyx's own column selection leaves the indices of a row unsorted.
        backend = ctx.backend
        block: Any = as_block(X, backend, checked=True)
        part = block.select(backend.move(columns), ctx, by_row=X.format == "csr")
        parts = part.data.astype(X.dtype), part.indices, part.indptr
        return _matrix(sparse_module(backend.xp), part.by_row, parts, part.shape)
    return array_namespace(X).take(X, ctx.backend.move(columns), axis=1)


def scale_columns(X: Any, scale: Array, ctx: Context) -> Any:
    """X times a factor for each column, in X's own library and layout, on its own backend.

    In X's type where that is a floating-point one, else in float64.
    """
    xp = ctx.backend.xp
    values = X.data if is_sparse(X) else X
    values = values if xp.isdtype(values.dtype, "real floating") else xp.astype(values, xp.float64)
    factor = xp.astype(scale, values.dtype)
    if not is_sparse(X):
        return values * factor
    entries = SparseBlock(values, X.indices, X.indptr, X.shape, X.format == "csr", ctx.backend)
    data = values * entries.all_entries().of_column(factor)
    return type(X)((data, X.indices.copy(), X.indptr.copy()), shape=X.shape)


def put_columns(X: Any, columns: Array, width: int) -> Any:
    """The inverse of `take_columns`: zeros but for X's columns at ``columns``."""
    xp, backend = array_namespace(X), backend_of(X)
    if is_sparse(X):
        sparse = sparse_module(xp)
        dtype, X = X.dtype, _with_type(X, _known_to_scipy(X.dtype)).tocoo()
        col = backend.move(columns)[X.col]
        wide = sparse.coo_matrix((X.data, (X.row, col)), shape=(X.shape[0], width)).tocsc()
        wide = _with_type(wide, dtype)
        if is_host_sparse(X) and isinstance(X, scipy.sparse.sparray):
            wide = scipy.sparse.csc_array(wide)
        return wide
    # The standard has no scattered assignment: take columns from X with a column of zeros in front.
    source = np.zeros(width, dtype=np.int64)
    columns = to_numpy(columns)
    source[columns] = np.arange(1, len(columns) + 1)
    zero = xp.zeros((X.shape[0], 1), dtype=X.dtype, device=backend.device)
    return xp.take(xp.concat([zero, X], axis=1), backend.asarray(source), axis=1)
