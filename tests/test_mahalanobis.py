"""Mahalanobis centers: the l2 problem on features transformed by the symmetric inverse root."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
import warnings
from functools import partial
from typing import Any
from unittest import SkipTest

import exact
import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.linalg
import scipy.sparse
from bits import bits
from conftest import BACKENDS
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.covariance import ledoit_wolf, shrunk_covariance
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, ParameterGrid, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier, OutputCodeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator
from strategies import modest, quietly

from gpucenters import L2CenterClassifier, MahalanobisCenterClassifier
from gpucenters.blocks import dense_scatter, sparse_scatter
from gpucenters.statistics import cross_moments
from gpucenters.statistics.cross_moments import check_size

DATA = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}
datasets = pytest.mark.parametrize("data", list(DATA))


def _data(n_classes: int = 3, n: int = 60, m: int = 5, seed: int = 0) -> tuple[Any, Any]:
    """Correlated features of unlike scales, and classes apart in some of them."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % n_classes)
    X = rng.normal(size=(n, m)) @ (np.eye(m) + 0.6 * rng.normal(size=(m, m)))
    X[:, :2] += np.asarray([1.5, -1.0]) * y[:, None]
    return X, y


def _residuals(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    return X - np.stack([X[y == c].mean(axis=0) for c in range(y.max() + 1)])[y]


def _host(model: Any, name: str, backend: Any) -> np.ndarray:
    return backend.host(getattr(model, name))


def _assert_same(found: Any, expected: Any, backend: Any, rtol: float = 1e-9) -> None:
    """Assert that two fitted models agree up to rounding."""
    np.testing.assert_array_equal(found.support_, expected.support_)
    close = {"rtol": rtol, "atol": 1e-10}
    assert found.objective_ == pytest.approx(expected.objective_, rel=rtol)
    assert found.shrinkage_ == pytest.approx(expected.shrinkage_, rel=rtol)
    for name in ("scores_", "centers_", "means_", "covariance_", "coef_", "intercept_"):
        a, b = _host(found, name, backend), _host(expected, name, backend)
        np.testing.assert_allclose(a, b, **close, err_msg=name)


# --- the same answers as scikit-learn ----------------------------------------------------------


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
    S = _host(pooled, "covariance_", backend) * ((n - k) / n)  # scikit-learn divides by n
    np.testing.assert_allclose(S, theirs.covariance_, rtol=1e-9, atol=1e-12)
    ours = MahalanobisCenterClassifier(covariance=S, priors="empirical").fit(backend.array(X), y)
    found = backend.host(ours.predict_proba(backend.array(X)))
    np.testing.assert_allclose(found, theirs.predict_proba(X), rtol=1e-6, atol=1e-8)
    logs = backend.host(ours.predict_log_proba(backend.array(X)))
    np.testing.assert_allclose(np.exp(logs), found, rtol=1e-9)


@pytest.mark.parametrize("shrinkage", [None, 0, 0.3, 1])
@pytest.mark.parametrize("covariance", ["pooled", "total"])
def test_the_covariance_is_the_one_of_textbooks(
    covariance: str, shrinkage: Any, backend: Any
) -> None:
    X, y = _data()
    model = MahalanobisCenterClassifier(covariance=covariance, shrinkage=shrinkage)
    model.fit(backend.array(X), y)
    R = _residuals(X, y)
    S = R.T @ R / (60 - 3) if covariance == "pooled" else np.cov(X.T)
    expected = shrunk_covariance(S, shrinkage=shrinkage or 0)
    np.testing.assert_allclose(_host(model, "covariance_", backend), expected, rtol=1e-12)
    assert model.shrinkage_ == (shrinkage or 0)
    T = _host(model, "transformation_", backend)
    np.testing.assert_array_equal(T, T.T)
    np.testing.assert_allclose(T @ expected @ T, np.eye(5), atol=1e-12)
    assert np.linalg.eigvalsh(T)[0] > 0


@pytest.mark.parametrize("shape", [(60, 5), (20, 40), (30, 1)])
def test_ledoit_wolf_is_the_one_of_scikit_learn(shape: tuple[int, int], backend: Any) -> None:
    X, y = _data(3, *shape) if shape[1] > 1 else _data(3, 30, 2)
    X = np.ascontiguousarray(X[:, : shape[1]]) + 7.0
    S, amount = ledoit_wolf(_residuals(X, y), assume_centered=True)
    for container in backend.containers(X):
        model = MahalanobisCenterClassifier(shrinkage="ledoit-wolf").fit(container, y)
        assert model.shrinkage_ == pytest.approx(amount, rel=1e-10)
        np.testing.assert_allclose(_host(model, "covariance_", backend), S, rtol=1e-10, atol=1e-14)


def test_ledoit_wolf_takes_weights_as_repetitions(backend: Any) -> None:
    X, y = _data()
    s = np.random.default_rng(1).integers(0, 4, 60)
    R, repeated = np.repeat(X, s, axis=0), np.repeat(y, s)
    model = MahalanobisCenterClassifier(shrinkage="ledoit-wolf")
    model.fit(backend.array(X), y, sample_weight=s)
    S, amount = ledoit_wolf(_residuals(R, repeated), assume_centered=True)
    assert model.shrinkage_ == pytest.approx(amount, rel=1e-10)
    np.testing.assert_allclose(_host(model, "covariance_", backend), S, rtol=1e-10)


# --- the optimum -------------------------------------------------------------------------------


def test_a_diagonal_covariance_scales_the_features(backend: Any) -> None:
    X, y = _data(3)
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
                (_host(model, n, backend), _host(scaled, n, backend))
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


def test_the_identity_changes_nothing_to_the_bit(backend: Any) -> None:
    rng = np.random.default_rng(3)
    X, y = rng.integers(-3, 4, (40, 6)).astype(float), np.arange(40) % 2
    X[:, 4] = X[:, 1]  # gains that tie
    plain = L2CenterClassifier(k=3).fit(backend.array(X), y)
    model = MahalanobisCenterClassifier(k=3, covariance=np.eye(6)).fit(backend.array(X), y)
    np.testing.assert_array_equal(model.ranking_, plain.ranking_)
    np.testing.assert_array_equal(*(_host(m, "scores_", backend) for m in (model, plain)))


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
            np.testing.assert_allclose(_host(model, "transformation_", backend), root, atol=1e-9)
            gain = np.asarray([float(g) for g in truth.gain])
            np.testing.assert_allclose(_host(model, "scores_", backend), gain, atol=1e-8)
            assert model.objective_ == pytest.approx(float(truth.objective), rel=1e-9, abs=1e-9)
            # (Supports whose gains tie are as good: rounding in the root may choose between them.)
            kept = sum(truth.gain[i] for i in model.support_)
            assert kept == pytest.approx(sum(truth.gain[i] for i in truth.support), abs=1e-12)
            decision = backend.host(model.decision_function(container))
            if tuple(model.support_) == tuple(truth.support):
                expected = [exact.decision_l2(truth, row) for row in X @ root]
                expected = np.asarray(expected, dtype=object).astype(float)
                np.testing.assert_allclose(decision, expected, rtol=1e-8, atol=1e-7)


def test_the_root_is_the_symmetric_one() -> None:
    # Every root whitens, but each turns the features in its own way: with that of Cholesky two
    # other ones have the largest gains.
    X, y = _data(2, 400, 4, seed=5)
    model = MahalanobisCenterClassifier(k=2).fit(X, y)
    R = _residuals(X, y)
    S = R.T @ R / 398
    delta = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
    gain = (np.real(scipy.linalg.fractional_matrix_power(S, -0.5)) @ delta) ** 2 / 2
    turned = scipy.linalg.solve_triangular(np.linalg.cholesky(S), delta, lower=True) ** 2 / 2
    np.testing.assert_allclose(model.scores_, gain, rtol=1e-8)
    best, other = (sorted(np.argsort(-g)[:2].tolist()) for g in (gain, turned))
    assert model.support_.tolist() == best != other
    assert gain.sum() == pytest.approx(turned.sum())  # with all features no root matters


def test_the_objective_is_what_it_says(backend: Any) -> None:
    X, y = _data(4, 70, 6)
    s = np.random.default_rng(0).random(70)
    model = MahalanobisCenterClassifier(k=2, covariance="total")
    model.fit(backend.array(X), y, sample_weight=s)
    xi = X @ _host(model, "transformation_", backend)
    means = np.stack([np.average(xi[y == c], axis=0, weights=s[y == c]) for c in range(4)])
    centers = np.repeat(means.mean(axis=0)[None, :], 4, axis=0)
    centers[:, model.support_] = means[:, model.support_]
    distance = ((xi - centers[y]) ** 2).sum(axis=1)
    expected = sum(np.average(distance[y == c], weights=s[y == c]) for c in range(4))
    assert model.objective_ == pytest.approx(expected, rel=1e-11)
    np.testing.assert_allclose(
        _host(model, "centers_", backend), means[:, model.support_], rtol=1e-10
    )
    # The nearest center on the support is the prediction.
    here = xi[:, None, model.support_] - means[:, model.support_]
    nearest = np.argmin((here**2).sum(axis=2), axis=1)
    np.testing.assert_array_equal(backend.host(model.predict(backend.array(X))), nearest)


@pytest.mark.parametrize("shrinkage", [None, "ledoit-wolf"])
def test_large_offsets_change_nothing(shrinkage: Any, backend: Any) -> None:
    X, y = _data(3, 90)
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
            a, b = _host(model, name, backend), _host(plain, name, backend)
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)
        found = backend.host(model.decision_function(backend.array(far)))
        np.testing.assert_allclose(found, expected, atol=1e-5)
        np.testing.assert_array_equal(
            backend.host(model.predict(backend.array(far))),
            backend.host(plain.predict(backend.array(X))),
        )


