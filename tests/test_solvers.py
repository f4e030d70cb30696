"""Both solvers: types of numbers, signed zeros, single samples, the number of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from small_data import HALVES, NORMAL, SOLVERS
from strategies import Problem, modest, problems, storing

from gpucenters.solvers import l1_centers, l2_centers


@pytest.mark.parametrize("solve", SOLVERS)
def test_the_only_sample_of_a_class_is_its_center(solve: Any, backend: Any) -> None:
    X = [[0.0, 3.0, -1.0], [2.0, 3.0, 0.0], [7.0, 3.0, 1.0]]
    for container in backend.containers(X):
        centers = solve(container, [0, 1, 2])
        assert backend.host(centers.free).tolist() == X
        assert backend.host(centers.tied).tolist() == [3.0 if solve is l2_centers else 2.0, 3, 0]
        assert backend.host(centers.gain)[1] == 0.0
        assert centers.loss == 0.0


@pytest.mark.parametrize("solve", SOLVERS)
@given(problem=problems())
@modest(8)
def test_minus_zero_gives_the_centers_of_zero(solve: Any, problem: Problem, backend: Any) -> None:
    plus = problem.X.astype(np.float64)
    minus = np.where(plus == 0, -0.0, plus)
    s = problem.weights
    expected = solve(backend.array(plus), problem.y, sample_weight=s)
    containers = [backend.array(minus), backend.array(minus, np.float32)]
    if backend.sparse is not None:
        containers.append(storing(backend, minus, np.ones_like(minus)))
    for container in containers:
        centers = solve(container, problem.y, sample_weight=s)
        for name in ("free", "tied", "gain"):
            ours, theirs = (backend.host(getattr(c, name)) for c in (centers, expected))
            np.testing.assert_allclose(ours, theirs, rtol=1e-14, atol=0, err_msg=name)


def test_float32_values_sum_exactly_beyond_2_to_the_24(backend: Any) -> None:
    big = 2.0**24
    X = np.asarray([[big], [1], [1], [1], [0], [0]])
    assert np.cumsum(X[:4].astype(np.float32))[-1] == big
    y = np.asarray([0, 0, 0, 0, 1, 1])
    for container in backend.containers(X, (np.float32,)):
        centers = l2_centers(container, y)
        assert backend.host(centers.total).tolist() == [[big + 3], [0.0]]
        assert backend.host(l1_centers(container, y).free).tolist() == [[1.0], [0.0]]


@pytest.mark.parametrize("solve", SOLVERS)
@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.uint64, np.bool_, object])
def test_every_type_of_numbers_gives_the_centers_of_float64(
    solve: Any, dtype: Any, on_host: Any
) -> None:
    X, y = np.asarray([[0, 1, 1], [1, 0, 1], [1, 1, 0], [1, 1, 1]]), [0, 0, 1, 1]
    centers, expected = solve(on_host.array(X, dtype), y), solve(on_host.array(X, np.float64), y)
    assert centers.gain.dtype == np.float64
    np.testing.assert_array_equal(centers.gain, expected.gain)
    np.testing.assert_array_equal(centers.free, expected.free)


@pytest.mark.parametrize(
    ("n_classes", "error", "message"),
    [
        (0, ValueError, "n_classes=0 is not a number of classes"),
        (2.7, TypeError, "'float' object cannot be interpreted as an integer"),
        ("two", TypeError, "'str' object cannot be interpreted as an integer"),
    ],
)
def test_solver_with_an_invalid_n_classes_raises(
    n_classes: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        l2_centers(NORMAL, HALVES, n_classes=n_classes)
