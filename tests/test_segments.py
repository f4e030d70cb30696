"""Sorting within segments, by each of its algorithms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpucenters.arrays import sorting


@pytest.mark.parametrize("weighted", [False, True], ids=["unit", "weighted"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [3, 500, 2**17], ids=["long", "short", "many"])
def test_each_segment_is_sorted(
    count: int, dtype: Any, weighted: bool, sparse_backend: Any
) -> None:
    rng = np.random.default_rng(0)
    n = 4000
    values = (rng.standard_normal(n) * 10.0 ** rng.integers(-37, 37, n)).astype(dtype)
    values[:50], values[50:60] = 1.5, [np.finfo(dtype).max, np.finfo(dtype).tiny] * 5
    values[60:70] = -values[50:60]
    segment = rng.integers(0, count, n)
    weights = rng.random(n) if weighted else None
    found, along = sorting.segment_sort(
        sparse_backend.array(values),
        sparse_backend.array(segment),
        count,
        None if weights is None else sparse_backend.array(weights),
    )
    order = np.lexsort([values, segment])
    assert sparse_backend.host(found).dtype == dtype
    np.testing.assert_array_equal(sparse_backend.host(found), values[order])
    if weighted:
        # Equal values may come in any order, each with its weight.
        pairs = sorted(zip(segment[order], values[order], weights[order], strict=True))
        got = zip(
            segment[order], sparse_backend.host(found), sparse_backend.host(along), strict=True
        )
        assert sorted(got) == pairs
    else:
        assert along is None
