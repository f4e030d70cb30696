"""What users hand in as X, y and weights: kinds that cannot be worked on, and exact labels."""

from __future__ import annotations

import numbers
import sys
from collections.abc import Sequence
from typing import Any

import array_api_compat
import numpy as np

from .namespace import is_array, is_sparse, to_numpy
from .on_disk import is_on_disk, refuse_on_disk

#: Members by which a type gives its values, and how they are written.
_INSTEAD = {
    "X": ".X",  # an AnnData
    "to_memory": ".to_memory()",
    "collect": ".collect()",
    "compute": ".compute()",
    "to_scipy_sparse": ".to_scipy_sparse()",
    "unwrap_numpy": ".unwrap_numpy()",
}
_INTEGERS = (np.iinfo(np.int64), np.iinfo(np.uint64))


def check_input(x: Any, name: str, who: str = "this function") -> None:
    """Raise a TypeError for X, y or weights of a kind that cannot be worked on.

    These are arrays that are immutable or computed when they are read (JAX, Dask, ndonnx, cubed),
    tensors that are sparse or require grad, arrays in files, and objects that no library makes an
    array of. ``who`` asks.
    """
    if array_api_compat.is_numpy_array(x) or is_sparse(x):
        return
    if is_on_disk(x):
        refuse_on_disk(x, name, who)
    if array_api_compat.is_torch_array(x):
        _check_tensor(x, name)
    elif _is_dask(x):
        message = (
            f"{name} is a Dask {type(x).__name__}, which is computed whenever it is read: pass "
            f"{name}.compute()."
        )
        if name == "X":
            message += " gpucenters.dask.fit(estimator, X, y) fits where the partitions are."
        raise TypeError(message)
    elif is_array(x):
        # A type without assignment is asked first: some compute a value to tell if they are lazy.
        if (
            not hasattr(type(x), "__setitem__")
            or not array_api_compat.is_writeable_array(x)
            or array_api_compat.is_lazy_array(x)
        ):
            raise TypeError(
                f"{name} is a {_library(x)}, which is immutable or computed when it is read: "
                f"pass {_instead(x, name) or f'numpy.asarray({name})'}."
            )
    elif not hasattr(x, "__array__") and (hasattr(x, "shape") or hasattr(x, "collect")):
        instead = _instead(x, name)
        raise TypeError(
            f"{name} is a {_library(x)}, which is no array, sparse matrix or DataFrame in memory"
            + (f": pass {instead}." if instead else ".")
        )


def _check_tensor(x: Any, name: str) -> None:
    if x.requires_grad:
        raise TypeError(f"{name} is a tensor that requires grad: pass {name}.detach().")
    if "strided" not in str(x.layout):
        raise TypeError(
            f"{name} is a tensor of layout {x.layout}: pass a SciPy CSR matrix, or "
            f"{name}.to_dense()."
        )


def _is_dask(x: Any) -> bool:
    """Whether ``x`` is an array, DataFrame, Series or other collection of Dask."""
    module = sys.modules.get("dask.base")
    return module is not None and bool(module.is_dask_collection(x))


def _library(x: Any) -> str:
    if array_api_compat.is_jax_array(x):  # its class has another name
        return "jax.Array"
    return f"{type(x).__module__.partition('.')[0]}.{type(x).__qualname__}"


def _instead(x: Any, name: str) -> str | None:
    found = (written for member, written in _INSTEAD.items() if hasattr(type(x), member))
    return next((f"{name}{written}" for written in found), None)


# Labels and groups as NumPy arrays that hold the values that were handed in.
#
# NumPy makes float64 of integers of several types, as of int64 beside uint64, and scikit-learn of
# pandas' integers and booleans that may be missing. Integers from 2**53 on are not exact in it.


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
