"""Scores, coefficients and probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.special
from separated import separated
from small_data import KINDS

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
)


@pytest.mark.parametrize("kind", KINDS)
def test_score_is_a_python_float(kind: Any, backend: Any) -> None:
    X, y = separated(2)
    y_wrong = y.copy()
    y_wrong[:6] = 1 - y_wrong[:6]
    model = kind(k=1).fit(backend.array(X), y)
    predicted = backend.host(model.predict(backend.array(X)))
    score = model.score(backend.array(X), y_wrong)
    assert type(score) is float
    assert score == np.mean(predicted == y_wrong)
    weights = np.arange(30.0)
    weighted = model.score(backend.array(X), backend.array(y_wrong), backend.array(weights))
    assert type(weighted) is float
    assert weighted == pytest.approx(weights[predicted == y_wrong].sum() / weights.sum())


@pytest.mark.parametrize("priors", ["uniform", "empirical", "array"])
@pytest.mark.parametrize("scale", [None, "std", "pooled"])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_coefficients_and_intercept_make_the_decision(
    n_classes: int, scale: Any, priors: Any, backend: Any
) -> None:
    X, y = separated(n_classes, n=31)
    if priors == "array":
        priors = np.arange(1.0, n_classes + 1) / np.arange(1.0, n_classes + 1).sum()
    model = L2CenterClassifier(k=3, scale=scale, priors=priors).fit(backend.array(X), y)
    coef, intercept = backend.host(model.coef_), backend.host(model.intercept_)
    rows = 1 if n_classes == 2 else n_classes
    assert coef.shape == (rows, 8)
    assert intercept.shape == (rows,)
    assert np.flatnonzero(np.any(coef != 0, axis=0)).tolist() == model.support_.tolist()
    decision = backend.host(model.decision_function(backend.array(X)))
    expected = X @ coef.T + intercept
    expected = expected[:, 0] if n_classes == 2 else expected
    np.testing.assert_allclose(decision, expected, rtol=1e-10, atol=1e-10)
    assert decision.shape == ((31,) if n_classes == 2 else (31, n_classes))


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_probabilities_are_the_softmax_of_half_the_scores(n_classes: int, backend: Any) -> None:
    X, y = separated(n_classes)
    model = L2CenterClassifier(k=3, priors="empirical").fit(backend.array(X), y)
    probabilities = backend.host(model.predict_proba(backend.array(X)))
    logs = backend.host(model.predict_log_proba(backend.array(X)))
    scores = backend.host(model.decision_function(backend.array(X)))
    if n_classes == 2:
        scores = np.stack([np.zeros(30), scores], axis=1)
    np.testing.assert_allclose(probabilities, scipy.special.softmax(scores / 2, axis=1), rtol=1e-12)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-14)
    np.testing.assert_allclose(logs, np.log(probabilities), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("scale", [None, "std"])
def test_probabilities_of_l1_centers_are_those_of_laplace_densities(
    scale: Any, n_classes: int, backend: Any
) -> None:
    X, y = separated(n_classes)
    for held in backend.containers(X):
        model = L1CenterClassifier(k=3, scale=scale).fit(held, y)
        sigma = X.std(axis=0)[model.support_] if scale else np.ones(3)
        x, centers = X[:, model.support_], backend.host(model.centers_)
        density = np.exp(-np.abs((x[:, None, :] - centers) / sigma)).prod(axis=2)
        expected = density / density.sum(axis=1, keepdims=True)
        found = backend.host(model.predict_proba(held))
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        logs = backend.host(model.predict_log_proba(held))
        np.testing.assert_allclose(logs, np.log(expected), rtol=1e-9, atol=1e-12)
        assert np.array_equal(found.argmax(axis=1), backend.host(model.predict(held)))


def test_log_probabilities_are_finite_where_probabilities_underflow(backend: Any) -> None:
    X = backend.array([[-100.0], [100.0]])
    model = L2CenterClassifier().fit(X, [0, 1])
    assert backend.host(model.predict_proba(X))[0].tolist() == [1.0, 0.0]
    assert backend.host(model.predict_log_proba(X))[0].tolist() == [0.0, -20000.0]


@pytest.mark.parametrize("centers", [[-1, 1], [-1, 0, 1]], ids=["two classes", "three classes"])
@pytest.mark.parametrize("size", [1.0, 1e-9, 1e-20, 1e3])
def test_probabilities_never_contradict_predictions(
    centers: list[int], size: float, backend: Any
) -> None:
    X = size * np.asarray(centers, dtype=float)[:, None]
    model = L2CenterClassifier().fit(backend.array(X), range(len(centers)))
    # Points around each border between two classes, from one bit to half a unit away.
    rows = []
    for border in (X[1:, 0] + X[:-1, 0]) / 2:
        steps = np.concatenate([size * np.logspace(-40, -0.5, 80), [5e-324, 2.5e-18, 0.0]])
        rows += [border + steps, border - steps]
        rows += [np.nextafter(border, [-np.inf, np.inf])]
    rows = backend.array(np.concatenate(rows)[:, None])
    predicted = backend.host(model.predict(rows))
    for method in (model.predict_proba, model.predict_log_proba):
        np.testing.assert_array_equal(np.argmax(backend.host(method(rows)), axis=1), predicted)
    scores = backend.host(model.decision_function(rows))
    best = scores > 0 if scores.ndim == 1 else np.argmax(scores, axis=1)
    np.testing.assert_array_equal(predicted, best)
    assert set(predicted) == set(range(len(centers)))
