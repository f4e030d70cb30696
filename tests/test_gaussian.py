"""Sparse Gaussian naive Bayes: exhaustive search, scikit-learn, constant features, and errors."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
from exact_densities import exact_gaussian, exact_gaussian_scores
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.feature_selection import SelectFdr, f_classif
from sklearn.naive_bayes import GaussianNB
from strategies import quietly

from gpucenters import L2CenterClassifier, SparseGaussianNB, gaussian_gain, sparsity_path
from gpucenters.solvers import gaussian_nb
from gpucenters.solvers.gaussian import DensityTerms

rng = np.random.default_rng(0)
Y = np.arange(60) % 3
X = np.round(rng.normal(size=(60, 8)) + Y[:, None] * rng.random(8), 2) * (rng.random((60, 8)) < 0.6)
X[:, 5] = 3


@pytest.mark.parametrize("offset", [0, 1e8])
@pytest.mark.parametrize("pooling", [0, 0.25, 1])
def test_equals_exhaustive_search(pooling: float, offset: float, backend: Any) -> None:
    rng = np.random.default_rng(2)
    for number in range(6 if backend.name == "numpy" else 2):
        K, m, ddof = int(rng.integers(2, 5)), int(rng.integers(2, 6)), number % 2
        y = np.concatenate([np.arange(K), np.arange(K), rng.integers(0, K, 4)])
        X = rng.integers(-2, 3, (len(y), m)) + offset
        X[:, 0] = X[:, -1]
        weights = rng.integers(1, 4, len(y)) if number % 2 else None
        truth = exact_gaussian(X, y, Fraction(pooling), Fraction(1, 64), ddof, weights)
        containers = backend.containers(X)
        model = SparseGaussianNB(pooling=pooling, var_smoothing=1 / 64, ddof=ddof)
        model.fit(containers[number % len(containers)], y, weights)
        scores = backend.host(model.scores_)
        np.testing.assert_allclose(scores, np.array(truth.gain, float), rtol=1e-9, atol=1e-13)
        assert np.all(scores[[g == 0 for g in truth.gain]] == 0)
        for k, support in truth.supports.items():
            assert tuple(quietly(model.with_k, k).support_) == support
        assert model.objective_ == pytest.approx(float(truth.loss), rel=1e-9)
        own = [[float(p[1]) for p in row] for row in truth.free]
        np.testing.assert_allclose(backend.host(model.variances_), own, rtol=1e-9)


def test_examples_with_numbers() -> None:
    x = np.asarray([[0.0], [2], [4], [10]])
    for pooling, gain in ((0, 2 * np.log(14 / 3)), (1, 2 * np.log(14 / 5))):
        found = gaussian_nb(x, [0, 0, 1, 1], pooling=pooling, var_smoothing=0)
        np.testing.assert_allclose(found.gain, [gain], rtol=1e-14)
        assert found.tied.tolist() == [4]
        np.testing.assert_allclose(found.variances_at(np.asarray([0]))[1], [14])
    x = np.asarray([[0.0], [2], [4], [4], [9], [11]])
    found = gaussian_nb(x, [0, 0, 1, 1, 2, 2], pooling=1, var_smoothing=0).gain
    np.testing.assert_allclose(found, [9.273127], atol=5e-7)


@pytest.mark.parametrize("offset", [0, 1e8, 2.0**40])
@pytest.mark.parametrize("pooling", [0, 0.5, 1])
def test_null_features_have_a_gain_of_exactly_zero(
    pooling: float, offset: float, backend: Any
) -> None:
    y = np.repeat([0, 1, 2], [4, 8, 4])
    same = np.tile([0, 2, 1, 5], 4) + offset
    for held in backend.containers(np.stack([same, same * 0 + 0.1, same * 0, y + offset], axis=1)):
        found = gaussian_nb(held, y, pooling=pooling, var_smoothing=1e-3).gain
        assert backend.host(found).tolist()[:3] == [0, 0, 0]
        assert found[3] > 1


def test_what_is_null_up_to_rounding_has_no_gain(backend: Any) -> None:
    y = np.repeat([0, 1], 3)
    sums = np.asarray([0.1, 0.2, 0.3, 0.3, 0.2, 0.1])  # in another order of additions
    constant = np.where(np.arange(6) % 2, 0.3, 0.1 + 0.2)
    assert sum(sums[:3]) != sum(sums[3:]) and len(set(constant)) == 2
    for held in backend.containers(np.stack([sums, constant, y], axis=1)):
        for pooling in (0, 1):
            found = gaussian_nb(held, y, pooling=pooling, var_smoothing=1e-3).gain
            assert backend.host(found).tolist()[:2] == [0, 0]
    for held in backend.containers(np.stack([constant, np.asarray([0.0, 1, 2, 4, 5, 7])], axis=1)):
        found = gaussian_nb(held, y, var_smoothing=0)
        assert float(found.gain[0]) == 0 and backend.host(found.variance)[:, 0].tolist() == [0, 0]
    nearly = np.concatenate([constant[:3], [1.0, 2, 4]])
    for held in backend.containers(nearly[:, None]):
        with pytest.raises(ValueError, match="feature 0 has no variance in class 0"):
            gaussian_nb(held, y, var_smoothing=0)


def test_gains_near_zero_and_of_small_variances_keep_their_digits(backend: Any) -> None:
    y = np.repeat([0, 1], 4)
    near = np.asarray([1000.0, 1001, 1002, 1003, 1000, 1001, 1002, 1003 + 2.0**-20])
    small = np.asarray([0, 0, 0, 2.0**-12, 0, 1, 2, 3])
    A = np.stack([near, small], axis=1)
    truth = exact_gaussian(A, y, Fraction(0), Fraction(1, 2**40))
    for held in backend.containers(A):
        found = backend.host(gaussian_nb(held, y, var_smoothing=2.0**-40).gain)
        np.testing.assert_allclose(found, np.array(truth.gain, float), rtol=1e-11)


def test_terms_of_a_path_are_those_of_the_decision_and_bound_them() -> None:
    rng = np.random.default_rng(4)
    for k in (2, 3):
        params = tuple(rng.normal(size=(4, k, 1)))
        params = (params[0][:1] + np.zeros((k, 1)), params[1], abs(params[2]), params[3])
        terms = DensityTerms(params, 1.0)
        x = rng.normal(size=7)
        there = terms.of_columns(x[:, None], slice(0, 1)).T
        zero, beyond = terms.at_zero, np.stack(terms.beyond_zero(x, np.zeros(7, int)))
        np.testing.assert_allclose((zero + beyond)[:-1], there[:-1], rtol=1e-12, atol=1e-12)
        d = x[:, None] - params[0].T - params[1].T
        largest = np.max(abs(params[3].T) + d * d * params[2].T / 2, axis=1)
        np.testing.assert_allclose(there[-1], largest)
        np.testing.assert_allclose(beyond[-1], largest + zero[-1])


@pytest.mark.parametrize("load", [load_wine, load_digits, load_breast_cancer])
def test_with_all_features_is_gaussian_nb(load: Any, backend: Any) -> None:
    X, y = load(return_X_y=True)
    X = X[:, ::8] if X.shape[1] > 60 else X
    K = y.max() + 1
    priors = np.arange(1.0, K + 1) / np.sum(np.arange(1.0, K + 1))
    theirs = GaussianNB(priors=priors).fit(X, y)
    some = theirs.var_.max(axis=0) > 2 * theirs.epsilon_
    for held in backend.containers(X):
        ours = SparseGaussianNB(priors=priors).fit(held, y)
        assert ours.epsilon_ == pytest.approx(theirs.epsilon_, rel=1e-12)
        np.testing.assert_allclose(backend.host(ours.centers_), theirs.theta_, rtol=1e-12)
        variances = backend.host(ours.variances_)
        np.testing.assert_allclose(variances[:, some], theirs.var_[:, some], rtol=1e-10)
        logs = theirs.predict_log_proba(X)
        found = backend.host(ours.predict_log_proba(held))
        np.testing.assert_allclose(found, logs, rtol=1e-10, atol=1e-7)
        np.testing.assert_array_equal(backend.host(ours.predict(held)), theirs.predict(X))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("k", ["all", 3])
def test_joint_log_probabilities_are_of_all_features(k: Any, classes: int, backend: Any) -> None:
    y, peer = Y % classes, GaussianNB().fit(X, Y % classes)
    if k == 3:  # tied features have the moments of the whole
        support = SparseGaussianNB(k=3).fit(X, y).support_
        off = np.setdiff1d(np.arange(8), support)
        peer.theta_[:, off] = X[:, off].mean(axis=0)
        peer.var_[:, off] = X[:, off].var(axis=0) + peer.epsilon_
    expected = peer.predict_joint_log_proba(X)
    for held in backend.containers(X):
        model = SparseGaussianNB(k=k).fit(held, y)
        found = backend.host(model.predict_joint_log_proba(held))
        np.testing.assert_allclose(found, expected, rtol=1e-10)
        logs = found - np.logaddexp.reduce(found, axis=1, keepdims=True)
        proba = backend.host(model.predict_log_proba(held))
        np.testing.assert_allclose(proba, logs, rtol=1e-8, atol=1e-8)


def test_sample_weights_are_those_of_gaussian_nb() -> None:
    weights = np.arange(60) % 4 + 0.5
    theirs = GaussianNB(var_smoothing=0).fit(X[:, :5] + 5, Y, weights)
    ours = SparseGaussianNB(var_smoothing=0).fit(X[:, :5] + 5, Y, weights)
    np.testing.assert_allclose(ours.variances_, theirs.var_, rtol=1e-10)
    np.testing.assert_allclose(
        ours.predict_proba(X[:, :5]), theirs.predict_proba(X[:, :5]), rtol=1e-10
    )


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("pooling", [0, 0.5, 1])
def test_scores_are_log_densities_for_sparse_and_dense_data(
    pooling: float, classes: int, backend: Any
) -> None:
    y = Y % classes
    for held in backend.containers(X):
        model = SparseGaussianNB(k=4, pooling=pooling, var_smoothing=0.01).fit(held, y)
        D = model.support_
        means, v = backend.host(model.centers_), backend.host(model.variances_)
        logs = scipy.stats.norm.logpdf(X[:, D, None], means.T, np.sqrt(v.T)).sum(axis=1)
        expected = logs + backend.host(model.class_log_prior_)
        expected = expected[:, 1:] - expected[:, :1]
        found = backend.host(model.decision_function(held))
        found = found[:, None] if classes == 2 else found[:, 1:] - found[:, :1]
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_a_large_offset_changes_nothing(backend: Any) -> None:
    rng = np.random.default_rng(1)
    A = np.round(rng.normal(size=(400, 5)) * 2**16) / 2**16
    y = rng.integers(0, 2, 400)
    A[y == 1, 0] += 0.25
    near = SparseGaussianNB(k=3).fit(backend.array(A), y)
    far = SparseGaussianNB(k=3).fit(backend.array(A + 2.0**27), y)
    assert far.support_.tolist() == near.support_.tolist()
    found = [backend.host(m.scores_) for m in (far, near)]
    np.testing.assert_allclose(*found, rtol=1e-6)
    scores = [
        backend.host(m.decision_function(backend.array(a)))
        for m, a in ((far, A + 2.0**27), (near, A))
    ]
    np.testing.assert_allclose(*scores, atol=1.5e-7)


def _far(offset: float, classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A feature at an offset, on a grid, beside sparse ones; rows to score, two of them apart."""
    rng = np.random.default_rng(5)
    y = np.arange(36) % classes
    A = rng.integers(-2, 3, (36, 3)) * (rng.random((36, 3)) < 0.4) + 0.0
    A[:, 1] = rng.integers(-2, 3, 36) + 3 * y + offset
    asked = A[:8].copy()
    asked[6, 1], asked[7, 1] = 0, 2 * offset
    return A, y, asked


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e9, 1e12])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("pooling", [0, 1])
def test_scores_at_an_offset_are_exact_to_rounding(
    pooling: int, classes: int, offset: float, backend: Any
) -> None:
    A, y, asked = _far(offset, classes)
    truth, bounds = exact_gaussian_scores(A, y, asked, Fraction(pooling), Fraction(1, 2**20))
    joint, bounds = np.array(truth, float), np.array(bounds)
    gaps = np.array([[s - row[0] for s in row[1:]] for row in truth], float)
    for held, rows in zip(backend.containers(A), backend.containers(asked), strict=True):
        model = SparseGaussianNB(pooling=pooling, var_smoothing=2.0**-20).fit(held, y)
        assert np.all(abs(backend.host(model.predict_joint_log_proba(rows)) - joint) <= bounds)
        found = backend.host(model.decision_function(rows))
        found = found[:, None] if classes == 2 else found[:, 1:] - found[:, :1]
        assert np.all(abs(found - gaps) <= bounds[:, 1:] + bounds[:, :1])
        np.testing.assert_array_equal(backend.host(model.predict(rows)), joint.argmax(axis=1))


