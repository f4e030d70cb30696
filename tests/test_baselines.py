"""Odds ratio and thresholded multinomial naive Bayes as score functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.feature_selection import SelectKBest, SelectPercentile
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from gpucenters import (
    SparseMultinomialNB,
    odds_ratio,
    thresholded_multinomial,
)

rng = np.random.default_rng(0)
COUNTS = rng.poisson(0.8, (60, 12))
COUNTS[:, 3] += 3 * (np.arange(60) % 3 == 0)
Y = np.where(np.arange(60) % 3 == 0, "spam", "ham")
each_function = pytest.mark.parametrize("function", [odds_ratio, thresholded_multinomial])


@pytest.mark.parametrize("alpha", [1.0, 0.1])
def test_odds_ratio_is_its_definition(alpha: float, backend: Any) -> None:
    expected = []
    for column in COUNTS.T:
        p = [
            (int((column[c == Y] > 0).sum()) + alpha) / (int((c == Y).sum()) + 2 * alpha)
            for c in ("spam", "ham")
        ]
        expected.append(abs(math.log(p[0] * (1 - p[1]) / ((1 - p[0]) * p[1]))))
    for X in backend.containers(COUNTS, (np.float64, np.float32, np.int64)):
        found = odds_ratio(X, Y, alpha)
        np.testing.assert_allclose(backend.host(found), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("alpha", [1.0, 0.1])
def test_thresholded_multinomial_compares_the_plain_model(alpha: float, backend: Any) -> None:
    theirs = MultinomialNB(alpha=alpha).fit(COUNTS, Y).feature_log_prob_
    for X in backend.containers(COUNTS, (np.float64, np.float32, np.int64)):
        found = backend.host(thresholded_multinomial(X, Y, alpha))
        np.testing.assert_allclose(found, np.abs(theirs[1] - theirs[0]), rtol=1e-11, atol=1e-13)


@each_function
def test_scores_do_not_depend_on_the_order_of_classes(function: Any, backend: Any) -> None:
    X = backend.array(COUNTS)
    one, other = function(X, Y == "spam"), function(X, Y == "ham")
    np.testing.assert_allclose(backend.host(one), backend.host(other), rtol=1e-12, atol=1e-14)


@each_function
@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array, scipy.sparse.csc_matrix])
def test_selects_in_a_pipeline(function: Any, kind: Any) -> None:
    X = kind(COUNTS)
    selector = SelectKBest(function, k=4).fit(X, Y)
    best = np.argsort(-function(X, Y), kind="stable")[:4]
    assert sorted(best) == selector.get_support(indices=True).tolist()
    assert 3 in best
    model = make_pipeline(SelectPercentile(function, percentile=50), SparseMultinomialNB(k=3))
    assert model.fit(X, Y).score(X, Y) > 0.8


@each_function
def test_other_than_two_classes_are_refused(function: Any, backend: Any) -> None:
    X = backend.array(COUNTS)
    for y in (np.arange(60) % 3, np.zeros(60)):
        with pytest.raises(ValueError, match=rf"{function.__name__} compares two classes"):
            function(X, y)


@each_function
@pytest.mark.parametrize(("value", "word"), [(-1.0, "Negative"), (np.nan, "NaN"), (np.inf, "inf")])
def test_bad_values_are_named(function: Any, value: float, word: str, backend: Any) -> None:
    bad = COUNTS.astype(float)
    bad[5, 2] = value
    with np.errstate(invalid="ignore"):
        containers = backend.containers(bad)
    for X in containers:
        with pytest.raises(ValueError, match=rf"{word}.* feature 2 \(first in row 5\)"):
            function(X, Y)


@each_function
def test_bad_labels_and_parameters_are_refused(function: Any) -> None:
    with pytest.raises(ValueError, match=f"{function.__name__} requires y"):
        function(COUNTS, None)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        function(COUNTS, Y[:-1])
    for alpha in (-1, 1e308, float("inf"), float("nan"), "1", True, None):
        with pytest.raises(ValueError, match="alpha="):
            function(COUNTS, Y, alpha=alpha)
    assert np.all(np.isfinite(function(COUNTS, Y, alpha=1e100)))


@each_function
def test_score_functions_accept_data_frames(function: Any) -> None:
    frame = pd.DataFrame(COUNTS)
    expected = function(COUNTS, Y)
    np.testing.assert_array_equal(function(frame.astype("Int64"), Y), expected)
    np.testing.assert_array_equal(function(frame.astype(pd.SparseDtype(int, 0)), Y), expected)
    with pytest.raises(ValueError, match="NaN in feature"):
        function(frame.astype("Int64").mask(frame == 3), Y)
