"""Scores of every number of features from one fit: those of a model fitted with each."""

from __future__ import annotations

import gzip
import io
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import path_problems
import pytest
import scipy.sparse
import sklearn
from conftest import BACKENDS, cupy
from every_model import others
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import Ridge
from sklearn.metrics import make_scorer, matthews_corrcoef
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    StratifiedShuffleSplit,
    cross_validate,
)
from stand_in import counts, on_stand_in
from strategies import quietly

from gpucenters import (
    GMEBClassifier,
    L1CenterClassifier,
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    ShrunkenCentroidClassifier,
    SparseBernoulliNB,
    SparseGaussianNB,
    SparseMultinomialNB,
    SparsePoissonNB,
    SparsityPathCV,
    load,
    sparsity_path,
)
from gpucenters.estimators.fitted import FittedModel
from gpucenters.estimators.path_predictions import predict_path
from gpucenters.paths.sparsity_path import resolve_ks
from gpucenters.solvers.path import doubtful_scores

MODELS = [
    L2CenterClassifier(),
    L2CenterClassifier(scale="std", priors="empirical"),
    L2CenterClassifier(scale="pooled"),
    L1CenterClassifier(),
    L1CenterClassifier(scale="std"),
    SparseBernoulliNB(),
    SparsePoissonNB(),
    SparsePoissonNB(exposure=None, scale="dispersion"),
    SparseGaussianNB(var_smoothing=0.1),
    ShrunkenCentroidClassifier(),
    SparseMultinomialNB(fit_prior=False),
    MahalanobisCenterClassifier(covariance="total", shrinkage=0.1),
]
MODELS += others(MODELS)
each_model = pytest.mark.parametrize("model", MODELS, ids=str)


