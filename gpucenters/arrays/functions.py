"""Functions of arrays of any library, for the layers above.

They call the implementation for NumPy and CuPy where there is one, else the portable one.
"""

from __future__ import annotations

from typing import Any

from . import numpy_cupy, portable
from .backend import backend_of
from .namespace import array_namespace, is_cupy, is_numpy, is_numpy_or_cupy, to_numpy
from .typing import Array

__all__ = [
    "array_namespace",
    "backend_of",
    "clip_negative",
    "index_mask",
    "row_sums",
    "running_max",
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
