"""From what users pass as X to blocks, and columns of X back in its own kind."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import scipy.sparse

from ..arrays.backend import Backend, backend_of
from ..arrays.context import Context
from ..arrays.inputs import check_input
from ..arrays.namespace import (
    array_namespace,
    is_array,
    is_host_sparse,
    is_sparse,
    sparse_module,
    to_numpy,
)
from ..arrays.on_disk import CSROnDisk, OnDisk
from ..arrays.typing import NumPyOrCuPy as Array
from ..arrays.typing import SparseMatrix
from .block import Block
from .dense import DenseBlock
from .sparse import SparseBlock
from .validation import check_dense, checked_sparse


def as_block(X: Any, backend: Backend, *, summed: bool = True, checked: bool = False) -> Block:
    """X as a block that is worked on at ``backend``.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, m)
        Left as it is. A sparse matrix that is unsorted or has duplicates is canonicalised in a
        copy; formats other than CSR and CSC become CSR.
    backend : Backend
    summed : bool, default=True
        Whether duplicates must be summed and indices sorted; products do not need that.
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
    by_row, data, indices, indptr = X.format == "csr", X.data, X.indices, X.indptr
    # Duplicates in a narrow integer type are summed in that type, so that fit and predict agree.
    summed = summed or data.dtype.kind in "biu"
    if data.dtype != _known_to_scipy(data.dtype):
        data = data.astype(_known_to_scipy(data.dtype))
    if (not summed or X.has_canonical_format) and _can_read(data, indices, indptr):
        return SparseBlock(data, indices, indptr, X.shape, by_row, backend)
    # A matrix object of our own: its flags on order and duplicates come from the arrays, where
    # those of the caller's object may be out of date, and the caller's object stays as it is.
    xp, sparse = array_namespace(X), sparse_module(array_namespace(X))
    kind = sparse.csr_matrix if by_row else sparse.csc_matrix
    with backend_of(X).current():
        parts = tuple(xp.ascontiguousarray(part) for part in (data, indices, indptr))
        view = kind(parts, shape=X.shape)
        if summed and not view.has_canonical_format:
            view = view.copy()
            view.sum_duplicates()
    return SparseBlock(view.data, view.indices, view.indptr, view.shape, by_row, backend)


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
        sparse = sparse_module(backend.xp)
        kind = sparse.csr_matrix if X.format == "csr" else sparse.csc_matrix
        return kind((part.data.astype(X.dtype), part.indices, part.indptr), shape=part.shape)
    return array_namespace(X).take(X, ctx.backend.move(columns), axis=1)


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
