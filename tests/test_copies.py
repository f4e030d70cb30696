"""Copies of fitted models: deepcopy, pickle and with_k."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from separated import assert_identical, separated
from small_data import KINDS

from gpucenters import (
    L2CenterClassifier,
)


@pytest.mark.parametrize(
    "duplicate",
    [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))],
    ids=["deepcopy", "pickle"],
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_is_the_same_model(kind: Any, duplicate: Any, backend: Any) -> None:
    X, y = separated(3)
    X = backend.array(X)
    model = kind(k=3, scale="std").fit(X, y)
    assert_identical(duplicate(model), model, X, backend)
    assert duplicate(model).get_params() == model.get_params()


def test_a_batch_for_a_copy_does_not_change_the_original(backend: Any) -> None:
    X, y = separated(3)
    model = L2CenterClassifier(k=3).partial_fit(backend.array(X[:15]), y[:15], classes=[0, 1, 2])
    copied = copy.deepcopy(model).partial_fit(backend.array(X[15:]), y[15:])
    X_all = backend.array(X)
    assert_identical(model, L2CenterClassifier(k=3).fit(X_all[:15, :], y[:15]), X_all, backend)
    whole = L2CenterClassifier(k=3).fit(X_all, y)
    np.testing.assert_array_equal(copied.support_, whole.support_)
    np.testing.assert_allclose(
        backend.host(copied.centers_), backend.host(whole.centers_), rtol=1e-12
    )


@pytest.mark.parametrize("k", [1, 2, 3, 0.5, "all"])
@pytest.mark.parametrize("kind", KINDS)
def test_with_k_is_the_model_fitted_with_k(kind: Any, k: Any, backend: Any) -> None:
    X, y = separated(3)
    X = backend.array(X)
    model = kind(k=2, scale="std").fit(X, y)
    before = copy.deepcopy(model)
    found = model.with_k(k)
    assert found.k == k
    assert_identical(found, kind(k=k, scale="std").fit(X, y), X, backend)
    assert model.k == 2
    assert_identical(model, before, X, backend)


def test_with_k_of_a_stream_is_the_stream_with_that_k(backend: Any) -> None:
    X, y = separated(2)
    batches = [(backend.array(X[:15]), y[:15]), (backend.array(X[15:]), y[15:])]
    wide, narrow = L2CenterClassifier(), L2CenterClassifier(k=2)
    for batch, labels in batches:
        wide.partial_fit(batch, labels, classes=[0, 1])
        narrow.partial_fit(batch, labels, classes=[0, 1])
    found = wide.with_k(2)
    assert_identical(found, narrow, backend.array(X), backend)
    found.partial_fit(*batches[0])
    narrow.partial_fit(*batches[0])
    assert_identical(found, narrow, backend.array(X), backend)
    assert len(wide.support_) == 8
