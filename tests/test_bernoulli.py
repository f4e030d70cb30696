"""Sparse Bernoulli naive Bayes: exhaustive search, scikit-learn at k="all", and errors."""

from __future__ import annotations

import tracemalloc
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from exact_bayes import exact_bernoulli, random_counts
from scipy.stats import chi2_contingency
from sklearn.base import clone
from sklearn.naive_bayes import BernoulliNB
from strategies import quietly

from gpucenters import SparseBernoulliNB, bernoulli_gain
from gpucenters.estimators.fitted import FittedModel
from gpucenters.solvers import bernoulli_nb, select

PROBLEMS = {"numpy": 300, "array_api_strict": 50, "cupy": 50, "torch": 50}
rng = np.random.default_rng(0)
COUNTS = rng.poisson(0.8, (60, 12))
Y = np.arange(60) % 3


def _host(x: Any, backend: Any) -> np.ndarray:
    return np.asarray(backend.host(x))


@pytest.mark.parametrize("alpha", [Fraction(1), Fraction(1, 3), Fraction(10)])
def test_equals_exhaustive_search(alpha: Fraction, backend: Any) -> None:
    rng = np.random.default_rng(1)
    for number in range(PROBLEMS[backend.name]):
        X, y, weights, k = random_counts(rng, binary=True)
        truth = exact_bernoulli(X, y, k, alpha, weights)
        containers = backend.containers(X, (np.float64, np.float32, np.int64))
        container = containers[number % len(containers)]
        model = SparseBernoulliNB(k=k, alpha=float(alpha))
        quietly(model.fit, container, y, sample_weight=weights)
        scores = _host(model.scores_, backend)
        np.testing.assert_allclose(scores, np.array(truth.gain, float), rtol=1e-9, atol=1e-14)
        # Features whose shares are equal in each class have no gain at all.
        assert np.all(scores[[not g for g in truth.gain]] == 0)
        assert np.all(scores >= 0)
        assert tuple(model.support_) == truth.support
        assert -model.objective_ == pytest.approx(truth.likelihood, rel=1e-12)
        np.testing.assert_allclose(
            _host(model.feature_log_prob_, backend), truth.log_theta, rtol=1e-10, atol=1e-13
        )


@pytest.mark.parametrize("alpha", [0.1, 0.3, 1.0, 7.7])
def test_features_with_equal_shares_have_a_gain_of_exactly_zero(alpha: float, backend: Any) -> None:
    # Equal shares in classes of unequal sizes, and equal counts in classes of equal sizes.
    y = np.repeat([0, 1, 2], [40, 14, 40])
    half = np.concatenate([np.arange(n) % 2 for n in (40, 14, 40)])
    same = np.concatenate([np.arange(n) < 13 for n in (40, 40)])
    for X in backend.containers(np.stack([half, half], axis=1)):
        assert _host(bernoulli_nb(X, y, alpha=alpha).gain, backend).tolist() == [0, 0]
    for X in backend.containers(np.stack([same, 1 - same, same * 0, same * 0 + 1], axis=1)):
        gain = bernoulli_nb(X, np.repeat([0, 1], 40), alpha=alpha).gain
        assert _host(gain, backend).tolist() == [0] * 4


def test_the_objective_of_classes_told_apart_keeps_its_digits(backend: Any) -> None:
    n, alpha = 50_000, 1e-10
    y = np.arange(2 * n) % 2
    X = backend.containers(y[:, None])[0]
    model = SparseBernoulliNB(alpha=alpha).fit(X, y)
    there = (n + alpha) * np.log1p(-alpha / (n + 2 * alpha))
    absent = alpha * np.log(alpha / (n + 2 * alpha))
    assert model.objective_ == pytest.approx(-2 * (there + absent), rel=1e-3)
    # With more smoothing less cancels.
    model = SparseBernoulliNB(alpha=1e-3).fit(X, y)
    exact = (n + 1e-3) * np.log1p(-1e-3 / (n + 2e-3)) + 1e-3 * np.log(1e-3 / (n + 2e-3))
    assert model.objective_ == pytest.approx(-2 * exact, rel=1e-9)


@pytest.mark.parametrize("alpha", [1e3, 1e6])
def test_equal_gains_of_fractional_weights_tie_to_the_lower_feature(alpha: float) -> None:
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x, y, weights = rng.integers(0, 2, 25), np.arange(25) % 2, rng.random(25)
        X = np.stack([x, 1 - x], axis=1)
        model = SparseBernoulliNB(k=1, alpha=alpha).fit(X, y, sample_weight=weights)
        assert model.support_.tolist() == [0]


