"""Stacking, and a few matrices out of nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cupy
import numpy as np
import scipy.sparse as sp
from cupyx.scipy.sparse import _classes
from cupyx.scipy.sparse._base import issparse, sparray


def _stack(function: Callable[..., Any], blocks: Any, format: Any, dtype: Any) -> Any:
    for block in blocks:
        if not issparse(block):
            raise TypeError(f"Unsupported type {type(block)}")
    kind = "array" if any(isinstance(b, sparray) for b in blocks) else "matrix"
    host = function([b._scipy() for b in blocks], format=format or blocks[0].format, dtype=dtype)
    return _classes.find(host.format, kind)._from_scipy(host)


def hstack(blocks: Any, format: str | None = None, dtype: Any = None) -> Any:
    return _stack(sp.hstack, blocks, format, dtype)


def vstack(blocks: Any, format: str | None = None, dtype: Any = None) -> Any:
    return _stack(sp.vstack, blocks, format, dtype)


def eye(m: int, n: int | None = None, k: int = 0, dtype: Any = "d", format: Any = None) -> Any:
    host = sp.eye_array(m, n, k=k, dtype=dtype, format=format or "csr")
    return _classes.find(host.format, "matrix")._from_scipy(host)


def identity(n: int, dtype: Any = "d", format: str | None = None) -> Any:
    return eye(n, dtype=dtype, format=format)


def diags(
    diagonals: Any, offsets: Any = 0, shape: Any = None, format: Any = None, dtype: Any = None
) -> Any:
    if isinstance(diagonals, cupy.ndarray):
        diagonals = diagonals._host
    else:
        diagonals = [d._host if isinstance(d, cupy.ndarray) else d for d in diagonals]
    host = sp.diags_array(diagonals, offsets=offsets, shape=shape, dtype=dtype)
    return _classes.find(format or "csr", "matrix")._from_scipy(host)


def random(
    m: int,
    n: int,
    density: float = 0.01,
    format: str = "coo",
    dtype: Any = None,
    random_state: Any = None,
    data_rvs: Any = None,
) -> Any:
    seed = np.random.default_rng(random_state)
    host = sp.random_array((m, n), density=density, format=format, rng=seed)
    return _classes.find(format, "matrix")._from_scipy(host.astype(dtype or float))
