"""The screen of sparse multinomial naive Bayes leaves the selection as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from multinomial_sums import solved
from strategies import quietly

from gpucenters.arrays import schedule
from gpucenters.arrays.backend import HOST
from gpucenters.arrays.context import Context
from gpucenters.solvers import multinomial_nb, support_search
from gpucenters.solvers.divergence import divergence

rng = np.random.default_rng(0)


def _host(x: Any, backend: Any) -> np.ndarray:
    return np.asarray(backend.host(x))


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("k", [1, 10, 40, 400])
def test_screening_changes_nothing(
    k: int, classes: int, backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(k)
    rates = np.exp(rng.normal(0, 2, 3000)) * np.exp(rng.normal(0, 0.3, (classes, 3000)))
    total = backend.array(rng.poisson(rates).astype(float))
    where = multinomial_nb(total[:, :2], range(classes)).backend
    whole = quietly(solved(total, 1.0, where).select, k)
    looks = []
    above = support_search.Screen.above
    monkeypatch.setattr(support_search, "_ALL_BELOW", 1)
    monkeypatch.setattr(support_search, "_THRESHOLD_SAMPLE", 100)
    monkeypatch.setattr(schedule, "CPU_CHUNK", 256)
    monkeypatch.setattr(schedule, "CUDA_CHUNK", 256)

    def counted(self: Any, *arguments: Any) -> Any:
        found = above(self, *arguments)
        looks.append(int(found[0].shape[0]))
        return found

    monkeypatch.setattr(support_search.Screen, "above", counted)
    screened = quietly(solved(total, 1.0, where).select, k)
    assert max(looks) < 1500
    assert screened.p == pytest.approx(whole.p, rel=1e-9)
    assert screened.value + screened.gap == pytest.approx(whole.value + whole.gap, rel=1e-12)
    assert screened.value == pytest.approx(whole.value, rel=1e-12)
    if k > 1:
        assert _host(screened.support, backend).tolist() == _host(whole.support, backend).tolist()


def test_the_screen_keeps_all_features_above_the_threshold() -> None:
    rng = np.random.default_rng(0)
    total = rng.poisson(np.exp(rng.normal(0, 2, 500)), (3, 500)).astype(float)
    p = [0.6, 0.3, 0.1]
    h = divergence(total + 0.1, p)
    for threshold in np.quantile(h, [0.1, 0.5, 0.9, 0.99]):
        columns, found = support_search.Screen(total, 0.1, Context.of(HOST)).above(p, threshold)
        np.testing.assert_array_equal(columns, np.flatnonzero(h >= threshold))
        np.testing.assert_array_equal(found, h[columns])
