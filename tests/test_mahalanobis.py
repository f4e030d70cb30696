"""Mahalanobis centers: scikit-learn's discriminant analysis, exact search, invariances."""

from __future__ import annotations

from typing import Any

import exact
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from correlated import assert_same_model, attribute, correlated
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from strategies import quietly

from gpucenters import L2CenterClassifier, MahalanobisCenterClassifier

DATA = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}
datasets = pytest.mark.parametrize("data", list(DATA))


@datasets
def test_predictions_are_those_of_linear_discriminant_analysis(data: str, backend: Any) -> None:
    X, y = DATA[data](return_X_y=True)
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    ours = MahalanobisCenterClassifier(priors="empirical").fit(backend.array(X), y)
    found = backend.host(ours.predict(backend.array(X)))
    np.testing.assert_array_equal(found, theirs.predict(X))
    assert ours.score(backend.array(X), y) == theirs.score(X, y)


@datasets
def test_probabilities_are_those_of_linear_discriminant_analysis(data: str, backend: Any) -> None:
    X, y = DATA[data](return_X_y=True)
    theirs = LinearDiscriminantAnalysis(solver="lsqr", store_covariance=True).fit(X, y)
    pooled = MahalanobisCenterClassifier().fit(backend.array(X), y)
    n, k = len(y), len(pooled.classes_)
    S = attribute(pooled, "covariance_", backend) * ((n - k) / n)  # scikit-learn divides by n
    np.testing.assert_allclose(S, theirs.covariance_, rtol=1e-9, atol=1e-12)
    ours = MahalanobisCenterClassifier(covariance=S, priors="empirical").fit(backend.array(X), y)
    found = backend.host(ours.predict_proba(backend.array(X)))
    np.testing.assert_allclose(found, theirs.predict_proba(X), rtol=1e-6, atol=1e-8)
    logs = backend.host(ours.predict_log_proba(backend.array(X)))
    np.testing.assert_allclose(np.exp(logs), found, rtol=1e-9)


def test_a_diagonal_covariance_scales_the_features(backend: Any) -> None:
    X, y = correlated(3)
    X = np.round(4 * X)
    sigma = np.asarray([0.5, 2.0, 1.0, 8.0, 0.25])
    for k in (2, "all"):
        scaled = L2CenterClassifier(k=k, priors="empirical").fit(backend.array(X / sigma), y)
        for container in backend.containers(X):
            model = MahalanobisCenterClassifier(
                k=k, covariance=np.diag(sigma**2), priors="empirical"
            ).fit(container, y)
            np.testing.assert_array_equal(model.support_, scaled.support_)
            np.testing.assert_array_equal(model.ranking_, scaled.ranking_)
            assert model.objective_ == pytest.approx(scaled.objective_, rel=1e-12)
            pairs = [
                (attribute(model, n, backend), attribute(scaled, n, backend))
                for n in ("scores_", "centers_")
            ]
            pairs += [
                (
                    backend.host(getattr(model, f)(container)),
                    backend.host(getattr(scaled, f)(backend.array(X / sigma))),
                )
                for f in ("decision_function", "predict_proba", "transform", "predict")
            ]
            for a, b in pairs:
                np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


def test_the_identity_covariance_gives_the_bits_of_l2_centers(backend: Any) -> None:
    rng = np.random.default_rng(3)
    X, y = rng.integers(-3, 4, (40, 6)).astype(float), np.arange(40) % 2
    X[:, 4] = X[:, 1]  # gains that tie
    plain = L2CenterClassifier(k=3).fit(backend.array(X), y)
    model = MahalanobisCenterClassifier(k=3, covariance=np.eye(6)).fit(backend.array(X), y)
    np.testing.assert_array_equal(model.ranking_, plain.ranking_)
    np.testing.assert_array_equal(*(attribute(m, "scores_", backend) for m in (model, plain)))


def test_equals_exhaustive_search_in_the_transformed_space(backend: Any) -> None:
    rng = np.random.default_rng(20)
    for _ in range(60 if backend.name == "numpy" else 20):
        X, y, weights, k = exact.random_problem(rng)
        m = X.shape[1]
        # A symmetric root of whole numbers, so that the transformed features are exact.
        off = np.triu(rng.integers(-1, 2, (m, m)), 1)
        root = off + off.T + np.diag(np.full(m, m + 1))
        truth = exact.exact_l2(X @ root, y, k, weights)
        S = np.linalg.inv((root @ root).astype(float))
        s = None if weights is None else np.asarray(weights)
        for container in backend.containers(X):
            model = MahalanobisCenterClassifier(k=k, covariance=S)
            quietly(model.fit, container, y, sample_weight=s)
            np.testing.assert_allclose(
                attribute(model, "transformation_", backend), root, atol=1e-9
            )
            gain = np.asarray([float(g) for g in truth.gain])
            np.testing.assert_allclose(attribute(model, "scores_", backend), gain, atol=1e-8)
            assert model.objective_ == pytest.approx(float(truth.objective), rel=1e-9, abs=1e-9)
            # Rounding in the root may choose between supports of equal gains.
            kept = sum(truth.gain[i] for i in model.support_)
            assert kept == pytest.approx(sum(truth.gain[i] for i in truth.support), abs=1e-12)
            decision = backend.host(model.decision_function(container))
            if tuple(model.support_) == tuple(truth.support):
                expected = [exact.decision_l2(truth, row) for row in X @ root]
                expected = np.asarray(expected, dtype=object).astype(float)
                np.testing.assert_allclose(decision, expected, rtol=1e-8, atol=1e-7)