def test_the_second_pass_mends_the_mean(backend: Any) -> None:
    # Steps of one unit in the last place, and sums that round by more than these.
    steps = np.random.default_rng(0).integers(0, 8, (4000, 2))
    X, y = 1e8 + steps * 2.0**-26, np.arange(4000) % 2
    model = MahalanobisCenterClassifier().fit(backend.array(X), y)
    R = _residuals(steps.astype(float), y)
    expected = R.T @ R / 3998
    np.testing.assert_allclose(
        _host(model, "covariance_", backend) * 2.0**52, expected, rtol=1e-6, atol=1e-6
    )


def test_with_k_is_the_fit_at_that_k(backend: Any) -> None:
    X, y = _data(3)
    model = MahalanobisCenterClassifier().fit(backend.array(X), y)
    for k in (1, 3, 0.5, "all"):
        fitted = MahalanobisCenterClassifier(k=k).fit(backend.array(X), y)
        other = model.with_k(k)
        assert other.k == k
        _assert_same(other, fitted, backend, rtol=1e-15)
        assert other.transform(backend.array(X)).shape == (60, len(fitted.support_))


@pytest.mark.parametrize("classes", [2, 3])
def test_with_all_features_no_change_of_basis_matters(classes: int, backend: Any) -> None:
    X, y = _data(classes)
    basis = np.random.default_rng(8).normal(size=(5, 5))
    plain = MahalanobisCenterClassifier(priors="empirical").fit(backend.array(X), y)
    turned = clone(plain).fit(backend.array(X @ basis + 3.0), y)
    assert turned.objective_ == pytest.approx(plain.objective_, rel=1e-8)
    found = backend.host(turned.decision_function(backend.array(X @ basis + 3.0)))
    expected = backend.host(plain.decision_function(backend.array(X)))
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)