def _few_values(rng: np.random.Generator, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(X, y, X_test): small integers, with equal features, equal classes and ties."""
    n, m = 12, int(rng.integers(2, 7))
    y = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    X = rng.integers(0, 4, (n, m)) * (rng.random((n, m)) < 0.7)
    X[:, 0] = X[:, -1]
    if k > 2:
        X[y == 1] = X[y == 2][:1]
    return X, y, np.concatenate([X, rng.integers(0, 5, (8, m)), np.zeros((1, m), int)])


@each_model
@pytest.mark.parametrize("classes", [2, 4])
def test_labels_of_every_k_are_those_of_a_model_fitted_with_it(
    model: Any, classes: int, backend: Any
) -> None:
    for seed in range(6 if backend.name == "numpy" else 1):
        rng = np.random.default_rng(seed)
        X, y, rows = _few_values(rng, classes)
        ks = list(range(1, X.shape[1] + 1))
        pairs = list(zip(backend.containers(X), backend.containers(rows), strict=True))
        if backend.name == "numpy":  # each problem takes one of the containers in turn
            pairs = [pairs[seed % len(pairs)]]
        elif isinstance(model, SparseMultinomialNB):
            ks, pairs = ks[::2], pairs[:2]  # many small steps, slow on the stand-ins
        for held, asked in pairs:
            every = quietly(clone(model).fit, held, y)
            found = quietly(predict_path, every, asked, ks, decision=True, probability=True)
            for s, k in enumerate(ks):
                one = quietly(clone(model).set_params(k=k).fit, held, y)
                expected = backend.host(one.predict(asked))
                np.testing.assert_array_equal(every.classes_[found.codes[s]], expected)
                values = backend.host(one.decision_function(asked)).reshape(len(rows), -1)
                np.testing.assert_allclose(found.decision[s], values, rtol=1e-9, atol=1e-9)
                shares = backend.host(one.predict_proba(asked))
                np.testing.assert_allclose(found.probability[s], shares, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("classes", "seed"), [(2, 3), (3, 13)])
def test_features_that_leave_the_support_again(classes: int, seed: int, backend: Any) -> None:
    rng, ks = np.random.default_rng(seed), list(range(1, 13))
    X = rng.poisson(rng.gamma(0.5, 2, 12), (10, 12)) * rng.integers(0, 3, (10, 12))
    y, rows = np.arange(10) % classes, np.concatenate([X, np.eye(12, dtype=int)])
    pairs = list(zip(backend.containers(X), backend.containers(rows), strict=True))
    for held, asked in pairs if backend.name == "numpy" else pairs[:1]:
        every = quietly(SparseMultinomialNB(fit_prior=False).fit, held, y)
        found = quietly(predict_path, every, asked, ks, decision=True)
        supports = [set(quietly(every.with_k, k).support_.tolist()) for k in ks]
        assert any(one - other for one, other in pairwise(supports))
        for s, k in enumerate(ks):
            one = quietly(every.with_k, k)
            np.testing.assert_array_equal(found.codes[s], backend.host(one.predict(asked)))
            values = backend.host(one.decision_function(asked)).reshape(len(rows), -1)
            np.testing.assert_allclose(found.decision[s], values, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", [119, 504, 1419])
def test_multinomial_supports_do_not_depend_on_what_was_solved_before(seed: int) -> None:
    rng = np.random.default_rng(seed)
    classes, m = int(rng.integers(2, 8)), int(rng.integers(6, 20))
    y, ks = np.arange(24) % classes, list(range(1, m + 1))
    X = rng.poisson(rng.gamma(0.5, 2, (classes, m))[y])
    path = quietly(sparsity_path, SparseMultinomialNB(), X, y, ks=ks, X_test=X, y_test=y)
    last = one = quietly(SparseMultinomialNB(k=m).fit, X, y)
    for s, k in reversed(list(enumerate(ks))):
        expected = quietly(SparseMultinomialNB(k=k).fit, X, y)
        last = quietly(last.with_k, k)
        for found in (last, quietly(one.with_k, k)):
            np.testing.assert_array_equal(found.support_, expected.support_)
            np.testing.assert_array_equal(found.scores_, expected.scores_)
        support = path.selection_frequency[[s]].indices
        np.testing.assert_array_equal(support, expected.support_)


def test_shrunken_labels_of_ties_are_those_of_a_model_fitted_with_k(on_host: Any) -> None:
    # Each feature is there twice, and in each row the two cancel, but for rounding.
    for seed in range(8):
        rng = np.random.default_rng(seed)
        m = int(rng.integers(4, 30))
        X, d = rng.integers(0, 10, (6, m)) * 0.1, rng.integers(0, 5, (6, m)) * 0.1
        X, y = np.concatenate([X, 1 - X]), np.repeat([0, 1], 6)
        rows = np.concatenate([0.5 - d, 0.5 + d], axis=1)
        every = ShrunkenCentroidClassifier(offset=0.0).fit(np.concatenate([X, X], axis=1), y)
        for k in (m, 2 * m):
            found = quietly(predict_path, every, rows, [k]).codes[0]
            np.testing.assert_array_equal(found, quietly(every.with_k, k).predict(rows))


def test_means_that_are_rounded_to_one_are_compared_as_in_a_refit(on_host: Any) -> None:
    X, y = np.full((9, 2), 1 / 3), np.asarray([0, 2, 1, 2, 2, 1, 2, 0, 0])
    every = quietly(L2CenterClassifier().fit, X, y)
    found = quietly(predict_path, every, X, [1, 2]).codes
    for s in (0, 1):
        np.testing.assert_array_equal(found[s], quietly(every.with_k, s + 1).predict(X))


def test_equal_classes_are_in_doubt_where_their_scores_are_not(backend: Any) -> None:
    scores = np.asarray([[1.0, 1.0], [0.5, 0.5], [1.0, 1.0 + 2.0**-52]])[:, None, :]
    bound = backend.array(np.full((1, 2), 1e-12))
    found = doubtful_scores(backend.array(scores), bound, [(2, 0, 0)])
    assert backend.host(found).tolist() == [[False, True]]


# Problems with ties that rounding decides, and with multinomial supports of nearly one value.
SEEDS = {
    L2CenterClassifier: [6, 168],
    MahalanobisCenterClassifier: [138, 282],
    ShrunkenCentroidClassifier: [3, 85],
    SparseMultinomialNB: [50, 147],
}


@pytest.mark.parametrize("kind", path_problems.MODELS, ids=lambda kind: kind.__name__)
def test_paths_and_searches_are_those_of_refits(kind: type) -> None:
    for seed in (*range(2), *SEEDS.get(kind, ())):  # `make attack ATTACK=paths` has more
        differences = path_problems.problem_differences(np.random.default_rng(seed), kind)
        assert "".join(differences) == "", f"seed {seed}"


def test_far_classes_are_told_apart_at_every_k(backend: Any) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.integers(-3, 4, (90, 4)) / 2.0
    X[y == 2, 1] += 2.0**40
    for held in backend.containers(X):
        for model in (L2CenterClassifier(), MahalanobisCenterClassifier(covariance=np.eye(4))):
            every = model.fit(held, y)
            found = predict_path(every, held, [1, 2, 3, 4], decision=True, probability=True)
            for s in range(4):
                one = every.with_k(s + 1)
                np.testing.assert_array_equal(found.codes[s], backend.host(one.predict(held)))
                np.testing.assert_array_equal(found.codes[s], found.decision[s].argmax(axis=1))
                shares = backend.host(one.predict_proba(held))
                np.testing.assert_allclose(found.probability[s], shares, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("model", [SparseBernoulliNB(), SparseMultinomialNB()], ids=str)
def test_samples_between_equal_classes_are_not_scored_again(
    model: Any, monkeypatch: pytest.MonkeyPatch, backend: Any
) -> None:
    rng = np.random.default_rng(3)
    one, other = rng.poisson(0.7, (2, 7, 5))
    X, y = np.concatenate([one, other + 3, one]), np.repeat(np.arange(3), 7)
    every = quietly(model.fit, backend.array(X), y)

    def refuse(*args: Any) -> None:
        raise AssertionError("samples were scored again")

    monkeypatch.setattr(type(every), "with_k", refuse)
    monkeypatch.setattr(type(FittedModel(every).centers), "decision", refuse)
    found = quietly(predict_path, every, backend.array(X), [2, 4, 5])
    assert set(found.codes.ravel().tolist()) == {0, 1}


def test_rows_are_scored_in_parts_where_memory_is_short(sparse_backend: Any) -> None:
    rng = np.random.default_rng(1)
    y = np.arange(60) % 3
    X = rng.poisson(0.5, (60, 10)) + 2 * (np.arange(10) % 3 == y[:, None])
    kinds = (L2CenterClassifier, L1CenterClassifier, SparseMultinomialNB)
    for held in sparse_backend.containers(X):
        for kind in kinds[: 3 if sparse_backend.name == "numpy" else 2]:
            ks, found = [1, 5, 10], []
            for budget in ("1GB", "16KB"):
                model = quietly(kind(memory_budget=budget).fit, held, y)
                found.append(quietly(predict_path, model, held, ks, decision=True))
            np.testing.assert_array_equal(found[0].codes, found[1].codes)
            np.testing.assert_allclose(found[0].decision, found[1].decision, rtol=1e-12)


def test_values_that_leave_float64_are_refused_as_in_predictions(on_host: Any) -> None:
    X = np.asarray([[0.0, 1], [1, 3], [2, 0], [3, 2]])
    model = L2CenterClassifier().fit(X, [0, 0, 1, 1])
    X[2, 1] = np.nan
    with pytest.raises(ValueError, match="feature 1"):
        predict_path(model, X, [1, 2])


@each_model
def test_a_model_loaded_with_its_support_alone_refuses_a_path_and_says_why(model: Any) -> None:
    y = np.arange(60) % 3
    X = np.random.default_rng(0).poisson(1.0 + 3 * (y[:, None] == np.arange(8) % 3)).astype(float)
    file = io.BytesIO()
    clone(model).set_params(k=4).fit(X, y).save(file)
    file.seek(0)
    with pytest.raises(ValueError, match=r"path of predictions .* Save it with full=True"):
        predict_path(load(file), X, [2, 3])


# --- real data ---------------------------------------------------------------------------------

EXACT = ["accuracy", "balanced_accuracy", "f1_macro", "f1_weighted"]
REAL_MODELS = [
    L2CenterClassifier(),
    L2CenterClassifier(scale="std"),
    L2CenterClassifier(scale="pooled"),
    L1CenterClassifier(),
    L1CenterClassifier(scale="std"),
    MahalanobisCenterClassifier(shrinkage=0.1),
    SparseBernoulliNB(),
    SparseMultinomialNB(),
]


def _texts(path: Path) -> tuple[Any, np.ndarray]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as lines:
        next(lines)
        pairs = [line.rstrip("\n").split("\t", 1) for line in lines]
    labels, texts = zip(*pairs, strict=True)
    return CountVectorizer().fit_transform(texts), np.asarray(labels, dtype=np.int64)


@pytest.fixture(scope="module")
def real() -> dict[str, tuple[Any, np.ndarray]]:
    from conftest import DATA

    if not (DATA / "mpqa.tsv.gz").exists():
        pytest.skip(f"no data sets at {DATA}: set GPUCENTERS_DATA")
    with np.load(DATA / "singh.npz", allow_pickle=False) as file:
        singh = file["X"][:, ::3], np.unique(file["y"], return_inverse=True)[1]
    return {
        "mpqa": _texts(DATA / "mpqa.tsv.gz"),
        "r8": _texts(DATA / "r8.train.tsv.gz"),
        "singh": singh,
    }


@pytest.mark.filterwarnings("ignore::gpucenters.UninformativeFeaturesWarning")
@pytest.mark.parametrize("model", REAL_MODELS, ids=str)
@pytest.mark.parametrize("stored", ["as it is", "the other way"])
@pytest.mark.parametrize("data", ["mpqa", "singh", "r8"])
def test_scores_on_real_data_are_those_of_cross_validation_with_each_k(
    data: str, stored: str, model: Any, real: Any
) -> None:
    X, y = real[data]
    if isinstance(model, MahalanobisCenterClassifier):
        X = X[:, :200]
    if stored == "the other way":
        X = X[::4, :600].toarray() if data != "singh" else scipy.sparse.csc_matrix(X)
        y = y if data == "singh" else y[::4]
    if isinstance(model, SparseMultinomialNB):
        X = abs(X)
    scoring = [*EXACT, "neg_log_loss"] + (["f1", "roc_auc"] if y.max() == 1 else [])
    ks = [1, 50, X.shape[1]]
    found = sparsity_path(model, X, y, ks=ks, cv=2, scoring=scoring)
    assert found.ks.tolist() == ks
    for s, k in enumerate(ks):
        one = clone(model).set_params(k=k)
        expected = cross_validate(one, X, y, cv=2, scoring=scoring, error_score="raise")
        for name in scoring:
            scores, theirs = found.scores[name][s], expected[f"test_{name}"]
            if name in ("neg_log_loss", "roc_auc"):
                np.testing.assert_allclose(scores, theirs, rtol=0, atol=1e-12, err_msg=name)
            else:
                np.testing.assert_array_equal(scores, theirs, err_msg=name)


@on_stand_in
@pytest.mark.parametrize("kind", ["array", "csr"])
def test_of_data_on_a_device_only_predictions_and_supports_come_to_the_host(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    n, m, ks = 240, 60, [1, 8, 60]
    X, y = counts(n, m, 3)
    held, sizes, get = getattr(BACKENDS["cupy"], kind)(X + 1), [], cupy.ndarray.get

    def measured(array: Any, *args: Any, **kwargs: Any) -> Any:
        sizes.append(array.size)
        return get(array, *args, **kwargs)

    monkeypatch.setattr(cupy.ndarray, "get", measured)
    for model in (L2CenterClassifier(scale="std"), L1CenterClassifier(), SparseBernoulliNB()):
        quietly(sparsity_path, model, held, y, ks=ks, cv=3)
    # Labels of a fold are 3 x 80 numbers, a matrix of its rows has 4,800.
    assert 0 < max(sizes) <= len(ks) * n


def test_test_samples_with_other_columns_are_refused(on_host: Any) -> None:
    frame, y = load_wine(return_X_y=True, as_frame=True)
    model, other = L2CenterClassifier(), frame[frame.columns[::-1]]
    with pytest.raises(ValueError, match="other columns"):
        sparsity_path(model, frame, y, X_test=other, y_test=y)
    found = sparsity_path(model, frame, y, X_test=frame, y_test=y, ks=[2])
    assert found.feature_names.tolist() == list(frame.columns)
    assert found.scores[0, 0] == L2CenterClassifier(k=2).fit(frame, y).score(frame, y)


# --- parameters --------------------------------------------------------------------------------

CANCER = load_breast_cancer(return_X_y=True)
WINE = load_wine(return_X_y=True)


def test_numbers_of_features() -> None:
    assert resolve_ks([5, 0.5, "all", 1, np.int64(5), np.float64(0.1)], 10) == [1, 5, 10]
    steps = resolve_ks(None, 10**6)
    assert steps[0] == 1 and steps[-1] == 10**6 and 35 <= len(steps) <= 40
    assert resolve_ks(None, 3) == [1, 2, 3]
    with pytest.warns(UserWarning, match="greater than n_features"):
        assert resolve_ks([99], 10) == [10]
    for wrong in ([0], [1.5], [True], [-1]):
        with pytest.raises(ValueError, match="is not valid"):
            resolve_ks(wrong, 10)
    for wrong in ("all", 5):
        with pytest.raises(TypeError, match="a list of numbers"):
            resolve_ks(wrong, 10)
    with pytest.raises(ValueError, match="empty"):
        resolve_ks([], 10)


def test_folds_are_those_of_scikit_learn(backend: Any) -> None:
    X, y = CANCER
    groups, model, ks = np.arange(len(y)) // 7, L2CenterClassifier(scale="std"), [2, 9]
    splitters = [
        ({"cv": 4}, {"cv": 4}),
        ({}, {"cv": 5}),
        ({"cv": GroupKFold(3), "groups": groups}, {"cv": GroupKFold(3), "groups": groups}),
        (
            {"n_splits": 6, "test_size": 0.3, "random_state": 1},
            {"cv": StratifiedShuffleSplit(6, test_size=0.3, random_state=1)},
        ),
        (
            {"n_splits": 6, "groups": groups, "random_state": 1},
            {"cv": GroupShuffleSplit(6, test_size=0.2, random_state=1), "groups": groups},
        ),
    ]
    for ours, theirs in splitters:
        expected = [
            cross_validate(clone(model).set_params(k=k), X, y, **theirs)["test_score"] for k in ks
        ]
        for held in backend.containers(X):
            found = sparsity_path(model, held, y, ks=ks, **ours)
            np.testing.assert_allclose(found.scores, expected, rtol=1e-12)
    # An iterable of pairs, one of them a mask.
    mask = np.arange(len(y)) >= 300
    found = sparsity_path(model, backend.array(X), y, ks=ks, cv=[(np.arange(300), mask)])
    train, test = backend.array(X[:300]), backend.array(X[300:])
    one = clone(model).set_params(k=9).fit(train, y[:300])
    assert found.scores[1, 0] == one.score(test, y[300:])


def test_given_test_samples_are_one_fold(backend: Any) -> None:
    X, y = WINE
    train = np.arange(len(y)) % 3 > 0
    held, asked = backend.array(X[train]), backend.array(X[~train])
    weights = 1.0 + np.arange(train.sum()) % 2
    model = L1CenterClassifier(scale="pooled")
    found = sparsity_path(
        model, held, y[train], ks=[3, 13], X_test=asked, y_test=y[~train], sample_weight=weights
    )
    assert found.scores.shape == (2, 1)
    for s, k in enumerate([3, 13]):
        one = clone(model).set_params(k=k).fit(held, y[train], weights)
        assert found.scores[s, 0] == one.score(asked, y[~train])


def test_weights_go_to_the_fits(on_host: Any) -> None:
    X, y = CANCER
    weights = np.where(np.arange(len(y)) % 5 == 0, 0.0, 1.0 + y)
    model = L2CenterClassifier(k=4, scale="std")
    found = sparsity_path(model, X, y, ks=[4], sample_weight=weights)
    expected = cross_validate(model, X, y, params={"sample_weight": weights})
    np.testing.assert_array_equal(found.scores[0], expected["test_score"])


def test_metadata_are_routed_as_in_cross_validation(on_host: Any) -> None:
    X, y = CANCER
    weights, groups = 1.0 + np.arange(len(y)) % 3, np.arange(len(y)) // 5
    with sklearn.config_context(enable_metadata_routing=True):
        model = L2CenterClassifier(k=3).set_fit_request(sample_weight=True)
        scorer = make_scorer(matthews_corrcoef).set_score_request(sample_weight=True)
        given = {"sample_weight": weights, "groups": groups}
        expected = cross_validate(model, X, y, cv=GroupKFold(3), scoring=scorer, params=given)
        found = sparsity_path(model, X, y, ks=[3], cv=GroupKFold(3), scoring=scorer, **given)
        np.testing.assert_allclose(found.scores[0], expected["test_score"], rtol=1e-12)
        with pytest.raises(Exception, match="not explicitly set as requested"):
            sparsity_path(L2CenterClassifier(), X, y, sample_weight=weights)
        given = {"sample_weight": np.where(np.arange(len(y)) < 400, 1.0, 0.0)}
        folds = [(range(400), range(400, 569))]
        with pytest.raises(ValueError, match="fold 0 of cv has no test sample of positive weight"):
            sparsity_path(model, X, y, cv=folds, scoring=scorer, **given)


def _share_of_ones(estimator: Any, X: Any, y: Any) -> float:
    return float(np.mean(estimator.predict(X) == estimator.classes_[-1]))


def _two_scores(estimator: Any, X: Any, y: Any) -> dict[str, float]:
    shares = estimator.predict_proba(X)
    return {"largest": float(shares.max()), "mean": float(estimator.decision_function(X).mean())}


@pytest.mark.parametrize("data", [CANCER, WINE], ids=["two classes", "three classes"])
@pytest.mark.parametrize(
    "scoring",
    [
        None,
        "roc_auc_ovr",
        "average_precision",
        "f1_micro",
        _share_of_ones,
        _two_scores,
        make_scorer(matthews_corrcoef),
        ("accuracy", "jaccard_macro"),
        {"mine": _share_of_ones, "acc": "accuracy", "loss": "neg_log_loss"},
    ],
    ids=lambda scoring: getattr(scoring, "__name__", type(scoring).__name__),
)
def test_any_scoring_is_that_of_cross_validation(scoring: Any, data: Any) -> None:
    (X, y), model, ks = data, L2CenterClassifier(scale="std", priors="empirical"), [1, 6, 13]
    found = sparsity_path(model, X, y, ks=ks, cv=3, scoring=scoring)
    for s, k in enumerate(ks):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one = clone(model).set_params(k=k)
            expected = cross_validate(one, X, y, cv=3, scoring=scoring, error_score="raise")
        theirs = {n[5:]: v for n, v in expected.items() if n.startswith("test_")}
        ours = found.scores if isinstance(found.scores, dict) else {"score": found.scores}
        assert ours.keys() == theirs.keys()
        for name, values in theirs.items():
            np.testing.assert_allclose(ours[name][s], values, rtol=1e-10, atol=1e-12)


def test_test_folds_without_a_class_are_scored_as_scikit_learn_does(on_host: Any) -> None:
    X, y = WINE
    order = np.argsort(y, kind="stable")
    folds = [(order[::2], order[1:100:2]), (order[1::2], order[60::2])]
    model, scoring = L2CenterClassifier(scale="std"), ["accuracy", "balanced_accuracy", "f1_macro"]
    for k in (1, 5):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = sparsity_path(model, X, y, ks=[k], cv=folds, scoring=scoring)
            one = clone(model).set_params(k=k)
            expected = cross_validate(one, X, y, cv=folds, scoring=scoring, error_score="raise")
        for name in scoring:
            np.testing.assert_array_equal(found.scores[name][0], expected[f"test_{name}"])


def test_labels_of_any_kind(on_host: Any) -> None:
    X, y = CANCER
    names = np.asarray(["malignant", "benign"])[y]
    model = L2CenterClassifier(scale="std")
    plain = sparsity_path(model, X, y, ks=[3], scoring=["accuracy", "roc_auc", "neg_log_loss"])
    named = sparsity_path(model, X, names, ks=[3], scoring=["accuracy", "roc_auc", "neg_log_loss"])
    np.testing.assert_array_equal(plain.scores["accuracy"], named.scores["accuracy"])
    for name in ("roc_auc", "neg_log_loss"):
        np.testing.assert_allclose(plain.scores[name], named.scores[name], rtol=1e-12)
    with pytest.raises(ValueError, match="pos_label=1"):
        sparsity_path(model, X, names, ks=[3], scoring="f1")


def test_folds_side_by_side_give_the_same_path(backend: Any) -> None:
    X, y = CANCER
    held = backend.array(X)
    one, two = (
        sparsity_path(L1CenterClassifier(), held, y, ks=[1, 5, 30], n_jobs=n) for n in (1, 2)
    )
    np.testing.assert_array_equal(one.scores, two.scores)


def test_the_estimator_and_the_data_stay_as_they_are(on_host: Any) -> None:
    X, y = CANCER
    model = L2CenterClassifier(k=3)
    sparsity_path(model, on_host.array(X), y, ks=[1, 2])
    assert model.k == 3 and not hasattr(model, "support_")


def test_wrong_parameters_are_refused(on_host: Any) -> None:
    X, y = CANCER
    model = L2CenterClassifier()
    with pytest.raises(TypeError, match="takes a model of gpucenters"):
        sparsity_path(sklearn.neighbors.NearestCentroid(), X, y)
    with pytest.raises(TypeError, match="every number of features, and GMEBClassifier has none"):
        sparsity_path(GMEBClassifier(), X, y)
    with pytest.raises(ValueError, match="given together"):
        sparsity_path(model, X, y, X_test=X)
    with pytest.raises(ValueError, match="excludes cv"):
        sparsity_path(model, X, y, X_test=X, y_test=y, cv=3)
    with pytest.raises(ValueError, match="exclude each other"):
        sparsity_path(model, X, y, cv=3, n_splits=5)
    with pytest.raises(ValueError, match="no test samples"):
        sparsity_path(model, X, y, cv=[(np.arange(569), np.arange(0))])
    with pytest.raises(ValueError, match="no folds"):
        sparsity_path(model, X, y, cv=[])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        sparsity_path(model, X, y[:-1])
    with pytest.raises(ValueError, match="scoring"):
        sparsity_path(model, X, y, scoring="no such score")


@pytest.mark.parametrize("model", [L2CenterClassifier(scale="std"), SparseMultinomialNB()], ids=str)
def test_selection_frequencies_count_the_supports_of_the_folds(model: Any, backend: Any) -> None:
    rng = np.random.default_rng(2)
    y = np.arange(60) % 3
    X = rng.poisson(1.0, (60, 12)) + (np.arange(12) % 4 == y[:, None])
    folds = [(np.arange(60)[np.arange(60) % 4 != f], np.arange(60)[f::4]) for f in range(4)]
    ks = [1, 3, 4, 12]
    if isinstance(model, SparseMultinomialNB) and backend.name != "numpy":
        pytest.skip("slow on the stand-ins: its supports are tested on the host")
    for held in backend.containers(X):
        found = quietly(sparsity_path, model, held, y, ks=ks, cv=folds).selection_frequency
        assert isinstance(found, scipy.sparse.csr_array) and found.shape == (4, 12)
        expected = np.zeros((4, 12))
        for train, _ in folds:
            for s, k in enumerate(ks):
                one = quietly(clone(model).set_params(k=k).fit, X[train], y[train])
                expected[s, one.support_] += 0.25
        np.testing.assert_array_equal(found.toarray(), expected)
        assert found.nnz == np.count_nonzero(expected)


def test_arguments_that_are_wrong_are_named() -> None:
    X, y = load_iris(return_X_y=True)
    model = L2CenterClassifier()
    for n_splits in (0, -1, 2.5, True):
        with pytest.raises(ValueError, match=f"n_splits={n_splits} is not valid"):
            sparsity_path(model, X, y, n_splits=n_splits)
    with pytest.raises(ValueError, match="150"):
        sparsity_path(model, X, y, sample_weight=np.ones(3))
    with pytest.raises(ValueError, match="X_test excludes cv, groups and n_splits"):
        sparsity_path(model, X, y, X_test=X, y_test=y, groups=[1, 2])
    with pytest.raises(ValueError, match="fold 0 of cv names the training sample 500"):
        sparsity_path(model, X, y, cv=[([0, 60, 120, 500], [1])])
    for train, said in (
        ([-200, 0], "names the training sample -200"),
        ([0.0, 60.0], "type float64"),
        (np.ones(3, bool), r"a mask of training samples of shape \(3,\)"),
    ):
        with pytest.raises(ValueError, match=f"fold 0 of cv .*{said}"):
            sparsity_path(model, X, y, cv=[(train, [1])])
    with pytest.raises(ValueError, match=r"fold 0 cannot be fitted or scored: .*at least two"):
        sparsity_path(model, X, y, cv=[(range(50), [60])])
    with pytest.raises(TypeError, match=r"got the class L2CenterClassifier: pass an instance"):
        sparsity_path(L2CenterClassifier, X, y)
    with pytest.raises(TypeError, match="SparsityPathCV takes a model of gpucenters, got Ridge"):
        SparsityPathCV(Ridge()).fit(X, y)
