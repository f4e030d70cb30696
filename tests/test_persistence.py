"""Files that other libraries write of a model: joblib with memory maps, skops."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
import scipy.sparse
from every_model import others
from sklearn.base import clone

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    ShrunkenCentroidClassifier,
    SparseBernoulliNB,
    SparseGaussianNB,
    SparseMultinomialNB,
    SparsePoissonNB,
)

MODELS = [
    L2CenterClassifier(k=3),
    L2CenterClassifier(k=3, scale="pooled"),
    L1CenterClassifier(k=3),
    MahalanobisCenterClassifier(k=3),
    SparseBernoulliNB(k=3, binarize=1.0),
    SparseMultinomialNB(k=3),
    SparsePoissonNB(k=3),
    SparseGaussianNB(k=3),
    ShrunkenCentroidClassifier(k=3),
]
MODELS += others(MODELS, k=3)
each_model = pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
_RNG = np.random.default_rng(1)
Y = np.arange(60) % 3
X = _RNG.poisson(1.0 + Y[:, None] * _RNG.random(8), (60, 8)).astype(float)
KINDS = [np.asarray, scipy.sparse.csr_array]


def _assert_same(found: Any, expected: Any, data: Any) -> None:
    np.testing.assert_array_equal(found.predict_proba(data), expected.predict_proba(data))
    np.testing.assert_array_equal(found.transform(X), expected.transform(X))
    np.testing.assert_array_equal(found.with_k(2).ranking_, expected.with_k(2).ranking_)
    assert found.classes_.tolist() == expected.classes_.tolist()


@pytest.mark.parametrize("kind", KINDS)
@each_model
def test_a_model_whose_arrays_are_memory_maps_predicts_and_goes_on(
    model: Any, kind: Any, tmp_path: Path
) -> None:
    data = kind(X)
    fitted = clone(model).fit(data, Y)
    joblib.dump(fitted, tmp_path / "model")
    found = joblib.load(tmp_path / "model", mmap_mode="r")
    _assert_same(found, fitted, data)
    if hasattr(found, "partial_fit"):
        found.partial_fit(data, Y)
        _assert_same(found, fitted.partial_fit(data, Y), data)
        again = joblib.load(tmp_path / "model")
        _assert_same(again, clone(model).fit(data, Y), data)


@pytest.mark.parametrize("kind", KINDS)
@each_model
def test_skops_dumps_and_loads_models(model: Any, kind: Any) -> None:
    io = pytest.importorskip("skops.io")
    data = kind(X)
    fitted = clone(model).fit(data, Y)
    dumped = io.dumps(fitted)
    unknown = io.get_untrusted_types(data=dumped)
    assert all(name.startswith("gpucenters.") for name in unknown), unknown
    found = io.loads(dumped, trusted=unknown)
    _assert_same(found, fitted, data)
    if hasattr(found, "partial_fit"):
        _assert_same(found.partial_fit(data, Y), fitted.partial_fit(data, Y), data)


@each_model
def test_what_was_asked_for_does_not_make_a_pickle_larger(model: Any) -> None:
    fitted = clone(model).fit(X, Y)
    before = len(pickle.dumps(fitted))
    for name in (n for n in dir(type(fitted)) if n.endswith("_") and not n.startswith("_")):
        getattr(fitted, name)
    fitted.predict(X)
    assert len(pickle.dumps(fitted)) == before
