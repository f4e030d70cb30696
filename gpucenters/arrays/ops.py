"""The seam between a generic body and the family's: one function each, for the solvers."""

from __future__ import annotations

from . import family, generic
from .devices import place_of
from .namespace import array_namespace, in_family, to_float, to_numpy
from .typing import Array

__all__ = [
    "array_namespace",
    "members",
    "not_negative",
    "numbers",
    "place_of",
    "to_float",
    "to_numpy",
    "top_k",
]


def numbers(x: Array) -> list[float]:
    """The numbers of a small array of one dimension, in one go: on a device each read waits."""
    return to_numpy(x).tolist()


def top_k(key: Array, k: int) -> Array:
    """Indices of the k largest of ``key`` (no NaN), ascending; ties go to the lower index.

    Parameters
    ----------
    key : array of shape (m,)
    k : int, at most m

    Returns
    -------
    array of int64 of shape (k,)
    """
    xp = array_namespace(key)
    return (family if in_family(xp) else generic).top_k(key, k, xp)


def members(index: Array, size: int) -> Array:
    """A mask of shape (size,): True at ``index``, which holds different numbers 0..size-1."""
    xp = array_namespace(index)
    return (family if in_family(xp) else generic).members(index, size, xp)


def not_negative(x: Array) -> Array:
    """``x`` with zero for negative values; NaN stays (``clip`` synchronises on CUDA)."""
    xp = array_namespace(x)
    return xp.where(x < 0, xp.zeros_like(x), x)
