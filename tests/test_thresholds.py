"""Counts of the numbers that reach each of some thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpucenters.arrays.sorting import Thresholds


@pytest.mark.parametrize("m", [1, 2, 3, 200])
def test_counts_are_those_of_comparisons(m: int, backend: Any) -> None:
    rng = np.random.default_rng(m)
    for spread, low in ((0.01, 0.0), (3, 0.3), (200, 0.3)):
        ascending = np.sort(np.exp(spread * rng.uniform(-3, 3, m)) * (rng.random(m) >= low))
        x = np.exp(spread * rng.uniform(-3, 3, 500)) * (rng.random(500) > 0.2)
        near = [ascending, np.nextafter(ascending, np.inf), np.nextafter(ascending, -np.inf)]
        x = np.abs(np.concatenate([x, *near, [0.0, -0.0, 1e300]]))
        found = Thresholds(backend.array(ascending)).count(backend.array(x))
        np.testing.assert_array_equal(backend.host(found), (x >= ascending[:, None]).sum(axis=1))
    equal = Thresholds(backend.array(np.zeros(5))).count(backend.array(np.asarray([0.0, 1.0])))
    np.testing.assert_array_equal(backend.host(equal), [2] * 5)