def test_gains_near_zero_keep_their_digits(backend: Any) -> None:
    # The classes differ in one document of a million: a difference of two likelihoods cancels.
    n = 1_000_000
    y = np.array([0, 0, 1, 1])
    weights = np.array([n / 2, n / 2, n / 2 + 1, n / 2 - 1])
    rows = backend.array([[1.0], [0.0], [1.0], [0.0]])
    truth = exact_bernoulli([[1], [0], [1], [0]], y, 1, weights=weights.astype(int).tolist())
    found = bernoulli_nb(rows, y, sample_weight=weights).gain
    np.testing.assert_allclose(_host(found, backend), [float(truth.gain[0])], rtol=1e-10)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"alpha": 0.1},
        {"alpha": 0.0},
        {"binarize": 1.0},
        {"fit_prior": False},
        {"class_prior": "given"},
    ],
    ids=str,
)
def test_with_all_features_is_bernoulli_nb(
    parameters: dict[str, Any], classes: int, backend: Any
) -> None:
    parameters = dict(parameters)
    y, weights = np.arange(60) % classes, np.random.default_rng(2).random(60)
    if "class_prior" in parameters:
        parameters["class_prior"] = [0.2, 0.8] if classes == 2 else [0.2, 0.5, 0.3]
    for s in (None, weights):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the warning that alpha is too small
            theirs = BernoulliNB(**parameters, force_alpha=False).fit(COUNTS, y, sample_weight=s)
        for X in backend.containers(COUNTS, (np.float64, np.float32)):
            ours = SparseBernoulliNB(**parameters).fit(X, y, sample_weight=s)
            for name in ("class_count_", "feature_count_", "class_log_prior_"):
                found = _host(getattr(ours, name), backend)
                np.testing.assert_allclose(found, getattr(theirs, name), rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(
                _host(ours.feature_log_prob_, backend), theirs.feature_log_prob_, rtol=1e-9
            )
            if parameters.get("alpha") != 0.0:  # scikit-learn computes log(1 - 1)
                np.testing.assert_allclose(
                    _host(ours.predict_proba(X), backend), theirs.predict_proba(COUNTS), atol=1e-10
                )
            np.testing.assert_array_equal(
                _host(ours.predict(X), backend), ours.classes_[theirs.predict(COUNTS)]
            )


def test_scores_are_the_log_likelihood_on_the_support(backend: Any) -> None:
    for y in (Y, Y % 2):
        for X in backend.containers(COUNTS):
            model = SparseBernoulliNB(k=4).fit(X, y)
            log_theta = _host(model.feature_log_prob_, backend)[:, model.support_]
            x = (COUNTS > 0)[:, model.support_]
            expected = x @ log_theta.T + (1 - x) @ np.log1p(-np.exp(log_theta)).T
            expected = expected + _host(model.class_log_prior_, backend)
            if len(expected[0]) == 2:
                expected = expected[:, 1] - expected[:, 0]
            else:  # relative to the tied parameters
                tied = ((COUNTS > 0).sum(axis=0) + 3) / (len(COUNTS) + 6)
                tied = tied[model.support_]
                common = x @ np.log(tied) + (1 - x) @ np.log(1 - tied)
                expected = expected - common[:, None]
            found = _host(model.decision_function(X), backend)
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
            coef, intercept = _host(model.coef_, backend), _host(model.intercept_, backend)
            linear = (COUNTS > 0) @ coef.T + intercept
            np.testing.assert_allclose(found.reshape(linear.shape), linear, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(
                _host(model.centers_, backend), np.exp(log_theta), rtol=1e-12
            )


# --- zeros and ones ----------------------------------------------------------------------------


def test_binarize_compares_the_sum_of_duplicates(sparse_backend: Any) -> None:
    # The threshold 1.5 lies between each duplicate, 1, and their sum, 2.
    kind = sparse_backend.sparse.csr_matrix
    host = scipy.sparse.csr_matrix(np.array([[2.0, 0], [0, 1], [1, 0], [0, 0]]))
    xp = np if sparse_backend.name == "numpy" else sparse_backend.xp
    data, indices = xp.asarray([1.0, 1.0, 1.0, 1.0]), xp.asarray([0, 0, 1, 0], dtype=xp.int32)
    X = kind((data, indices, xp.asarray([0, 2, 3, 4, 4], dtype=xp.int32)), shape=(4, 2))
    model = SparseBernoulliNB(binarize=1.5).fit(X, [0, 1, 0, 1])
    expected = BernoulliNB(binarize=1.5).fit(host, [0, 1, 0, 1])
    np.testing.assert_array_equal(
        sparse_backend.host(model.feature_count_), expected.feature_count_
    )
    np.testing.assert_allclose(
        sparse_backend.host(model.predict_proba(X)), expected.predict_proba(host), rtol=1e-12
    )
    assert X.nnz == 4  # the fit leaves the duplicates in place


def test_a_negative_threshold_is_refused_for_sparse_data(backend: Any) -> None:
    X = COUNTS - 1.0
    model = SparseBernoulliNB(binarize=-0.5).fit(backend.array(X), Y)
    expected = BernoulliNB(binarize=None).fit(X > -0.5, Y)
    np.testing.assert_array_equal(_host(model.feature_count_, backend), expected.feature_count_)
    if backend.sparse is not None:
        with pytest.raises(ValueError, match=r"binarize=-0\.5 would make ones of all zeros"):
            clone(model).fit(backend.csr(X), Y)


@pytest.mark.parametrize("value", [2.0, -1.0, 0.5])
def test_without_binarize_other_values_are_named(value: float, backend: Any) -> None:
    plain = (COUNTS > 0).astype(float)
    good = SparseBernoulliNB(binarize=None).fit(backend.array(plain), Y)
    binarized = SparseBernoulliNB().fit(backend.array(COUNTS), Y)
    np.testing.assert_array_equal(_host(good.scores_, backend), _host(binarized.scores_, backend))
    bad = plain.copy()
    bad[7, 3] = bad[9, 3] = value
    for X in backend.containers(bad):
        message = rf"holds {value} in feature 3 \(first in row 7\)"
        with pytest.raises(ValueError, match=message):
            clone(good).fit(X, Y)
        with pytest.raises(ValueError, match=message):
            clone(good).partial_fit(X, Y, classes=[0, 1, 2])
    for ready, X in zip(backend.containers(plain), backend.containers(bad), strict=True):
        model = clone(good).fit(ready, Y)
        with pytest.raises(ValueError, match=message):
            model.predict(X)


@pytest.mark.parametrize("binarize", [0.0, None, 5.0])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_named(value: float, binarize: Any, backend: Any) -> None:
    plain = (COUNTS > 0).astype(float)
    bad = plain.copy()
    bad[5, 2] = value
    with np.errstate(invalid="ignore"):
        containers = backend.containers(bad, (np.float64, np.float32))
    for ready, X in zip(backend.containers(plain, (np.float64,) * 2), containers, strict=True):
        for weights in (None, (np.arange(60) != 5).astype(float)):
            with pytest.raises(ValueError, match=r"feature 2 \(first in row 5\)"):
                SparseBernoulliNB(binarize=binarize).fit(X, Y, sample_weight=weights)
        model = SparseBernoulliNB(binarize=binarize).fit(ready, Y)
        with pytest.raises(ValueError, match=r"feature 2 \(first in row 5\)"):
            model.predict_proba(X)


def test_fit_and_predict_make_no_binarized_copy_of_x() -> None:
    X = np.ones((4000, 2000), dtype=np.float32)
    S = scipy.sparse.csr_array(X)
    y = np.arange(4000) % 2
    for container, size in ((X, X.nbytes), (S, S.data.nbytes)):
        tracemalloc.start()
        try:
            model = SparseBernoulliNB().fit(container, y)
            model.predict(container)
            assert tracemalloc.get_traced_memory()[1] < size / 2
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize(
    ("parameters", "word"),
    [
        ({"alpha": -1}, "alpha=-1"),
        ({"alpha": float("nan")}, "alpha=nan"),
        ({"alpha": np.ones(12)}, "one number"),
        ({"alpha": "1"}, "alpha='1'"),
        ({"alpha": True}, "alpha=True"),
        ({"binarize": "no"}, "binarize='no'"),
        ({"binarize": float("nan")}, "binarize=nan"),
        ({"k": 0}, "k=0"),
        ({"class_prior": [0.5, 0.5]}, "class_prior has 2 entries"),
        ({"class_prior": [0.5, 0.5, 0.5]}, "class_prior must be positive and sum to 1"),
        ({"class_prior": "flat"}, "class_prior='flat'"),
    ],
    ids=str,
)
def test_wrong_parameters_are_named(parameters: dict[str, Any], word: str) -> None:
    with pytest.raises(ValueError, match=word.replace("(", r"\(")):
        SparseBernoulliNB(**parameters).fit(COUNTS, Y)


# --- p-values ----------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
def test_p_values_are_those_of_the_g_test(classes: int, backend: Any) -> None:
    bits, y = (COUNTS > 0).astype(float), Y % classes
    bits[:, 3], bits[:, 4], bits[:, 5] = 0, 1, y == 1
    for X in backend.containers(bits):
        gain, pvalues = bernoulli_gain(X, y)
        assert type(pvalues) is np.ndarray and pvalues[[3, 4]].tolist() == [1, 1]
        np.testing.assert_array_equal(pvalues, SparseBernoulliNB(k=2).fit(X, y).pvalues_)
        for i in (0, 1, 2, 5):
            table = [[((bits[:, i] == v) & (y == c)).sum() for c in range(classes)] for v in (0, 1)]
            expected = chi2_contingency(table, lambda_="log-likelihood", correction=False)
            assert 2 * gain[i] == pytest.approx(expected[0], rel=1e-10)
            assert pvalues[i] == pytest.approx(expected[1], rel=1e-8)


# --- batches, every k, places ------------------------------------------------------------------


@pytest.mark.parametrize("cut", [10, 31])
def test_batches_give_the_model_of_all_rows(cut: int, backend: Any) -> None:
    weights = np.arange(60) % 4
    for X in backend.containers(COUNTS):
        whole = SparseBernoulliNB(k=3).fit(X, Y, sample_weight=weights)
        parts = SparseBernoulliNB(k=3)
        for rows in (slice(0, cut), slice(cut, 60)):
            parts.partial_fit(X[rows, :], Y[rows], classes=[0, 1, 2], sample_weight=weights[rows])
        for name in ("scores_", "centers_", "feature_log_prob_", "class_log_prior_"):
            found, expected = (_host(getattr(m, name), backend) for m in (parts, whole))
            np.testing.assert_array_equal(found, expected)
        assert parts.objective_ == whole.objective_
        with pytest.raises(ValueError, match="not the same as on the last call"):
            parts.set_params(binarize=1.0).partial_fit(X, Y)


def test_weights_are_repetitions(backend: Any) -> None:
    weights = np.arange(60) % 3
    repeated = np.repeat(np.arange(60), weights)
    for X, again in zip(
        backend.containers(COUNTS), backend.containers(COUNTS[repeated]), strict=True
    ):
        found = bernoulli_nb(X, Y % 2, sample_weight=weights)
        expected = bernoulli_nb(again, (Y % 2)[repeated])
        np.testing.assert_array_equal(_host(found.gain, backend), _host(expected.gain, backend))
        assert found.loss == pytest.approx(expected.loss, rel=1e-14)


def test_with_k_is_a_fresh_fit_and_the_objective_falls(backend: Any) -> None:
    X = backend.array(COUNTS)
    model = SparseBernoulliNB().fit(X, Y)
    objectives = []
    for k in range(1, 13):
        fresh, copy = SparseBernoulliNB(k=k).fit(X, Y), model.with_k(k)
        assert copy.support_.tolist() == fresh.support_.tolist()
        np.testing.assert_array_equal(
            _host(copy.decision_function(X), backend), _host(fresh.decision_function(X), backend)
        )
        objectives.append(copy.objective_)
    assert objectives == sorted(objectives, reverse=True)
    chosen = select(FittedModel(model).centers, 3).support
    assert _host(chosen, backend).tolist() == model.with_k(3).support_.tolist()


def test_moves_to_the_host(backend: Any) -> None:
    X = backend.array(COUNTS)
    model = SparseBernoulliNB(k=5).fit(X, Y)
    moved = model.to("cpu")
    for name in ("scores_", "feature_log_prob_", "class_count_", "coef_", "centers_"):
        assert isinstance(getattr(moved, name), np.ndarray)
        np.testing.assert_allclose(
            getattr(moved, name), _host(getattr(model, name), backend), rtol=1e-14, atol=1e-14
        )
    np.testing.assert_allclose(
        moved.predict_proba(COUNTS), _host(model.predict_proba(X), backend), rtol=1e-12
    )