def test_permuting_features_permutes_the_transformed_ones(backend: Any) -> None:
    X, y = _data(3, 80, 7)
    order = np.random.default_rng(1).permutation(7)
    plain = MahalanobisCenterClassifier(k=3).fit(backend.array(X), y)
    moved = clone(plain).fit(backend.array(X[:, order]), y)
    np.testing.assert_allclose(
        _host(moved, "scores_", backend), _host(plain, "scores_", backend)[order], rtol=1e-9
    )
    assert order[moved.ranking_].tolist() == plain.ranking_.tolist()
    assert moved.objective_ == pytest.approx(plain.objective_, rel=1e-11)


@pytest.mark.parametrize("dtype", [np.int16, np.float16, np.float32, bool, object])
def test_any_type_of_numbers(dtype: Any, on_host: Any) -> None:
    rng = np.random.default_rng(6)
    X, y = rng.integers(0, 2, (40, 4)), np.arange(40) % 2
    expected = MahalanobisCenterClassifier(k=2).fit(X.astype(np.float64), y)
    containers = [X.astype(dtype)]
    if dtype is not object and dtype is not np.float16:
        containers.append(scipy.sparse.csr_array(X.astype(dtype)))
    for container in containers:
        _assert_same(clone(expected).fit(container, y), expected, on_host)
        np.testing.assert_array_equal(expected.predict(container), expected.predict(X))


# --- sums --------------------------------------------------------------------------------------


@pytest.mark.parametrize("shrinkage", [None, "ledoit-wolf"])
@given(data=st.data())
@modest(6)
def test_any_split_gives_the_model_of_all_rows(shrinkage: Any, backend: Any, data: Any) -> None:
    X, y = _data(3, 40, 4)
    X[np.abs(X) < 0.7] = 0
    s = data.draw(st.sampled_from([None, np.random.default_rng(2).integers(0, 3, 40)]))
    layouts = ["array"] if backend.sparse is None else ["array", "csr", "csc"]
    make = [getattr(backend, data.draw(st.sampled_from(layouts))) for _ in range(4)]
    cuts = sorted(data.draw(st.lists(st.integers(1, 39), min_size=3, max_size=3, unique=True)))
    model = MahalanobisCenterClassifier(k=2, shrinkage=shrinkage)
    rows = np.split(np.arange(40), cuts)
    for number, part in enumerate(rows):
        weights = None if s is None else s[part]
        model.partial_fit(make[number](X[part]), y[part], [0, 1, 2], weights)
    whole = clone(model).fit(backend.array(X), y, sample_weight=s)
    _assert_same(model, whole, backend)


@pytest.mark.parametrize("shrinkage", [None, 0.2, "ledoit-wolf"])
def test_weights_are_repetitions(shrinkage: Any, backend: Any) -> None:
    X, y = _data(3)
    X[np.abs(X) < 0.5] = 0
    s = np.random.default_rng(0).integers(0, 4, 60)
    repeated = MahalanobisCenterClassifier(k=3, shrinkage=shrinkage)
    repeated.fit(backend.array(np.repeat(X, s, axis=0)), np.repeat(y, s))
    for container in backend.containers(X):
        model = clone(repeated).fit(container, y, sample_weight=s)
        _assert_same(model, repeated, backend)


def _sparse(n: int = 400, m: int = 30) -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(4)
    X = scipy.sparse.random(n, m, 0.06, "csr", np.float64, rng)
    X.data[:] = rng.poisson(2.0, X.nnz) + 1
    return X, rng.integers(0, 3, n)


