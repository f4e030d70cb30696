"""Solvers and models equal exhaustive search in exact arithmetic on small integer problems.

By default a third of the problems is solved, each in one container, and the containers take turns.
The tests that are marked ``full`` solve every problem in every container.
"""

from __future__ import annotations

import warnings
from typing import Any

import exact
import numpy as np
import pytest
from strategies import quietly

from gpucenters import L1CenterClassifier, L2CenterClassifier
from gpucenters.solvers import l1_centers, l2_centers, select

MODELS = {
    "l2": (l2_centers, exact.exact_l2, exact.decision_l2, exact.predict_l2, L2CenterClassifier),
    "l1": (l1_centers, exact.exact_l1, exact.decision_l1, exact.predict_l1, L1CenterClassifier),
}
DTYPES = (np.float64, np.float32, np.int64)
# array-api-strict and the stand-in for CuPy are slow; the arithmetic is the same.
PROBLEMS = {"numpy": 1000, "array_api_strict": 200, "cupy": 100, "torch": 100}


def _floats(values: Any) -> np.ndarray:
    return np.asarray(values, dtype=object).astype(np.float64)


def _check_solution(centers: Any, truth: exact.Exact, k: int, backend: Any) -> None:
    host = backend.host
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # k may exceed the number of positive gains
        chosen = select(centers, k)
    assert tuple(host(chosen.support)) == tuple(truth.support)
    close = {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(host(centers.free), _floats(truth.free), **close)
    np.testing.assert_allclose(host(centers.tied), _floats(truth.tied), **close)
    np.testing.assert_allclose(host(centers.gain), _floats(truth.gain), **close)
    assert centers.objective(chosen.support) == pytest.approx(
        float(truth.objective), rel=1e-12, abs=1e-10
    )


def _check_model(
    model: Any, X: Any, problem: tuple, truth: exact.Exact, names: Any, backend: Any
) -> None:
    """Centers, objective, decisions and predictions of the estimator, ties included."""
    _, decide, predict = names
    rows, y, weights, _ = problem
    y = np.asarray(y)
    weights = None if weights is None else np.asarray(weights)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, sample_weight=weights)
    assert tuple(model.support_) == tuple(truth.support)
    assert model.objective_ == pytest.approx(float(truth.objective), rel=1e-12, abs=1e-10)
    expected = _floats(truth.centers)[:, list(truth.support)]
    np.testing.assert_allclose(backend.host(model.centers_), expected, rtol=1e-12, atol=1e-12)
    exact_scores = [decide(truth, row) for row in rows]
    np.testing.assert_allclose(
        backend.host(model.decision_function(X)), _floats(exact_scores), rtol=1e-9, atol=1e-9
    )
    predicted = backend.host(model.predict(X))
    for j, row in enumerate(rows):
        if predicted[j] != predict(truth, row):
            # Thirds and sevenths are rounded, so that an exact tie may go to either class.
            scores = np.atleast_1d(_floats(exact_scores[j]))
            pair = [0.0, scores[0]] if len(scores) == 1 else scores
            best = sorted(pair)[-2:]
            assert best[1] - best[0] < 1e-9, (row, pair)


def _check(name: str, backend: Any, *, full: bool) -> None:
    """Compare with exhaustive search in one container of each problem, or in all of them."""
    solve, search, decide, predict, kind = MODELS[name]
    rng = np.random.default_rng(20220301)
    for number in range(PROBLEMS[backend.name] // (1 if full else 3)):
        problem = exact.random_problem(rng)
        X, y, weights, k = problem
        truth = search(X, y, k, weights)
        s = None if weights is None else np.asarray(weights)
        for container in _chosen(backend.containers(X, DTYPES), number, full):
            centers = solve(container, np.asarray(y), sample_weight=s)
            _check_solution(centers, truth, k, backend)
            names = (kind, decide, predict)
            _check_model(kind(k=k), container, problem, truth, names, backend)


def _chosen(containers: list, number: int, full: bool) -> list:
    return containers if full else [containers[number % len(containers)]]


@pytest.mark.parametrize("name", list(MODELS))
def test_solver_and_model_equal_exhaustive_search(name: str, backend: Any) -> None:
    _check(name, backend, full=False)


@pytest.mark.full
@pytest.mark.parametrize("name", list(MODELS))
def test_solver_and_model_equal_exhaustive_search_in_every_container(
    name: str, backend: Any
) -> None:
    _check(name, backend, full=True)


def _check_scaled(name: str, scale: str, backend: Any, *, full: bool) -> None:
    solve, search, *_ = MODELS[name]
    rng = np.random.default_rng(7)
    for number in range(60):
        X, y, weights, k = exact.random_problem(rng)
        used = len(y) if weights is None else sum(w > 0 for w in weights)
        if used <= max(y) + 1:
            continue
        variance = exact.variance(X, y, weights, scale)
        if name == "l2":
            truth = search(X, y, k, weights, scale_squared=variance)
        else:
            truth = search(X, y, k, weights, scale=[float(v) ** 0.5 for v in variance])
        s = None if weights is None else np.asarray(weights)
        for container in _chosen(backend.containers(X), number, full):
            centers = quietly(solve, container, np.asarray(y), sample_weight=s, scale=scale)
            np.testing.assert_allclose(
                backend.host(centers.scale) ** 2, _floats(variance), rtol=1e-12
            )
            _check_solution(centers, truth, k, backend)


@pytest.mark.parametrize("scale", ["std", "pooled"])
@pytest.mark.parametrize("name", list(MODELS))
def test_scaled_solver_equals_exhaustive_search(name: str, scale: str, backend: Any) -> None:
    _check_scaled(name, scale, backend, full=False)


@pytest.mark.full
@pytest.mark.parametrize("scale", ["std", "pooled"])
@pytest.mark.parametrize("name", list(MODELS))
def test_scaled_solver_equals_exhaustive_search_in_every_container(
    name: str, scale: str, backend: Any
) -> None:
    _check_scaled(name, scale, backend, full=True)
