"""The part of `cupyx` that the library uses, over NumPy and SciPy."""

from __future__ import annotations

import contextlib as _contextlib
import threading as _threading
from collections.abc import Iterator as _Iterator
from typing import Any

import cupy as _cupy
import numpy as _np
from cupy.cuda import alloc_pinned_memory as _alloc
from cupyx import scipy

__all__ = [
    "empty_like_pinned",
    "empty_pinned",
    "errstate",
    "geterr",
    "scatter_add",
    "scatter_max",
    "scatter_min",
    "scipy",
    "seterr",
    "zeros_like_pinned",
    "zeros_pinned",
]


def empty_pinned(shape: Any, dtype: Any = float, order: Any = "C") -> _np.ndarray:
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    nbytes = int(_np.prod(shape, dtype=_np.int64)) * _np.dtype(dtype).itemsize
    # What was there before is unlike what anyone hopes to find in fresh memory.
    memory = _alloc(nbytes)
    memory[:] = b"\xa5" * nbytes
    return _np.ndarray(shape, dtype=dtype, buffer=memory, order=order)


def zeros_pinned(shape: Any, dtype: Any = float, order: Any = "C") -> _np.ndarray:
    out = empty_pinned(shape, dtype, order)
    out[...] = 0
    return out


def empty_like_pinned(a: Any, dtype: Any = None, order: str = "K", subok: None = None) -> Any:
    return empty_pinned(a.shape, dtype or a.dtype, "F" if a.flags.fnc and order in "KA" else "C")


def zeros_like_pinned(a: Any, dtype: Any = None, order: str = "K", subok: None = None) -> Any:
    out = empty_like_pinned(a, dtype, order)
    out[...] = 0
    return out


class _Config(_threading.local):
    linalg = "ignore"


_config = _Config()


def geterr() -> dict[str, Any]:
    return {"divide": None, "over": None, "under": None, "invalid": None, "linalg": _config.linalg}


def seterr(*, linalg: str | None = None, **others: Any) -> dict[str, Any]:
    before = geterr()
    if linalg not in (None, "ignore", "raise") or any(v is not None for v in others.values()):
        raise NotImplementedError
    _config.linalg = linalg or _config.linalg
    return before


@_contextlib.contextmanager
def errstate(**states: Any) -> _Iterator[None]:
    before = seterr(**states)
    try:
        yield
    finally:
        seterr(**before)


def scatter_add(a: _cupy.ndarray, slices: Any, value: Any) -> None:
    a.scatter_add(slices, value)


def scatter_max(a: _cupy.ndarray, slices: Any, value: Any) -> None:
    a.scatter_max(slices, value)


def scatter_min(a: _cupy.ndarray, slices: Any, value: Any) -> None:
    a.scatter_min(slices, value)
