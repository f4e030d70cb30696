"""Sums and products over runs of entries of a CSR matrix in NumPy arrays, by compiled loops."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..arrays import sparsetools
from .compressed import Entries


@dataclass(frozen=True)
class _Buffers:
    """Memory that one thread reuses for each run."""

    key: np.ndarray
    x: np.ndarray
    positions: np.ndarray

    @classmethod
    def of(cls, size: int, key: type[np.signedinteger], index: np.dtype) -> _Buffers:
        """Buffers for ``size`` entries with keys and indices of these types."""
        return cls(np.empty(size, key), np.empty(size), np.arange(size, dtype=index))


def add_class_sums(
    runs: Iterable[Entries],
    size: int,
    kind: type[np.signedinteger],
    m: int,
    codes: np.ndarray,
    weights: np.ndarray | None,
    square_factors: np.ndarray | None,
    total: np.ndarray,
    square: np.ndarray | None,
    sum_of_squares: np.ndarray | None,
    nonzero: np.ndarray | None,
) -> None:
    """Add the class sums of runs of entries of a CSR matrix, in place.

    Parameters
    ----------
    runs : iterable of Entries
        Of at most ``size`` entries each.
    size : int
    kind : type
        int32 or int64: what holds every position in ``total``.
    m : int
        The number of features: sums of class c begin at c * m in ``total``.
    codes : array of shape (n,)
    weights, square_factors : arrays of shape (n,), float64, or None
    total, square : flat arrays, float64; square may be None
    sum_of_squares : array of shape (K,), float64, or None
    nonzero : flat array, float64, or None
    """
    buffers = None
    for e in runs:
        count, rows, span = e.minor.shape[0], e.last - e.first, slice(e.first, e.last)
        if buffers is None:
            buffers = _Buffers.of(size, kind, e.minor.dtype)
        key, x = buffers.key[:count], buffers.x[:count]
        sparsetools.repeat_per_row(codes[span].astype(kind) * kind(m), e.offsets, e.minor, key)
        np.add(key, e.minor, out=key, casting="unsafe")
        if weights is None and e.values.dtype == np.float64:
            x = e.values
        else:
            x[:] = e.values
        if weights is not None:
            sparsetools.scale_rows(e.offsets, e.minor, x, weights[span])
        sparsetools.scatter_add(total, key, x)
        if nonzero is not None:
            ones = (e.values != 0).astype(np.float64)
            if weights is not None:
                sparsetools.scale_rows(e.offsets, e.minor, ones, weights[span])
            sparsetools.scatter_add(nonzero, key, ones)
        if sum_of_squares is not None:
            values = x if weights is None else e.values.astype(np.float64)
            by_row = np.zeros(rows)
            sparsetools.row_dots(e.offsets, buffers.positions[:count], x, values, by_row)
            sparsetools.scatter_add(sum_of_squares, codes[span].astype(e.minor.dtype), by_row)
        if square is not None:
            squares = buffers.x[:count]
            np.multiply(x, x if weights is None else e.values, out=squares, casting="unsafe")
            if square_factors is not None:
                sparsetools.scale_rows(e.offsets, e.minor, squares, square_factors[span])
            sparsetools.scatter_add(square, key, squares)


def add_absolute_sums(
    runs: Iterable[Entries], size: int, share: np.ndarray, sums: np.ndarray
) -> None:
    """Add each row's share times the absolute values to the sums of their columns, in place."""
    buffer = np.empty(size)
    for e in runs:
        x = buffer[: e.minor.shape[0]]
        x[:] = e.values
        np.abs(x, out=x)
        sparsetools.scale_rows(e.offsets, e.minor, x, share[e.first : e.last])
        sparsetools.scatter_add(sums, e.minor, x)


def add_product(
    runs: Iterable[Entries], coef: np.ndarray, out: np.ndarray, *, largest: bool = False
) -> float:
    """``out += rows @ coef`` for runs of whole rows of a CSR matrix; coef (m, q), out (n, q).

    The largest absolute value of the entries comes back, if it is asked for.
    """
    buffer, found = np.empty(0), 0.0
    for e in runs:
        count = e.minor.shape[0]
        buffer = buffer if buffer.shape[0] >= count else np.empty(count)
        x = buffer[:count]
        x[:] = e.values
        sparsetools.add_product(e.offsets, e.minor, x, coef, out[e.first : e.last])
        if largest and count:
            found = max(found, float(x.max()), -float(x.min()))
    return found
