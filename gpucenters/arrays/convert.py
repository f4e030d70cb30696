"""From what users hand in to blocks, and columns of it back in its own kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from .checks import check_dense, checked_sparse
from .dense import DenseBlock
from .devices import Place, place_of
from .namespace import (
    array_namespace,
    is_array,
    is_host_sparse,
    is_sparse,
    sparse_module,
    to_numpy,
)
from .sparse import SparseBlock
from .typing import Array, SparseMatrix

Block = DenseBlock | SparseBlock


def as_block(X: Any, place: Place, *, summed: bool = True, checked: bool = False) -> Block:
    """X as a block that is worked on at ``place``.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, m)
        Left as it is. A sparse matrix that is unsorted or has duplicates is canonicalised in a
        copy; formats other than CSR and CSC become CSR.
    place : Place
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
    if is_sparse(X):
        return _sparse_block(X if checked else checked_sparse(X), place, summed)
    if not is_array(X):
        X = np.asarray(X)
    if not checked:
        check_dense(X)
    return DenseBlock(X, place)


def _sparse_block(X: SparseMatrix, place: Place, summed: bool = True) -> SparseBlock:
    if not place.family:
        raise TypeError(f"sparse matrices cannot be moved to {place}.")
    by_row, data, indices, indptr = X.format == "csr", X.data, X.indices, X.indptr
    # (Parts of a cell in a narrow type may wrap around when they are summed, and always do.)
    summed = summed or data.dtype.kind in "biu"
    if data.dtype == np.float16:  # SciPy's own routines do not know it
        data = data.astype(np.float32)
    if (not summed or X.has_canonical_format) and _can_read(data, indices, indptr):
        return SparseBlock(data, indices, indptr, X.shape, by_row, place)
    # A header of our own: what it learns about order and duplicates is read off the arrays, not
    # off flags that may be stale, and the caller's matrix is not touched.
    xp, sparse = array_namespace(X), sparse_module(array_namespace(X))
    kind = sparse.csr_matrix if by_row else sparse.csc_matrix
    if not data.dtype.isnative:
        data = data.astype(data.dtype.newbyteorder("="))
    with place_of(X).current():
        parts = tuple(xp.ascontiguousarray(part) for part in (data, indices, indptr))
        view = kind(parts, shape=X.shape)
        if summed and not view.has_canonical_format:
            view = view.copy()
            view.sum_duplicates()
    return SparseBlock(view.data, view.indices, view.indptr, view.shape, by_row, place)


def _can_read(data: Array, indices: Array, indptr: Array) -> bool:
    """Whether native code takes these arrays as they are."""
    parts = (data, indices, indptr)
    return (
        all(part.flags.c_contiguous and part.dtype.isnative for part in parts)
        and indices.dtype == indptr.dtype
        and indices.dtype in (np.int32, np.int64)
    )


def take_columns(X: Any, columns: Array, place: Place) -> Any:
    """``X[:, columns]`` (ascending) in X's own library, layout and type, at its own ``place``."""
    if is_host_sparse(X):
        return X[:, to_numpy(columns)]
    if is_sparse(X):
        # cupyx's own column selection leaves the indices of a row unsorted.
        block = _sparse_block(X, place).select(place.move(columns), by_row=X.format == "csr")
        sparse = sparse_module(place.xp)
        kind = sparse.csr_matrix if X.format == "csr" else sparse.csc_matrix
        data = block.data.astype(X.dtype)
        return kind((data, block.indices, block.indptr), shape=block.shape)
    return array_namespace(X).take(X, place.move(columns), axis=1)


def put_columns(X: Any, columns: Array, width: int) -> Any:
    """The inverse of `take_columns`: zeros but for X's columns at ``columns``."""
    if is_sparse(X):
        sparse = sparse_module(array_namespace(X))
        X = X.tocoo()
        place = place_of(X)
        col = place.move(columns)[X.col]
        wide = sparse.coo_matrix((X.data, (X.row, col)), shape=(X.shape[0], width))
        wide = wide.tocsc()
        if isinstance(X, scipy.sparse.sparray) if is_host_sparse(X) else False:
            wide = scipy.sparse.csc_array(wide)
        return wide
    xp = array_namespace(X)
    place = place_of(X)
    # By a product with nothing but ones and zeros this would be n x k x m work; the standard has
    # no scattered assignment, but taking from a table with one column of zeros in front is one.
    source = np.zeros(width, dtype=np.int64)
    columns = to_numpy(columns)
    source[columns] = np.arange(1, len(columns) + 1)
    zero = xp.zeros((X.shape[0], 1), dtype=X.dtype, device=place.device)
    return xp.take(xp.concat([zero, X], axis=1), place.asarray(source), axis=1)
