"""Functions of arrays of any library, for the layers above.

They call the implementation for NumPy and CuPy where there is one, else the portable one.
"""

from __future__ import annotations

from typing import Any

from . import kernels, numpy_cupy, portable
from .backend import backend_of
from .namespace import array_namespace, is_cupy, is_numpy, is_numpy_or_cupy, to_numpy
from .typing import Array

__all__ = [
    "array_namespace",
    "backend_of",
    "clip_negative",
    "index_mask",
    "round_to_40_bits",
    "row_sums",
    "running_max",
    "scaled_differences",
    "to_float",
    "to_floats",
    "to_host",
    "top_k",
    "writable",
]


def to_float(x: Array) -> float:
    """A number from an array of no dimension. On a device this waits for it."""
    return float(x)


def to_floats(x: Array) -> list[float]:
    """The numbers of a small array of one dimension, in one read: on a device each read waits."""
    return to_numpy(x).tolist()


def to_host(x: Any) -> Any:
    """``x`` (an array of any library, or host values) on the host.

    For small problems, whose steps would each wait for a device.
    """
    return to_numpy(x)


def writable(x: Array) -> Array:
    """``x``, or a copy of it where it is a read-only array of NumPy, as of a memory map."""
    if is_numpy(array_namespace(x)) and not to_numpy(x).flags.writeable:
        return to_numpy(x).copy()
    return x


def top_k(key: Array, k: int, near: Array | None = None) -> Array:
    """Indices of the k largest of ``key`` (no NaN), ascending; ties go to the lower index.

    Parameters
    ----------
    key : array of shape (m,)
    k : int, at most m
    near : array of no dimension, optional
        A guess at the k-th largest, which saves time on the host where it is a good one.

    Returns
    -------
    array of int64 of shape (k,)
    """
    xp = array_namespace(key)
    if near is not None and is_numpy(xp):
        return numpy_cupy.top_k_near(key, k, to_float(near))
    return (numpy_cupy if is_numpy_or_cupy(xp) else portable).top_k(key, k, xp)


def index_mask(index: Array, size: int) -> Array:
    """A mask of shape (size,): True at ``index``, which holds different numbers 0..size-1."""
    xp = array_namespace(index)
    return (numpy_cupy if is_numpy_or_cupy(xp) else portable).index_mask(index, size, xp)


def running_max(x: Array) -> Array:
    """The largest of the first rows of ``x``, for each number of rows: of the shape of ``x``."""
    xp = array_namespace(x)
    return (numpy_cupy if is_numpy_or_cupy(xp) else portable).running_max(x, xp)


def row_sums(x: Array) -> Array:
    """The sum of each row: (K,) from (K, m). Of long rows on CUDA, the sum of those of their parts.

    CuPy sums a row by one thread block, so that few long rows leave most of a card idle.
    """
    xp, (k, m) = array_namespace(x), x.shape
    if not is_cupy(xp) or m <= _PART_OF_ROW:
        return xp.sum(x, axis=1)
    even = m - m % _PART_OF_ROW
    parts = xp.sum(xp.reshape(x[:, :even], (k, -1, _PART_OF_ROW)), axis=2)
    return xp.sum(parts, axis=1) + xp.sum(x[:, even:], axis=1)


_PART_OF_ROW = 2**12  # elements that one block sums


def clip_negative(x: Array) -> Array:
    """``x`` with zero for negative values; NaN stays (``clip`` synchronises on CUDA)."""
    return array_namespace(x).maximum(x, 0.0)


def scaled_differences(total: Array, share: Array, unit: Array) -> Array:
    """The rows of a (K, d) array, times ``unit`` and over ``share`` of each, less the first one.

    ``(w_0 u_c t_c - w_c u_0 t_0) / (w_0 w_c)`` for c > 0: (K - 1, d). On CUDA by one kernel, to the
    same bits.
    """
    if is_cupy(array_namespace(total)):
        return kernels.scaled_differences(total, share, unit)
    w, s = share[:, None], total * unit[:, None]
    return (w[:1, :] * s[1:, :] - w[1:, :] * s[:1, :]) / (w[:1, :] * w[1:, :])


def round_to_40_bits(x: Array) -> Array:
    """``x``, not negative, rounded to 40 significant bits, by one kernel on CUDA.

    ``c = x * (2**13 + 1); c - (c - x)`` (Veltkamp's splitting), as three separate operations, since
    a fused kernel may contract them.
    """
    xp = array_namespace(x)
    if is_cupy(xp):
        return kernels.round_to_40_bits(x)
    if bool(xp.all(x < _SCALED_FROM)):
        c = x * _SPLITTER
        return c - (c - x)
    # The largest numbers are scaled by a power of two, so that nothing overflows.
    one = xp.ones_like(x)
    unit = xp.where(x >= _SCALED_FROM, one * 2.0**60, one)
    x = x / unit
    c = x * _SPLITTER
    d = c - x
    return xp.minimum(c - d, _LARGEST_FLOAT / unit) * unit


_SPLITTER = 2.0**13 + 1  # leaves 40 of 53 significant bits
_SCALED_FROM = 2.0**1000  # above it the product with the splitter could overflow
_LARGEST_FLOAT = 2.0**1023 * (2 - 2.0**-52)
