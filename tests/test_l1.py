"""Sparse l1 centers: gains and medians against exact arithmetic."""

from __future__ import annotations

from typing import Any

import exact
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import Problem, modest, problems, storing

from gpucenters import L1CenterClassifier
from gpucenters.solvers import l1_centers


def test_l1_gain_beside_two_huge_outliers_does_not_cancel(backend: Any) -> None:
    huge = 1e16
    X, y = np.asarray([[0.0], [0.0], [huge], [1.0], [1.0], [-huge]]), np.asarray([0, 0, 0, 1, 1, 1])
    containers = backend.containers(X)
    if backend.sparse is not None:
        containers.append(storing(backend, X, np.ones_like(X)))
    for container in containers:
        centers = l1_centers(container, y)
        np.testing.assert_allclose(backend.host(centers.gain), [1 / 3], rtol=1e-15)
        assert backend.host(centers.tied).tolist() == [0.5]
        assert backend.host(centers.free).tolist() == [[0.0], [1.0]]


def test_l1_centers_of_even_numbers_of_values_are_midpoints(backend: Any) -> None:
    X = [[0, -1, 2, 0], [0, 3, 4, 5], [1, 0, 0, 0], [0, 0, 6, 7]]
    for container in backend.containers(X, (np.float64, np.float32)):
        assert backend.host(l1_centers(container, [0] * 4).free).tolist() == [[0, 0, 3, 2.5]]
    for container in backend.containers([*X, *X]):
        centers = l1_centers(container, [0] * 4 + [1] * 4)
        assert backend.host(centers.free).tolist() == [[0, 0, 3, 2.5]] * 2
        assert backend.host(centers.tied).tolist() == [0, 0, 3, 2.5]
        assert backend.host(centers.gain).tolist() == [0, 0, 0, 0]


@given(problem=problems(), unit=st.sampled_from([1.0, 0.1, 1 / 3]))
@modest(15)
def test_l1_gain_is_exactly_zero_where_the_median_intervals_share_a_point(
    problem: Problem, unit: float, backend: Any
) -> None:
    X = problem.X * unit
    truth = exact.exact_l1(X, problem.y, 1, problem.weights)
    for container in backend.containers(X):
        centers = l1_centers(container, problem.y, sample_weight=problem.weights)
        gain, tied = backend.host(centers.gain), backend.host(centers.tied)
        for i in range(X.shape[1]):
            low, high = max(row[i] for row in truth.lo), min(row[i] for row in truth.hi)
            assert (gain[i] == 0.0) == (low <= high)
            if low <= high:
                assert tied[i] == 0.5 * float(low) + 0.5 * float(high)


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e9])
@pytest.mark.parametrize("classes", [2, 3])
def test_scaled_l1_scores_of_sparse_rows_at_an_offset_are_those_of_dense_ones(
    classes: int, offset: float, sparse_backend: Any
) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(60) % classes
    X = np.stack([rng.poisson(3, 60) + 9 * y + offset, rng.poisson(0.3, 60)], axis=1)
    found = []
    for held in sparse_backend.containers(X):
        model = L1CenterClassifier(scale="std").fit(held, y)
        found.append(sparse_backend.host(model.decision_function(held)))
    assert np.any(abs(found[0]) < 10)
    for scores in found[1:]:
        np.testing.assert_allclose(scores, found[0], rtol=1e-13, atol=1e-13)
