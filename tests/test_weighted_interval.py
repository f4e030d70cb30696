"""Where weights reach half, against a sort of all values: also where the sample misleads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import BACKENDS

from gpucenters.reductions import dense_sorting as module
from gpucenters.reductions.dense_sorting import weighted_interval

N = 1000  # so many that the bounds come from a sample


def _expected(x: np.ndarray, w: np.ndarray, half: int) -> tuple[float, float]:
    order = np.argsort(x)
    values = np.unique(x)
    upto = np.cumsum(w[order])[np.searchsorted(x[order], values, side="right") - 1]
    at = int(np.argmax(upto >= half))
    return values[at], values[at + 1] if upto[at] == half else values[at]


def _lines(rng: Any) -> np.ndarray:
    """Lines that are plain, of few values, tied at the middle, tied in part, and misleading."""
    few, near = rng.integers(0, 3, N), np.where(rng.random(N) < 0.49, 0.0, rng.random(N))
    tied = np.where(rng.random(N) < 0.8, 0.0, rng.normal(size=N))
    halves = np.repeat([1.0, 2.0], N // 2)  # exactly half
    misleading = np.arange(N, dtype=float)
    misleading[5::10] = -1e6 - np.arange(N // 10)  # what the sample takes
    return np.stack([rng.normal(size=N), few, near, tied, halves, misleading, rng.permutation(N)])


@pytest.mark.parametrize("name", ["numpy", "array_api_strict"])
@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("weights", ["one", "integers", "by line"])
def test_the_ends_are_those_of_a_full_sort(
    name: str, kind: str, weights: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, backend = np.random.default_rng(0), BACKENDS[name]
    table = _lines(rng).astype(kind)
    size = (len(table) if weights == "by line" else 1, N)
    w = np.ones(size, np.int64) if weights == "one" else rng.integers(1, 4, size)
    w[:, 0] += w.sum(axis=1) % 2
    tries = []
    between = module._between
    monkeypatch.setattr(module, "_between", lambda *a: tries.append(1) or between(*a))
    for i, line in enumerate(table):
        own = w[i : i + 1] if weights == "by line" else w
        half = int(own.sum()) // 2
        bounds = [backend.array(np.asarray([bound])) for bound in (line.min(), line.max())]
        at = backend.array(line[None, :]), backend.array(own), half, half, tuple(bounds)
        found = [float(end[0]) for end in weighted_interval(*at, 10 * N, float(w.max()))]
        assert found == list(_expected(line, own[0], half)), i
    # Not for all, so that the sample serves; but for some, so that what it misses is found too.
    assert len(table) < len(tries) < 2 * len(table)


def test_lines_together_give_what_each_gives_alone() -> None:
    table = _lines(np.random.default_rng(1))
    w, bounds = np.ones((1, N)), (table.min(axis=1), table.max(axis=1))
    alone = weighted_interval(table, w, N / 2, N / 2, bounds, 1)
    for size in (2 * N, 100 * N):
        together = weighted_interval(table, w, N / 2, N / 2, bounds, size)
        np.testing.assert_array_equal(together, alone)


def test_no_sample_is_taken_of_short_lines() -> None:
    x, w = np.asarray([[3.0, 1.0, 2.0, 2.0, 9.0]]), np.asarray([[1, 1, 1, 2, 5]])
    found = weighted_interval(x, w, 5, 5, (np.asarray([1.0]), np.asarray([9.0])), 100)
    assert [float(end[0]) for end in found] == [3.0, 9.0]


def test_values_equal_to_a_bound_are_not_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = np.tile(np.repeat([0.0, 1.0, 2.0], 100), (2, 1)), np.ones((1, 300), np.int64)
    sorted_values, in_order = [], module._in_order
    monkeypatch.setattr(
        module, "_in_order", lambda x, w: (sorted_values.append(x.shape), in_order(x, w))[1]
    )
    for low, high in ((0.0, 1.0), (1.0, 1.0), (0.0, 2.0)):
        bounds = np.full(2, low), np.full(2, high)
        ends = weighted_interval(x, w, 150, 150, bounds, 2**17)
        np.testing.assert_array_equal(ends, np.ones((2, 2)))
    assert sorted_values == [(2, 100)]  # the ones, between 0 and 2