@pytest.mark.parametrize("layout", ["csr_array", "csc_array"])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_path_at_an_offset_scores_as_dense_data_do(classes: int, layout: str) -> None:
    A, y, _ = _far(1e6, classes)
    scoring = ["accuracy", "neg_log_loss"]
    paths = [
        sparsity_path(SparseGaussianNB(), X, y, cv=2, scoring=scoring)
        for X in (A, getattr(scipy.sparse, layout)(A))
    ]
    for name in scoring:
        np.testing.assert_allclose(*(p.scores[name] for p in paths), rtol=1e-10)


def test_one_variance_ranks_as_the_analysis_of_variance(backend: Any) -> None:
    A = rng.normal(size=(50, 20)) * rng.uniform(0.1, 9, 20)
    f = f_classif(A, Y[:50])[0]
    found = gaussian_nb(backend.array(A), Y[:50], pooling=1, var_smoothing=0).gain
    found = backend.host(found)
    np.testing.assert_array_equal(np.argsort(found), np.argsort(f))
    np.testing.assert_allclose(found, 25 * np.log1p(f * 2 / 47), rtol=1e-10)
    half = np.arange(50) % 2
    l2 = L2CenterClassifier(scale="pooled").fit(A, half).ranking_
    assert SparseGaussianNB(pooling=1).fit(A, half).ranking_.tolist() == l2.tolist()


