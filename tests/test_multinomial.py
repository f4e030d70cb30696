"""Sparse multinomial naive Bayes: exhaustive search, scikit-learn at k="all", and errors."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import joblib
import numpy as np
import pytest
import scipy.sparse
from exact_bayes import exact_multinomial, random_counts
from sklearn.base import clone
from sklearn.naive_bayes import MultinomialNB
from strategies import quietly

from gpucenters import SparseMultinomialNB, UninformativeFeaturesWarning
from gpucenters.arrays import schedule
from gpucenters.estimators.fitted import FittedModel
from gpucenters.solvers import multinomial_nb, support_search
from gpucenters.solvers.divergence import divergence

PROBLEMS = {"numpy": 150, "array_api_strict": 20, "cupy": 20, "torch": 20}
rng = np.random.default_rng(0)
COUNTS = rng.poisson(0.8, (60, 12))
Y = np.arange(60) % 3


def _host(x: Any, backend: Any) -> np.ndarray:
    return np.asarray(backend.host(x))


@pytest.mark.parametrize("alpha", [Fraction(1), Fraction(1, 3)])
def test_equals_exhaustive_search(alpha: Fraction, backend: Any) -> None:
    rng = np.random.default_rng(1)
    optimal = found = 0
    for number in range(PROBLEMS[backend.name]):
        X, y, weights, k = random_counts(rng)
        truth = exact_multinomial(X, y, k, alpha, weights)
        containers = backend.containers(X, (np.float64, np.float32, np.int64))
        container = containers[number % len(containers)]
        model = SparseMultinomialNB(k=k, alpha=float(alpha))
        quietly(model.fit, container, y, sample_weight=weights)
        support = tuple(model.support_.tolist())
        close = {"rel": 1e-12, "abs": 1e-10}
        # The reported bounds hold for the support found, optimal or not.
        assert (
            model.lower_bound_ == -model.objective_ == pytest.approx(truth.every[support], **close)
        )
        assert model.gap_ >= 0
        assert model.upper_bound_ == model.lower_bound_ + model.gap_
        assert k > 1 or model.gap_ == 0  # every support of one feature is optimal
        slack = 1e-11 * (1 + abs(truth.likelihood))
        assert model.upper_bound_ >= truth.likelihood - slack
        found += 1
        if model.lower_bound_ < truth.likelihood - slack:
            continue
        optimal += 1
        if support == truth.support:
            np.testing.assert_allclose(
                _host(model.feature_log_prob_, backend), truth.log_theta, rtol=1e-10, atol=1e-12
            )
    assert optimal >= 0.97 * found


def test_counts_of_very_different_sizes_equal_exhaustive_search(backend: Any) -> None:
    # Alpha and the smaller counts are below the rounding of the largest counts.
    rng, optimal, problems = np.random.default_rng(9), 0, PROBLEMS[backend.name]
    for _ in range(problems):
        X = rng.poisson(1.0, (rng.integers(2, 4), 6)) * 10.0 ** rng.integers(0, 15, 6)
        y, k = np.arange(len(X)), int(rng.integers(1, 4))
        truth = exact_multinomial(X.astype(np.int64), y, k, Fraction(1, 10**10))
        model = quietly(SparseMultinomialNB(k=k, alpha=0).fit, backend.array(X), y)
        slack = 1e-13 * float(X.sum())
        assert model.upper_bound_ >= truth.likelihood - slack
        optimal += truth.every[tuple(model.support_.tolist())] >= truth.likelihood - slack
    assert optimal >= 0.97 * problems


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "parameters",
    [{}, {"alpha": 0.1}, {"alpha": 0.0}, {"fit_prior": False}, {"class_prior": 0}],
    ids=str,
)
def test_with_all_features_is_multinomial_nb(
    parameters: dict[str, Any], classes: int, backend: Any
) -> None:
    parameters = dict(parameters)
    y, weights = np.arange(60) % classes, np.random.default_rng(2).random(60)
    if "class_prior" in parameters:
        parameters["class_prior"] = [0.2, 0.8] if classes == 2 else [0.2, 0.5, 0.3]
    for s in (None, weights):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the warning that alpha is too small
            theirs = MultinomialNB(**parameters, force_alpha=False).fit(COUNTS, y, sample_weight=s)
        for X in backend.containers(COUNTS, (np.float64, np.float32)):
            ours = SparseMultinomialNB(**parameters).fit(X, y, sample_weight=s)
            for name in ("class_count_", "feature_count_", "class_log_prior_", "feature_log_prob_"):
                found = _host(getattr(ours, name), backend)
                np.testing.assert_allclose(found, getattr(theirs, name), rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(
                _host(ours.predict_proba(X), backend), theirs.predict_proba(COUNTS), atol=1e-10
            )
            assert ours.gap_ == 0 and ours.upper_bound_ == -ours.objective_


def test_scores_are_the_log_likelihood_on_the_support(backend: Any) -> None:
    for y in (Y, Y % 2):
        for X in backend.containers(COUNTS):
            model = SparseMultinomialNB(k=4).fit(X, y)
            log_theta = _host(model.feature_log_prob_, backend)
            # Tied features add the same to each class.
            expected = COUNTS @ log_theta.T + _host(model.class_log_prior_, backend)
            expected = expected - expected[:, :1]
            found = _host(model.decision_function(X), backend)
            if found.ndim == 1:
                found = np.stack([0 * found, found], axis=1)
            found = found - found[:, :1]
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(
                _host(model.centers_, backend), np.exp(log_theta[:, model.support_]), rtol=1e-12
            )
            coef, intercept = _host(model.coef_, backend), _host(model.intercept_, backend)
            linear = COUNTS @ coef.T + intercept
            decision = _host(model.decision_function(X), backend)
            np.testing.assert_allclose(decision.reshape(linear.shape), linear, rtol=1e-9, atol=1e-9)
            h = divergence(_class_sums(y) + 1.0, list(FittedModel(model).selection.p))
            np.testing.assert_allclose(_host(model.scores_, backend), h, rtol=1e-10, atol=1e-13)
            order = np.argsort(-h[model.ranking_], kind="stable")
            assert order.tolist() == list(range(4))


def test_one_feature_has_the_same_share_in_all_classes(backend: Any) -> None:
    """Shares sum to 1 with the others tied, so that a single feature decides nothing."""
    for y in (Y, Y % 2):
        for X in backend.containers(COUNTS * 1000):
            model = SparseMultinomialNB(k=1, fit_prior=False).fit(X, y)
            centers = _host(model.centers_, backend)
            assert np.ptp(centers) == 0
            assert not _host(model.predict(X), backend).any()


def _class_sums(y: np.ndarray) -> np.ndarray:
    return np.stack([COUNTS[y == c].sum(axis=0) for c in range(y.max() + 1)]).astype(float)


@pytest.mark.parametrize("classes", [2, 3])
def test_with_k_is_a_fresh_fit(classes: int, backend: Any) -> None:
    X, y = backend.array(COUNTS), Y % classes
    model = SparseMultinomialNB(k=6).fit(X, y)
    for k in [*range(1, 13), "all"]:
        fresh, copy = quietly(SparseMultinomialNB(k=k).fit, X, y), quietly(model.with_k, k)
        assert copy.support_.tolist() == fresh.support_.tolist()
        assert copy.objective_ == fresh.objective_
        assert copy.gap_ == pytest.approx(fresh.gap_, rel=1e-9, abs=1e-11)
        np.testing.assert_allclose(
            _host(copy.decision_function(X), backend),
            _host(fresh.decision_function(X), backend),
            rtol=1e-12,
        )
    assert model.k == 6 and len(model.support_) == 6


@pytest.mark.parametrize("cut", [10, 31])
def test_batches_give_the_model_of_all_rows(cut: int, backend: Any) -> None:
    weights = np.arange(60) % 4
    for X in backend.containers(COUNTS):
        whole = SparseMultinomialNB(k=3).fit(X, Y, sample_weight=weights)
        parts = SparseMultinomialNB(k=3)
        for rows in (slice(0, cut), slice(cut, 60)):
            parts.partial_fit(X[rows, :], Y[rows], classes=[0, 1, 2], sample_weight=weights[rows])
        for name in ("scores_", "centers_", "feature_log_prob_", "class_log_prior_"):
            found, expected = (_host(getattr(m, name), backend) for m in (parts, whole))
            np.testing.assert_array_equal(found, expected)
        assert (parts.objective_, parts.gap_) == (whole.objective_, whole.gap_)


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array, scipy.sparse.csc_array])
@pytest.mark.parametrize("wide", [False, True], ids=["narrow", "wide"])
def test_a_batch_that_is_refused_leaves_the_model_as_it_was(kind: Any, wide: bool) -> None:
    data = np.concatenate([COUNTS, np.zeros((60, 9000))], axis=1) if wide else COUNTS
    model = SparseMultinomialNB(k=3).partial_fit(kind(data[:40] * 1.0), Y[:40], classes=[0, 1, 2])
    before = model.feature_count_.copy(), model.class_count_.copy(), model.predict(kind(data * 1.0))
    bad = data[40:45] * 1.0
    for value in (-1.0, np.nan):
        bad[4, 1] = value
        with pytest.raises(ValueError, match=r"feature 1 \(first in row 4\)"):
            model.partial_fit(kind(bad), Y[40:45])
    bad[4, 1] = 1e308
    bad[1, 1] = 1e308  # the same class: their sum overflows
    with pytest.raises(ValueError, match="overflow"):
        model.partial_fit(kind(bad), Y[40:45])
    after = model.feature_count_, model.class_count_, model.predict(kind(data * 1.0))
    for a, b in zip(before, after, strict=True):
        np.testing.assert_array_equal(a, b)


def test_weights_are_repetitions(backend: Any) -> None:
    weights = np.arange(60) % 3
    repeated = np.repeat(np.arange(60), weights)
    for X, again in zip(
        backend.containers(COUNTS), backend.containers(COUNTS[repeated]), strict=True
    ):
        found = multinomial_nb(X, Y % 2, sample_weight=weights)
        expected = multinomial_nb(again, (Y % 2)[repeated])
        np.testing.assert_array_equal(_host(found.total, backend), _host(expected.total, backend))
        assert found.select(4).gap == expected.select(4).gap


@pytest.mark.parametrize("classes", [2, 3])
def test_permuting_features_permutes_the_support(classes: int, backend: Any) -> None:
    rng = np.random.default_rng(3)
    total = rng.exponential(5.0, (classes, 20))
    X, y = np.repeat(total, 2, axis=0) / 2, np.repeat(np.arange(classes), 2)
    order = rng.permutation(20)
    for k in (3, 8, 15):
        plain = SparseMultinomialNB(k=k).fit(backend.array(X), y)
        turned = SparseMultinomialNB(k=k).fit(backend.array(X[:, order]), y)
        assert sorted(order[turned.support_]) == plain.support_.tolist()
        assert turned.objective_ == pytest.approx(plain.objective_, rel=1e-13)
        swapped = SparseMultinomialNB(k=k).fit(backend.array(X), classes - 1 - y)
        assert swapped.support_.tolist() == plain.support_.tolist()


def test_of_equal_features_the_first_are_selected(backend: Any) -> None:
    X = backend.array(np.tile([[5.0, 0.0], [0.0, 3.0], [1.0, 1.0]], (1, 4)))
    model = SparseMultinomialNB(k=5).fit(X, [0, 1, 1])
    kinds = [model.support_[model.support_ % 2 == c].tolist() for c in (0, 1)]
    assert kinds[0] == [0, 2, 4, 6][: len(kinds[0])] and kinds[1] == [1, 3, 5, 7][: len(kinds[1])]


def test_bits_do_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "CPU_CHUNK", 2**9)
    monkeypatch.setattr(support_search, "_ALL_BELOW", 1)
    monkeypatch.setattr(joblib, "cpu_count", lambda: 4)
    S = scipy.sparse.random(300, 5000, 0.05, "csr", np.float64, np.random.default_rng(0))
    found = []
    for count in (1, 4):
        monkeypatch.setenv("OMP_NUM_THREADS", str(count))
        model = SparseMultinomialNB(k=20).fit(S, np.arange(300) % 2)
        found.append(
            (model.support_.tolist(), model.objective_, model.gap_, model.scores_.tobytes())
        )
    assert found[0] == found[1]


def test_moves_to_the_host(backend: Any) -> None:
    X = backend.array(COUNTS)
    model = SparseMultinomialNB(k=5).fit(X, Y)
    moved = model.to("cpu")
    for name in ("scores_", "feature_log_prob_", "class_count_", "coef_", "centers_"):
        assert isinstance(getattr(moved, name), np.ndarray)
        np.testing.assert_allclose(
            getattr(moved, name), _host(getattr(model, name), backend), rtol=1e-13, atol=1e-13
        )
    assert moved.gap_ == model.gap_
    assert moved.with_k(4).support_.tolist() == model.with_k(4).support_.tolist()


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (-1.0, "Negative values in data passed to SparseMultinomialNB"),
        (np.nan, "NaN"),
        (np.inf, "infinity"),
    ],
)
def test_bad_values_are_named(value: float, word: str, backend: Any) -> None:
    bad = COUNTS.astype(float)
    bad[5, 2] = bad[8, 2] = value
    with np.errstate(invalid="ignore"):
        containers = backend.containers(bad, (np.float64, np.float32))
    # A weight of zero hides no bad value, and neither does a larger positive value of the class.
    for X in containers:
        for weights in (None, (np.arange(60) != 5).astype(float)):
            with pytest.raises(ValueError, match=rf"{word}.* feature 2 \(first in row 5\)"):
                SparseMultinomialNB().fit(X, Y, sample_weight=weights)


def test_integers_below_zero_are_named(on_host: Any) -> None:
    bad = COUNTS.astype(np.int8)
    bad[3, 4] = -2
    for X in (bad, scipy.sparse.csr_array(bad), scipy.sparse.csc_array(bad)):
        with pytest.raises(ValueError, match=r"-2.* in feature 4 \(first in row 3\)"):
            SparseMultinomialNB().fit(X, Y)
    for kind in (np.uint8, bool):
        SparseMultinomialNB().fit(scipy.sparse.csr_array(COUNTS.astype(kind)), Y)


# The stand-in for CuPy computes with NumPy, which warns where CUDA does not.
@pytest.mark.filterwarnings("ignore:.* encountered in:RuntimeWarning")
def test_sums_that_overflow_name_the_feature(backend: Any) -> None:
    huge = COUNTS.astype(float)
    huge[[0, 3], 7] = 1.7e308
    for X in backend.containers(huge):
        with pytest.raises(ValueError, match=r"feature 7 .*overflow float64"):
            SparseMultinomialNB().fit(X, Y)


def test_values_too_large_for_the_dual_are_refused(backend: Any) -> None:
    X = np.random.default_rng(0).poisson(1.0, (6, 5)).astype(float)
    y = np.arange(6) // 3
    for scale, alpha in ((1e300, 0), (1e145, 1e-6), (1e160, 1e100)):
        with pytest.raises(ValueError, match=r"values of X are too large: .*Rescale X"):
            SparseMultinomialNB(k=1, alpha=alpha).fit(backend.array(X * scale), y)
    for scale, alpha in ((1e135, 0), (1e148, 1.0)):
        model = SparseMultinomialNB(k=1, alpha=alpha).fit(backend.array(X * scale), y)
        assert np.isfinite(model.objective_) and len(model.support_) == 1


def test_features_without_positive_gain_give_a_warning(backend: Any) -> None:
    X = np.concatenate([COUNTS[:6, :2], np.ones((6, 3))], axis=1)
    X[:, :2] = [[4, 0], [0, 4]] * 3
    with pytest.warns(
        UninformativeFeaturesWarning, match="more features than have a positive gain"
    ):
        model = SparseMultinomialNB(k=4).fit(backend.array(X), np.arange(6) % 2)
    assert model.support_.tolist() == [0, 1, 2, 3]
    scores = _host(model.scores_, backend)
    assert np.all(scores[2:] == 0) and np.all(scores[:2] > 1)


def test_wrong_parameters_are_named() -> None:
    for parameters, word in (
        ({"alpha": -1}, "alpha=-1"),
        ({"alpha": 1e101}, r"alpha=1e\+101.* from 0 to 1e\+100"),
        ({"k": 0}, "k=0"),
    ):
        with pytest.raises(ValueError, match=word):
            SparseMultinomialNB(**parameters).fit(COUNTS, Y)
        with pytest.raises(ValueError, match=word):
            clone(SparseMultinomialNB(**parameters)).partial_fit(COUNTS, Y, classes=[0, 1, 2])
