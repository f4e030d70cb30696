"""Arrays in files: npy, npz and HDF5 arrays, and AnnData's h5ad."""

from __future__ import annotations

import math
import sys
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from .data import (
    LONGEST_LABEL,
    Data,
    Options,
    ReadError,
    as_labels,
    counted,
    errors_of,
    find_column,
)
from .lines import too_large

_INDICES = {"indices", "indptr", "row", "col", "coords", "offsets", "shape"}
_SPARSE = {"format", "data"} | _INDICES  # what SciPy writes
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_BYTES = 2**25  # of a part of a file that is read whole


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
    with errors_of(path, ".npy file of plain values"):
        return np.lib.format.open_memmap(path, mode="r")


def check_labels(path: Any, labels: np.ndarray) -> None:
    """Raise unless an array is one of labels."""
    if labels.ndim != 1 or labels.dtype.kind not in "biufU":
        shown = f"{labels.dtype} of shape {labels.shape}"
        raise ReadError(path, f"labels must be a row of numbers or strings, not {shown}.")


def _of_archive(path: Any, limit: float) -> tuple[Any, np.ndarray | None, np.ndarray | None]:
    """(X, y, names of features) of a .npz file."""
    with errors_of(path, ".npz file of plain arrays"), open(path, "rb") as file:
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


# AnnData in HDF5 (.h5ad): X, a column of obs as labels, and the names of var.


def h5ad_batches(path: Any, rows: int, options: Options) -> Iterator[Data]:
    """Batches of the rows of X: dense, or CSR.

    Of a file that is read whole, an X that is larger than may be held stays on disk.
    """
    try:
        import anndata.io  # noqa: F401
        import h5py
    except ImportError as error:
        raise ImportError("h5ad needs anndata: pip install 'gpucenters[anndata]'.") from error
    with errors_of(path, ".h5ad file"), ExitStack() as stack:
        file = stack.enter_context(h5py.File(path, "r"))
        cells = _Cells.of(path, file, options)
        if rows == sys.maxsize and cells.size > options.limit() and cells.read_by_row:
            stack.pop_all()  # the file is open as long as X is
            yield cells.of_rows(slice(None), cells.X)
            return
        yield from cells.parts(path, rows, options)


