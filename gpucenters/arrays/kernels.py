"""CUDA kernels of our own (``kernels.cu``), for CuPy arrays alone."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from . import cuda
from .typing import NumPyOrCuPy as Array

_BLOCK_THREADS = 256  # in a block
_ENTRIES_PER_THREAD = 8  # entries that a thread of add_class_sums takes: RUN in kernels.cu
SLOTS = 256  # accumulators that the threads share for one sum over all features
#: No fused multiply-add, so that sums are those of the kernels compiled as C++.
FLAGS = ("-fmad=false",)
_INDEX = {"int32": "int", "int64": "long long"}
_VALUE = {"float32": "float", "float64": "double", "bool": "unsigned char"}


def source(name: str = "kernels.cu") -> str:
    """The CUDA C++ of a file of kernels, behind what both share."""
    return "".join(files(__package__).joinpath(n).read_text() for n in ("widen.cu", name))


def type_options() -> list[tuple[str, str]]:
    """The compiler's options for each pair of index and value types."""
    return [_options(index, value) for index in _INDEX for value in _VALUE]


def _options(index: str, value: str) -> tuple[str, str]:
    return f"-DINDEX={_INDEX[index]}", f"-DVALUE={_VALUE[value]}"


@cache
def _kernel(name: str, index: str = "int32", value: str = "float32") -> Any:
    module = cuda.require().RawModule(code=source(), options=(*_options(index, value), *FLAGS))
    return module.get_function(name)


def launch(kernel: Any, threads: int, arguments: tuple[Any, ...]) -> None:
    """Start a kernel on so many threads, if any."""
    if threads > 0:
        kernel((-(-threads // _BLOCK_THREADS),), (_BLOCK_THREADS,), arguments)


def add_class_sums(
    values: Array,
    indices: Array,
    offsets: Array,
    first: int,
    by_row: bool,
    codes: Array,
    weights: Array | None,
    square_factors: Array | None,
    total: Array,
    square: Array | None,
    sum_of_squares: Array | None,
) -> None:
    """Add the class sums of stored entries, in place and without waiting.

    Parameters
    ----------
    values : array of shape (e,), float32, float64 or bool
    indices : array of shape (e,), int32 or int64
        Columns (CSR) or rows (CSC).
    offsets : array of shape (r + 1,), of the type of ``indices``
        Where the entries of each row (column) begin, from 0 to e.
    first : int
        The first of these rows (columns).
    by_row : bool
        CSR rather than CSC.
    codes : array of shape (n,), int32
    weights, square_factors : arrays of shape (n,), float64, or None
    total, square : arrays of shape (K, m), float64; square may be None
    sum_of_squares : array of shape (K, SLOTS), float64, or None
        To be summed over its second axis.
    """
    stored = values.shape[0]
    offsets = offsets.astype(indices.dtype, copy=False)
    kernel = _kernel("add_class_sums", indices.dtype.name, values.dtype.name)
    arguments = (
        *(values, indices, offsets, offsets.shape[0] - 1, first, stored, int(by_row), codes),
        *(0 if a is None else a for a in (weights, square_factors)),
        *(total.shape[1], total),
        *(0 if square is None else square, 0 if sum_of_squares is None else sum_of_squares, SLOTS),
    )
    launch(kernel, -(-stored // _ENTRIES_PER_THREAD), arguments)


def pack_lists(chunk: Array, codes: Array, n_classes: int) -> Array:
    """Keys that sort a chunk's values by column, class and value: uint64, (n * b,).

    Parameters
    ----------
    chunk : array of shape (n, b), float32
        Of any strides.
    codes : array of shape (n,), int32
        Classes; rows with a negative one come last of all.
    n_classes : int
        K; K times b is below 2**32.
    """
    n, b = chunk.shape
    keys = cuda.require().empty(n * b, dtype="uint64")
    row_stride, column_stride = (s // chunk.itemsize for s in chunk.strides)
    arguments = (chunk, row_stride, column_stride, n, b, codes, n_classes, keys)
    launch(_kernel("pack_lists"), n * b, arguments)
    return keys


def unpack_values(keys: Array) -> Array:
    """The float32 values of sorted keys."""
    values = cuda.require().empty(keys.shape[0], dtype="float32")
    launch(_kernel("unpack_values"), keys.shape[0], (keys, keys.shape[0], values))
    return values


def scaled_differences(total: Array, share: Array, unit: Array) -> Array:
    """See `functions.scaled_differences`: float64, (K - 1, d)."""
    xp, (k, d) = cuda.require(), total.shape
    out = xp.empty((k - 1, d), dtype="float64")
    arguments = xp.ascontiguousarray(total), k, d, share, unit, out
    launch(_kernel("scaled_differences"), d, arguments)
    return out


def round_to_40_bits(x: Array) -> Array:
    """See `functions.round_to_40_bits`: float64, of the shape of ``x``."""
    xp = cuda.require()
    out = xp.empty(x.shape, dtype="float64")
    launch(_kernel("round_to_40_bits"), x.size, (xp.ascontiguousarray(x), x.size, out))
    return out
