"""CUDA kernels of our own (``kernels.cu``, and ``lists.cu`` for sorted lists), for CuPy arrays."""

from __future__ import annotations

import itertools
from functools import cache
from importlib.resources import files
from typing import Any

from . import cuda
from .typing import NumPyOrCuPy as Array

_BLOCK_THREADS = 256  # in a block
_ENTRIES_PER_THREAD = 8  # entries that a thread of add_class_sums takes: RUN in kernels.cu
_VALUES_PER_THREAD = 16  # of a list of mean length, at least
_MOST_THREADS = 32  # of one list, which read values side by side
SLOTS = 256  # accumulators that the threads share for one sum over all features
#: No fused multiply-add, so that sums are those of the kernels compiled as C++.
FLAGS = ("-fmad=false",)
_C_TYPES = {"int32": "int", "int64": "long long", "float32": "float", "float64": "double"}
_C_TYPES |= {"bool": "unsigned char"}


def source(file: str) -> str:
    """The CUDA C++ of a file of kernels, behind what both share."""
    return "".join(files(__package__).joinpath(n).read_text() for n in ("widen.cu", file))


def type_options(file: str) -> list[tuple[str, ...]]:
    """The compiler's options for all types of the arrays that the kernels of a file are given."""
    if file == "kernels.cu":
        pairs = itertools.product(("int32", "int64"), ("float32", "float64", "bool"))
        return [_options(INDEX=index, VALUE=value) for index, value in pairs]
    masses = [("int64", "int64"), ("float64", "float64"), ("int64", "float64")]
    types = itertools.product(("float32", "float64"), masses)
    return [_options(VALUE=value, MASS=mass, SHARE=share) for value, (mass, share) in types]


def _options(**types: str) -> tuple[str, ...]:
    return tuple(f"-D{name}={_C_TYPES[kind]}" for name, kind in types.items())


@cache
def _kernel(name: str, **types: str) -> Any:
    file = "lists.cu" if "MASS" in types else "kernels.cu"
    options = _options(**types or {"INDEX": "int32", "VALUE": "float32"})
    module = cuda.require().RawModule(code=source(file), options=(*options, *FLAGS))
    return module.get_function(name)


def _launch(name: str, threads: int, arguments: tuple[Any, ...], **types: str) -> None:
    """Start a kernel on so many threads, for the given types of its arrays."""
    if threads > 0:
        blocks = -(-threads // _BLOCK_THREADS)
        _kernel(name, **types)((blocks,), (_BLOCK_THREADS,), arguments)


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
    arguments = (
        *(values, indices, offsets, offsets.shape[0] - 1, first, stored, int(by_row), codes),
        *(0 if a is None else a for a in (weights, square_factors)),
        *(total.shape[1], total),
        *(0 if square is None else square, 0 if sum_of_squares is None else sum_of_squares, SLOTS),
    )
    threads = -(-stored // _ENTRIES_PER_THREAD)
    types = {"INDEX": indices.dtype.name, "VALUE": values.dtype.name}
    _launch("add_class_sums", threads, arguments, **types)


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
    _launch("pack_lists", n * b, arguments)
    return keys


def unpack_values(keys: Array) -> Array:
    """The float32 values of sorted keys."""
    values = cuda.require().empty(keys.shape[0], dtype="float32")
    _launch("unpack_values", keys.shape[0], (keys, keys.shape[0], values))
    return values


def scaled_differences(total: Array, share: Array, unit: Array) -> Array:
    """See `functions.scaled_differences`: float64, (K - 1, d)."""
    xp, (k, d) = cuda.require(), total.shape
    out = xp.empty((k - 1, d), dtype="float64")
    arguments = xp.ascontiguousarray(total), k, d, share, unit, out
    _launch("scaled_differences", d, arguments)
    return out


def round_to_40_bits(x: Array) -> Array:
    """See `functions.round_to_40_bits`: float64, of the shape of ``x``."""
    xp = cuda.require()
    out = xp.empty(x.shape, dtype="float64")
    _launch("round_to_40_bits", x.size, (xp.ascontiguousarray(x), x.size, out))
    return out


# Sorted lists: the attributes ``values``, ``start``, ``n_items``, ``zero_at``, ``zero_mass`` and
# ``cumulative`` of `SortedColumns`.


def _list_arguments(lists: Any) -> tuple[tuple[Any, ...], str]:
    """What the kernels are given of some lists, and the type of their weights."""
    masses = lists.zero_mass, lists.cumulative
    arrays = lists.values, lists.start, lists.n_items, lists.zero_at, *masses
    mass = next((a.dtype.name for a in masses if a is not None), "int64")
    return (*(0 if a is None else a for a in arrays), *lists.n_items.shape), mass


def class_intervals(lists: Any, least: Array, most: Array) -> tuple[Array, Array]:
    """Ends of the interval of medians of each list: two float64 arrays of shape (K, b).

    ``least`` and ``most``, (K, 1) and of the type of weights: twice a mass between them is half.
    """
    xp = cuda.require()
    low, high = (xp.empty(lists.n_items.shape, dtype="float64") for _ in range(2))
    arguments, mass = _list_arguments(lists)
    arguments += (*(b.astype(mass, copy=False) for b in (least, most)), low, high)
    types = {"VALUE": lists.values.dtype.name, "MASS": mass, "SHARE": mass}
    _launch("class_intervals", lists.n_items.size, arguments, **types)
    return low, high


def joint_intervals(
    lists: Any, factor: Array, least: float, most: float, low: Array, high: Array
) -> tuple[Array, Array]:
    """Ends of the interval of joint medians of each column: two float64 arrays of shape (b,).

    ``factor`` is (K, 1), the other numbers of its type: see `JointHalf`. ``low`` and ``high``
    are (b,), values between which the first end lies.
    """
    xp = cuda.require()
    low, high = (xp.array(end, dtype="float64") for end in (low, high))
    arguments, mass = _list_arguments(lists)
    share = factor.dtype.name
    scratch = xp.empty((3, *lists.n_items.shape), dtype="int64")
    arguments += (factor, xp.asarray([least, most], dtype=share), scratch, low, high)
    types = {"VALUE": lists.values.dtype.name, "MASS": mass, "SHARE": share}
    _launch("joint_intervals", low.shape[0], arguments, **types)
    return low, high


def distance_sums(
    values: Array,
    start: Array,
    stored: Array,
    weights: Array | None,
    center: Array,
    other: Array | None = None,
) -> Array:
    """Sums over the stored values x of each list of weight times a distance: (K, b), float64.

    The distance is ``|x - center|``; with ``other``, ``(|x - other| - |x - center|) / 2`` with the
    sign of ``other - center``, without cancellation. Both are float64 of shape (K, b).
    """
    xp = cuda.require()
    count = start.size
    lanes = max(1, min(_MOST_THREADS, values.shape[0] // max(1, _VALUES_PER_THREAD * count)))
    sums = xp.empty((lanes, *start.shape), dtype="float64")
    arrays = values, start, stored, 0 if weights is None else weights
    ends = xp.ascontiguousarray(center), 0 if other is None else xp.ascontiguousarray(other)
    arguments = *arrays, count, lanes, *ends, sums
    types = {"VALUE": values.dtype.name, "MASS": "int64", "SHARE": "int64"}
    _launch("distance_sums", count * lanes, arguments, **types)
    return xp.sum(sums, axis=0)
