"""`RawModule`: kernels by their names, each played by NumPy.

That the CUDA C++ does the same is tested beside it, by compiling it as C++.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from cupy._fake import memory, streams
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


KERNELS: dict[str, Callable[..., None]] = {
    f.__name__: f for f in (add_class_sums, pack_lists, unpack_values)
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

        return kernel
