"""What users may meet on a device: too little memory, interrupts, other threads; and its speeds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
import scipy.sparse

from ... import (
    L1CenterClassifier,
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    SparseBernoulliNB,
    SparseMultinomialNB,
)
from ...arrays import cuda
from .device import Outcome, cuda_device, on_device

_BUDGET = "1MB"
_POOL = 64 * 2**20  # bytes that are left when memory is made to run out
DENSE = 20_000, 2_000
SPARSE = 400_000, 100_000, 20  # rows, columns, stored values of a row
WIDE = 200_000, 10_000_000, 20  # so many columns that the work on their sums is most of a fit
_ROUNDS = 4


def _data(n: int = 300, m: int = 200) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    y = np.arange(n) % 2
    X = rng.poisson(1.0, (n, m)).astype(np.float32)
    X[y == 1, :5] += 2
    return X, y


def check_bad_input(device: str) -> Outcome:
    """Whether bad input gets the error that it gets on the CPU."""
    outcome = Outcome(note=f"{len(_BAD)} kinds")
    for name, fails in _BAD.items():
        expected = _error(fails, "cpu", lambda X: X)
        for how, place in _places(device):
            found = _error(fails, device, place)
            if found is None or _named(found) != _named(expected):
                outcome.differences.append(f"{name}, {how}: {_named(found)} for {_named(expected)}")
    outcome.differences += _works(device)
    return outcome


Place = Callable[[Any], Any]


def _places(device: str) -> Iterator[tuple[str, Place]]:
    yield "from the host", lambda X: X
    if device != "cpu":
        yield "on the device", lambda X: on_device(X, device)


def _fit(model: Any, X: Any, device: str, place: Place, y: Any = None) -> None:
    labels = _data()[1] if y is None else y
    model.set_params(device=device).fit(place(X), labels)


def _with(value: float) -> np.ndarray:
    X = _data()[0]
    X[17, 11] = value
    return X


def _damaged() -> Any:
    X = scipy.sparse.csr_array(_data()[0])
    X.indices[100] = 10_000
    return X


_BAD: dict[str, Callable[[str, Place], Any]] = {
    "NaN": lambda device, place: _fit(L2CenterClassifier(), _with(np.nan), device, place),
    "NaN for l1": lambda device, place: _fit(L1CenterClassifier(), _with(np.nan), device, place),
    "infinity": lambda device, place: _fit(
        L2CenterClassifier(), scipy.sparse.csr_array(_with(np.inf)), device, place
    ),
    "negative counts": lambda device, place: _fit(SparseMultinomialNB(), _with(-1), device, place),
    "a damaged matrix": lambda device, place: _fit(L2CenterClassifier(), _damaged(), device, place),
    "one class": lambda device, place: _fit(
        L2CenterClassifier(), _data()[0], device, place, np.zeros(300)
    ),
    "too few labels": lambda device, place: _fit(
        L2CenterClassifier(), _data()[0], device, place, np.arange(299) % 2
    ),
    "k of 0": lambda device, place: _fit(L2CenterClassifier(k=0), _data()[0], device, place),
}


def _error(fails: Callable[[str, Place], Any], device: str, place: Place) -> Exception | None:
    try:
        fails(device, place)
    except Exception as error:
        return error
    return None


def _named(error: Exception | None) -> str:
    return "no error" if error is None else f"{type(error).__name__}: {error}"


def _works(device: str) -> list[str]:
    """Whether the device still computes what the CPU does."""
    X, y = _data()
    expected, found = (
        L2CenterClassifier(k=5, device=where).fit(X, y).support_ for where in ("cpu", device)
    )
    return [] if np.array_equal(expected, found) else ["fits are wrong after these errors"]


def check_out_of_memory(device: str) -> Outcome:
    """Whether fits in little memory are those in much, or say that they do not fit."""
    X, y = _data(6_000, 3_000)
    outcome = Outcome(note=f"{X.nbytes / 1e6:.0f} MB with a budget of {_BUDGET}")
    if device != "cpu":
        outcome.note += f", and with {_POOL / 2**20:.0f} MiB left on the device"
    for kind in (L2CenterClassifier, L1CenterClassifier, SparseMultinomialNB):
        expected = kind(k=20, device="cpu").fit(X, y).support_
        tries: list[tuple[str, str | None, AbstractContextManager[None]]]
        tries = [("a small budget", _BUDGET, nullcontext())]
        tries += [] if device == "cpu" else [("little memory", None, _little_memory(device))]
        for name, budget, place in tries:
            with place:
                try:
                    found = kind(k=20, device=device, memory_budget=budget).fit(X, y).support_
                except MemoryError:
                    continue
            if not np.array_equal(found, expected):
                outcome.differences.append(f"{kind.__name__}, {name}: other features")
    too_large = MahalanobisCenterClassifier(device=device, memory_budget=_BUDGET)
    error = _error(lambda *_: too_large.fit(X, y), device, lambda X: X)
    if not isinstance(error, MemoryError):
        outcome.differences.append(f"{_named(error)} for matrices that do not fit")
    outcome.differences += _works(device)
    return outcome


@contextmanager
def _little_memory(device: str) -> Iterator[None]:
    """CuPy's pool with a limit."""
    with cuda_device(device):
        pool = cuda.require().get_default_memory_pool()
        before = pool.get_limit()
        pool.free_all_blocks()
        pool.set_limit(size=pool.used_bytes() + _POOL)
    try:
        yield
    finally:
        pool.set_limit(size=before)


# Fits beside the bare operations that bound them.


def check_dense_speed(device: str) -> Outcome:
    """Dense float32 data, beside a copy and a sort."""
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
        "sort of a quarter as many 64-bit keys": lambda: keys.copy().sort(),
        "l2 fit": lambda: L2CenterClassifier().fit(there, y),
        "l1 fit": lambda: L1CenterClassifier().fit(there, y),
    }
    if device != "cpu":
        rows |= _uploads(X, y, device)
    return _timed(f"{n:,} x {m:,} dense float32", rows, X.nbytes, device)


def check_sparse_speed(shape: tuple[int, int, int], device: str) -> Outcome:
    """CSR data, beside a copy and the bare product that sums classes."""
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
