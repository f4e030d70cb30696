"""Very large and very small values: overflow and underflow are errors, and no result is NaN."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from small_data import (
    CENTER_MODELS,
    HALVES,
    NORMAL,
    PLAIN,
    Y,
    each_kind,
    model_id,
    prediction_calls,
    quiet,
    quiet_containers,
)

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    ShrunkenCentroidClassifier,
    SparseGaussianNB,
)
from gpucenters.solvers import l1_centers, l2_centers


@pytest.mark.parametrize("value", [1e160, -1e200, 1.7e308])
@pytest.mark.parametrize("model", CENTER_MODELS[:2], ids=model_id)
def test_l2_fit_names_the_feature_and_row_of_a_value_whose_square_overflows(
    model: Any, value: float, backend: Any
) -> None:
    plain = PLAIN.copy()
    plain[3, 2] = value
    for X in quiet_containers(plain, backend):
        with pytest.raises(ValueError, match=r"in feature 2 \(first in row 3\).*overflow"):
            clone(model).fit(X, Y)
        with pytest.raises(ValueError, match=r"in feature 2 \(first in row 3\).*overflow"):
            clone(model).partial_fit(X, Y, classes=[0, 1])


def test_l2_fit_names_a_constant_feature_whose_squares_overflow(backend: Any) -> None:
    plain = PLAIN.copy()
    plain[:, 1] = 1e200
    for X in quiet_containers(plain, backend):
        with pytest.raises(ValueError, match=r"feature 1 .*overflow"):
            L2CenterClassifier().fit(X, Y)


def test_l1_fit_accepts_values_whose_squares_overflow(backend: Any) -> None:
    plain = PLAIN.copy()
    plain[3, 2] = 1e200
    plain[:, 0] = [-1e200, 1e200, -1e200, 1e200, 1e200]
    for X in quiet_containers(plain, backend):
        model = L1CenterClassifier(k=1).fit(X, Y)
        assert model.support_.tolist() == [0]
        assert backend.host(model.centers_).tolist() == [[-1e200], [1e200]]
        assert backend.host(model.predict(X)).tolist() == Y.tolist()
        assert np.isfinite(model.objective_)


@quiet
def test_l1_fit_names_the_feature_whose_sums_overflow(backend: Any) -> None:
    plain = PLAIN.copy()
    plain[:, 2] = [1.7e308, -1.7e308, -1.7e308, 1.7e308, -1.7e308]
    for X in quiet_containers(plain, backend):
        with pytest.raises(ValueError, match=r"feature 2 .*overflow"):
            L1CenterClassifier().fit(X, Y)


def test_scaled_l1_fit_names_the_feature_whose_squares_overflow(backend: Any) -> None:
    plain = PLAIN.copy()
    plain[3, 2] = 1e200
    for X in quiet_containers(plain, backend):
        with pytest.raises(ValueError, match=r"feature 2 .*overflow"):
            L1CenterClassifier(scale="std").fit(X, Y)


@quiet
@pytest.mark.parametrize("model", [L2CenterClassifier(), L1CenterClassifier()], ids=model_id)
def test_predict_names_the_row_whose_scores_overflow(model: Any, backend: Any) -> None:
    plain = np.array([[-1e100, -1e100], [1e100, 1e100]])
    if isinstance(model, L1CenterClassifier):
        plain = np.array([[-1.0, -1.0], [1.0, 1.0], [0.0, 0.0]])
    fitted = clone(model).fit(backend.array(plain), range(len(plain)))
    far = backend.array([[0.0, 0.0], [1.7e308, 1.7e308]])
    with pytest.raises(ValueError, match="row 1"):
        fitted.predict(far)


HARD = {
    "constant": np.full((6, 3), 0.1),
    "zeros": np.zeros((6, 3)),
    "tiny": 5e-324 * np.arange(18.0).reshape(6, 3),
    "small": 1e-160 * np.arange(18.0).reshape(6, 3),
    "large": 1e150 * np.arange(18.0).reshape(6, 3),
    "one outlier": np.vstack([np.zeros((5, 3)), [1e150, -1e150, 1e-150]]),
    "both ends": np.array([[1e150, -1e150, 1e-300]] * 3 + [[-1e150, 1e150, -1e-300]] * 3),
    "large offset": 1e15 + np.arange(18.0).reshape(6, 3),
}


@pytest.mark.filterwarnings("ignore:.*constant up to rounding within each class")
@pytest.mark.parametrize("labels", [[0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2]], ids=["two", "three"])
@pytest.mark.parametrize("scale", [None, "std", "pooled"])
@pytest.mark.parametrize("data", list(HARD))
@each_kind
def test_no_result_is_nan_for_extreme_values(
    kind: Any, data: str, scale: Any, labels: list[int], backend: Any
) -> None:
    if scale is None:
        underflows = kind is L2CenterClassifier and data in ("tiny", "small")
    else:
        # (Of three classes the sums of both ends are zero.)
        two = data == "both ends" and len(set(labels)) == 2
        underflows = two or data in ("tiny", "small", "one outlier")
    for X in backend.containers(HARD[data]):
        if underflows:
            with pytest.raises(ValueError, match="too small: their squares underflow"):
                kind(scale=scale).fit(X, labels)
            continue
        model = kind(scale=scale).fit(X, labels)
        assert np.isfinite(model.objective_)
        arrays = [model.centers_, model.scores_, model.scale_]
        arrays += [call(X) for call in prediction_calls(model, X)]
        if kind is L2CenterClassifier:
            arrays += [model.coef_, model.intercept_]
        for array in arrays:
            assert array is None or np.all(np.isfinite(backend.host(array)))
        assert np.all(backend.host(model.scores_) >= 0)


@pytest.mark.parametrize("unit", [1e-160, 1e-170, 1e-300])
@pytest.mark.parametrize(
    "model",
    [
        L2CenterClassifier(scale="std"),
        L2CenterClassifier(scale="pooled"),
        L1CenterClassifier(scale="std"),
        SparseGaussianNB(var_smoothing=0),
        ShrunkenCentroidClassifier(offset=0.0),
    ],
    ids=model_id,
)
def test_a_feature_whose_squares_underflow_is_named(model: Any, unit: float, backend: Any) -> None:
    X = NORMAL + 3 + 2 * HALVES[:, None]
    X[:, 2] *= unit
    for held in backend.containers(X):
        with pytest.raises(ValueError, match="values of feature 2 are too small: their squares"):
            clone(model).fit(held, HALVES)


@pytest.mark.parametrize("model", [SparseGaussianNB(), ShrunkenCentroidClassifier()], ids=model_id)
def test_a_feature_whose_squares_underflow_is_nothing_beside_what_smooths_it(model: Any) -> None:
    X = NORMAL + 3 + 2 * HALVES[:, None]
    X[:, 2] *= 1e-170
    found = clone(model).fit(X, HALVES)
    assert np.max(np.delete(found.scores_, 2)) > 1e3 * found.scores_[2] and found.scores_[2] < 1e-9


def test_squares_that_overflow_are_an_error_for_l2_and_none_for_l1(backend: Any) -> None:
    X = np.ones((4, 3))
    X[1, 2] = 1e200
    for container in backend.containers(X):
        with pytest.raises(ValueError, match=r"feature 2 .*row 1.*overflow"):
            l2_centers(container, [0, 0, 1, 1])
        assert backend.host(l1_centers(container, [0, 0, 1, 1]).gain).tolist()[:2] == [0.0, 0.0]


@pytest.mark.parametrize("scale", [None, "std"])
@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_array])
def test_l2_fit_refuses_values_whose_squares_underflow(scale: Any, container: Any) -> None:
    Q = NORMAL + 2 * HALVES[:, None]
    expected = L2CenterClassifier(k=2, scale=scale).fit(container(Q), HALVES)
    found = L2CenterClassifier(k=2, scale=scale).fit(container(Q * 2.0**-400), HALVES)
    assert found.support_.tolist() == expected.support_.tolist()
    with pytest.raises(ValueError, match="too small: their squares underflow"):
        L2CenterClassifier(k=2, scale=scale).fit(container(Q * 1e-165), HALVES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for constant in (0.0, 5.0):
            model = L2CenterClassifier(k=2, scale=scale).fit(container(0 * Q + constant), HALVES)
            assert model.scores_.tolist() == [0.0] * 6
            assert model.objective_ == 0.0
