"""What scikit-learn asks of a classifier that is a feature selector too."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import threading
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any
from unittest import SkipTest

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import scipy.special
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier, OutputCodeClassifier
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.fixes import parse_version

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    SparseBernoulliNB,
    SparseMultinomialNB,
)

KINDS = [L2CenterClassifier, L1CenterClassifier]
EVERY = [*KINDS, SparseBernoulliNB, SparseMultinomialNB]
# (Some checks have fewer samples than features: the covariance of those is singular.)
CHECKED = [*(kind() for kind in EVERY), MahalanobisCenterClassifier(shrinkage=0.1)]
DATA = {"wine": load_wine, "digits": load_digits, "breast cancer": load_breast_cancer}
TEXTS = [
    "a good film",
    "good acting and good music",
    "bad plot",
    "a bad film with bad music",
    "good good good",
    "the plot is bad",
]
OPINIONS = np.array(["like", "like", "dislike", "dislike", "like", "dislike"])


def _data(n_classes: int, n: int = 30, m: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Real numbers, of which the first three features tell the classes apart."""
    rng = np.random.default_rng(n_classes)
    y = np.arange(n) % n_classes
    X = rng.normal(size=(n, m))
    X[:, :3] += np.asarray([6.0, -4.0, 2.0]) * y[:, None]
    return X, y


def _untied(scores: np.ndarray) -> np.ndarray:
    """Rows whose two largest scores are clearly apart."""
    best = np.sort(scores, axis=1)[:, -2:]
    return best[:, 1] - best[:, 0] > 1e-9 * (1 + np.abs(best[:, 1]))


