"""Counts times the log ratios of their shares in the classes."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from gpucenters import L2CenterClassifier, LogRatioScaler, SparseMultinomialNB, load, save

_rng = np.random.default_rng(0)
COUNTS = _rng.poisson(0.8, (60, 12))
COUNTS[:, 3] += 3 * (np.arange(60) % 3 == 0)
COUNTS[:, 7] = 0
Y = {2: np.where(np.arange(60) % 3 == 0, "spam", "ham"), 4: np.arange(60) % 4}
each_number_of_classes = pytest.mark.parametrize("y", Y.values(), ids=lambda y: len(set(y)))


def _dense_log_ratios(y: np.ndarray, alpha: float, weight: np.ndarray) -> np.ndarray:
    """One class against the others, in plain sums over a dense matrix."""
    found = []
    for label in np.unique(y)[0 if len(set(y)) > 2 else 1 :]:
        one, others = (
            (COUNTS * weight[:, None])[rows].sum(axis=0) + alpha
            for rows in (y == label, y != label)
        )
        found.append(np.log(one / one.sum() / (others / others.sum())))
    return np.stack(found)


@each_number_of_classes
@pytest.mark.parametrize("alpha", [1.0, 0.1])
def test_equals_a_dense_computation_in_every_container(
    y: np.ndarray, alpha: float, backend: Any
) -> None:
    weight = np.arange(60) % 5 + 1.0
    expected = _dense_log_ratios(y, alpha, weight)
    scale = expected[0] if len(expected) == 1 else np.sqrt((expected**2).mean(axis=0))
    for X in backend.containers(COUNTS, (np.float64, np.float32, np.int64)):
        model = LogRatioScaler(alpha).fit(X, y, weight)
        found = backend.host(model.log_ratios_)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
        found = model.transform(X)
        assert getattr(found, "format", None) == getattr(X, "format", None)
        single = "float32" in str(X.dtype)
        assert ("float32" if single else "float64") in str(found.dtype)
        dense = backend.host(found.toarray() if hasattr(found, "nnz") else found)
        tolerance = 1e-6 if single else 1e-12
        np.testing.assert_allclose(dense, COUNTS * scale, rtol=tolerance, atol=tolerance)


@each_number_of_classes
def test_weights_are_those_of_multinomial_naive_bayes(y: np.ndarray) -> None:
    model, theirs = LogRatioScaler().fit(COUNTS, y), MultinomialNB()
    for ratios, label in zip(
        model.log_ratios_, np.unique(y)[-len(model.log_ratios_) :], strict=True
    ):
        shares = theirs.fit(COUNTS, y == label).feature_log_prob_
        np.testing.assert_allclose(ratios, shares[1] - shares[0], rtol=1e-11, atol=1e-13)
    if len(model.log_ratios_) == 1:
        ours = SparseMultinomialNB().fit(COUNTS, y)
        np.testing.assert_allclose(model.scale_, ours.coef_[0], rtol=1e-12, atol=1e-12)


def test_one_column_is_worth_one_for_each_class_to_a_ridge_penalty() -> None:
    y, options = Y[4], {"max_iter": 10_000, "tol": 1e-9}
    model = LogRatioScaler().fit(COUNTS, y)
    copies = np.concatenate([COUNTS * ratios for ratios in model.log_ratios_], axis=1)
    of_copies = LogisticRegression(C=1.0, **options).fit(copies, y)
    of_one = LogisticRegression(C=4.0, **options).fit(model.transform(COUNTS), y)
    np.testing.assert_allclose(
        of_one.predict_proba(model.transform(COUNTS)), of_copies.predict_proba(copies), atol=1e-5
    )


@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.csc_matrix])
def test_sparse_data_stay_sparse_and_unchanged(kind: Any) -> None:
    X = kind(COUNTS.astype(float))
    data = X.data.copy()
    found = LogRatioScaler().fit_transform(X, Y[2])
    assert isinstance(found, kind) and found.nnz == X.nnz
    found.indices[:], found.data[:] = 0, 0
    np.testing.assert_array_equal(X.data, data)
    np.testing.assert_array_equal(X.toarray(), COUNTS)


def test_duplicate_entries_are_scaled_each() -> None:
    row, column = np.nonzero(COUNTS)
    twice = (
        np.ones(2 * len(row)),
        np.repeat(column, 2),
        np.append(0, 2 * np.cumsum((COUNTS > 0).sum(axis=1))),
    )
    X = scipy.sparse.csr_array(twice, shape=COUNTS.shape)
    model = LogRatioScaler().fit(X, Y[2])
    np.testing.assert_array_equal(model.scale_, LogRatioScaler().fit(2 * (COUNTS > 0), Y[2]).scale_)
    np.testing.assert_allclose(model.transform(X).toarray(), 2 * (COUNTS > 0) * model.scale_)


def test_pandas_output_keeps_names_and_index() -> None:
    frame = pd.DataFrame(COUNTS, columns=[f"w{i}" for i in range(12)], index=range(100, 160))
    model = LogRatioScaler().set_output(transform="pandas").fit(frame, Y[2])
    assert model.get_feature_names_out().tolist() == list(frame)
    pd.testing.assert_frame_equal(model.transform(frame), frame * model.scale_)
    model.fit(COUNTS, Y[2])
    assert not hasattr(model, "feature_names_in_")


TEXTS = ["fine film", "fine and moving", "dull film", "dull and long", "moving and fine", "long"]
LABELS = ["good", "good", "bad", "bad", "good", "bad"]


@pytest.mark.parametrize("several", [False, True], ids=["one scale", "one for each class"])
def test_a_pipeline_of_a_selector_and_a_second_stage_clones_and_pickles(several: bool) -> None:
    last = [LogRatioScaler(), LogisticRegression()]
    second = [OneVsRestClassifier(make_pipeline(*last))] if several else last
    both = make_pipeline(CountVectorizer(binary=True), L2CenterClassifier(k=4), *second)
    both.fit(TEXTS, LABELS)
    assert both.predict(["moving film", "a dull one"]).tolist() == ["good", "bad"]
    for other in (clone(both).fit(TEXTS, LABELS), pickle.loads(pickle.dumps(both))):
        np.testing.assert_array_equal(other.predict_proba(TEXTS), both.predict_proba(TEXTS))


def test_a_file_brings_the_weights_back_to_where_they_were(sparse_backend: Any) -> None:
    X, file = sparse_backend.csr(COUNTS), io.BytesIO()
    both = make_pipeline(L2CenterClassifier(k=4), LogRatioScaler()).fit(X, Y[4])
    save(both, file)
    file.seek(0)
    there = load(file)
    sparse_backend.assert_same(there[-1].log_ratios_, both[-1].log_ratios_)
    sparse_backend.assert_same(there.transform(X).toarray(), both.transform(X).toarray())


@pytest.mark.parametrize(
    ("X", "y", "problem"),
    [
        ([[1.0, 2.0], [3.0, -4.0]], [0, 1], "Negative values.*-4.*feature 1 .first in row 1"),
        ([[1.0, np.nan], [3.0, 4.0]], [0, 1], "NaN.*"),
        ([[1.0, 2.0], [3.0, 4.0]], [1, 1], "one class|1 class"),
    ],
)
def test_bad_input_is_an_error_that_says_where(X: Any, y: Any, problem: str) -> None:
    model = LogRatioScaler().fit([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    before = model.scale_.copy()
    with pytest.raises(ValueError, match=problem):
        model.fit(np.asarray(X), y)
    np.testing.assert_array_equal(model.scale_, before)
    with pytest.raises(ValueError, match="alpha=-1 is not valid"):
        LogRatioScaler(-1).fit([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    with pytest.raises(ValueError, match="3 features"):
        model.transform(np.ones((2, 3)))
