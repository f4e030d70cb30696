"""What users hand in as arrays: kinds that cannot be worked on, exact labels, and X on disk."""

from __future__ import annotations

import math
import numbers
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import array_api_compat
import numpy as np

from .namespace import is_array, is_sparse, to_numpy

_KEPT = 4  # batches that are kept: threads are at work on parts that lie side by side
LEAST_BYTES, MOST_BYTES = 2**16, 2**25  # of a batch: less is slow, and more is not faster
_SHARE = 2 * _KEPT  # a batch takes this part of the budget: half for all that are kept
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


# Arrays in files of HDF5 or Zarr, of which parts are read: X of an AnnData that is backed.
#
# Memory maps are arrays, and need none of this.


class OnDisk:
    """An array in a file, read in batches of rows that stay in memory for a while.

    Parameters
    ----------
    read : callable
        ``read(index)`` gives a part of it, for a slice or a tuple of slices.
    shape : tuple of int
    dtype : dtype
        Of what is read, converted where the file has another one.
    budget : int
        Bytes that may be held.
    rows : int, default=1
        Rows that are stored together.
    """

    def __init__(
        self, read: Callable, shape: tuple[int, ...], dtype: Any, budget: int, rows: int = 1
    ) -> None:
        self.shape, self.dtype, self.ndim = shape, np.dtype(dtype), len(shape)
        self._read = read
        limit = max(LEAST_BYTES, min(budget // _SHARE, MOST_BYTES))
        step = limit // max(1, self.dtype.itemsize * math.prod(shape[1:]))
        self._step = step - step % rows or step  # 0: a row is too long to be held
        self._held: dict[int, np.ndarray] = {}
        self._lock = threading.Lock()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        """Never: all of it need not fit into memory."""
        raise TypeError("an array on disk is read in parts.")

    def __getitem__(self, index: Any) -> np.ndarray:
        """A range of rows, or of rows and columns."""
        rows, *columns = index if isinstance(index, tuple) else (index,)
        start, stop, _ = rows.indices(self.shape[0])
        # More batches than are kept would be read again for the next columns.
        if not self._step or stop <= start or (columns and stop - start > _KEPT * self._step):
            with self._lock:
                return self._converted((slice(start, max(start, stop)), *columns))
        parts = []
        for number in range(start // self._step, -(-stop // self._step)):
            first = number * self._step
            batch = self._batch(number)[max(start - first, 0) : stop - first]
            parts.append(batch[(slice(None), *columns)])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Some rows."""
        return np.stack([self[row : row + 1][0] for row in rows.tolist()])

    def take_columns(self, start: int, stop: int, columns: Any) -> np.ndarray:
        """Some columns of a range of rows, of which a batch is in memory at a time."""
        step = self._step or 1
        cuts = range(start - start % step, stop, step)
        rows = [slice(max(start, cut), min(stop, cut + step)) for cut in cuts]
        return np.concatenate([np.take(self[part], columns, axis=1) for part in rows])

    def _batch(self, number: int) -> np.ndarray:
        with self._lock:
            found = self._held.pop(number, None)
            if found is None:
                while len(self._held) >= _KEPT:
                    del self._held[next(iter(self._held))]
                stop = min((number + 1) * self._step, self.shape[0])
                found = self._converted((slice(number * self._step, stop),))
            self._held[number] = found  # the last to be given up
            return found

    def _converted(self, index: tuple[slice, ...]) -> np.ndarray:
        return np.asarray(self._read(index)).astype(self.dtype, copy=False)


@dataclass(frozen=True)
class CSROnDisk:
    """A CSR matrix whose stored entries are on disk.

    Attributes
    ----------
    data, indices : OnDisk of shape (nnz,)
    indptr : ndarray of shape (n + 1,)
    shape : tuple of int
    """

    data: OnDisk
    indices: OnDisk
    indptr: np.ndarray
    shape: tuple[int, int]
    format = "csr"
    ndim = 2

    @property
    def dtype(self) -> np.dtype:
        """Of the values."""
        return self.data.dtype


def is_on_disk(x: Any) -> bool:
    """Whether ``x`` is an array of h5py or zarr, or a sparse matrix of anndata on either."""
    return _is_dense(x) or _is_sparse(x)


def _is_dense(x: Any) -> bool:
    kinds = (("h5py", "Dataset"), ("zarr", "Array"))
    return any(
        isinstance(x, getattr(sys.modules[module], kind, ()))
        for module, kind in kinds
        if module in sys.modules
    )


def _is_sparse(x: Any) -> bool:
    return type(x).__module__.partition(".")[0] == "anndata" and hasattr(x, "group")


def refuse_on_disk(x: Any, name: str, who: str) -> NoReturn:
    """Raise the TypeError of what needs all of an array in memory."""
    instead = f"{name}.to_memory()" if _is_sparse(x) else f"{name}[:]"
    raise TypeError(
        f"{who} needs all of {name} in memory, and this {type(x).__module__.partition('.')[0]}."
        f"{type(x).__qualname__} is on disk: pass {instead}, or the {name} of adata.to_memory()."
    )


def open_on_disk(x: Any, name: str, who: str, budget: int) -> OnDisk | CSROnDisk:
    """A dense array or a CSR matrix on disk, for parts to be read within a budget.

    Raises
    ------
    TypeError
        For a CSC matrix, whose rows cannot be read.
    """
    if _is_dense(x):
        return _opened(x, budget)
    if x.format != "csr":
        refuse_on_disk(x, name, f"{name} is stored by column, and so {who}")
    data, indices, indptr = (x.group[part] for part in ("data", "indices", "indptr"))
    kinds = {np.dtype(part.dtype).newbyteorder("=") for part in (indices, indptr)}
    kind = kinds.pop() if kinds == {np.dtype(np.int32)} else np.dtype(np.int64)
    if any(np.dtype(part.dtype).kind not in "iu" for part in (indices, indptr)):
        raise ValueError("the indices and indptr of the CSR matrix must hold integers.")
    starts = np.asarray(indptr[:]).astype(kind)
    stored = int(starts[-1]) if starts.size else 0
    parts = _opened(data, budget // 2, stored), _opened(indices, budget // 2, stored, kind)
    return CSROnDisk(*parts, starts, tuple(x.shape))


def _opened(x: Any, budget: int, stored: int | None = None, kind: Any = None) -> OnDisk:
    shape, dtype = tuple(x.shape), np.dtype(x.dtype).newbyteorder("=") if kind is None else kind
    if stored is not None and dtype == np.float16:
        dtype = np.dtype(np.float32)  # SciPy's routines do not know the other
    if stored is not None:
        shape = (max(0, min(stored, shape[0])), *shape[1:])
    rows = (getattr(x, "chunks", None) or (1,))[0]
    return OnDisk(x.__getitem__, shape, dtype, budget, rows)


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
