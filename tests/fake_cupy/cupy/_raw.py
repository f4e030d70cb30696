"""`RawModule`: kernels by their names, each played by NumPy.

That the CUDA C++ does the same is tested beside it, by compiling it as C++.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from cupy._fake import ledger, memory, streams
from cupy._fake.counting import counter
from cupy._ndarray import ndarray


class _Product(threading.local):
    """The type of a product that is added: NVRTC fuses the two unless `-fmad=false` is given."""

    type: Any = np.float64


_product = _Product()


def add_class_sums(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    lines: int,
    first_line: int,
    stored: int,
    by_row: int,
    codes: np.ndarray,
    weights: Any,
    square_factors: Any,
    width: int,
    total: np.ndarray,
    square: Any,
    energy: Any,
    slots: int,
) -> None:
    line = first_line + np.repeat(np.arange(lines), np.diff(indptr[: lines + 1]))
    minor = indices[:stored].astype(np.int64)
    row, column = (line, minor) if by_row else (minor, line)
    x = data[:stored].astype(np.float64)
    sx = x if isinstance(weights, int) else weights[row] * x
    code = codes[row].astype(np.int64)
    np.add.at(total.reshape(-1), code * width + column, sx)
    if not isinstance(square, int):
        factor = 1 if isinstance(square_factors, int) else square_factors[row]
        np.add.at(square.reshape(-1), code * width + column, sx * x * factor)
    if not isinstance(energy, int):
        slot = np.arange(stored) // 8 % slots
        added = np.zeros(energy.size, _product.type)
        np.add.at(added, code * slots + slot, sx.astype(_product.type) * x)
        energy += added.astype(np.float64).reshape(energy.shape)


def pack_lists(
    x: np.ndarray,
    row_stride: int,
    column_stride: int,
    rows: int,
    columns: int,
    codes: np.ndarray,
    classes: int,
    keys: np.ndarray,
) -> None:
    assert x.shape == (rows, columns) and x.strides == (4 * row_stride, 4 * column_stride)
    lists = np.arange(columns) * classes + codes[:, None]
    lists = np.where(codes[:, None] < 0, columns * classes, lists).astype(np.uint64)
    bits = (x + np.float32(0)).view(np.uint32)
    bits = np.where(bits >> 31, ~bits, bits | np.uint32(2**31))
    keys[...] = ((lists << np.uint64(32)) | bits).reshape(-1)


def unpack_values(keys: np.ndarray, count: int, values: np.ndarray) -> None:
    bits = keys[:count].astype(np.uint32)
    bits = np.where(bits >> 31, bits & np.uint32(2**31 - 1), ~bits)
    values[:count] = bits.view(np.float32)


def scaled_differences(
    total: np.ndarray,
    classes: int,
    width: int,
    share: np.ndarray,
    unit: np.ndarray,
    differences: np.ndarray,
) -> None:
    assert total.shape == (classes, width)
    w, s = share[:, None], total * unit[:, None]
    differences[...] = (w[:1] * s[1:] - w[1:] * s[:1]) / (w[:1] * w[1:])


def round_to_40_bits(x: np.ndarray, count: int, rounded: np.ndarray) -> None:
    assert x.size == count
    unit = np.where(x >= 2.0**1000, 2.0**60, 1.0)
    scaled = x / unit
    c = scaled * 8193.0
    d = c - scaled
    rounded[...] = np.minimum(c - d, np.finfo(np.float64).max / unit) * unit


def _items(
    values: np.ndarray,
    start: np.ndarray,
    size: np.ndarray,
    zero_at: Any,
    zero_mass: Any,
    cumulative: Any,
) -> tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray]]:
    """Two functions of the numbers of items of all lists: their values, and the weight before."""
    no_zero = isinstance(zero_at, int)
    at = size if no_zero else zero_at

    def value(item: np.ndarray) -> np.ndarray:
        position = np.clip(start + item - (item > at), 0, max(values.size - 1, 0))
        found = values[position] if values.size else np.zeros(position.shape)
        return np.where(~np.bool(no_zero) & (item == at), 0.0, found.astype(np.float64))

    def mass(item: np.ndarray) -> np.ndarray:
        stored = item - (item > at)
        found = stored
        if not isinstance(cumulative, int):
            position = np.clip(start + stored - 1, 0, max(cumulative.size - 1, 0))
            before = cumulative[position] if cumulative.size else 0 * position
            found = np.where(stored > 0, before, 0)
        return found if no_zero else found + (item > at) * zero_mass

    return value, mass


def _first(holds: Callable[[np.ndarray], np.ndarray], low: Any, high: np.ndarray) -> np.ndarray:
    """The first number from low to high for which a monotone predicate holds."""
    low, high = np.broadcast_arrays(low, high)
    while (low < high).any():
        middle = (low & high) + ((low ^ high) >> 1)  # their sum may overflow
        found = holds(middle)
        high = np.where((low < high) & found, middle, high)
        low = np.where((low < high) & ~found, middle + 1, low)
    return low


def class_intervals(*arguments: Any) -> None:
    *lists, classes, columns, least, most, low, high = arguments
    size = lists[2]
    assert size.shape == low.shape == (classes, columns)
    value, mass = _items(*lists)
    least, most = (bound.reshape(-1, 1) for bound in (least, most))
    first = _first(lambda i: 2 * mass(i + 1) >= least, np.zeros_like(size), size - 1)
    low[...] = high[...] = value(first)
    more = (first + 1 < size) & (2 * mass(first + 1) <= most)
    high[more] = value(first + 1)[more]


def joint_intervals(*arguments: Any) -> None:
    *lists, classes, columns, factor, bounds, scratch, low, high = arguments
    size = lists[2]
    assert size.shape == (classes, columns)
    assert low.shape == high.shape == (columns,) and scratch.shape == (3, classes, columns)
    value, mass = _items(*lists)
    factor = factor.reshape(-1, 1)

    def above(at: np.ndarray) -> np.ndarray:
        return _first(lambda i: value(i) > at, np.zeros_like(size), size)

    def share(at: np.ndarray) -> np.ndarray:
        return (mass(above(at)).astype(factor.dtype) * factor).sum(axis=0)

    def number(x: np.ndarray) -> np.ndarray:
        bits = x.view(np.int64)
        return np.where(bits < 0, -(bits & np.int64(2**63 - 1)), bits)

    def back(n: np.ndarray) -> np.ndarray:
        return np.where(n < 0, -1.0, 1.0) * np.abs(n).view(np.float64)

    step = 2**29 if lists[0].itemsize == 4 else 1
    found = back(
        step
        * _first(
            lambda n: share(back(n * step)) >= bounds[0], number(low) // step, number(high) // step
        )
    )
    low[...] = high[...] = found
    item = above(found)
    following = np.where(item < size, value(item), np.inf).min(axis=0)
    more = (share(found) <= bounds[1]) & np.isfinite(following)
    high[more] = following[more]


def distance_sums(
    values: np.ndarray,
    start: np.ndarray,
    stored: np.ndarray,
    weights: Any,
    lists: int,
    lanes: int,
    center: np.ndarray,
    other: Any,
    sums: np.ndarray,
) -> None:
    assert start.size == stored.size == center.size == lists and sums.size == lists * lanes
    counts, out = stored.reshape(-1), np.zeros((lanes, lists))
    for first in range(0, lists, 1024):  # of all lists at once the temporaries would be large
        some = slice(first, first + 1024)
        of = np.repeat(np.arange(counts.size)[some], counts[some])
        begins = np.cumsum(counts[some]) - counts[some]
        within = np.arange(of.size) - np.repeat(begins, counts[some])
        position = start.reshape(-1)[of] + within
        origin = center.reshape(-1)[of]
        terms = values[position].astype(np.float64) - origin
        if isinstance(other, int):
            terms = abs(terms)
        else:
            towards = other.reshape(-1)[of] - origin
            terms = 0.5 * towards - np.clip(terms, np.minimum(towards, 0), np.maximum(towards, 0))
        if not isinstance(weights, int):
            terms = terms * weights[position]
        np.add.at(out, (within % lanes, of), terms)
    sums[...] = out.reshape(sums.shape)


KERNELS: dict[str, Callable[..., None]] = {
    f.__name__: f
    for f in (
        *(add_class_sums, pack_lists, unpack_values, scaled_differences, round_to_40_bits),
        *(class_intervals, joint_intervals, distance_sums),
    )
}


# What each kernel costs, from its arguments: see `cupy._fake.ledger.Call`.


def _cost_of_class_sums(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    lines: int,
    first_line: int,
    stored: int,
    by_row: int,
    codes: np.ndarray,
    weights: Any,
    square_factors: Any,
    width: int,
    total: np.ndarray,
    square: Any,
    energy: Any,
    slots: int,
) -> dict[str, Any]:
    counts = np.diff(indptr[: lines + 1])
    line = np.repeat(np.arange(lines), counts)
    minor = indices[:stored].astype(np.int64)
    row, column = (line + first_line, minor) if by_row else (minor, line + first_line)
    key = codes[row] * width + column
    # A thread adds up neighbours of one sum, among its eight entries.
    once = np.concatenate([[True], key[1:] != key[:-1]])[:stored] | (np.arange(stored) % 8 == 0)
    additions, hottest = int(once.sum()), int(np.bincount(key[once], minlength=1).max())
    targets = 1 + (not isinstance(square, int))
    per_row = [a for a in (codes, weights, square_factors) if not isinstance(a, int)]
    return {
        "read": sum(a.nbytes for a in (data[:stored], indices[:stored], indptr))
        + (sum(a.nbytes for a in per_row) if by_row else 0),
        "random": 2 * targets * additions + (0 if by_row else len(per_row) * stored),
        "span": total.nbytes,
        "hottest": hottest,
        "serial": lines.bit_length() * (1 + int((counts == 0).any())),
    }


def _cost_of_unpacking(keys: np.ndarray, count: int, values: np.ndarray) -> dict[str, Any]:
    return {"read": 8 * count, "written": 4 * count}


def _cost_of_intervals(*arguments: Any) -> dict[str, Any]:
    """A bisection is a chain of accesses; for a joint median, one in each list."""
    (values, _, size), (low, high) = arguments[:3], arguments[-2:]
    depth, chain = int(size.max(initial=0)).bit_length(), 1
    steps = depth
    if low.ndim == 1:
        steps, chain = depth * (depth + 1) // 2 + 2 * 8 * values.itemsize, size.shape[0]
    costs = {"written": low.nbytes + high.nbytes, "random": size.size * steps}
    return costs | {"span": values.nbytes, "serial": chain * steps}


def _cost_by_element(*arguments: Any) -> dict[str, Any]:
    arrays = [a for a in arguments if isinstance(a, np.ndarray)]
    return {"read": sum(a.nbytes for a in arrays[:-1]), "written": arrays[-1].nbytes}


def _cost_of_distances(values: np.ndarray, *others: Any) -> dict[str, Any]:
    read = [values, *(a for a in others[:-1] if isinstance(a, np.ndarray))]
    return {"read": sum(a.nbytes for a in read), "written": others[-1].nbytes}


COSTS: dict[str, Callable[..., dict[str, Any]]] = {
    "class_intervals": _cost_of_intervals,
    "joint_intervals": _cost_of_intervals,
    "distance_sums": _cost_of_distances,
    "scaled_differences": _cost_by_element,
    "round_to_40_bits": _cost_by_element,
    "add_class_sums": _cost_of_class_sums,
    "pack_lists": _cost_by_element,
    "unpack_values": _cost_of_unpacking,
}


class RawModule:
    def __init__(self, *, code: str, options: tuple[str, ...] = ()) -> None:
        self.code = code
        self.options = options

    def get_function(self, name: str) -> Callable[..., None]:
        if f" {name}(" not in self.code:
            raise RuntimeError(f"named symbol not found: {name}")

        def kernel(grid: tuple[int, ...], block: tuple[int, ...], args: tuple[Any, ...]) -> None:
            assert all(isinstance(size, int) and size > 0 for size in (*grid, *block))
            memory.take_outside("module")
            streams.note("launch", name)
            plain: list[Any] = []
            for a in args:
                if isinstance(a, ndarray):
                    a._use()
                    # A kernel sees where an array begins, and nothing of its strides.
                    strided = name == "pack_lists" and not plain
                    assert strided or a._host.flags.c_contiguous, f"{name}: a strided array"
                    plain.append(a._host)
                else:
                    assert type(a) is int, f"{name} takes arrays and integers, got {a!r}"
                    plain.append(a)
            _product.type = np.float64 if "-fmad=false" in self.options else np.longdouble
            with np.errstate(all="ignore"):
                KERNELS[name](*plain)
            counter.launches += 1
            if ledger.calls is not None:
                kernel = "RawModule", self.code, self.options
                ledger.note(name, kernel=kernel, **COSTS[name](*plain))

        return kernel