def _same(found: Any, expected: Any, X: Any, backend: Any) -> None:
    """Assert that two fitted models are one and the same."""
    for name in ("classes_", "support_", "ranking_"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert found.objective_ == expected.objective_
    for a, b in (
        (found.centers_, expected.centers_),
        (found.scores_, expected.scores_),
        (found.decision_function(X), expected.decision_function(X)),
        (found.predict(X), expected.predict(X)),
    ):
        np.testing.assert_array_equal(backend.host(a), backend.host(b))


CHECKS_ARRAYS = parse_version(sklearn.__version__) >= parse_version("1.9")
NO_ARRAYS = "before scikit-learn 1.9 its array API checks want classes_ on the device of X"

# --- scikit-learn's own checks -----------------------------------------------------------------


def _libraries(check: Any) -> set[str]:
    """The array libraries that a check needs."""
    found = {check.keywords.get("array_namespace")}
    found |= {value.xp for name, value in check.keywords.items() if name.endswith("ns_and_device")}
    return found - {None}


def _checks() -> list[Any]:
    """(model, check) pairs, but for those that need array libraries that are not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pairs = [pair for model in CHECKED for pair in estimator_checks_generator(model)]
    pairs = [(m, check) for m, check in pairs if all(map(find_spec, _libraries(check)))]
    skip = pytest.mark.skip(reason=NO_ARRAYS)
    # (It draws values below zero, whatever the tags say.)
    negative = pytest.mark.xfail(raises=ValueError, reason="the check hands in negative values")

    def marks(model: Any, check: Any) -> list[Any]:
        name = check.func.__name__
        if name == "check_decision_proba_consistency" and isinstance(model, SparseMultinomialNB):
            return [negative]
        return [] if CHECKS_ARRAYS or not _libraries(check) else [skip]

    return [pytest.param(*pair, marks=marks(*pair)) for pair in pairs]


CHECKS = _checks()


def _name(value: Any) -> str:
    if not hasattr(value, "keywords"):
        return type(value).__name__
    return "-".join([value.func.__name__, *map(str, value.keywords.values())])


@pytest.mark.filterwarnings("default")  # some checks warn on purpose
@pytest.mark.parametrize(("model", "check"), CHECKS, ids=_name)
def test_passes_scikit_learn_check(model: Any, check: Any) -> None:
    check(model)


@pytest.mark.skipif(not CHECKS_ARRAYS, reason=NO_ARRAYS)
@pytest.mark.parametrize("kind", [type(model) for model in CHECKED])
def test_checks_of_the_array_api_are_not_skipped(kind: Any) -> None:
    ran = set()
    for model, check in (parameters.values for parameters in CHECKS):
        if type(model) is kind and _libraries(check) == {"array_api_strict"}:
            try:
                check(model)
            except SkipTest as reason:
                pytest.fail(f"{_name(check)} was skipped: {reason}")
            ran.add(check.func.__name__)
    assert ran >= {"check_array_api_input", "check_array_api_same_namespace"}


# --- the same answers as scikit-learn ----------------------------------------------------------


@pytest.mark.parametrize("data", list(DATA))
def test_l2_with_all_features_is_nearest_centroid(data: str, backend: Any) -> None:
    X, y = DATA[data](return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that pixels are constant
        theirs = NearestCentroid().fit(X, y)
    ours = L2CenterClassifier().fit(backend.array(X), y)
    np.testing.assert_allclose(backend.host(ours.centers_), theirs.centroids_, rtol=1e-12)
    distances = ((X[:, None, :] - theirs.centroids_) ** 2).sum(axis=2)
    rows = _untied(-distances)
    assert rows.mean() > 0.99
    predicted = backend.host(ours.predict(backend.array(X)))
    np.testing.assert_array_equal(predicted[rows], theirs.predict(X)[rows])


@pytest.mark.parametrize("data", list(DATA))
def test_l1_with_all_features_is_nearest_median(data: str, backend: Any) -> None:
    X, y = DATA[data](return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that pixels are constant
        theirs = NearestCentroid(metric="manhattan").fit(X, y)
    ours = L1CenterClassifier().fit(backend.array(X), y)
    np.testing.assert_array_equal(backend.host(ours.centers_), theirs.centroids_)
    distances = np.abs(X[:, None, :] - theirs.centroids_).sum(axis=2)
    rows = _untied(-distances)
    assert rows.mean() > 0.9
    predicted = backend.host(ours.predict(backend.array(X)))
    np.testing.assert_array_equal(predicted[rows], theirs.predict(X)[rows])


@pytest.mark.skipif(
    not hasattr(NearestCentroid(), "decision_function"),
    reason="this scikit-learn has no NearestCentroid.decision_function",
)
@pytest.mark.parametrize("priors", ["uniform", "empirical", "array"])
@pytest.mark.parametrize("data", list(DATA))
def test_pooled_scale_and_priors_are_diagonal_discriminant_analysis(
    data: str, priors: Any, backend: Any
) -> None:
    X, y = DATA[data](return_X_y=True)
    if priors == "array":
        priors = np.arange(1.0, y.max() + 2)
        priors /= priors.sum()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that pixels are constant
        as_list = priors if isinstance(priors, str) else priors.tolist()
        theirs = NearestCentroid(priors=as_list).fit(X, y)
    ours = L2CenterClassifier(scale="pooled", priors=priors).fit(backend.array(X), y)
    found = backend.host(ours.decision_function(backend.array(X)))
    expected = theirs.decision_function(X)
    if expected.ndim == 2:  # a term common to all classes is left out
        found = found - found[:, :1]
        expected = expected - expected[:, :1]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-7)
    probabilities = backend.host(ours.predict_proba(backend.array(X)))
    if hasattr(theirs, "predict_proba") and expected.ndim == 1:
        # (scikit-learn takes the score for the log of a density, and not for twice the log.)
        np.testing.assert_allclose(
            probabilities[:, 1], scipy.special.expit(expected / 2), rtol=1e-6, atol=1e-12
        )


# --- as a part of other estimators -------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_clone_copies_parameters_and_nothing_else(kind: Any) -> None:
    X, y = _data(2)
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


def test_classifies_behind_tfidf() -> None:
    pipeline = make_pipeline(TfidfVectorizer(), L2CenterClassifier(k=2)).fit(TEXTS, OPINIONS)
    words = pipeline[:1].get_feature_names_out()
    assert words[pipeline[-1].support_].tolist() == ["bad", "good"]
    assert pipeline.predict(["bad", "good"]).tolist() == ["dislike", "like"]


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
    _same_on_host(search.best_estimator_, kind(scale="std", **search.best_params_).fit(X, y), X)


def _same_on_host(found: Any, expected: Any, X: Any) -> None:
    np.testing.assert_array_equal(found.support_, expected.support_)
    np.testing.assert_array_equal(found.centers_, expected.centers_)
    np.testing.assert_array_equal(found.decision_function(X), expected.decision_function(X))


@pytest.mark.parametrize("n_jobs", [1, 2])  # 2: loky's processes
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
        _same_on_host(found, expected, X)
    assert np.mean(model.predict(X) == y) > 0.8


# --- as a feature selector ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_pandas_output_has_the_names_and_the_index_of_the_input(kind: Any) -> None:
    X, y = _data(2)
    frame = pd.DataFrame(X, columns=list("hgfedcba"), index=range(100, 130))
    model = kind(k=2).set_output(transform="pandas").fit(frame, y)
    assert model.feature_names_in_.tolist() == list("hgfedcba")
    assert model.support_.tolist() == [0, 1]
    pd.testing.assert_frame_equal(model.transform(frame), frame[["h", "g"]])
    pd.testing.assert_frame_equal(
        kind(k=2).fit(X, y).set_output(transform="pandas").transform(X),
        pd.DataFrame(X[:, :2], columns=["x0", "x1"]),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_feature_names_out_are_those_of_the_support(kind: Any, backend: Any) -> None:
    X, y = _data(2)
    model = kind(k=2).fit(backend.array(X), y)
    assert model.get_feature_names_out().tolist() == ["x0", "x1"]
    assert model.get_feature_names_out(list("hgfedcba")).tolist() == ["h", "g"]


@pytest.mark.parametrize("kind", KINDS)
def test_support_as_a_mask_and_as_indices(kind: Any, backend: Any) -> None:
    X, y = _data(2)
    model = kind(k=3).fit(backend.array(X[:, ::-1]), y)
    mask, indices = model.get_support(), model.get_support(indices=True)
    assert mask.dtype == np.bool_
    assert mask.tolist() == [False] * 5 + [True] * 3
    np.testing.assert_array_equal(indices, [5, 6, 7])
    np.testing.assert_array_equal(model.support_, indices)


@pytest.mark.parametrize("kind", KINDS)
def test_inverse_transform_puts_columns_back_between_zeros(kind: Any, backend: Any) -> None:
    X, y = _data(2)
    X = X[:, [3, 0, 4, 1, 5]]
    wide = backend.array(X)
    model = kind(k=2).fit(wide, y)
    back = model.inverse_transform(model.transform(wide))
    expected = np.zeros_like(X)
    expected[:, [1, 3]] = X[:, [1, 3]]
    np.testing.assert_array_equal(backend.host(back), expected)
    with pytest.raises(ValueError, match="shape"):
        model.inverse_transform(wide)


@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize("kind", KINDS)
def test_inverse_transform_of_sparse_data_is_sparse(
    kind: Any, layout: str, sparse_backend: Any
) -> None:
    X, y = _data(2)
    X = X[:, [3, 0, 4, 1, 5]]
    wide = getattr(sparse_backend, layout)(X)
    model = kind(k=2).fit(wide, y)
    back = model.inverse_transform(model.transform(wide))
    assert sparse_backend.sparse.issparse(back)
    assert back.nnz == 60
    expected = np.zeros_like(X)
    expected[:, [1, 3]] = X[:, [1, 3]]
    np.testing.assert_array_equal(sparse_backend.host(back.toarray()), expected)


# --- copies ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "duplicate",
    [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))],
    ids=["deepcopy", "pickle"],
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_is_the_same_model(kind: Any, duplicate: Any, backend: Any) -> None:
    X, y = _data(3)
    X = backend.array(X)
    model = kind(k=3, scale="std").fit(X, y)
    _same(duplicate(model), model, X, backend)
    assert duplicate(model).get_params() == model.get_params()


def test_a_copy_learns_on_by_itself(backend: Any) -> None:
    X, y = _data(3)
    model = L2CenterClassifier(k=3).partial_fit(backend.array(X[:15]), y[:15], classes=[0, 1, 2])
    copied = copy.deepcopy(model).partial_fit(backend.array(X[15:]), y[15:])
    X_all = backend.array(X)
    _same(model, L2CenterClassifier(k=3).fit(X_all[:15, :], y[:15]), X_all, backend)
    whole = L2CenterClassifier(k=3).fit(X_all, y)
    np.testing.assert_array_equal(copied.support_, whole.support_)
    np.testing.assert_allclose(
        backend.host(copied.centers_), backend.host(whole.centers_), rtol=1e-12
    )


@pytest.mark.parametrize("k", [1, 2, 3, 0.5, "all"])
@pytest.mark.parametrize("kind", KINDS)
def test_with_k_is_the_model_fitted_with_k(kind: Any, k: Any, backend: Any) -> None:
    X, y = _data(3)
    X = backend.array(X)
    model = kind(k=2, scale="std").fit(X, y)
    before = copy.deepcopy(model)
    found = model.with_k(k)
    assert found.k == k
    _same(found, kind(k=k, scale="std").fit(X, y), X, backend)
    assert model.k == 2
    _same(model, before, X, backend)


def test_with_k_goes_on_from_batches(backend: Any) -> None:
    X, y = _data(2)
    batches = [(backend.array(X[:15]), y[:15]), (backend.array(X[15:]), y[15:])]
    wide, narrow = L2CenterClassifier(), L2CenterClassifier(k=2)
    for batch, labels in batches:
        wide.partial_fit(batch, labels, classes=[0, 1])
        narrow.partial_fit(batch, labels, classes=[0, 1])
    found = wide.with_k(2)
    _same(found, narrow, backend.array(X), backend)
    found.partial_fit(*batches[0])
    narrow.partial_fit(*batches[0])
    _same(found, narrow, backend.array(X), backend)
    assert len(wide.support_) == 8


# --- scores and probabilities ------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_score_is_a_python_float(kind: Any, backend: Any) -> None:
    X, y = _data(2)
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


@pytest.mark.parametrize("dtype", ["U", object])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_string_labels_are_learned_and_given_back(
    kind: Any, n_classes: int, dtype: Any, backend: Any
) -> None:
    X, y = _data(n_classes)
    X = backend.array(X)
    names = np.array(["pear", "apple", "fig"], dtype=dtype)[y]
    model = kind(k=3).fit(X, names)
    assert model.classes_.tolist() == sorted(set(names.tolist()))
    numbers = kind(k=3).fit(X, np.searchsorted(model.classes_, names))
    predicted = model.predict(X)
    assert isinstance(predicted, np.ndarray)
    assert predicted.dtype == model.classes_.dtype
    np.testing.assert_array_equal(predicted, model.classes_[backend.host(numbers.predict(X))])
    assert model.score(X, names) == numbers.score(X, np.searchsorted(model.classes_, names)) > 0.8


@pytest.mark.parametrize("priors", ["uniform", "empirical", "array"])
@pytest.mark.parametrize("scale", [None, "std", "pooled"])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_coefficients_and_intercept_make_the_decision(
    n_classes: int, scale: Any, priors: Any, backend: Any
) -> None:
    X, y = _data(n_classes, n=31)
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
    X, y = _data(n_classes)
    model = L2CenterClassifier(k=3, priors="empirical").fit(backend.array(X), y)
    probabilities = backend.host(model.predict_proba(backend.array(X)))
    logs = backend.host(model.predict_log_proba(backend.array(X)))
    scores = backend.host(model.decision_function(backend.array(X)))
    if n_classes == 2:
        scores = np.stack([np.zeros(30), scores], axis=1)
    np.testing.assert_allclose(probabilities, scipy.special.softmax(scores / 2, axis=1), rtol=1e-12)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-14)
    np.testing.assert_allclose(logs, np.log(probabilities), rtol=1e-12, atol=1e-15)


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
    # Around each border between two classes: the last bits, and scores from 1e-30 to 1 apart.
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


# --- processes and threads ---------------------------------------------------------------------


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork"
)
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_fits_in_a_forked_process(kind: Any) -> None:
    X, y = load_digits(return_X_y=True)
    here = kind(k=20, scale="std").fit(X, y)  # so that thread pools exist before the fork
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        there = pool.submit(kind(k=20, scale="std").fit, X, y).result(timeout=60)
    _same_on_host(there, here, X)


@pytest.mark.parametrize("kind", KINDS)
def test_fits_under_loky(kind: Any) -> None:
    X, y = load_digits(return_X_y=True)
    X = scipy.sparse.csr_array(X)
    with joblib.parallel_backend("loky", n_jobs=2):
        found = joblib.Parallel()(joblib.delayed(kind(k=k).fit)(X, y) for k in (5, 20))
    for k, model in zip((5, 20), found, strict=True):
        _same_on_host(model, kind(k=k).fit(X, y), X)


@pytest.mark.parametrize("kind", KINDS)
def test_many_threads_predict_what_one_predicts(kind: Any) -> None:
    X, y = load_digits(return_X_y=True)
    model = kind(k=20, scale="std")
    if kind is L2CenterClassifier:  # whose solution is then formed by whoever asks first
        model.partial_fit(X, y, classes=range(10))
    else:
        model.fit(X, y)
    alone = copy.deepcopy(model)
    start = threading.Barrier(8)

    def work(_: int) -> tuple[Any, ...]:
        start.wait(timeout=60)
        support = model.support_.copy()
        return model.predict(X), model.decision_function(X), model.transform(X), support

    expected = (alone.predict(X), alone.decision_function(X), alone.transform(X), alone.support_)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(work, range(8)):
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_array_equal(a, b)
