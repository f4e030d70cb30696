"""Decisions and predictions: ties, offsets, signed zeros, single rows and features."""

from __future__ import annotations

from typing import Any

import exact
import numpy as np
import pytest
from answers import CLASSES, assert_same_answers, each_model, mixed_data
from sklearn.base import clone
from small_data import KINDS
from strategies import quietly

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
)

SQUARE = [[0.0, 0.0], [0.0, 2.0], [2.0, 0.0], [2.0, 2.0]]


@pytest.mark.parametrize("model", KINDS)
def test_a_point_halfway_between_two_centers_goes_to_the_first_class(
    model: Any, backend: Any
) -> None:
    fitted = model().fit(backend.array(SQUARE), np.asarray([0, 0, 1, 1]))
    assert backend.host(fitted.decision_function(backend.array([[1.0, 1.0]]))).tolist() == [0.0]
    assert backend.host(fitted.predict(backend.array([[1.0, 1.0]]))).tolist() == [0]
    assert backend.host(fitted.scores_).tolist() == [2.0, 0.0]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("names", ["l2", "l1"])
def test_predictions_at_offset_1e8_are_those_of_exact_arithmetic(
    names: str, classes: int, backend: Any
) -> None:
    model, search, predict = {
        "l2": (L2CenterClassifier, exact.exact_l2, exact.predict_l2),
        "l1": (L1CenterClassifier, exact.exact_l1, exact.predict_l1),
    }[names]
    rng = np.random.default_rng(8)
    y = np.arange(24) % classes
    X = 1e8 + rng.standard_normal((24, 3)) + 0.5 * y[:, None]
    points = 1e8 + 0.5 + 2 * rng.standard_normal((1000, 3))
    truth = search(X, y, 3)
    expected = [predict(truth, point) for point in points]
    assert set(expected) == set(range(classes))
    fitted = model().fit(backend.array(X), y)
    assert backend.host(fitted.predict(backend.array(points))).tolist() == expected


@pytest.mark.parametrize("model", KINDS)
def test_constant_data_select_the_first_features_and_predict_the_first_class(
    model: Any, backend: Any
) -> None:
    X, y = np.full((6, 4), 0.1), np.asarray([0, 1, 2, 0, 1, 2])
    for container in backend.containers(X):
        fitted = quietly(model(k=2).fit, container, y)
        assert fitted.support_.tolist() == [0, 1]
        assert backend.host(fitted.scores_).tolist() == [0.0] * 4
        assert backend.host(fitted.predict(container)).tolist() == [0] * 6


@pytest.mark.parametrize("model", KINDS)
def test_minus_zero_predicts_as_zero(model: Any, backend: Any) -> None:
    fitted = model().fit(backend.array([[-0.0], [0.0], [2.0], [2.0]]), np.asarray([0, 0, 1, 1]))
    points = np.asarray([[0.0], [-0.0], [1.0]])
    decision = backend.host(fitted.decision_function(backend.array(points)))
    assert decision[0] == decision[1] < 0
    assert backend.host(fitted.predict(backend.array(points))).tolist() == [0, 0, 0]


def _dense(X: Any, backend: Any) -> np.ndarray:
    return backend.host(X.toarray() if hasattr(X, "toarray") else X)


@pytest.mark.parametrize("n_classes", CLASSES)
@each_model
def test_one_row_gets_the_answers_that_it_gets_among_others(
    model: Any, n_classes: int, backend: Any
) -> None:
    plain, y = mixed_data(n_classes)
    for X, single in zip(backend.containers(plain), backend.containers(plain[5:6]), strict=True):
        found = clone(model).fit(X, y)
        methods = [found.predict, found.decision_function]
        if hasattr(found, "predict_proba"):
            methods += [found.predict_proba, found.predict_log_proba]
        for method in methods:
            one, all_ = backend.host(method(single)), backend.host(method(X))
            assert one.shape == (1, *all_.shape[1:])
            np.testing.assert_allclose(one[0], all_[5], rtol=1e-12, atol=1e-12)
        chosen = _dense(found.transform(single), backend)
        np.testing.assert_array_equal(chosen, plain[5:6, found.support_])


@each_model
def test_a_single_feature_fits_and_predicts(model: Any, backend: Any) -> None:
    plain, y = mixed_data(3)
    model = clone(model).set_params(k="all")
    for X in backend.containers(plain[:, [2]]):
        found = assert_same_answers(model, X, plain[:, [2]], y, backend)
        np.testing.assert_array_equal(_dense(found.transform(X), backend), plain[:, [2]])


def test_log_probabilities_never_contradict_predict() -> None:
    model = L2CenterClassifier().fit(np.repeat(np.eye(60), 2, axis=0), np.repeat(np.arange(60), 2))
    rng = np.random.default_rng(0)
    Q = 0.3 + rng.standard_normal((200, 60)) * 1e-16 * rng.integers(0, 5, (200, 1))
    predicted = model.predict(Q)
    np.testing.assert_array_equal(model.predict_log_proba(Q).argmax(axis=1), predicted)
    np.testing.assert_array_equal(model.predict_proba(Q).argmax(axis=1), predicted)
