"""The classifiers as parts of pipelines, searches and meta-estimators."""

from __future__ import annotations

from typing import Any

import joblib
import numpy as np
import pytest
import scipy.sparse
import scipy.special
from separated import assert_identical_on_host, separated
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier, OutputCodeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from small_data import KINDS

from gpucenters import (
    L2CenterClassifier,
)


@pytest.mark.parametrize("kind", KINDS)
def test_clone_copies_parameters_and_nothing_else(kind: Any) -> None:
    X, y = separated(2)
    parameters = {"k": 3, "scale": "std", "device": "cpu", "memory_budget": "1MB"}
    if kind is L2CenterClassifier:
        parameters["priors"] = np.array([0.25, 0.75])
    copied = clone(kind(**parameters).fit(X, y))
    for name, value in parameters.items():
        np.testing.assert_array_equal(getattr(copied, name), value)
    assert not hasattr(copied, "classes_")
    with pytest.raises(NotFittedError, match=f"{kind.__name__} instance is not fitted"):
        copied.predict(X)


@pytest.mark.parametrize("kind", KINDS)
def test_classifies_behind_a_scaler(kind: Any) -> None:
    X, y = load_wine(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), kind(k=5)).fit(X, y)
    scaled = StandardScaler().fit_transform(X)
    expected = kind(k=5).fit(scaled, y)
    np.testing.assert_array_equal(pipeline.predict(X), expected.predict(scaled))
    assert pipeline.score(X, y) == expected.score(scaled, y) > 0.85


TEXTS = [
    "a good film",
    "good acting and good music",
    "bad plot",
    "a bad film with bad music",
    "good good good",
    "the plot is bad",
]
OPINIONS = np.array(["like", "like", "dislike", "dislike", "like", "dislike"])


def test_classifies_behind_tfidf() -> None:
    pipeline = make_pipeline(TfidfVectorizer(), L2CenterClassifier(k=2)).fit(TEXTS, OPINIONS)
    words = pipeline[:1].get_feature_names_out()
    assert words[pipeline[-1].support_].tolist() == ["bad", "good"]
    assert pipeline.predict(["bad", "good"]).tolist() == ["dislike", "like"]


def _name(value: Any) -> str:
    if not hasattr(value, "keywords"):
        return type(value).__name__
    return "-".join([value.func.__name__, *map(str, value.keywords.values())])


@pytest.mark.parametrize("last", [LogisticRegression(), LinearSVC()], ids=_name)
@pytest.mark.parametrize("kind", KINDS)
def test_selects_before_another_classifier(kind: Any, last: Any) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), kind(k=4), clone(last)).fit(X, y)
    scaled = StandardScaler().fit_transform(X)
    chosen = scaled[:, kind(k=4).fit(scaled, y).support_]
    expected = clone(last).fit(chosen, y)
    np.testing.assert_array_equal(pipeline.predict(X), expected.predict(chosen))
    assert pipeline[-1].coef_.shape == (1, 4)


def test_selects_words_between_tfidf_and_another_classifier() -> None:
    selector = L2CenterClassifier(k=2)
    pipeline = make_pipeline(TfidfVectorizer(), selector, LinearSVC()).fit(TEXTS, OPINIONS)
    assert pipeline[:2].get_feature_names_out().tolist() == ["bad", "good"]
    assert scipy.sparse.issparse(pipeline[:2].transform(TEXTS))
    assert pipeline.predict(["bad", "good"]).tolist() == ["dislike", "like"]


@pytest.mark.parametrize("kind", KINDS)
def test_grid_search_over_k_scores_as_single_fits_do(kind: Any) -> None:
    X, y = load_wine(return_X_y=True)
    folds = StratifiedKFold(3)
    ks = [1, 3, 0.5, "all"]
    search = GridSearchCV(kind(scale="std"), {"k": ks}, cv=folds).fit(X, y)
    expected = [
        np.mean(
            [
                kind(k=k, scale="std").fit(X[train], y[train]).score(X[test], y[test])
                for train, test in folds.split(X, y)
            ]
        )
        for k in ks
    ]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected, rtol=1e-12)
    assert search.best_params_ == {"k": ks[int(np.argmax(expected))]}
    assert_identical_on_host(
        search.best_estimator_, kind(scale="std", **search.best_params_).fit(X, y), X
    )


@pytest.mark.parametrize("n_jobs", [1, 2])  # 2 starts processes
@pytest.mark.parametrize("kind", KINDS)
def test_cross_val_score_is_the_score_of_each_fold(kind: Any, n_jobs: int) -> None:
    X, y = load_wine(return_X_y=True)
    folds = StratifiedKFold(3)
    expected = [
        kind(k=3).fit(X[train], y[train]).score(X[test], y[test])
        for train, test in folds.split(X, y)
    ]
    with joblib.parallel_backend("loky"):
        found = cross_val_score(kind(k=3), X, y, cv=folds, n_jobs=n_jobs)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_calibration_keeps_the_order_of_the_decisions(kind: Any) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model = kind(k=5, scale="std")
    calibrated = CalibratedClassifierCV(model, ensemble=False, cv=3).fit(X, y)
    probabilities = calibrated.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    order = np.argsort(clone(model).fit(X, y).decision_function(X), kind="stable")
    assert np.all(np.diff(probabilities[order, 1]) >= 0)
    assert probabilities[order[0], 1] < 0.1 and probabilities[order[-1], 1] > 0.9


@pytest.mark.parametrize("kind", KINDS)
def test_one_versus_rest_takes_the_largest_binary_decision(kind: Any) -> None:
    X, y = load_wine(return_X_y=True)
    model = OneVsRestClassifier(kind(k=4, scale="std")).fit(X, y)
    decisions = [
        kind(k=4, scale="std").fit(X, y == label).decision_function(X) for label in range(3)
    ]
    np.testing.assert_array_equal(model.predict(X), np.argmax(decisions, axis=0))


@pytest.mark.parametrize("kind", KINDS)
def test_output_codes_are_learned_bit_by_bit(kind: Any) -> None:
    X, y = load_wine(return_X_y=True)
    model = OutputCodeClassifier(kind(k=4, scale="std"), code_size=2, random_state=10).fit(X, y)
    for bit, found in enumerate(model.estimators_):
        expected = kind(k=4, scale="std").fit(X, model.code_book_[y, bit])
        assert_identical_on_host(found, expected, X)
    assert np.mean(model.predict(X) == y) > 0.8
