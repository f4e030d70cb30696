"""The host's fast way over sparse data: SciPy's compiled loops, in place and on buffers of our own.

They let other threads run while they work, where ``numpy.repeat`` and ``numpy.add.at`` do not, and
they add to arrays that are there, where SciPy's public products make new ones. Nothing public does
either; so this is the one file that calls them, and `AVAILABLE` says whether they are as expected.
Where they are not, the lines that NumPy shares with CuPy do the same work (tested against each
other).

Index arrays are not checked here: whoever calls has checked the matrix.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .entries import Entries

try:
    from scipy.sparse import _sparsetools as tools

    AVAILABLE = all(
        hasattr(tools, name)
        for name in (
            "csc_matvec",
            "csr_matvec",
            "csr_matvecs",
            "csr_scale_rows",
        )
    )
except ImportError:
    AVAILABLE = False

_ONE = np.ones(1)


def scatter_add(target: np.ndarray, index: np.ndarray, values: np.ndarray) -> None:
    """``target[index[j]] += values[j]`` in order; ``values`` of the target's type."""
    # A matrix of one column whose entries are the values, times the number one.
    ends = np.asarray([0, index.shape[0]], dtype=index.dtype)
    one = _ONE.astype(target.dtype)
    tools.csc_matvec(target.shape[0], 1, ends, index, values, one, target)


def spread(per_row: np.ndarray, offsets: np.ndarray, out: np.ndarray) -> None:
    """Each row's value once for each entry of the row, into ``out`` (of the same type)."""
    out.fill(1)
    # (The column indices are not read.)
    tools.csr_scale_rows(per_row.shape[0], 1, offsets, offsets, out, per_row)


@dataclass(frozen=True)
class Buffers:
    """What one thread works on."""

    key: np.ndarray
    x: np.ndarray
    numbers: np.ndarray

    @classmethod
    def of(cls, size: int, key: type[np.signedinteger], index: np.dtype) -> Buffers:
        """Buffers for ``size`` entries with keys and indices of these types."""
        return cls(np.empty(size, key), np.empty(size), np.arange(size, dtype=index))


def add_class_sums(
    runs: Iterable[Entries],
    size: int,
    kind: type[np.signedinteger],
    m: int,
    codes: np.ndarray,
    weights: np.ndarray | None,
    total: np.ndarray,
    square: np.ndarray | None,
    energy: np.ndarray | None,
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
    weights : array of shape (n,), float64, or None
    total, square : flat arrays, float64; square may be None
    energy : array of shape (K,), float64, or None
    """
    buffers = None
    for e in runs:
        count, rows, span = e.minor.shape[0], e.last - e.first, slice(e.first, e.last)
        if buffers is None:
            buffers = Buffers.of(size, kind, e.minor.dtype)
        key, x = buffers.key[:count], buffers.x[:count]
        spread(codes[span].astype(kind) * kind(m), e.offsets, key)
        np.add(key, e.minor, out=key, casting="unsafe")
        x[:] = e.values
        if weights is not None:
            tools.csr_scale_rows(rows, 1, e.offsets, e.offsets, x, weights[span])
        scatter_add(total, key, x)
        if energy is not None:
            # Sums of s x * x by row: a product whose other side is the values themselves.
            values = x if weights is None else e.values.astype(np.float64)
            numbers, by_row = buffers.numbers[:count], np.zeros(rows)
            tools.csr_matvec(rows, count, e.offsets, numbers, x, values, by_row)
            scatter_add(energy, codes[span].astype(e.minor.dtype), by_row)
        if square is not None:
            np.multiply(x, x if weights is None else e.values, out=x, casting="unsafe")
            scatter_add(square, key, x)


def add_absolute_sums(
    runs: Iterable[Entries], size: int, share: np.ndarray, sums: np.ndarray
) -> None:
    """Add each row's share times the absolute values to the sums of their columns, in place."""
    buffer = np.empty(size)
    for e in runs:
        x = buffer[: e.minor.shape[0]]
        x[:] = e.values
        np.abs(x, out=x)
        tools.csr_scale_rows(e.last - e.first, 1, e.offsets, e.offsets, x, share[e.first : e.last])
        scatter_add(sums, e.minor, x)


def add_product(runs: Iterable[Entries], coef: np.ndarray, out: np.ndarray) -> None:
    """``out += rows @ coef`` for runs of whole rows of a CSR matrix; coef (m, q), out (n, q)."""
    m, q = coef.shape
    buffer = np.empty(0)
    for e in runs:
        count, rows = e.minor.shape[0], e.last - e.first
        buffer = buffer if buffer.shape[0] >= count else np.empty(count)
        x, into = buffer[:count], out[e.first : e.last]
        x[:] = e.values
        if q == 1:
            tools.csr_matvec(rows, m, e.offsets, e.minor, x, coef[:, 0], into[:, 0])
        else:
            tools.csr_matvecs(rows, m, q, e.offsets, e.minor, x, coef.ravel(), into.ravel())
