"""Arrays that NumPy and SciPy have written: .npy, .npz with X and y, sparse .npz. Never pickle."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse

from .data import Data, Options, ReadError
from .lines import too_large

_INDICES = {"indices", "indptr", "row", "col", "coords", "offsets", "shape"}
_SPARSE = {"format", "data"} | _INDICES  # what SciPy writes
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def array_batches(path: Any, rows: int, options: Options) -> Iterator[Data]:
    """Batches of the rows of a .npy file, which is mapped, or of a .npz file."""
    if options.format == "npz":
        X, y, names = _of_archive(path, options.limit())
    else:
        X, y, names = mapped(path), None, None
    if X.dtype.kind not in "biuf" or X.ndim != 2 or not X.shape[1]:
        raise ReadError(path, f"X must be a table of numbers, not {X.dtype} of shape {X.shape}.")
    for start in range(0, X.shape[0], rows):
        part = slice(start, start + rows)
        yield Data(X[part], None if y is None else y[part], names)


def mapped(path: Any) -> np.ndarray:
    """The array of a .npy file, as a memory map."""
    with open(path, "rb"):  # where it cannot be opened, the system's own error
        pass
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except Exception as error:
        raise ReadError(path, f"is no .npy file of plain values: {error}") from error


def check_labels(path: Any, labels: np.ndarray) -> None:
    """Raise unless an array is one of labels."""
    if labels.ndim != 1 or labels.dtype.kind not in "biufU":
        shown = f"{labels.dtype} of shape {labels.shape}"
        raise ReadError(path, f"labels must be a row of numbers or strings, not {shown}.")


def _of_archive(path: Any, limit: float) -> tuple[Any, np.ndarray | None, np.ndarray | None]:
    """(X, y, names of features) of a .npz file."""
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                _check_sizes(path, archive, limit)
            file.seek(0)
            with np.load(file, allow_pickle=False) as arrays:
                there = sorted(arrays.files)
                y, names = (arrays[n] if n in there else None for n in ("y", "feature_names"))
                dense = arrays["X"] if "X" in there else None
            if dense is None and not {"format", "data", "shape"} <= set(there):
                what = f"there is neither an array X nor a sparse matrix of SciPy, but {there}."
                raise ReadError(path, what)
            file.seek(0)
            X = _csr(path, scipy.sparse.load_npz(file), limit) if dense is None else dense
        except (ReadError, MemoryError):
            raise
        except Exception as error:
            raise ReadError(path, f"is no .npz file of plain arrays: {error}") from error
    if y is not None:
        check_labels(path, y)
        if X.shape[:1] != y.shape:
            raise ReadError(path, f"X has the shape {X.shape}, and y {y.shape}.")
    if names is not None and (names.dtype.kind != "U" or names.shape != X.shape[1:]):
        what = f"feature_names must be strings, one for each column of X, of shape {X.shape}"
        raise ReadError(path, f"{what}, not {names.dtype} of shape {names.shape}.")
    return X, y, names


def _check_sizes(path: Any, archive: zipfile.ZipFile, limit: float) -> None:
    """Raise where arrays claim more than is there, or more than may be held."""
    total = 0
    for name in {"X", "y", "feature_names"} | _SPARSE:
        if f"{name}.npy" not in archive.namelist():
            continue
        info = archive.getinfo(f"{name}.npy")
        with archive.open(info) as member:
            version = np.lib.format.read_magic(member)
            shape, _, dtype = _HEADERS[version](member)
            size = math.prod(shape) * dtype.itemsize
            if dtype.hasobject:
                raise ValueError(f"{name} holds Python objects, which are never read.")
            if min(shape, default=0) < 0 or member.tell() + size != info.file_size:
                raise ValueError(f"{name} is of shape {shape}, which its bytes do not fit.")
        if name in _INDICES and dtype.kind not in "iu":
            raise ValueError(f"{name} must hold whole numbers, not {dtype}.")
        total += size
        if total > limit:
            raise too_large(path, limit)


def _csr(path: Any, matrix: Any, limit: float) -> Any:
    """A sparse matrix as CSR, after a check of its indices."""
    if matrix.ndim != 2:
        raise ValueError(f"the sparse array has {matrix.ndim} dimensions.")
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)
    if 8 * matrix.shape[0] > limit:
        raise too_large(path, limit)
    return scipy.sparse.csr_array(matrix)