def test_the_objective_is_the_loss_of_the_centers(backend: Any) -> None:
    X, y = correlated(4, 70, 6)
    s = np.random.default_rng(0).random(70)
    model = MahalanobisCenterClassifier(k=2, covariance="total")
    model.fit(backend.array(X), y, sample_weight=s)
    xi = X @ attribute(model, "transformation_", backend)
    means = np.stack([np.average(xi[y == c], axis=0, weights=s[y == c]) for c in range(4)])
    centers = np.repeat(means.mean(axis=0)[None, :], 4, axis=0)
    centers[:, model.support_] = means[:, model.support_]
    distance = ((xi - centers[y]) ** 2).sum(axis=1)
    expected = sum(np.average(distance[y == c], weights=s[y == c]) for c in range(4))
    assert model.objective_ == pytest.approx(expected, rel=1e-11)
    np.testing.assert_allclose(
        attribute(model, "centers_", backend), means[:, model.support_], rtol=1e-10
    )
    # The nearest center on the support is the prediction.
    here = xi[:, None, model.support_] - means[:, model.support_]
    nearest = np.argmin((here**2).sum(axis=2), axis=1)
    np.testing.assert_array_equal(backend.host(model.predict(backend.array(X))), nearest)


@pytest.mark.parametrize("shrinkage", [None, "ledoit-wolf"])
def test_large_offsets_change_nothing(shrinkage: Any, backend: Any) -> None:
    X, y = correlated(3, 90)
    X = np.round(X * 16) / 16  # so that adding the offset is exact
    plain = MahalanobisCenterClassifier(k=3, shrinkage=shrinkage).fit(backend.array(X), y)
    expected = backend.host(plain.decision_function(backend.array(X)))
    far = X + 1e8 * np.asarray([1.0, -1.0, 1.0, 0.0, 1.0])
    streamed = MahalanobisCenterClassifier(k=3, shrinkage=shrinkage)
    for rows in np.array_split(np.arange(90), 4):
        streamed.partial_fit(backend.array(far[rows]), y[rows], classes=range(3))
    fitted = clone(plain).fit(backend.array(far), y)
    for model in (fitted, streamed):
        for name in ("covariance_", "scores_"):
            a, b = attribute(model, name, backend), attribute(plain, name, backend)
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)
        found = backend.host(model.decision_function(backend.array(far)))
        np.testing.assert_allclose(found, expected, atol=1e-5)
        np.testing.assert_array_equal(
            backend.host(model.predict(backend.array(far))),
            backend.host(plain.predict(backend.array(X))),
        )


def test_with_k_is_the_fit_at_that_k(backend: Any) -> None:
    X, y = correlated(3)
    model = MahalanobisCenterClassifier().fit(backend.array(X), y)
    for k in (1, 3, 0.5, "all"):
        fitted = MahalanobisCenterClassifier(k=k).fit(backend.array(X), y)
        other = model.with_k(k)
        assert other.k == k
        assert_same_model(other, fitted, backend, rtol=1e-15)
        found, expected = (backend.host(m.transform(backend.array(X))) for m in (other, fitted))
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_decisions_with_all_features_do_not_depend_on_the_basis(classes: int, backend: Any) -> None:
    X, y = correlated(classes)
    basis = np.random.default_rng(8).normal(size=(5, 5))
    plain = MahalanobisCenterClassifier(priors="empirical").fit(backend.array(X), y)
    turned = clone(plain).fit(backend.array(X @ basis + 3.0), y)
    assert turned.objective_ == pytest.approx(plain.objective_, rel=1e-8)
    found = backend.host(turned.decision_function(backend.array(X @ basis + 3.0)))
    expected = backend.host(plain.decision_function(backend.array(X)))
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)


def test_permuting_features_permutes_the_scores(backend: Any) -> None:
    X, y = correlated(3, 80, 7)
    order = np.random.default_rng(1).permutation(7)
    plain = MahalanobisCenterClassifier(k=3).fit(backend.array(X), y)
    moved = clone(plain).fit(backend.array(X[:, order]), y)
    np.testing.assert_allclose(
        attribute(moved, "scores_", backend), attribute(plain, "scores_", backend)[order], rtol=1e-9
    )
    assert order[moved.ranking_].tolist() == plain.ranking_.tolist()
    assert moved.objective_ == pytest.approx(plain.objective_, rel=1e-11)


@pytest.mark.parametrize("dtype", [np.int16, np.float16, np.float32, bool, object])
def test_every_type_of_numbers_gives_the_model_of_float64(dtype: Any, on_host: Any) -> None:
    rng = np.random.default_rng(6)
    X, y = rng.integers(0, 2, (40, 4)), np.arange(40) % 2
    expected = MahalanobisCenterClassifier(k=2).fit(X.astype(np.float64), y)
    containers = [X.astype(dtype)]
    if dtype is not object and dtype is not np.float16:
        containers.append(scipy.sparse.csr_array(X.astype(dtype)))
    for container in containers:
        assert_same_model(clone(expected).fit(container, y), expected, on_host)
        np.testing.assert_array_equal(expected.predict(container), expected.predict(X))


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
@pytest.mark.parametrize("shrinkage", [0.5, "ledoit-wolf"])
def test_nonfinite_and_huge_values_are_named(shrinkage: Any, value: float, backend: Any) -> None:
    X, y = correlated(2)
    X[11, 3] = value
    for container in backend.containers(X):
        with pytest.raises(ValueError, match=r"in feature 3 \(first in row 11\)"):
            MahalanobisCenterClassifier(shrinkage=shrinkage).fit(container, y)
    good = correlated(2)[0]
    model = MahalanobisCenterClassifier(shrinkage=shrinkage).fit(backend.array(good), y)
    if not np.isfinite(value):
        for method in (model.predict, model.transform):
            with pytest.raises(ValueError, match=r"in feature 3 \(first in row 11\)"):
                method(backend.array(X))