def test_features_without_variance_in_a_class_are_named_or_smoothed() -> None:
    A = X[:, :4] + 1
    A[Y == 1, 2] = 7
    labels = np.asarray(["a", "b", "c"])[Y]
    statistics = SparseGaussianNB().statistics(A, labels)
    with pytest.raises(ValueError, match="feature 2 has no variance in class b"):
        SparseGaussianNB(var_smoothing=0).fit_statistics(statistics)
    with pytest.raises(ValueError, match="feature 2 has no variance in class 1"):
        SparseGaussianNB(var_smoothing=0).fit(A, labels)
    assert SparseGaussianNB(k=1).fit(A, labels).support_.tolist() == [2]
    assert SparseGaussianNB(var_smoothing=0, pooling=0.5).fit(A, labels).scores_[2] > 0
    with pytest.raises(ValueError, match="ddof=1 leaves class 1"):
        SparseGaussianNB(ddof=1).fit(A[:4], [0, 0, 0, 1])


def test_p_values_are_of_likelihood_ratios() -> None:
    A = np.random.default_rng(3).normal(size=(90, 6))
    y = np.arange(90) % 3
    A[:, 1] *= 1 + y
    A[:, 2] += y
    gain, pvalues = gaussian_gain(A, y)
    for i in range(6):
        x = A[:, i]
        own = sum(
            scipy.stats.norm.logpdf(a, a.mean(), a.std()).sum()
            for a in (x[y == c] for c in range(3))
        )
        ratio = own - scipy.stats.norm.logpdf(x, x.mean(), x.std()).sum()
        assert gain[i] == pytest.approx(ratio, rel=1e-9)
        assert pvalues[i] == pytest.approx(scipy.stats.chi2.sf(2 * ratio, 4), rel=1e-8)
    pooled = SparseGaussianNB(pooling=1, ddof=1, var_smoothing=0.5).fit(A, y)
    f = f_classif(A, y)[0]
    expected = scipy.stats.chi2.sf(90 * np.log1p(f * 2 / 87), 2)
    np.testing.assert_allclose(pooled.pvalues_, expected, rtol=1e-9)
    assert SelectFdr(gaussian_gain, alpha=0.01).fit(A, y).get_support(indices=True).tolist() == [
        1,
        2,
    ]
    half = SparseGaussianNB(pooling=0.5).fit(A, y)
    assert not hasattr(half, "pvalues_")
    with pytest.raises(AttributeError, match="for pooling 0 and 1 only"):
        _ = half.pvalues_


