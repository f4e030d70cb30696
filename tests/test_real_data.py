"""Accuracies on real data, as published or as measured."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.multiclass import OneVsRestClassifier, OutputCodeClassifier
from sklearn.naive_bayes import BernoulliNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from strategies import quietly

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    ShrunkenCentroidClassifier,
    SparseBernoulliNB,
    SparseGaussianNB,
    SparseMultinomialNB,
    SparsePoissonNB,
    multiclass,
)


@pytest.fixture(scope="module")
def prostate() -> tuple[np.ndarray, np.ndarray]:
    from conftest import DATA

    path = DATA / "singh.npz"
    if not path.exists():
        pytest.skip(f"no {path}: set GPUCENTERS_DATA")
    with np.load(path, allow_pickle=False) as file:
        return file["X"], file["y"]


def _balanced_accuracy(kind: type, X: np.ndarray, y: np.ndarray, ks: list) -> np.ndarray:
    """Mean over 15 stratified 80/20 splits, for each k of one fit."""
    scores = []
    for seed in range(15):
        train, test = train_test_split(
            np.arange(len(y)), test_size=0.2, stratify=y, random_state=seed
        )
        model = kind(scale="std").fit(X[train], y[train])
        scores.append(
            [balanced_accuracy_score(y[test], model.with_k(k).predict(X[test])) for k in ks]
        )
    return np.mean(scores, axis=0)


def test_a_thousandth_of_the_prostate_genes_beats_all_of_them(
    prostate: tuple[np.ndarray, np.ndarray],
) -> None:
    # The paper's figure for Singh: a thousandth of the genes tells tumours from normal tissue,
    # all of them do not, and then medians are better than means.
    few, all_l1 = _balanced_accuracy(L1CenterClassifier, *prostate, [0.001, "all"])
    (all_l2,) = _balanced_accuracy(L2CenterClassifier, *prostate, ["all"])
    assert few == pytest.approx(0.92, abs=0.02)
    assert all_l1 == pytest.approx(0.71, abs=0.02)
    assert all_l2 == pytest.approx(0.63, abs=0.02)


def test_a_tenth_of_the_words_of_mpqa_keeps_the_accuracy(data_dir: Path) -> None:
    with gzip.open(data_dir / "mpqa.tsv.gz", "rt", encoding="utf-8", newline="\n") as lines:
        next(lines)
        pairs = [line.rstrip("\n").split("\t", 1) for line in lines]
    labels, texts = zip(*pairs, strict=True)
    X = CountVectorizer(token_pattern=r"(?u)\b\w+\b").fit_transform(texts)
    assert X.shape == (10606, 6208)
    scores = []
    for seed in range(5):
        X_train, X_test, y_train, y_test = train_test_split(
            X, np.asarray(labels), test_size=0.2, stratify=labels, random_state=seed
        )
        selector = L2CenterClassifier(k=0.1, scale="std")
        alone = selector.fit(X_train, y_train).score(X_test, y_test)
        pipeline = make_pipeline(selector, LinearSVC()).fit(X_train, y_train)
        assert len(selector.support_) == 620
        scores.append([alone, pipeline.score(X_test, y_test)])
    alone, before_svm = np.mean(scores, axis=0)
    assert alone == pytest.approx(0.81, abs=0.01)
    assert before_svm == pytest.approx(alone, abs=0.02)


Split = tuple[Any, Any, np.ndarray, np.ndarray]


def _texts(path: Path) -> tuple[list[str], np.ndarray]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as lines:
        next(lines)
        pairs = [line.rstrip("\n").split("\t", 1) for line in lines]
    labels, texts = zip(*pairs, strict=True)
    return list(texts), np.asarray(labels, dtype=np.int64)


@pytest.fixture(scope="module")
def r8() -> Split:
    from conftest import DATA

    if not (DATA / "r8.train.tsv.gz").exists():
        pytest.skip(f"no R8 at {DATA}: set GPUCENTERS_DATA")
    train, y_train = _texts(DATA / "r8.train.tsv.gz")
    test, y_test = _texts(DATA / "r8.test.tsv.gz")
    words = CountVectorizer().fit(train)
    return words.transform(train), words.transform(test), y_train, y_test


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(SparseBernoulliNB, BernoulliNB), (SparseMultinomialNB, MultinomialNB)],
    ids=["bernoulli", "multinomial"],
)
@pytest.mark.parametrize("alpha", [1.0, 0.01])
def test_naive_bayes_with_all_features_of_r8_equals_scikit_learn(
    ours: Any, theirs: Any, alpha: float, r8: Split
) -> None:
    X_train, X_test, y_train, _ = r8
    expected = theirs(alpha=alpha).fit(X_train, y_train)
    model = ours(alpha=alpha).fit(X_train, y_train)
    for X in (X_test, X_test[:200].toarray()):
        found = model.predict_proba(X)
        assert found.shape == (X.shape[0], 8)
        np.testing.assert_allclose(found, expected.predict_proba(X), rtol=0, atol=1e-8)


@pytest.fixture(scope="module")
def digits() -> Split:
    X, y = load_digits(return_X_y=True)
    return train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)


# Measured accuracies of the joint model, one-vs-rest and output codes.
FOUND = {
    "r8": {
        L2CenterClassifier: (0.804, 0.800, 0.780),
        SparseBernoulliNB: (0.857, 0.864, 0.847),
        SparseMultinomialNB: (0.958, 0.964, 0.964),
        SparsePoissonNB: (0.956, 0.963, 0.963),
        SparseGaussianNB: (0.844, 0.803, 0.783),
        ShrunkenCentroidClassifier: (0.865, 0.850, 0.827),
    },
    "digits": {
        L2CenterClassifier: (0.889, 0.883, 0.691),
        L1CenterClassifier: (0.883, 0.885, 0.622),
        MahalanobisCenterClassifier: (0.946, 0.950, 0.896),
        SparseBernoulliNB: (0.846, 0.854, 0.683),
        SparseMultinomialNB: (0.883, 0.898, 0.685),
        SparsePoissonNB: (0.881, 0.893, 0.702),
        SparseGaussianNB: (0.883, 0.885, 0.696),
        ShrunkenCentroidClassifier: (0.746, 0.902, 0.687),
    },
}
MODELS = {
    L2CenterClassifier: {"scale": "std"},
    L1CenterClassifier: {"scale": "std"},
    MahalanobisCenterClassifier: {"shrinkage": 0.1},
    SparseBernoulliNB: {},
    SparseMultinomialNB: {},
    SparsePoissonNB: {"scale": "dispersion"},
    SparseGaussianNB: {"pooling": 1.0},
    ShrunkenCentroidClassifier: {},
}


@pytest.mark.parametrize("kind", list(MODELS))
@pytest.mark.parametrize("data", list(FOUND))
def test_accuracies_of_joint_one_versus_rest_and_output_code_models(
    data: str, kind: Any, request: pytest.FixtureRequest
) -> None:
    if kind not in FOUND[data]:
        pytest.skip(
            "medians of words are zero in every class, and a covariance of them all does not fit"
        )
    X_train, X_test, y_train, y_test = request.getfixturevalue(data)
    base = kind(k=1000 if data == "r8" else 32, **MODELS[kind])
    models = [
        base,
        OneVsRestClassifier(base),
        OutputCodeClassifier(base, code_size=2, random_state=0),
    ]
    found = [quietly(m.fit, X_train, y_train).score(X_test, y_test) for m in models]
    np.testing.assert_allclose(found, FOUND[data][kind], atol=0.015)


@pytest.mark.parametrize("model", [L2CenterClassifier(1000), SparseMultinomialNB()], ids=str)
def test_decompositions_of_r8_are_those_of_scikit_learn(model: Any, r8: Split) -> None:
    X_train, X_test, y_train, y_test = r8
    pairs = [
        (multiclass.OneVsRestClassifier(model), OneVsRestClassifier(model)),
        (
            multiclass.OutputCodeClassifier(model, code_size=2.5, random_state=0),
            OutputCodeClassifier(model, code_size=2.5, random_state=0),
        ),
    ]
    for ours, theirs in pairs:
        for wrapper in (ours, theirs):
            quietly(wrapper.fit, X_train, y_train)
        for one, other in zip(ours.estimators_, theirs.estimators_, strict=True):
            if hasattr(other, "support_"):
                np.testing.assert_array_equal(one.support_, other.support_)
                np.testing.assert_array_equal(one.coef_, other.coef_)
        np.testing.assert_array_equal(ours.predict(X_test), theirs.predict(X_test))
    assert len(ours.estimators_) == 20
    nested = quietly(
        multiclass.NestedDichotomiesClassifier(model, tree="centers").fit, X_train, y_train
    )
    expected = np.zeros((len(y_test), 8))
    for sides in nested.code_book_.T.astype(int):  # log probabilities of separate fits add up
        rows = np.flatnonzero(sides[y_train])
        node = quietly(clone(model).fit, X_train[rows], sides[y_train][rows])
        log_proba = node.predict_log_proba(X_test)
        expected[:, sides < 0] += log_proba[:, :1]
        expected[:, sides > 0] += log_proba[:, 1:]
    np.testing.assert_allclose(nested.predict_log_proba(X_test), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(nested.predict(X_test), expected.argmax(axis=1))