@dataclass(frozen=True)
class _Cells:
    """What is in an open file.

    Attributes
    ----------
    X : array of h5py, or sparse matrix of anndata on disk
    y : ndarray of shape (n_samples,), or None
    names : ndarray of shape (n_features,)
    ids : list of str, or None
    size : int
        The bytes of X.
    """

    X: Any
    y: np.ndarray | None
    names: np.ndarray
    ids: list[str] | None
    size: int

    @classmethod
    def of(cls, path: Any, file: Any, options: Options) -> _Cells:
        """What is in a file, after a check of its shape."""
        from anndata.io import sparse_dataset

        for name in ("X", "obs", "var"):
            if name not in file:
                raise ReadError(path, f"there is no {name}.")
        if "raw" not in file and options.raw:
            raise ReadError(path, "there is no raw.")
        layers = file.get("layers", {})
        if options.layer is not None and options.layer not in layers:
            what = f"there is no layer {options.layer!r} for layer=; the layers are {[*layers]}."
            raise ReadError(path, what)
        held = file["raw"] if options.raw else file
        y, ids = _labels(path, file["obs"], options), _ids(path, file["obs"], options)
        names = _names(path, held["var"], options.limit())
        X = held["X"] if options.layer is None else layers[options.layer]
        stored = [X]
        if not hasattr(X, "shape"):
            X = sparse_dataset(X)
            stored = [X.group[name] for name in ("data", "indices", "indptr")]
        shape, dtype = X.shape, X.dtype
        if len(shape) != 2 or not shape[1] or dtype.kind not in "biuf":
            raise ReadError(path, f"X must be a table of numbers, not {dtype} of shape {shape}.")
        for what, found, expected in (("obs", y, shape[0]), ("var", names, shape[1])):
            if found is not None and len(found) != expected:
                raise ReadError(
                    path, f"X has the shape {shape}, and {what} {counted(len(found), 'row')}."
                )
        return cls(X, y, names, ids, sum(part.size * part.dtype.itemsize for part in stored))

    @property
    def read_by_row(self) -> bool:
        """Whether X is stored row by row."""
        return getattr(self.X, "format", "dense") != "csc"

    def parts(self, path: Any, rows: int, options: Options) -> Iterator[Data]:
        """The rows, at most so many at a time."""
        if not self.read_by_row and self.size > options.limit():
            raise too_large(path, options.limit())
        sparse = hasattr(self.X, "format")
        read = _csr_rows(path, self.X, options.limit()) if sparse else self.X.__getitem__
        n = self.X.shape[0]
        step = max(1, min(rows, _BYTES * n // max(1, self.size)))
        for start in range(0, n, step):
            part = slice(start, min(start + step, n))
            yield self.of_rows(part, read(part))

    def of_rows(self, part: slice, X: Any) -> Data:
        """Some rows, with their values."""
        y = None if self.y is None else self.y[part]
        return Data(X, y, self.names, None if self.ids is None else self.ids[part])


def _csr_rows(path: Any, X: Any, limit: float) -> Any:
    """What gives a range of rows of a sparse matrix as CSR, checked."""
    if X.format != "csr":
        whole = X.to_memory()
        whole.check_format(full_check=True)
        return scipy.sparse.csr_array(whole).__getitem__
    (n, m), group = X.shape, X.group
    if 8 * n > limit:
        raise too_large(path, limit)
    indptr = group["indptr"][:]
    stored = min(group["data"].shape[0], group["indices"].shape[0])
    if indptr.dtype.kind not in "iu" or group["indices"].dtype.kind not in "iu":
        raise ReadError(path, "X is damaged: the indices of a sparse matrix are whole numbers.")
    if indptr.shape != (n + 1,) or indptr[0] or np.any(np.diff(indptr.astype(np.int64)) < 0):
        raise ReadError(
            path, f"X is damaged: its indptr does not ascend from 0 over {counted(n, 'row')}."
        )
    if int(indptr[-1]) > stored:
        what = f"its indptr ends at {int(indptr[-1]):,} of {stored:,} stored values."
        raise ReadError(path, f"X is damaged: {what}")

    def read(rows: slice) -> Any:
        first, last = (int(indptr[end]) for end in (rows.start, rows.stop))
        data, indices = (group[name][first:last] for name in ("data", "indices"))
        outside = np.flatnonzero((indices < 0) | (indices >= m))
        if len(outside):
            row = int(np.searchsorted(indptr, first + outside[0], side="right"))
            what = f"row {row} has a value in column {int(indices[outside[0]]) + 1:,} of {m:,}."
            raise ReadError(path, f"X is damaged: {what}")
        offsets = indptr[rows.start : rows.stop + 1] - indptr[rows.start]
        return scipy.sparse.csr_array((data, indices, offsets), shape=(rows.stop - rows.start, m))

    return read


def _labels(path: Any, obs: Any, options: Options) -> np.ndarray | None:
    """The labels of a column of obs."""
    if not hasattr(obs, "keys"):
        what = "obs is of a version of anndata before 0.7: read and write it by a newer one."
        raise ReadError(path, what)
    header = [str(name) for name in obs.attrs.get("column-order", obs.keys())]
    at = find_column(header, options, "label", lambda what, _: ReadError(path, what))
    if at is None:
        return None
    name = header[at]
    values = np.asarray(_column(path, obs[name], options.limit()), dtype=object)
    found = [_plain(value) for value in values]
    return as_labels(found, path, f"obs[{name!r}]", mask=options.masks_labels)


def _ids(path: Any, obs: Any, options: Options) -> list[str] | None:
    """The names of the cells, where they are asked for."""
    if options.id is None:
        return None
    if options.id not in obs:
        raise ReadError(path, f"there is no column {options.id!r} for id= in obs.")
    return [str(value) for value in _column(path, obs[options.id], options.limit())]


def _plain(value: Any) -> Any:
    """A value of pandas as one of Python; None where it is missing."""
    value = value.item() if hasattr(value, "item") else value
    return value if isinstance(value, str | int | float) else None


def _names(path: Any, var: Any, limit: float) -> np.ndarray:
    """The names of the features."""
    index = getattr(var, "attrs", {}).get("_index", "_index")
    if not hasattr(var, "keys") or index not in var:
        raise ReadError(path, "var has no index of names.")
    names = [str(name) for name in _column(path, var[index], limit)]
    longest = max(map(len, names), default=0)
    if longest > LONGEST_LABEL:
        raise ReadError(path, f"a name in var has {longest:,} characters.")
    return np.asarray(names)


def _column(path: Any, element: Any, limit: float) -> Any:
    """The values of a column, unless they are more than may be held."""
    from anndata.io import read_elem

    parts = [element] if hasattr(element, "shape") else list(element.values())
    sizes = [part.size * part.dtype.itemsize for part in parts if hasattr(part, "dtype")]
    if sum(sizes) > limit:
        raise too_large(path, limit)
    return read_elem(element)
