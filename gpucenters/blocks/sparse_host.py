"""Sums and products over runs of entries of a CSR matrix in NumPy arrays, by compiled loops."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import sparsetools
from .accumulators import RawSums
from .compressed import Entries

_SIDE_BY_SIDE = 4  # classes at most whose sums of a column are kept side by side
_PER_COLUMN = 4  # entries for each column from which on that pays


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
    stored: int,
    codes: np.ndarray,
    weights: np.ndarray | None,
    square_factors: np.ndarray | None,
    into: RawSums,
) -> None:
    """Add the class sums of runs of entries of a CSR matrix, in place.

    An entry adds to the sum of its class, found by a key; or, of few classes, to the sums of all:
    zero to those of the others. The bits are the same.

    Parameters
    ----------
    runs : iterable of Entries
        Of at most ``size`` entries each.
    size : int
    kind : type
        int32 or int64: what holds the number of classes times that of features.
    stored : int
        Entries in all runs.
    codes : array of shape (n,)
    weights, square_factors : arrays of shape (n,), float64, or None
    into : RawSums
    """
    given: Any = (into.total, into.square, into.nonzero)
    sum_of_squares: Any = into.sum_of_squares
    (k, m), buffers = into.total.shape, None
    side_by_side = k <= _SIDE_BY_SIDE and stored >= _PER_COLUMN * m
    total, square, nonzero = (
        None if a is None else np.ascontiguousarray(a.T) if side_by_side else a.reshape(-1)
        for a in given
    )
    for e in runs:
        count, rows, span = e.minor.shape[0], e.last - e.first, slice(e.first, e.last)
        if buffers is None:
            buffers = _Buffers.of(size, kind, e.minor.dtype)
        key, x = buffers.key[:count], buffers.x[:count]
        if side_by_side:
            key = (codes[span, None] == np.arange(k)).astype(np.float64)
        else:
            sparsetools.repeat_per_row(codes[span].astype(kind) * kind(m), e.offsets, e.minor, key)
            np.add(key, e.minor, out=key, casting="unsafe")
        if weights is None and e.values.dtype == np.float64:
            x = e.values
        else:
            x[:] = e.values
        if weights is not None:
            sparsetools.scale_rows(e.offsets, e.minor, x, weights[span])
        _add(total, x, e, key)
        if nonzero is not None:
            ones = (e.values != 0).astype(np.float64)
            if weights is not None:
                sparsetools.scale_rows(e.offsets, e.minor, ones, weights[span])
            _add(nonzero, ones, e, key)
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
            _add(square, squares, e, key)
    if side_by_side:
        for target, sums in zip(given, (total, square, nonzero), strict=True):
            if sums is not None:
                target[...] = sums.T


def _add(sums: Any, x: np.ndarray, e: Entries, key: np.ndarray) -> None:
    """Add entries to sums: (K * m,) by their keys, or (m, K) by the classes (r, K) of the rows."""
    if sums.ndim == 1:
        sparsetools.scatter_add(sums, key, x)
    else:
        sparsetools.add_transposed(e.offsets, e.minor, x, key, sums)


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


def add_product(runs: Iterable[Entries], coef: np.ndarray, out: np.ndarray) -> None:
    """``out += rows @ coef`` for runs of whole rows of a CSR matrix; coef (m, q), out (n, q)."""
    buffer = np.empty(0)
    for e in runs:
        count = e.minor.shape[0]
        buffer = buffer if buffer.shape[0] >= count else np.empty(count)
        x = buffer[:count]
        x[:] = e.values
        sparsetools.add_product(e.offsets, e.minor, x, coef, out[e.first : e.last])