@pytest.mark.parametrize("weighted", [False, True], ids=["unit", "weighted"])
@pytest.mark.parametrize("shrinkage", [None, "ledoit-wolf"])
@pytest.mark.parametrize("steep", [False, True], ids=["sparse", "with a full column"])
def test_products_of_sparse_rows_are_those_of_dense_rows(
    steep: bool, shrinkage: Any, weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = _sparse()
    s = np.random.default_rng(0).integers(0, 3, 400) if weighted else None
    dense = X.toarray()
    if steep:
        dense[:, 3] = 1e7 + np.arange(400) % 7
    X = scipy.sparse.csr_array(dense)
    monkeypatch.setattr(sparse_scatter, "_STRIP_ENTRIES", 200)
    monkeypatch.setattr(sparse_scatter, "_COST_OF_PAIR", 1e-9)
    monkeypatch.setattr(sparse_scatter, "_COST_OF_NUMBER", 0)
    calls = []
    made = sparse_scatter.add_rows
    monkeypatch.setattr(sparse_scatter, "add_rows", lambda *a: (calls.append(1), made(*a)))
    expected = MahalanobisCenterClassifier(k=5, shrinkage=shrinkage)
    expected.fit(dense, y, sample_weight=s)
    calls.clear()
    for kind in (scipy.sparse.csr_matrix, scipy.sparse.csc_array):
        found = clone(expected).fit(kind(X), y, sample_weight=s)
        np.testing.assert_array_equal(found.support_, expected.support_)
        assert found.shrinkage_ == pytest.approx(expected.shrinkage_, rel=1e-8)
        for name in ("scores_", "covariance_", "means_"):
            a, b = getattr(found, name), getattr(expected, name)
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10, err_msg=name)
    # Rows are made dense where raw sums would lose a column, and there alone.
    assert bool(calls) == steep


def test_few_entries_are_multiplied_and_many_made_dense(monkeypatch: pytest.MonkeyPatch) -> None:
    few = scipy.sparse.random(2000, 300, 0.02, "csr", random_state=0)
    many = scipy.sparse.random(200, 30, 0.5, "csr", random_state=0)
    seen = []
    real = sparse_scatter._class_scatter
    monkeypatch.setattr(
        sparse_scatter, "_class_scatter", lambda *a, **b: (seen.append(1), real(*a, **b))[1]
    )
    for matrix, classes, products in ((few, 2, True), (few, 20, False), (many, 2, False)):
        seen.clear()
        labels = np.arange(matrix.shape[0]) % classes
        MahalanobisCenterClassifier(shrinkage=0.5).fit(matrix, labels)
        assert bool(seen) == products


def test_classes_too_many_to_be_kept_apart(monkeypatch: pytest.MonkeyPatch, backend: Any) -> None:
    X, y = _data(6, 120)
    X[np.random.default_rng(9).random(X.shape) < 0.6] = 0
    s = np.random.default_rng(0).random(120)
    apart = MahalanobisCenterClassifier(k=3).fit(backend.array(X), y, sample_weight=s)
    monkeypatch.setattr(cross_moments, "_MOST_APART", 0)
    monkeypatch.setattr(sparse_scatter, "_COST_OF_PAIR", 1e-9)
    monkeypatch.setattr(sparse_scatter, "_COST_OF_NUMBER", 0)
    for container in backend.containers(X):
        together = MahalanobisCenterClassifier(k=3).fit(container, y, sample_weight=s)
        assert together._fitted.statistics.scatter.shape == (2, 5, 5)
        _assert_same(together, apart, backend)
        with pytest.raises(ValueError, match="first batch to partial_fit as well"):
            together.partial_fit(container, y)
        _assert_same(together, apart, backend)
    # A stream does not know the weights to come, and keeps them apart.
    streamed = MahalanobisCenterClassifier(k=3)
    for rows in (slice(0, 50), slice(50, 120)):
        streamed.partial_fit(backend.array(X[rows]), y[rows], range(6), s[rows])
    assert streamed._fitted.statistics.scatter.shape == (6, 5, 5)
    _assert_same(streamed, apart, backend)


