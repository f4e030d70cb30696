"""Counts for tests on the device, and the mark of tests that only the stand-in can run."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import cupy

STAND_IN = hasattr(cupy, "_fake")
on_stand_in = pytest.mark.skipif(
    not STAND_IN, reason="only the stand-in counts waits and records actions"
)


def counts(n: int, m: int, classes: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.4, (n, m)).astype(np.float32)
    y = rng.permutation(np.arange(n) % classes)
    X[y == 0, :2] += 3
    return X, y
