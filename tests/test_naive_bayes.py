"""What both naive Bayes models share: joint probabilities, and coefficients to rank features by."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.naive_bayes import BernoulliNB, MultinomialNB

from gpucenters import L1CenterClassifier, SparseBernoulliNB, SparseMultinomialNB

PAIRS = [(SparseBernoulliNB, BernoulliNB), (SparseMultinomialNB, MultinomialNB)]
each_pair = pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=["bernoulli", "multinomial"])


def _words(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Counts of 20 words: number 2 and 3 tell the classes apart, the last five are rare."""
    rng = np.random.default_rng(n_classes)
    y = np.arange(1200) % n_classes
    rate = np.full((1200, 20), 0.6)
    rate[:, 2], rate[:, 3], rate[:, 15:] = 0.2 + 2.0 * (y == 1), 0.2 + 2.0 * (y == 0), 0.02
    return rng.poisson(rate).astype(float), y


@pytest.mark.parametrize("n_classes", [2, 3])
@each_pair
def test_joint_log_probabilities_with_all_features_are_scikit_learns(
    ours: Any, theirs: Any, n_classes: int, backend: Any
) -> None:
    X, y = _words(n_classes)
    expected = theirs().fit(X, y).predict_joint_log_proba(X)
    for held in backend.containers(X):
        found = backend.host(ours().fit(held, y).predict_joint_log_proba(held))
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
@each_pair
def test_joint_log_probabilities_count_tied_features_and_agree_with_the_decision(
    ours: Any, theirs: Any, n_classes: int, backend: Any
) -> None:
    X, y = _words(n_classes)
    for held in backend.containers(X):
        model = ours(k=2).fit(held, y)
        found = backend.host(model.predict_joint_log_proba(held))
        log_theta = backend.host(model.feature_log_prob_)
        if ours is SparseBernoulliNB:
            read, absent = (X > 0) * 1.0, np.log1p(-np.exp(log_theta))
        else:
            read, absent = X, np.zeros_like(log_theta)
        expected = read @ (log_theta - absent).T + absent.sum(axis=1)
        expected = expected + backend.host(model.class_log_prior_)
        np.testing.assert_allclose(found, expected, rtol=1e-11)
        logs = found - np.logaddexp.reduce(found, axis=1, keepdims=True)
        proba = backend.host(model.predict_log_proba(held))
        np.testing.assert_allclose(proba, logs, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@each_pair
def test_meta_estimators_choose_the_words_that_tell_the_classes_apart(
    ours: Any, theirs: Any, n_classes: int
) -> None:
    X, y = _words(n_classes)
    chosen = SelectFromModel(ours(), max_features=2, threshold=-np.inf).fit(X, y)
    assert chosen.get_support(indices=True).tolist() == [2, 3]
    rfe = RFE(ours(), n_features_to_select=8).fit(X, y)
    assert {2, 3} <= set(rfe.get_support(indices=True).tolist())


def test_meta_estimators_rank_features_by_the_gains_of_l1_centers(backend: Any) -> None:
    X, y = _words(3)
    X[:, :5] += 10 * np.asarray([0, 0, 3, 2, 0]) * (y[:, None] == 1)
    model = L1CenterClassifier(k=1).fit(backend.array(X), y)
    assert type(model.feature_importances_) is np.ndarray
    np.testing.assert_array_equal(model.feature_importances_, backend.host(model.scores_))
    chosen = SelectFromModel(L1CenterClassifier(), max_features=2, threshold=-np.inf).fit(X, y)
    assert chosen.get_support(indices=True).tolist() == [2, 3]
    rfe = RFE(L1CenterClassifier(), n_features_to_select=2).fit(X, y)
    assert rfe.get_support(indices=True).tolist() == [2, 3]


@each_pair
def test_coefficients_of_many_classes_are_relative_to_the_tied_parameters(
    ours: Any, theirs: Any, backend: Any
) -> None:
    X, y = _words(4)
    model = ours().fit(backend.array(X), y)
    log_theta = backend.host(model.feature_log_prob_)
    tied = ours(k=1).fit(backend.array(X), y)
    free = tied.support_[0]
    log_tied = np.delete(backend.host(tied.feature_log_prob_)[0], free)
    expected = np.delete(log_theta, free, axis=1) - log_tied
    if ours is SparseBernoulliNB:
        absent, tied_absent = (np.log1p(-np.exp(a)) for a in (log_theta, log_tied))
        expected -= np.delete(absent, free, axis=1) - tied_absent
    coef = np.delete(backend.host(model.coef_), free, axis=1)
    np.testing.assert_allclose(coef, expected, rtol=1e-9, atol=1e-11)