@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csr_array, scipy.sparse.csc_array])
@pytest.mark.parametrize("shrinkage", [0.1, "ledoit-wolf"])
def test_bits_do_not_depend_on_threads_or_budget(
    shrinkage: Any, layout: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(0)
    X = layout(rng.normal(size=(1500, 530)) * (rng.random((1500, 530)) < 0.3))
    y, found = np.arange(1500) % 3, []
    monkeypatch.setattr(joblib, "cpu_count", lambda: 4)
    for threads, budget in ((1, "100MB"), (2, "1GB"), (4, None)):
        monkeypatch.setenv("OMP_NUM_THREADS", str(threads))
        model = MahalanobisCenterClassifier(k=5, shrinkage=shrinkage, memory_budget=budget)
        with threadpool_limits(threads, user_api="blas"):
            model.fit(X, y)
        parts = (model.covariance_, model.transformation_, model.scores_, model.centers_)
        found.append([model.objective_, *(p.tobytes() for p in parts)])
    assert found[0] == found[1] == found[2]


def test_blas_gets_its_threads_back() -> None:
    from threadpoolctl import threadpool_info, threadpool_limits

    from gpucenters.arrays.backend import HOST
    from gpucenters.arrays.linalg import one_blas_thread

    def threads() -> set[int]:
        return {i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"}

    with threadpool_limits(2, user_api="blas"):
        before = threads()
        first, second = one_blas_thread(HOST), one_blas_thread(HOST)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)  # the first of two fits ends before the second one
        assert threads() == {1}
        second.__exit__(None, None, None)
        assert threads() == before
        with pytest.raises(KeyError, match="inside"), one_blas_thread(HOST):
            raise KeyError("inside")
        assert threads() == before


def _state(model: Any) -> list[Any]:
    return bits(model._fitted.statistics)


@pytest.mark.parametrize("shrinkage", [None, "ledoit-wolf"])
def test_a_batch_that_fails_leaves_the_model_as_it_was(
    shrinkage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = _data(2)
    model = MahalanobisCenterClassifier(shrinkage=shrinkage)
    model.partial_fit(X[:40], y[:40], classes=[0, 1])
    before, expected = _state(model), model.predict(X)
    bad = X.copy()
    bad[7, 2] = np.nan
    with pytest.raises(ValueError, match=r"NaN in feature 2 \(first in row 7\)"):
        model.partial_fit(bad, y)
    part = dense_scatter._add_sums

    def interrupted(*arguments: Any) -> Any:
        part(*arguments)
        raise KeyboardInterrupt("in the middle")

    monkeypatch.setattr(dense_scatter, "_add_sums", interrupted)
    with pytest.raises(KeyboardInterrupt, match="in the middle"):
        model.partial_fit(X[40:], y[40:])
    monkeypatch.undo()
    assert _state(model) == before
    np.testing.assert_array_equal(model.predict(X), expected)
    kept = model.with_k(2)
    model.partial_fit(X[40:], y[40:])
    assert _state(kept) == before  # a copy does not learn along
    _assert_same(model, clone(model).fit(X, y), BACKENDS["numpy"])


def test_a_stream_before_every_class_was_met() -> None:
    X, y = _data(2)
    model = MahalanobisCenterClassifier().partial_fit(X[y == 0], y[y == 0], classes=[0, 1])
    for name in ("covariance_", "means_", "support_"):
        with pytest.raises(NotFittedError, match="no sample of class 1 yet"):
            getattr(model, name)
    model.partial_fit(X[y == 1], y[y == 1])
    _assert_same(model, MahalanobisCenterClassifier().fit(X, y), BACKENDS["numpy"])
    with pytest.raises(ValueError, match="set it before the first batch"):
        model.set_params(shrinkage="ledoit-wolf").partial_fit(X, y)
    # The other way round nothing is missing.
    model = MahalanobisCenterClassifier(shrinkage="ledoit-wolf")
    model.partial_fit(X[:30], y[:30], classes=[0, 1])
    model.set_params(shrinkage=None).partial_fit(X[30:], y[30:])
    _assert_same(model, MahalanobisCenterClassifier().fit(X, y), BACKENDS["numpy"])


# --- errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
@pytest.mark.parametrize("shrinkage", [0.5, "ledoit-wolf"])
def test_bad_values_are_named(shrinkage: Any, value: float, backend: Any) -> None:
    X, y = _data(2)
    X[11, 3] = value
    for container in backend.containers(X):
        with pytest.raises(ValueError, match=r"in feature 3 \(first in row 11\)"):
            MahalanobisCenterClassifier(shrinkage=shrinkage).fit(container, y)
    good = _data(2)[0]
    model = MahalanobisCenterClassifier(shrinkage=shrinkage).fit(backend.array(good), y)
    if not np.isfinite(value):
        for method in (model.predict, model.transform):
            with pytest.raises(ValueError, match=r"in feature 3 \(first in row 11\)"):
                method(backend.array(X))


def test_sums_that_overflow_are_an_error_and_change_nothing(backend: Any) -> None:
    X, y = _data(2)
    huge = np.where(X > 0, 9e153, -9e153)  # whose squares are numbers still
    model = MahalanobisCenterClassifier(shrinkage=0.1)
    with pytest.raises(ValueError, match="sums of squares of X overflow float64"):
        model.fit(backend.array(huge), y)
    model.partial_fit(backend.array(X), y, classes=[0, 1])
    expected = clone(model).fit(backend.array(X), y)
    with pytest.raises(ValueError, match="sums of X overflow float64"):
        model.partial_fit(backend.array(huge), y)
    _assert_same(model, expected, backend)


def test_a_singular_covariance_names_the_rank_and_the_remedy(backend: Any) -> None:
    X, y = _data(2)
    X[:, 4] = X[:, 0] + X[:, 2]
    for container in backend.containers(X):
        with pytest.raises(ValueError, match=r"singular: its rank is 4\. .* Use shrinkage"):
            MahalanobisCenterClassifier().fit(container, y)
        model = MahalanobisCenterClassifier(shrinkage=1e-3).fit(container, y)
        assert model.score(container, y) > 0.5
    with pytest.raises(ValueError, match="its rank is 0"):
        MahalanobisCenterClassifier(shrinkage=0.5).fit(backend.array(np.ones((4, 3))), [0, 0, 1, 1])
    wide, labels = _data(2, 20, 40)
    with pytest.raises(ValueError, match="its rank is 18"):
        MahalanobisCenterClassifier().fit(backend.array(wide), labels)
    scaled = X.copy()
    scaled[:, 4] = wide[: len(X), 0].mean() + 1e-9 * np.arange(len(X)) % 3e-9
    with pytest.raises(ValueError, match=r"scales lie far apart.* bring the features to one scale"):
        MahalanobisCenterClassifier().fit(backend.array(scaled), y)
    with pytest.raises(ValueError, match=r"Use shrinkage \(a number in \(0, 1\]\)"):
        MahalanobisCenterClassifier(covariance=np.ones((5, 5))).fit(backend.array(X), y)


@pytest.mark.parametrize("power", [-150, -90, 76.5, 80, 150])
def test_ledoit_wolf_says_when_fourth_powers_leave_float64(power: float, backend: Any) -> None:
    X, y = _data(2)
    model = MahalanobisCenterClassifier(shrinkage="ledoit-wolf")
    expected = model.fit(backend.array(X), y).shrinkage_
    scaled = model.fit(backend.array(X * 2.0 ** (200 if power > 0 else -200)), y)
    assert scaled.shrinkage_ == pytest.approx(expected, rel=1e-12)
    with pytest.raises(ValueError, match=r"fourth powers of X.* Rescale X"):
        model.fit(backend.array(X * 10.0**power), y)


@pytest.mark.parametrize(
    ("covariance", "message"),
    [
        (
            [[1.0, 0.5], [0.25, 1.0]],
            r"not symmetric: entry \(0, 1\) is 0.5, entry \(1, 0\) is 0.25",
        ),
        ([[1.0, 2.0], [2.0, 1.0]], r"not positive definite: its smallest eigenvalue is -1"),
        ([[-1.0, 0.0], [0.0, -2.0]], "not positive definite"),
        ([[1.0, 1.0], [1.0, 1.0]], "singular: its rank is 1"),
        (np.eye(3), r"shape \(3, 3\), but X has 2 features"),
        ([1.0, 1.0], r"shape \(2,\)"),
        ([[1.0, np.nan], [np.nan, 1.0]], "NaN or infinity"),
        ([["a", "b"], ["b", "a"]], "a dense matrix of real numbers"),
        (np.eye(2) + 0.5j * np.eye(2), "real numbers, got one of complex128"),
        (scipy.sparse.eye(2, format="csr"), "a sparse one: use covariance.toarray"),
        ([[0.0, 0.0], [0.0, 0.0]], r"singular: its rank is 0\.$"),
        ("diagonal", "use 'pooled', 'total' or a matrix"),
        (None, "use 'pooled', 'total' or a matrix"),
    ],
    ids=lambda value: "" if isinstance(value, str) else str(type(value).__name__),
)
def test_a_given_covariance_must_be_one(covariance: Any, message: str, backend: Any) -> None:
    X, y = _data(2)
    with pytest.raises(ValueError, match=message):
        MahalanobisCenterClassifier(covariance=covariance).fit(backend.array(X[:, :2]), y)
    model = MahalanobisCenterClassifier(covariance=covariance)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(backend.array(X[:, :2]), y, classes=[0, 1]).predict(
            backend.array(X[:, :2])
        )


def test_a_given_covariance_may_live_anywhere_and_is_copied(backend: Any) -> None:
    X, y = _data(2)
    S = np.cov(X.T)
    expected = MahalanobisCenterClassifier(covariance=S).fit(backend.array(X), y)
    for given_ in (S.tolist(), backend.array(S), S.astype(np.float32).astype(object)):
        model = MahalanobisCenterClassifier(covariance=given_).fit(backend.array(X), y)
        np.testing.assert_allclose(
            *(_host(m, "scores_", backend) for m in (model, expected)), rtol=1e-4
        )
    model = MahalanobisCenterClassifier(covariance=S)
    model.partial_fit(backend.array(X), y, classes=[0, 1])
    S *= 100  # after the batch, before the model is asked for anything
    np.testing.assert_array_equal(*(_host(m, "scores_", backend) for m in (model, expected)))


@pytest.mark.parametrize("shrinkage", [-0.1, 1.5, True, np.nan, "auto", [0.5]])
def test_shrinkage_is_checked(shrinkage: Any) -> None:
    X, y = _data(2)
    with pytest.raises(ValueError, match="is not valid: use None, a number in"):
        MahalanobisCenterClassifier(shrinkage=shrinkage).fit(X, y)


@pytest.mark.parametrize("covariance", ["total", np.eye(5)], ids=["total", "given"])
def test_ledoit_wolf_is_for_the_pooled_covariance(covariance: Any) -> None:
    X, y = _data(2)
    with pytest.raises(ValueError, match="needs covariance='pooled'"):
        MahalanobisCenterClassifier(covariance=covariance, shrinkage="ledoit-wolf").fit(X, y)


@pytest.mark.parametrize(("covariance", "weight"), [("pooled", 2), ("total", 1)])
def test_a_divisor_must_be_positive(covariance: str, weight: int) -> None:
    model = MahalanobisCenterClassifier(covariance=covariance, shrinkage=0.5)
    X, y, s = np.eye(4), [0, 1, 0, 1], np.full(4, weight / 4)
    with pytest.raises(ValueError, match=f"a weight of more than {weight} in all"):
        model.fit(X, y, sample_weight=s)


@pytest.mark.parametrize(
    ("k", "fourth", "streaming", "matrices"),
    [(3, False, False, 10), (40, False, False, 9), (40, True, False, 47), (3, False, True, 13)],
)
def test_the_budget_counts_the_matrices_of_the_classes(
    k: int, fourth: bool, streaming: bool, matrices: int
) -> None:
    size = 8_000_000 * matrices
    check_size(1000, k, size, fourth=fourth, streaming=streaming)
    with pytest.raises(MemoryError, match=f"{matrices} matrices of 1,000 x 1,000"):
        check_size(1000, k, size - 1, fourth=fourth, streaming=streaming)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_data_too_wide_are_refused_before_anything_is_allocated(method: str, backend: Any) -> None:
    X = backend.array(np.ones((4, 3000)))
    model = MahalanobisCenterClassifier(memory_budget="100MB")
    call = partial(getattr(model, method), X, [0, 1, 0, 1])
    call = partial(call, classes=[0, 1]) if method == "partial_fit" else call
    tracemalloc.start()
    try:
        with pytest.raises(MemoryError, match=r"3,000 features .* memory budget .*scale='pooled'"):
            call()
        assert tracemalloc.get_traced_memory()[1] < 3e6  # one matrix has 72 MB
    finally:
        tracemalloc.stop()
    assert not hasattr(model, "classes_")


# --- scikit-learn's face -----------------------------------------------------------------------


def test_is_a_transformer_and_no_selector(backend: Any) -> None:
    X, y = _data(3)
    for container in backend.containers(X, (np.float64, np.float32)):
        model = MahalanobisCenterClassifier(k=2).fit(container, y)
        found = model.transform(container)
        backend.check(found)
        assert found.dtype == backend.xp.float64
        root = _host(model, "transformation_", backend)[:, model.support_]
        np.testing.assert_allclose(backend.host(found), X @ root, rtol=1e-5, atol=1e-5)
        again = MahalanobisCenterClassifier(k=2).fit_transform(container, y)
        backend.assert_same(again, found)
        assert model.get_feature_names_out().tolist() == [
            "mahalanobiscenterclassifier0",
            "mahalanobiscenterclassifier1",
        ]
        assert model.with_k(1).get_feature_names_out().tolist() == ["mahalanobiscenterclassifier0"]
    assert not hasattr(model, "get_support")
    assert not hasattr(model, "inverse_transform")
    assert model.scale_ is None


def test_the_decision_is_linear_in_X(backend: Any) -> None:
    for classes in (2, 3):
        X, y = _data(classes)
        model = MahalanobisCenterClassifier(k=2, priors="empirical").fit(backend.array(X), y)
        coef, constant = (_host(model, n, backend) for n in ("coef_", "intercept_"))
        assert coef.shape == ((1, 5) if classes == 2 else (3, 5))
        found = backend.host(model.decision_function(backend.array(X)))
        expected = X @ coef.T + constant
        np.testing.assert_allclose(found, expected[:, 0] if classes == 2 else expected, rtol=1e-9)


def test_set_output_gives_a_frame_of_new_features() -> None:
    X, y = _data(2)
    frame = pd.DataFrame(X, columns=list("abcde"), index=range(7, 67))
    model = MahalanobisCenterClassifier(k=2).set_output(transform="pandas").fit(frame, y)
    found = model.transform(frame)
    assert found.columns.tolist() == [f"mahalanobiscenterclassifier{i}" for i in range(2)]
    assert found.index.tolist() == list(range(7, 67))
    assert model.feature_names_in_.tolist() == list("abcde")
    np.testing.assert_allclose(found, X @ model.transformation_[:, model.support_], rtol=1e-12)


@pytest.mark.parametrize(
    "duplicate",
    [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))],
    ids=["deepcopy", "pickle"],
)
def test_a_copy_is_the_same_model(duplicate: Any, backend: Any) -> None:
    X, y = _data(3)
    model = MahalanobisCenterClassifier(k=3, shrinkage=0.1).fit(backend.array(X), y)
    found = duplicate(model)
    _assert_same(found, model, backend, rtol=1e-15)
    a, b = (backend.host(m.predict(backend.array(X))) for m in (found, model))
    np.testing.assert_array_equal(a, b)