def test_p_values_of_constant_features() -> None:
    A = np.stack([np.full(6, 0.3), np.asarray([1.0, 1, 1, 2, 3, 4])], axis=1)
    gain, pvalues = gaussian_gain(A, [0, 0, 0, 1, 1, 1])
    assert gain.tolist() == [0, np.inf] and pvalues.tolist() == [1, 0]


def test_sparse_data_are_never_made_dense() -> None:
    import tracemalloc

    S = scipy.sparse.random(400, 20_000, 1e-3, format="csr", random_state=0)
    y = np.arange(400) % 2
    tracemalloc.start()
    try:
        SparseGaussianNB(k=100, pooling=1).fit(S, y).predict_proba(S)
        assert tracemalloc.get_traced_memory()[1] < 16_000_000  # a quarter of it
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"pooling": 1.5}, "pooling=1.5"),
        ({"pooling": True}, "pooling=True"),
        ({"var_smoothing": -1}, "var_smoothing=-1"),
        ({"var_smoothing": float("nan")}, "var_smoothing=nan"),
        ({"ddof": 2}, "ddof=2"),
        ({"priors": "flat"}, "priors='flat'"),
        ({"priors": [0.5, 0.5]}, "priors has 2 entries"),
    ],
    ids=str,
)
def test_wrong_parameters_are_named(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SparseGaussianNB(**parameters).fit(X, Y)
