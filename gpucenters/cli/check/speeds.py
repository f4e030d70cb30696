"""Fits beside the bare operations that bound them."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import scipy.sparse

from gpucenters import L1CenterClassifier, L2CenterClassifier, SparseBernoulliNB

from ...arrays import cuda
from .device import Outcome, cuda_device, on_device

DENSE = 20_000, 2_000
SPARSE = 400_000, 100_000, 20  # rows, columns, stored values of a row
WIDE = 200_000, 10_000_000, 20
_ROUNDS = 4


def check_dense_speed(device: str) -> Outcome:
    """Dense float32 data, beside a copy and a sort.

    Parameters
    ----------
    device : str
    """
    n, m = DENSE
    X = np.random.default_rng(0).random((n, m), dtype=np.float32)
    y = np.arange(n) % 2
    keys = np.random.default_rng(1).integers(0, 2**63, n * m // 4, dtype=np.uint64)
    if device != "cpu":
        there, keys = on_device(X, device), on_device(keys, device)
    else:
        there = X
    rows = {
        "copy of X": there.copy,
        "sort of a quarter as many 64-bit keys": lambda: _sorted(keys),
        "l2 fit": lambda: L2CenterClassifier().fit(there, y),
        "l1 fit": lambda: L1CenterClassifier().fit(there, y),
    }
    if device != "cpu":
        rows |= _uploads(X, y, device)
    return _timed(f"{n:,} x {m:,} dense float32", rows, X.nbytes, device)


def check_sparse_speed(device: str) -> Outcome:
    """CSR data, beside a copy and the bare product that sums classes.

    Parameters
    ----------
    device : str
    """
    return _sparse_speed(SPARSE, device)


def check_wide_speed(device: str) -> Outcome:
    """CSR data of so many columns that the work on sums of features is most of a fit.

    Parameters
    ----------
    device : str
    """
    return _sparse_speed(WIDE, device)


def _sparse_speed(shape: tuple[int, int, int], device: str) -> Outcome:
    n, m, stored = shape
    rng = np.random.default_rng(0)
    indices = np.minimum(m * rng.random((n, stored)) ** 3, m - 1).astype(np.int32)
    indices.sort(axis=1)
    indptr = np.arange(0, n * stored + 1, stored, dtype=np.int32)
    values = np.ones(n * stored, dtype=np.float32)
    X = scipy.sparse.csr_array((values, indices.ravel(), indptr), shape=(n, m))
    y = np.arange(n) % 2
    there = X if device == "cpu" else on_device(X, device)
    indicator = np.eye(2, dtype=np.float32)[y]
    weights = indicator if device == "cpu" else on_device(indicator, device)
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    rows = {
        "copy of X": there.copy,
        "product of X with two class indicators": lambda: there.T @ weights,
        "l2 fit": lambda: L2CenterClassifier().fit(there, y),
        "Bernoulli fit": lambda: SparseBernoulliNB().fit(there, y),
    }
    if device != "cpu":
        rows |= {"l2 fit from the host": lambda: L2CenterClassifier(device=device).fit(X, y)}
    return _timed(f"{n:,} x {m:,} CSR, {stored} values a row", rows, size, device)


def _sorted(keys: Any) -> None:
    keys.copy().sort()


def _uploads(X: np.ndarray, y: np.ndarray, device: str) -> dict[str, Callable[[], Any]]:
    import cupyx

    cupy = cuda.require()
    with cuda_device(device):
        target = cupy.empty(X.shape, dtype=X.dtype)
    pinned = cupyx.empty_pinned(X.shape, X.dtype)
    pinned[...] = X
    return {
        "upload of X, pinned": lambda: target.set(pinned),
        "l2 fit from the host": lambda: L2CenterClassifier(device=device).fit(X, y),
    }


def _timed(data: str, rows: dict[str, Callable[[], Any]], size: int, device: str) -> Outcome:
    """The least time of each row, round by round; the first round warms up."""
    place: Any = nullcontext() if device == "cpu" else cuda_device(device)
    wait = place.synchronize if device != "cpu" else lambda: None
    best = dict.fromkeys(rows, float("inf"))
    for number in range(_ROUNDS):
        for name, work in rows.items():
            start = time.perf_counter()
            with place:
                work()
                wait()
            if number:
                best[name] = min(best[name], time.perf_counter() - start)
    figures = {
        name: {"ms": 1e3 * seconds, "gb_s": size / seconds / 1e9} for name, seconds in best.items()
    }
    return Outcome(note=data, figures={"data": data, "bytes": size, "rows": figures})