def test_clone_copies_parameters_and_nothing_else() -> None:
    X, y = _data(2)
    S = np.cov(X.T)
    copied = clone(MahalanobisCenterClassifier(k=3, covariance=S, shrinkage=0.5).fit(X, y))
    np.testing.assert_array_equal(copied.covariance, S)
    assert (copied.k, copied.shrinkage) == (3, 0.5)
    assert not hasattr(copied, "classes_")


def test_works_in_pipelines_and_searches() -> None:
    X, y = load_wine(return_X_y=True)
    model = MahalanobisCenterClassifier()
    pipeline, folds = make_pipeline(StandardScaler(), model), StratifiedKFold(3)
    grid = {"k": [2, "all"], "shrinkage": [None, 0.1, "ledoit-wolf"]}
    named = {f"mahalanobiscenterclassifier__{name}": values for name, values in grid.items()}
    search = GridSearchCV(pipeline, named, cv=folds, error_score="raise").fit(X, y)
    expected = []
    for parameters in ParameterGrid(grid):
        each = []
        for train, test in folds.split(X, y):
            scaler = StandardScaler().fit(X[train])
            model.set_params(**parameters).fit(scaler.transform(X[train]), y[train])
            each.append(model.score(scaler.transform(X[test]), y[test]))
        expected.append(np.mean(each))
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected, rtol=1e-12)
    assert search.best_score_ > 0.95
    # And as the transformer before another classifier.
    chain = make_pipeline(MahalanobisCenterClassifier(k=3), LogisticRegression()).fit(X, y)
    assert chain[-1].coef_.shape == (3, 3)
    assert chain.score(X, y) > 0.95


