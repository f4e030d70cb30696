"""scikit-learn around models on CuPy data, with its array API dispatch."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
import sklearn
from conftest import BACKENDS, cupy
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.fixes import parse_version

import gpucenters
from gpucenters import L1CenterClassifier, L2CenterClassifier

MODELS = [L2CenterClassifier(k=3), L1CenterClassifier(k=2, scale="std")]
rng = np.random.default_rng(0)
X = rng.standard_normal((90, 20)).astype(np.float32)
y = rng.permutation(np.arange(90) % 2)
X[y == 0, :3] += 2
OLD = parse_version(sklearn.__version__) < parse_version("1.8")


@pytest.fixture(params=["host labels", "device labels"])
def labels(request: pytest.FixtureRequest) -> Any:
    return y if request.param == "host labels" else cupy.asarray(y)


@pytest.fixture(autouse=True)
def _dispatch() -> Any:
    with sklearn.config_context(array_api_dispatch=True):
        yield


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_cross_validation_and_search_on_the_device_score_as_on_the_host(
    model: Any, labels: Any
) -> None:
    if OLD and labels is y:
        pytest.skip("cross-validation takes labels from elsewhere than X from 1.8 on")
    there = cupy.asarray(X)
    found = cross_val_score(model, there, labels, cv=3)
    np.testing.assert_array_equal(found, cross_val_score(model, X, y, cv=3))
    search = GridSearchCV(model, {"k": [1, 2]}, cv=3).fit(there, labels)
    assert search.best_params_ == GridSearchCV(model, {"k": [1, 2]}, cv=3).fit(X, y).best_params_
    BACKENDS["cupy"].check(search.best_estimator_.scores_)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_scaler_before_the_classifier_on_the_device_scores_as_on_the_host(
    model: Any, labels: Any
) -> None:
    found = make_pipeline(MinMaxScaler(), clone(model)).fit(cupy.asarray(X), labels)
    expected = make_pipeline(MinMaxScaler(), clone(model)).fit(X, y)
    assert found[-1].support_.tolist() == expected[-1].support_.tolist()
    assert found.score(cupy.asarray(X), labels) == expected.score(X, y)


@pytest.mark.skipif(OLD, reason="LogisticRegression takes arrays of other libraries from 1.8 on")
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_selection_for_a_logistic_regression_on_the_device(model: Any, labels: Any) -> None:
    pipeline = make_pipeline(clone(model), LogisticRegression()).fit(cupy.asarray(X), labels)
    BACKENDS["cupy"].check(pipeline[-1].coef_)
    assert pipeline[-1].coef_.shape == (1, model.k)
    expected = make_pipeline(clone(model), LogisticRegression()).fit(X, y)
    np.testing.assert_allclose(pipeline[-1].coef_.get(), expected[-1].coef_, rtol=1e-3)
    assert abs(pipeline.score(cupy.asarray(X), labels) - expected.score(X, y)) < 0.03
    file = io.BytesIO()
    gpucenters.save(pipeline, file)
    for device in (None, "cpu"):
        file.seek(0)
        loaded = gpucenters.load(file, device)
        data = X if device else cupy.asarray(X)
        found, expected_there = loaded.predict(data), pipeline.predict(cupy.asarray(X))
        assert type(loaded[-1].coef_) is type(data) and found.tolist() == expected_there.tolist()
