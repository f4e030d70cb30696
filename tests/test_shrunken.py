"""Nearest shrunken centroids: the formulas of the paper in exact arithmetic, k, and thresholds."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from exact_densities import exact_shrunken
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.neighbors import NearestCentroid
from strategies import quietly

from gpucenters import (
    L2CenterClassifier,
    ShrunkenCentroidClassifier,
    UninformativeFeaturesWarning,
    load,
)
from gpucenters.estimators.fitted import FittedModel

rng = np.random.default_rng(0)
Y = np.arange(40) % 3
X = np.round(rng.normal(size=(40, 9)) + Y[:, None] * rng.random(9), 2) * (rng.random((40, 9)) < 0.7)


@pytest.mark.parametrize("offset", [0, 1e8])
def test_equals_exact_arithmetic_for_every_k(offset: float, backend: Any) -> None:
    rng = np.random.default_rng(2)
    for number in range(5 if backend.name == "numpy" else 2):
        K, m = int(rng.integers(2, 5)), int(rng.integers(2, 6))
        y = np.concatenate([np.arange(K), np.arange(K), rng.integers(0, K, 5)])
        A = rng.integers(-2, 3, (len(y), m)) + offset
        A[:, 0] = A[:, -1]
        weights = rng.integers(1, 4, len(y)) if number % 2 else None
        containers = backend.containers(A)
        model = ShrunkenCentroidClassifier().fit(containers[number % len(containers)], y, weights)
        for k in range(1, m + 1):
            truth = exact_shrunken(A, y, None if k == m else k, weights=weights)
            np.testing.assert_allclose(
                backend.host(model.scores_), np.array(truth.size, float), rtol=1e-9, atol=1e-12
            )
            short = quietly(model.with_k, "all" if k == m else k)
            assert tuple(short.support_) == truth.support
            assert short.threshold_ == pytest.approx(float(truth.threshold), abs=1e-12)
            expected = np.array(truth.centroids, float)[:, list(truth.support)]
            found = backend.host(short.centers_)
            np.testing.assert_allclose(found, expected, rtol=1e-15, atol=1e-9)


def test_example_with_numbers() -> None:
    A = np.asarray([[0.0, 0], [2, 1], [4, 0], [10, 1]])
    model = ShrunkenCentroidClassifier(threshold=0.5).fit(A, [0, 0, 1, 1])
    np.testing.assert_allclose(model.scores_, [1.177170, 0], atol=5e-7)
    assert model.offset_ == pytest.approx(1.934692, abs=5e-7)
    assert model.support_.tolist() == [0]
    np.testing.assert_allclose(model.centers_[:, 0], [2.274242, 5.725758], atol=5e-7)


@pytest.mark.parametrize("load_data", [load_iris, load_wine])
def test_the_rule_is_that_of_the_paper(load_data: Any, backend: Any) -> None:
    A, y = load_data(return_X_y=True)
    keep = np.concatenate([np.flatnonzero(y == c)[: 12 + 9 * c] for c in range(3)])
    A, y = A[keep], y[keep]
    prior = np.bincount(y) / len(y)
    for threshold in (0.5, 2.0):
        theirs = NearestCentroid(shrink_threshold=threshold).fit(A, y)
        for held in backend.containers(A):
            model = ShrunkenCentroidClassifier(threshold=threshold).fit(held, y)
            D = model.support_
            np.testing.assert_allclose(
                backend.host(model.centers_), theirs.centroids_[:, D], rtol=1e-9
            )
            sigma = backend.host(model.scale_)
            far = ((A[:, None, :] - theirs.centroids_) ** 2 / sigma**2).sum(axis=2)
            expected = 2 * np.log(prior) - far
            found = backend.host(model.decision_function(held))
            np.testing.assert_allclose(
                found - found[:, :1], expected - expected[:, :1], rtol=1e-8, atol=1e-8
            )
            shares = np.exp(expected / 2)
            shares /= shares.sum(axis=1, keepdims=True)
            np.testing.assert_allclose(
                backend.host(model.predict_proba(held)), shares, rtol=1e-7, atol=1e-12
            )


def test_every_threshold_and_k_from_one_fit(backend: Any) -> None:
    for y in (Y, Y % 2):
        for held in backend.containers(X):
            model = ShrunkenCentroidClassifier().fit(held, y)
            for name, value in (("k", 3), ("k", "all"), ("threshold", 0.2), ("threshold", 0.0)):
                copy = getattr(model.with_k(2), f"with_{name}")(value)
                fresh = ShrunkenCentroidClassifier(**{name: value}).fit(held, y)
                assert copy.support_.tolist() == fresh.support_.tolist()
                assert copy.threshold_ == fresh.threshold_
                assert copy.objective_ == fresh.objective_
                params = {n: v for n, v in fresh.get_params().items() if n in ("k", "threshold")}
                assert {n: v for n, v in copy.get_params().items() if n in params} == params
                np.testing.assert_array_equal(
                    backend.host(copy.decision_function(held)),
                    backend.host(fresh.decision_function(held)),
                )


def test_an_offset_of_zero_ranks_two_classes_as_pooled_l2_centers() -> None:
    A = rng.normal(size=(40, 30))
    y = np.arange(40) % 2
    l2 = L2CenterClassifier(scale="pooled").fit(A, y)
    model = ShrunkenCentroidClassifier(offset=0).fit(A, y)
    assert model.ranking_.tolist() == l2.ranking_.tolist()
    np.testing.assert_allclose(model.scores_**2, 20 * l2.scores_, rtol=1e-10)


def test_ties_at_the_threshold_leave_fewer_features_or_none(backend: Any) -> None:
    for held in backend.containers(np.concatenate([X[:, [0]], X[:, [0]], 0 * X[:, [1]]], axis=1)):
        model = ShrunkenCentroidClassifier().fit(held, Y)
        assert model.support_.tolist() == [0, 1]
        with pytest.warns(UninformativeFeaturesWarning, match="no feature survives"):
            none = model.with_k(1)
        assert none.support_.tolist() == []
        shares = backend.host(none.predict_proba(held))
        np.testing.assert_allclose(shares, np.tile(np.bincount(Y) / 40, (40, 1)), rtol=1e-12)
        file = io.BytesIO()
        none.save(file)
        file.seek(0)
        assert load(file, "cpu").support_.tolist() == []


def test_means_that_are_equal_up_to_rounding_never_survive(backend: Any) -> None:
    sums = np.asarray([0.1, 0.2, 0.3, 0.3, 0.2, 0.1])  # in another order of additions
    assert sum(sums[:3]) != sum(sums[3:])
    A = np.stack([sums, np.asarray([0.0, 1, 0, 1, 2, 1])], axis=1)
    for held in backend.containers(A):
        model = ShrunkenCentroidClassifier().fit(held, [0, 0, 0, 1, 1, 1])
        assert model.support_.tolist() == [1] and float(model.scores_[0]) == 0


def test_k_and_threshold_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="both say what survives"):
        ShrunkenCentroidClassifier(k=2, threshold=0.5).fit(X, Y)
    model = ShrunkenCentroidClassifier(threshold=0.5).fit(X, Y)
    assert model.with_k(2).get_params()["threshold"] is None
    assert model.with_k(2).with_threshold(0.5).get_params()["k"] == "all"
    with pytest.raises(ValueError, match="cannot be chosen beside threshold"):
        FittedModel(model).centers.select(2)


def test_a_model_saved_with_its_support_has_other_k_but_no_other_threshold() -> None:
    model = ShrunkenCentroidClassifier(k=5).fit(X, Y)
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    there = load(file)
    for k in (5, 3, 1):
        one, two = there.with_k(k), model.with_k(k)
        assert one.threshold_ == two.threshold_ and one.support_.tolist() == two.support_.tolist()
        assert one.objective_ == pytest.approx(two.objective_, rel=1e-12)
        np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))
    with pytest.raises(ValueError, match="full=True"):
        there.with_threshold(1.0)


def test_batches_and_weights_give_the_model_of_all_rows(backend: Any) -> None:
    weights = np.arange(40) % 4
    for held in backend.containers(X):
        whole = ShrunkenCentroidClassifier(k=4).fit(held, Y, weights)
        parts = clone(whole)
        for rows in (slice(0, 11), slice(11, 40)):
            parts.partial_fit(held[rows, :], Y[rows], [0, 1, 2], weights[rows])
        assert parts.support_.tolist() == whole.support_.tolist()
        found = [backend.host(m.centers_) for m in (parts, whole)]
        np.testing.assert_allclose(*found, rtol=1e-12)
    again = np.repeat(np.arange(40), weights)
    repeated = ShrunkenCentroidClassifier(k=4).fit(X[again], Y[again])
    np.testing.assert_allclose(repeated.scores_, backend.host(whole.scores_), rtol=1e-10)


def test_sparse_data_stay_sparse() -> None:
    import tracemalloc

    S = scipy.sparse.random(400, 20_000, 1e-3, format="csr", random_state=0)
    tracemalloc.start()
    try:
        ShrunkenCentroidClassifier(k=100).fit(S, np.arange(400) % 2).predict(S)
        assert tracemalloc.get_traced_memory()[1] < 16_000_000  # a quarter of it
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"threshold": -1}, "threshold=-1"),
        ({"threshold": "all"}, "threshold='all'"),
        ({"offset": "mean"}, "offset='mean'"),
        ({"offset": -0.5}, "offset=-0.5"),
        ({"threshold": 10**400}, "threshold=1000"),
        ({"priors": "flat"}, "priors='flat'"),
        ({"k": 0}, "k=0"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_wrong_parameters_are_named(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ShrunkenCentroidClassifier(**parameters).fit(X, Y)
    with pytest.raises(ValueError, match="a class of two samples"):
        ShrunkenCentroidClassifier().fit(X[:3], Y[:3])