def test_one_versus_rest_and_output_codes() -> None:
    X, y = load_wine(return_X_y=True)
    model = MahalanobisCenterClassifier(k=6)
    rest = OneVsRestClassifier(model).fit(X, y)
    decisions = [clone(model).fit(X, y == c).decision_function(X) for c in range(3)]
    np.testing.assert_array_equal(rest.predict(X), np.argmax(decisions, axis=0))
    codes = OutputCodeClassifier(model, code_size=2, random_state=10).fit(X, y)
    assert codes.score(X, y) > 0.9


def test_moves_to_a_device_and_back() -> None:
    X, y = _data(3)
    cupy = BACKENDS["cupy"]
    model = MahalanobisCenterClassifier(k=3, shrinkage="ledoit-wolf", priors="empirical").fit(X, y)
    moved = model.to("cuda")
    for name in ("scores_", "centers_", "means_", "covariance_", "transformation_", "coef_"):
        np.testing.assert_array_equal(_host(moved, name, cupy), getattr(model, name))
    there = clone(model).fit(cupy.array(X), y)
    _assert_same(there, moved, cupy)
    np.testing.assert_allclose(
        cupy.host(moved.predict_proba(cupy.array(X))), model.predict_proba(X), rtol=1e-10
    )
    np.testing.assert_allclose(
        cupy.host(there.transform(cupy.csr(X))), model.transform(X), rtol=1e-9, atol=1e-12
    )
    # What was moved goes on learning, and the one it came from does not.
    before = _state(model)
    back = moved.partial_fit(cupy.array(X), y).to("cpu")
    assert _state(model) == before
    twice = clone(model).fit(np.tile(X, (2, 1)), np.tile(y, 2))
    _assert_same(back, twice, BACKENDS["numpy"])


