"""Peak memory against ``memory_budget``, and fits that the address space does not suffice for."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from strategies import quietly

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    SparseBernoulliNB,
    SparseMultinomialNB,
)

from .report import Report

PROBLEMS, CHUNK, LIMIT = 10, 1, 300  # each in a process of its own
MODELS = [
    L2CenterClassifier(100),
    SparseBernoulliNB(100),
    SparseMultinomialNB(100),
    L2CenterClassifier(100, scale="std"),
    L1CenterClassifier(100),
]
BUDGET, SLACK = 20_000_000, 100_000_000


def _status(name: str) -> int:
    """A number of bytes in /proc/self/status."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    raise OSError(name)


def _counts(rng: np.random.Generator, n: int, m: int) -> sp.csr_array:
    """20 counts a row."""
    columns = np.sort(rng.integers(0, m, (n, 20)), axis=1).astype(np.int32).ravel()
    values = rng.integers(1, 4, columns.size).astype(np.float32)
    X = sp.csr_array((values, columns, np.arange(n + 1, dtype=np.int32) * 20), shape=(n, m))
    X.sum_duplicates()
    return X


def attack(rng: np.random.Generator, report: Report) -> None:
    K, m = [(500, 131_072), (500, 131_072), (50, 1_000_000), (2, 4_000_000)][rng.integers(4)]
    X, y = _counts(rng, 5000, m), np.arange(5000) % K
    model = clone(MODELS[rng.integers(5)]).set_params(memory_budget=BUDGET)
    if rng.random() < 0.3:
        X = X.tocsc()
    sums = K * m * 8 * (2 if model.get_params().get("scale") else 1)
    quietly(clone(model).fit, X[:1000, :100], y[:1000]).predict(X[:10, :100])  # loads what is lazy
    text = f"# {model!r}: {K} classes, {m:,} features, {type(X).__name__}, budget 20 MB"
    if rng.random() < 0.5:
        _peak(model, X, y, sums, text, report)
    else:
        _limited(rng, model, X, y, sums, text, report)


def _peak(model: Any, X: Any, y: Any, sums: int, text: str, report: Report) -> None:
    """At most the class sums, some vectors, the budget and 100 MB."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = _status("VmRSS")
    quietly(model.fit, X, y)
    model.predict(X[:1000])
    peak = _status("VmHWM") - before
    report.count("peaks")
    report.count(f"MB above the sums, {type(model).__name__}", max(0, (peak - sums) // 10**6))
    vectors = 10 * 8 * X.shape[1]  # gains, their keys, the order and the like
    if peak > sums + vectors + BUDGET + SLACK:
        report.fail("peak", text, f"# peak {peak / 1e6:.0f} MB, sums {sums / 1e6:.0f} MB")


def _limited(
    rng: np.random.Generator, model: Any, X: Any, y: Any, sums: int, text: str, report: Report
) -> None:
    """A result or a clear error, and a model that can be used afterwards."""
    room = int(sums * rng.choice([0, 0.3, 0.7, 1, 1.5, 2, 3])) + int(rng.integers(0, 50_000_000))
    limit = _status("VmSize") + room
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    try:
        quietly(model.fit, X, y).predict(X[:1000])
        report.count("fits in little memory")
    except (MemoryError, ValueError) as error:
        report.count(f"{type(error).__name__} in little memory")
    except Exception as error:
        report.fail(f"unclear {type(error).__name__}", text, f"# room {room}: {error!r}")
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    small = X[:1000, :100]
    found = quietly(clone(model).fit, small, y[:1000] % 2).scores_
    fresh = quietly(clone(model).fit, small, y[:1000] % 2).scores_
    if not np.array_equal(found, fresh):
        report.fail("a fit after one without memory differs", text)
