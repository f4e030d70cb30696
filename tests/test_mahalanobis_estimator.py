"""MahalanobisCenterClassifier among scikit-learn's estimators, and on devices."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.linalg
import scipy.sparse
from bits import bits
from conftest import BACKENDS
from correlated import assert_same_model, attribute, correlated
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, ParameterGrid, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier, OutputCodeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gpucenters import MahalanobisCenterClassifier


def test_is_a_transformer_and_no_selector(backend: Any) -> None:
    X, y = correlated(3)
    for container in backend.containers(X, (np.float64, np.float32)):
        model = MahalanobisCenterClassifier(k=2).fit(container, y)
        found = model.transform(container)
        backend.check(found)
        assert found.dtype == backend.xp.float64
        root = attribute(model, "transformation_", backend)[:, model.support_]
        np.testing.assert_allclose(backend.host(found), X @ root, rtol=1e-5, atol=1e-5)
        again = MahalanobisCenterClassifier(k=2).fit_transform(container, y)
        backend.assert_same(again, found)
        assert model.get_feature_names_out().tolist() == [
            "mahalanobiscenterclassifier0",
            "mahalanobiscenterclassifier1",
        ]
        assert model.with_k(1).get_feature_names_out().tolist() == ["mahalanobiscenterclassifier0"]
    assert not hasattr(model, "get_support")
    assert not hasattr(model, "inverse_transform")
    assert model.scale_ is None


def test_the_decision_is_linear_in_X(backend: Any) -> None:
    for classes in (2, 3):
        X, y = correlated(classes)
        model = MahalanobisCenterClassifier(k=2, priors="empirical").fit(backend.array(X), y)
        coef, constant = (attribute(model, n, backend) for n in ("coef_", "intercept_"))
        assert coef.shape == ((1, 5) if classes == 2 else (3, 5))
        found = backend.host(model.decision_function(backend.array(X)))
        expected = X @ coef.T + constant
        np.testing.assert_allclose(found, expected[:, 0] if classes == 2 else expected, rtol=1e-9)


def test_set_output_gives_a_frame_of_new_features() -> None:
    X, y = correlated(2)
    frame = pd.DataFrame(X, columns=list("abcde"), index=range(7, 67))
    model = MahalanobisCenterClassifier(k=2).set_output(transform="pandas").fit(frame, y)
    found = model.transform(frame)
    assert found.columns.tolist() == [f"mahalanobiscenterclassifier{i}" for i in range(2)]
    assert found.index.tolist() == list(range(7, 67))
    assert model.feature_names_in_.tolist() == list("abcde")
    np.testing.assert_allclose(found, X @ model.transformation_[:, model.support_], rtol=1e-12)


@pytest.mark.parametrize(
    "duplicate",
    [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))],
    ids=["deepcopy", "pickle"],
)
def test_a_copy_is_the_same_model(duplicate: Any, backend: Any) -> None:
    X, y = correlated(3)
    model = MahalanobisCenterClassifier(k=3, shrinkage=0.1).fit(backend.array(X), y)
    found = duplicate(model)
    assert_same_model(found, model, backend, rtol=1e-15)
    a, b = (backend.host(m.predict(backend.array(X))) for m in (found, model))
    np.testing.assert_array_equal(a, b)


def test_clone_copies_parameters_and_nothing_else() -> None:
    X, y = correlated(2)
    S = np.cov(X.T)
    copied = clone(MahalanobisCenterClassifier(k=3, covariance=S, shrinkage=0.5).fit(X, y))
    np.testing.assert_array_equal(copied.covariance, S)
    assert (copied.k, copied.shrinkage) == (3, 0.5)
    assert not hasattr(copied, "classes_")


def test_works_in_pipelines_and_searches() -> None:
    X, y = load_wine(return_X_y=True)
    model = MahalanobisCenterClassifier()
    pipeline, folds = make_pipeline(StandardScaler(), model), StratifiedKFold(3)
    grid = {"k": [2, "all"], "shrinkage": ["auto", None, 0.1, "ledoit-wolf"]}
    named = {f"mahalanobiscenterclassifier__{name}": values for name, values in grid.items()}
    search = GridSearchCV(pipeline, named, cv=folds, error_score="raise").fit(X, y)
    expected = []
    for parameters in ParameterGrid(grid):
        each = []
        for train, test in folds.split(X, y):
            scaler = StandardScaler().fit(X[train])
            model.set_params(**parameters).fit(scaler.transform(X[train]), y[train])
            each.append(model.score(scaler.transform(X[test]), y[test]))
        expected.append(np.mean(each))
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected, rtol=1e-12)
    assert search.best_score_ > 0.95
    # The transformer works before another classifier.
    chain = make_pipeline(MahalanobisCenterClassifier(k=3), LogisticRegression()).fit(X, y)
    new = MahalanobisCenterClassifier(k=3).fit(X, y).transform(X)
    np.testing.assert_array_equal(chain.predict(X), LogisticRegression().fit(new, y).predict(new))
    assert chain.score(X, y) > 0.95


def test_one_versus_rest_and_output_codes() -> None:
    X, y = load_wine(return_X_y=True)
    model = MahalanobisCenterClassifier(k=6)
    rest = OneVsRestClassifier(model).fit(X, y)
    decisions = [clone(model).fit(X, y == c).decision_function(X) for c in range(3)]
    np.testing.assert_array_equal(rest.predict(X), np.argmax(decisions, axis=0))
    codes = OutputCodeClassifier(model, code_size=2, random_state=10).fit(X, y)
    assert codes.score(X, y) > 0.9


def test_moves_to_a_device_and_back() -> None:
    X, y = correlated(3)
    cupy = BACKENDS["cupy"]
    model = MahalanobisCenterClassifier(k=3, shrinkage="ledoit-wolf", priors="empirical").fit(X, y)
    moved = model.to("cuda")
    for name in ("scores_", "centers_", "means_", "covariance_", "transformation_", "coef_"):
        np.testing.assert_array_equal(attribute(moved, name, cupy), getattr(model, name))
    there = clone(model).fit(cupy.array(X), y)
    assert_same_model(there, moved, cupy)
    np.testing.assert_allclose(
        cupy.host(moved.predict_proba(cupy.array(X))), model.predict_proba(X), rtol=1e-10
    )
    np.testing.assert_allclose(
        cupy.host(there.transform(cupy.csr(X))), model.transform(X), rtol=1e-9, atol=1e-12
    )
    # A batch for the moved model does not change the original.
    before = bits(model._fitted.statistics)
    back = moved.partial_fit(cupy.array(X), y).to("cpu")
    assert bits(model._fitted.statistics) == before
    twice = clone(model).fit(np.tile(X, (2, 1)), np.tile(y, 2))
    assert_same_model(back, twice, BACKENDS["numpy"])


def test_the_device_parameter_moves_the_work() -> None:
    X, y = correlated(3)
    cupy = BACKENDS["cupy"]
    expected = MahalanobisCenterClassifier(k=3).fit(X, y)
    for container in (X, scipy.sparse.csr_array(X), scipy.sparse.csc_matrix(X)):
        model = MahalanobisCenterClassifier(k=3, device="cuda").fit(container, y)
        cupy.check(model.scores_)
        found = model.transform(container)
        assert isinstance(found, np.ndarray)  # the library of X
        np.testing.assert_allclose(found, expected.transform(X), rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(model.predict(container), expected.predict(X))


@pytest.mark.parametrize("method", ["predict", "decision_function", "predict_proba", "transform"])
def test_x_of_another_library_is_refused(method: str) -> None:
    X, y = correlated(3)
    for here, there in (("numpy", "cupy"), ("cupy", "array_api_strict")):
        model = MahalanobisCenterClassifier().fit(BACKENDS[here].array(X), y)
        with pytest.raises(ValueError, match=r"must use the same namespace .* to\(device\)"):
            getattr(model, method)(BACKENDS[there].array(X))


def test_verbose_shows_what_was_fitted(capsys: pytest.CaptureFixture) -> None:
    X, y = correlated(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MahalanobisCenterClassifier(k=2, verbose=True).fit(X, y)
    assert "MahalanobisCenterClassifier: 60 x 5" in capsys.readouterr().out
