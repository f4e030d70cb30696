"""The papers' own data give the papers' picture."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from gpucenters import L1CenterClassifier, L2CenterClassifier


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


def test_prostate_needs_few_genes(prostate: tuple[np.ndarray, np.ndarray]) -> None:
    # The paper's figure for Singh: a thousandth of the genes tells tumours from normal tissue,
    # all of them do not, and then medians are better than means.
    few, all_l1 = _balanced_accuracy(L1CenterClassifier, *prostate, [0.001, "all"])
    (all_l2,) = _balanced_accuracy(L2CenterClassifier, *prostate, ["all"])
    assert few == pytest.approx(0.92, abs=0.02)
    assert all_l1 == pytest.approx(0.71, abs=0.02)
    assert all_l2 == pytest.approx(0.63, abs=0.02)


def test_opinions_from_a_tenth_of_the_words(data_dir: Path) -> None:
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
