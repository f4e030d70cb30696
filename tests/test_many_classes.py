"""Many classes: the joint models on real data, beside one-vs-rest and output codes over them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import train_test_split
from sklearn.multiclass import OneVsRestClassifier, OutputCodeClassifier
from sklearn.naive_bayes import BernoulliNB, MultinomialNB
from strategies import quietly

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    SparseBernoulliNB,
    SparseMultinomialNB,
)

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


@pytest.fixture(scope="module")
def digits() -> Split:
    X, y = load_digits(return_X_y=True)
    return train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(SparseBernoulliNB, BernoulliNB), (SparseMultinomialNB, MultinomialNB)],
    ids=["bernoulli", "multinomial"],
)
@pytest.mark.parametrize("alpha", [1.0, 0.01])
def test_all_features_of_real_counts_are_scikit_learn(
    ours: Any, theirs: Any, alpha: float, r8: Split
) -> None:
    X_train, X_test, y_train, _ = r8
    expected = theirs(alpha=alpha).fit(X_train, y_train)
    model = ours(alpha=alpha).fit(X_train, y_train)
    for X in (X_test, X_test[:200].toarray()):
        found = model.predict_proba(X)
        assert found.shape == (X.shape[0], 8)
        np.testing.assert_allclose(found, expected.predict_proba(X), rtol=0, atol=1e-8)


# Accuracies of (the joint model, one-vs-rest, output codes), as they were found.
FOUND = {
    "r8": {
        L2CenterClassifier: (0.804, 0.800, 0.780),
        SparseBernoulliNB: (0.857, 0.864, 0.847),
        SparseMultinomialNB: (0.958, 0.964, 0.964),
    },
    "digits": {
        L2CenterClassifier: (0.889, 0.883, 0.691),
        L1CenterClassifier: (0.883, 0.885, 0.622),
        MahalanobisCenterClassifier: (0.946, 0.950, 0.896),
        SparseBernoulliNB: (0.846, 0.854, 0.683),
        SparseMultinomialNB: (0.883, 0.898, 0.685),
    },
}
MODELS = {
    L2CenterClassifier: {"scale": "std"},
    L1CenterClassifier: {"scale": "std"},
    MahalanobisCenterClassifier: {"shrinkage": 0.1},
    SparseBernoulliNB: {},
    SparseMultinomialNB: {},
}


@pytest.mark.parametrize("kind", list(MODELS))
@pytest.mark.parametrize("data", list(FOUND))
def test_joint_model_beside_one_versus_rest_and_output_codes(
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
