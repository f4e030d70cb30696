"""The figures that the guide's recipes state."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import statsmodels.api as sm
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.feature_selection import f_classif
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from gpucenters import L2CenterClassifier, LogRatioScaler, SparseMultinomialNB, SparsePoissonNB
from gpucenters.readers import read
from gpucenters.text import CountVectorizer, TfidfVectorizer


def _logit(model: L2CenterClassifier, X: np.ndarray, y: np.ndarray) -> sm.Logit:
    """Logistic regression on the columns that the model selects."""
    columns = model.fit(X, y).transform(X)
    return sm.Logit(y, sm.add_constant(columns)).fit(disp=0)


def test_coefficients_of_the_heart_disease_data_are_those_published(data_dir: Path) -> None:
    with np.load(data_dir / "saheart.npz") as file:
        X, y, names = file["X"], file["y"], file["feature_names"].tolist()
    found = _logit(L2CenterClassifier(scale="std"), X, y)
    assert (round(found.params[0], 4), round(found.bse[0], 4)) == (-6.1507, 1.3083)
    wald = dict(zip(names, found.tvalues[1:].round(3), strict=True))
    stated = {"tobacco": 2.984, "ldl": 2.915, "famhist": 4.061, "typea": 3.214, "age": 3.728}
    assert stated == {name: wald[name] for name in stated}
    best = L2CenterClassifier(k=5, scale="std").fit(X, y).support_
    assert {names[i] for i in best} == {*stated} - {"typea"} | {"adiposity"}


def test_the_best_of_many_features_of_noise_look_significant() -> None:
    X = np.random.default_rng(0).standard_normal((200, 1000))
    found = _logit(L2CenterClassifier(k=5, scale="std"), X, np.arange(200) % 2)
    assert (found.pvalues[1:] < 0.02).sum() == 4


@pytest.mark.parametrize(
    ("rule", "errors"),
    [(LinearDiscriminantAnalysis(), [6, 3]), (QuadraticDiscriminantAnalysis(), [3, 3])],
)
def test_discriminants_on_two_and_four_columns_of_iris(rule: object, errors: list[int]) -> None:
    X, y = load_iris(return_X_y=True)
    models = [make_pipeline(L2CenterClassifier(k=k, scale="pooled"), rule) for k in (2, 4)]
    assert [int((model.fit(X, y).predict(X) != y).sum()) for model in models] == errors


def test_pooled_l2_centers_of_two_classes_rank_as_the_f_test() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    ranking = L2CenterClassifier(scale="pooled").fit(X, y).ranking_
    np.testing.assert_array_equal(ranking, np.argsort(-f_classif(X, y)[0]))


def test_second_stages_on_news_of_eight_classes(data_dir: Path) -> None:
    train, test = (read(data_dir / f"r8.{part}.tsv.gz") for part in ("train", "test"))
    counts = TfidfVectorizer(sublinear_tf=True, use_idf=False, norm=None)
    selector = SparsePoissonNB(k=0.1, scale="dispersion")
    for steps, stated in (
        ([counts, selector, LogRatioScaler(), LogisticRegression(max_iter=500)], 0.970),
        ([TfidfVectorizer(sublinear_tf=True), selector, LinearSVC()], 0.971),
    ):
        model = make_pipeline(*steps).fit(train.X, train.y)
        assert abs(model.score(test.X, test.y) - stated) < 0.001


def test_naive_bayes_alone_is_best_on_sentences_of_phrases(data_dir: Path) -> None:
    parts = ("phrases.train", "sentences.test")
    train, test = (read(data_dir / f"sst2.{part}.tsv.gz") for part in parts)
    words = CountVectorizer(binary=True, token_pattern=r"(?u)\b\w+\b").fit(train.X)
    X, there = words.transform(train.X), words.transform(test.X)
    model = SparseMultinomialNB(k=0.1).fit(X, train.y)
    assert [round(model.with_k(k).score(there, test.y), 3) for k in (0.1, 1.0)] == [0.802, 0.83]
