"""`RawModule`: kernels by their names, each played by NumPy.

That the CUDA C++ does the same is tested beside it, by compiling it as C++.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from cupy._fake import devices, ledger, streams
from cupy._fake.counting import counter
from cupy._ndarray import ndarray


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
        np.add.at(energy.reshape(-1), code * slots + slot, sx * x)


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


KERNELS: dict[str, Callable[..., None]] = {
    f.__name__: f for f in (add_class_sums, pack_lists, unpack_values)
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
    hottest = int(np.bincount(key, minlength=1).max())
    targets = 1 + (not isinstance(square, int))
    per_row = [a for a in (codes, weights, square_factors) if not isinstance(a, int)]
    # (A thread steps over empty lines one by one.)
    empty = np.flatnonzero(np.diff(np.concatenate([[1], counts != 0, [1]]).astype(np.int8)))
    steps = int(np.diff(empty)[::2].max(initial=0)) if empty.size else 0
    return {
        "read": sum(a.nbytes for a in (data[:stored], indices[:stored], indptr))
        + (sum(a.nbytes for a in per_row) if by_row else 0),
        "random": 2 * targets * stored + (0 if by_row else len(per_row) * stored),
        "span": total.nbytes,
        "hottest": hottest,
        "serial": steps,
    }


def _cost_of_packing(x: np.ndarray, *others: Any) -> dict[str, Any]:
    return {"read": x.nbytes, "written": others[-1].nbytes}


def _cost_of_unpacking(keys: np.ndarray, count: int, values: np.ndarray) -> dict[str, Any]:
    return {"read": 8 * count, "written": 4 * count}


COSTS: dict[str, Callable[..., dict[str, Any]]] = {
    "add_class_sums": _cost_of_class_sums,
    "pack_lists": _cost_of_packing,
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
            streams.note("launch", name)
            plain: list[Any] = []
            for a in args:
                if isinstance(a, ndarray):
                    devices.require_current(a._device_id)
                    # A kernel sees where an array begins, and nothing of its strides.
                    strided = name == "pack_lists" and not plain
                    assert strided or a._host.flags.c_contiguous, f"{name}: a strided array"
                    plain.append(a._host)
                else:
                    assert type(a) is int, f"{name} takes arrays and integers, got {a!r}"
                    plain.append(a)
            with np.errstate(all="ignore"):
                KERNELS[name](*plain)
            counter.launches += 1
            if ledger.calls is not None:
                kernel = "RawModule", self.code, self.options
                ledger.note(name, kernel=kernel, **COSTS[name](*plain))

        return kernel
