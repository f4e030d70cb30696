"""CUDA kernels for sorted lists (``lists.cu``), for CuPy arrays alone."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any, NamedTuple

from . import cuda
from .kernels import FLAGS, launch, source
from .typing import NumPyOrCuPy as Array

_ITEMS_PER_LANE = 16  # of a list of mean length, at least
_MOST_LANES = 32  # threads of one list, which read values side by side
_VALUE = {"float32": "float", "float64": "double"}
_EXACT = {"int64": "long long", "float64": "double"}


class Lists(NamedTuple):
    """Sorted lists: those of `SortedColumns`, with these attributes.

    Attributes
    ----------
    values : array of shape (N,), float32 or float64
    start, size : arrays of int64 of shape (K, b)
    zero_at : array of int64 of shape (K, b), or None
    zero_mass : array of int64 or float64 of shape (K, b), or None
    cumulative : array of the same type of shape (N,), or None
    """

    values: Array
    start: Array
    size: Array
    zero_at: Array | None
    zero_mass: Array | None
    cumulative: Array | None

    @property
    def mass(self) -> str:
        """The type of weights."""
        known = (a.dtype.name for a in (self.cumulative, self.zero_mass) if a is not None)
        return next(known, "int64")

    def arguments(self) -> tuple[Any, ...]:
        """What a kernel is given."""
        return *(0 if a is None else a for a in self), *self.size.shape


def type_options() -> list[tuple[str, str, str]]:
    """The compiler's options for the types of values, masses and shares of masses."""
    shares = [("int64", "int64"), ("float64", "float64"), ("int64", "float64")]
    return [_options(v, *pair) for v, pair in itertools.product(_VALUE, shares)]


def _options(value: str, mass: str, share: str) -> tuple[str, str, str]:
    return f"-DVALUE={_VALUE[value]}", f"-DMASS={_EXACT[mass]}", f"-DSHARE={_EXACT[share]}"


@cache
def _kernel(name: str, value: str, mass: str = "int64", share: str = "int64") -> Any:
    options = (*_options(value, mass, share), *FLAGS)
    module = cuda.require().RawModule(code=source("lists.cu"), options=options)
    return module.get_function(name)


def class_intervals(lists: Lists, least: Array, most: Array) -> tuple[Array, Array]:
    """Ends of the interval of medians of each list: two float64 arrays of shape (K, b).

    ``least`` and ``most``, (K, 1) and of the type of weights: see `ClassHalf`.
    """
    xp = cuda.require()
    low, high = (xp.empty(lists.size.shape, dtype="float64") for _ in range(2))
    mass, threads = lists.mass, lists.size.size
    bounds = (b.astype(mass, copy=False) for b in (least, most))
    kernel = _kernel("class_intervals", lists.values.dtype.name, mass, mass)
    launch(kernel, threads, (*lists.arguments(), *bounds, low, high))
    return low, high


def joint_intervals(
    lists: Lists, factor: Array, least: float, most: float, low: Array, high: Array
) -> tuple[Array, Array]:
    """Ends of the interval of joint medians of each column: two float64 arrays of shape (b,).

    ``factor`` is (K, 1), the other numbers of its type: see `JointHalf`. ``low`` and ``high``
    are (b,), values between which the first end lies.
    """
    xp = cuda.require()
    low, high = (xp.array(end, dtype="float64") for end in (low, high))
    share = factor.dtype.name
    bounds = xp.asarray([least, most], dtype=share)
    kernel = _kernel("joint_intervals", lists.values.dtype.name, lists.mass, share)
    scratch = xp.empty((3, *lists.size.shape), dtype="int64")
    launch(kernel, low.shape[0], (*lists.arguments(), factor, bounds, scratch, low, high))
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
    lanes = max(1, min(_MOST_LANES, values.shape[0] // max(1, _ITEMS_PER_LANE * count)))
    sums = xp.empty((lanes, *start.shape), dtype="float64")
    arrays = values, start, stored, 0 if weights is None else weights
    ends = xp.ascontiguousarray(center), 0 if other is None else xp.ascontiguousarray(other)
    kernel = _kernel("distance_sums", values.dtype.name)
    launch(kernel, count * lanes, (*arrays, count, lanes, *ends, sums))
    return xp.sum(sums, axis=0)
