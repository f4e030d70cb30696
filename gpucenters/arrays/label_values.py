"""Labels and groups as NumPy arrays that hold the values that were handed in.

NumPy makes float64 of integers of several types, as of int64 beside uint64, and scikit-learn of
pandas' integers and booleans that may be missing. Integers from 2**53 on are not exact in it.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from .inputs import check_input
from .namespace import is_array, to_numpy

_INTEGERS = (np.iinfo(np.int64), np.iinfo(np.uint64))


def exact_values(y: Any, name: str) -> Any:
    """What is handed in as labels: as a NumPy array, or as it is where NumPy is to make one.

    Integers and booleans of a table stay such; with missing ones they are objects.
    """
    check_input(y, name)
    if is_array(y):
        return to_numpy(y)
    if isinstance(y, list | tuple):
        return _of_sequence(y, name)
    if getattr(y, "ndim", 1) == 2 and y.shape[1] == 1 and hasattr(y, "iloc"):
        return np.asarray(exact_values(y.iloc[:, 0], name))[:, None]
    kind = getattr(getattr(y, "dtype", None), "numpy_dtype", None)  # of pandas' own types
    if kind is None or kind.kind not in "iub":
        return y
    return np.asarray(y, dtype=object if np.any(y.isna()) else kind)


def _of_sequence(y: Sequence, name: str) -> np.ndarray:
    found = np.asarray(y)
    if found.ndim == 1 and found.dtype.kind == "f":
        return _exact(y, found, name)
    if found.ndim == 1 and found.dtype.kind == "U" and any(x != x or _ends_in_nul(x) for x in y):
        return np.asarray(y, dtype=object)  # where NaN is no string, and strings keep their ends
    return found


def _ends_in_nul(x: Any) -> bool:
    return isinstance(x, str) and x.endswith("\0")


def concatenated(parts: Sequence[np.ndarray], name: str = "y") -> np.ndarray:
    """Labels of several arrays, one after the other."""
    found = np.concatenate(parts)
    if found.dtype.kind == "f" and any(part.dtype.kind in "iu" for part in parts):
        return _exact([x for part in parts for x in part.tolist()], found, name)
    return found


def _exact(values: Sequence, floats: np.ndarray, name: str) -> np.ndarray:
    """Numbers of which NumPy makes floats: integers as such; raises where digits would be lost."""
    whole = [x for x in values if isinstance(x, numbers.Integral)]
    if not whole:
        return floats
    if len(whole) == len(values):
        low, high = int(min(whole)), int(max(whole))
        for kind in _INTEGERS:
            if kind.min <= low and high <= kind.max:
                return np.asarray([int(x) for x in whole], dtype=kind.dtype)
        raise ValueError(
            f"{name} holds integers from {low} to {high}, and no type of NumPy holds both: use "
            "other numbers, or strings."
        )
    for x, near in zip(values, floats.tolist(), strict=True):
        if isinstance(x, numbers.Integral) and int(x) != near:
            raise ValueError(
                f"{name} holds the integer {int(x)} beside floats, in which it would be {near:.0f}."
            )
    return floats


def first_missing(values: np.ndarray) -> tuple[int, str] | None:
    """The row and the name of the first of n values that is NaN, NaT, NA or None, if any is."""
    kind = values.dtype.kind
    if kind in "fcmM":
        missing = np.isnan(values)
    elif kind == "O":
        missing = np.fromiter(map(_is_missing, values.tolist()), bool, len(values))
    else:
        return None
    if not missing.any():
        return None
    row = int(missing.argmax())
    return row, "NaN" if isinstance(values[row], numbers.Real) else f"{values[row]}"


def _is_missing(value: Any) -> bool:
    # NA is equal to nothing, and says neither yes nor no to that.
    return value is None or type(value).__name__ == "NAType" or bool(np.any(value != value))
