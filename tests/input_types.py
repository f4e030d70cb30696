"""What happens to each type of X: the declarations of which the documentation's table is made.

``python tests/input_types.py`` prints the table; `test_input_types.py` tries each cell.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

AS_IT_IS = "as it is"  # worked on where it is, and what transform returns is of its type
IN_BLOCKS = "in blocks"  # the same, and it is never read as a whole
IN_PARTS = "in parts"  # never read as a whole; what transform returns is in memory
IN_MEMORY = "in memory"  # the same, and it is read as a whole
AS_ARRAY = "as an array"
AS_CSR = "as CSR"
MOVED = "in chunks"  # goes to the device, and what transform returns is on the host
REFUSED = "refused"


@dataclass(frozen=True)
class InputType:
    """A row of the table.

    Attributes
    ----------
    name : str
    make : callables
        Each makes one of this type of an array.
    outcomes : tuple of str
        In the order of `COLUMNS`.
    instead : str
        What the error names, where it is refused.
    """

    name: str
    make: tuple[Callable[[np.ndarray], Any], ...]
    outcomes: tuple[str, str, str, str]
    instead: str = ""


COLUMNS = ("models of class sums", "l1", "GMEB", '`device="cuda"`')


def _module(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(name)


def _sparse(*names: str) -> tuple[Callable[[np.ndarray], Any], ...]:
    return tuple(lambda a, name=name: getattr(_module("scipy.sparse"), name)(a) for name in names)


def _on_device(*formats: str) -> tuple[Callable[[np.ndarray], Any], ...]:
    def make(a: np.ndarray, format: str) -> Any:
        host = _module("scipy.sparse").csr_matrix(a).asformat(format)
        return getattr(_module("cupyx.scipy.sparse"), f"{format}_matrix")(host)

    return tuple(lambda a, format=format: make(a, format) for format in formats)


def _memory_map(a: np.ndarray) -> np.ndarray:
    tempfile = _module("tempfile")
    with tempfile.NamedTemporaryFile(suffix=".npy") as file:
        np.save(file, a)
        file.flush()
        return np.load(file.name, mmap_mode="r")


def _h5py(a: np.ndarray) -> Any:
    h5py = _module("h5py")
    return h5py.File(f"{id(a)}", "w", driver="core", backing_store=False).create_dataset(
        "X", data=a
    )


def _zarr(a: np.ndarray) -> Any:
    return _module("zarr").array(a)


def _backed(a: np.ndarray) -> Any:
    anndata, tempfile = _module("anndata"), _module("tempfile")
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/X.h5ad"
        anndata.AnnData(_module("scipy.sparse").csr_matrix(a)).write_h5ad(path)
        return anndata.read_h5ad(path, backed="r").X  # open, and read later


def _frame_of_sparse_columns(a: np.ndarray) -> Any:
    return _module("pandas").DataFrame.sparse.from_spmatrix(_module("scipy.sparse").csr_matrix(a))


def _dask_frame(a: np.ndarray) -> Any:
    frame = _module("pandas").DataFrame(a, columns=[str(i) for i in range(a.shape[1])])
    return _module("dask.dataframe").from_pandas(frame, npartitions=2)


_ALL_REFUSED = (REFUSED, REFUSED, REFUSED, REFUSED)
TYPES = (
    InputType("NumPy array", (np.asarray,), (AS_IT_IS, AS_IT_IS, AS_IT_IS, MOVED)),
    InputType(
        "memory map",
        (_memory_map,),
        (IN_BLOCKS, IN_BLOCKS, IN_MEMORY, MOVED),
    ),
    InputType(
        "HDF5 or Zarr array; CSR or dense X of a backed AnnData",
        (_h5py, _zarr, _backed),
        (IN_PARTS, REFUSED, REFUSED, MOVED),
        "adata.to_memory()",
    ),
    InputType(
        "list, pandas or polars DataFrame",
        (
            np.ndarray.tolist,
            lambda a: _module("pandas").DataFrame(a),
            lambda a: _module("polars").DataFrame(a),
        ),
        (AS_ARRAY, AS_ARRAY, AS_ARRAY, MOVED),
    ),
    InputType(
        "SciPy CSR or CSC",
        _sparse("csr_array", "csr_matrix", "csc_array"),
        (AS_IT_IS, AS_IT_IS, AS_IT_IS, MOVED),
    ),
    InputType(
        "SciPy COO, BSR, DIA, DOK or LIL; pandas DataFrame of sparse columns",
        (
            *_sparse("coo_array", "bsr_array", "dia_matrix", "dok_array", "lil_matrix"),
            _frame_of_sparse_columns,
        ),
        (AS_CSR, AS_CSR, AS_CSR, MOVED),
    ),
    InputType(
        "CuPy array; cupyx CSR or CSC",
        (lambda a: _module("cupy").asarray(a), *_on_device("csr", "csc")),
        (AS_IT_IS, AS_IT_IS, AS_IT_IS, AS_IT_IS),
    ),
    InputType("cupyx COO", _on_device("coo"), (AS_CSR, AS_CSR, AS_CSR, AS_CSR)),
    InputType(
        "dense array of another array-API library, as PyTorch",
        (
            lambda a: _module("array_api_strict").asarray(a),
            lambda a: _module("torch").asarray(a),
        ),
        (AS_IT_IS, AS_IT_IS, AS_IT_IS, MOVED),
    ),
    InputType(
        "PyTorch tensor that requires grad",
        (lambda a: _module("torch").asarray(a).requires_grad_(),),
        _ALL_REFUSED,
        "X.detach()",
    ),
    InputType(
        "sparse PyTorch tensor",
        (lambda a: _module("torch").asarray(a).to_sparse(),),
        _ALL_REFUSED,
        "X.to_dense()",
    ),
    InputType(
        "JAX array", (lambda a: _module("jax.numpy").asarray(a),), _ALL_REFUSED, "numpy.asarray(X)"
    ),
    InputType(
        "Dask array or DataFrame",
        (lambda a: _module("dask.array").from_array(a), _dask_frame),
        _ALL_REFUSED,
        "gpucenters.dask.fit",
    ),
    InputType(
        "polars LazyFrame",
        (lambda a: _module("polars").DataFrame(a).lazy(),),
        _ALL_REFUSED,
        "X.collect()",
    ),
    InputType(
        "array of `sparse`",
        (lambda a: _module("sparse").COO(a),),
        _ALL_REFUSED,
        "X.to_scipy_sparse()",
    ),
)


def table() -> str:
    """The rows as Markdown."""
    lines = [f"| X | {' | '.join(COLUMNS)} |", "| --- |" + " --- |" * len(COLUMNS)]
    for row in TYPES:
        name = f"{row.name} (instead: `{row.instead}`)" if row.instead else row.name
        lines.append(f"| {name} | {' | '.join(row.outcomes)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