def test_the_device_parameter_moves_the_work() -> None:
    X, y = _data(3)
    cupy = BACKENDS["cupy"]
    expected = MahalanobisCenterClassifier(k=3).fit(X, y)
    for container in (X, scipy.sparse.csr_array(X), scipy.sparse.csc_matrix(X)):
        model = MahalanobisCenterClassifier(k=3, device="cuda").fit(container, y)
        cupy.check(model.scores_)
        found = model.transform(container)
        assert isinstance(found, np.ndarray)  # beside the X it was asked for
        np.testing.assert_allclose(found, expected.transform(X), rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(model.predict(container), expected.predict(X))


@pytest.mark.parametrize("method", ["predict", "decision_function", "predict_proba", "transform"])
def test_data_that_live_elsewhere_are_refused(method: str) -> None:
    X, y = _data(3)
    for here, there in (("numpy", "cupy"), ("cupy", "array_api_strict")):
        model = MahalanobisCenterClassifier().fit(BACKENDS[here].array(X), y)
        with pytest.raises(ValueError, match=r"must use the same namespace .* to\(device\)"):
            getattr(model, method)(BACKENDS[there].array(X))


@pytest.mark.filterwarnings("default")  # some checks warn on purpose
def test_without_shrinkage_a_check_fails_on_singular_data_alone() -> None:
    # (With shrinkage each of scikit-learn's checks passes: see test_sklearn.py.)
    passed, failed = 0, set()
    for model, check in estimator_checks_generator(MahalanobisCenterClassifier()):
        if any("namespace" in name or "ns_and" in name for name in check.keywords):
            continue
        try:
            check(model)
            passed += 1
        except SkipTest:
            continue
        except ValueError as error:
            assert "is singular: its rank is" in str(error)  # noqa: PT017
            failed.add(check.func.__name__)
    assert passed > 50
    assert failed <= {
        "check_sample_weights_shape",
        "check_sample_weights_not_overwritten",
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    }


def test_verbose_shows_what_was_fitted(capsys: pytest.CaptureFixture) -> None:
    X, y = _data(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MahalanobisCenterClassifier(k=2, verbose=True).fit(X, y)
    assert "MahalanobisCenterClassifier: 60 x 5" in capsys.readouterr().out
