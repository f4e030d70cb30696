"""Arrays in files of HDF5 or Zarr, of which parts are read: X of an AnnData that is backed.

Memory maps are arrays, and need none of this.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

_KEPT = 4  # batches that are kept: threads are at work on parts that lie side by side
LEAST_BYTES, MOST_BYTES = 2**16, 2**25  # of a batch: less is slow, and more is not faster
_SHARE = 2 * _KEPT  # a batch takes this part of the budget: half for all that are kept


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
