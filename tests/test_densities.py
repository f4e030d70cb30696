"""What Poisson, Gaussian and shrunken models share: places of the data, paths, and permutations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from conftest import cupy
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from stand_in import on_stand_in

from gpucenters import (
    ShrunkenCentroidClassifier,
    SparseGaussianNB,
    SparsePoissonNB,
    permutation_gains,
    sparsity_path,
)

rng = np.random.default_rng(0)
Y = np.arange(60) % 3
X = rng.poisson(1.0 + Y[:, None] * rng.random(9), (60, 9)).astype(np.float64)
MODELS = [
    SparsePoissonNB(k=4, scale="dispersion"),
    SparseGaussianNB(k=4, pooling=0.5),
    ShrunkenCentroidClassifier(k=4),
    ShrunkenCentroidClassifier(threshold=0.4),
]
each_model = pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)


def _assert_same(found: Any, expected: Any, data: Any) -> None:
    assert found.support_.tolist() == expected.support_.tolist()
    predicted = found.predict_proba(data)
    predicted = predicted.get() if hasattr(predicted, "get") else predicted
    np.testing.assert_allclose(predicted, expected.predict_proba(X), rtol=1e-9)


@each_model
def test_memory_maps_and_budgets_give_the_same_model(model: Any, tmp_path: Path) -> None:
    expected = clone(model).fit(X, Y)
    mapped = np.memmap(tmp_path / "X", dtype=np.float64, mode="w+", shape=X.shape)
    mapped[:] = X
    mapped.flush()
    held = np.memmap(tmp_path / "X", dtype=np.float64, mode="r", shape=X.shape)
    _assert_same(clone(model).fit(held, Y), expected, held)
    small = clone(model).set_params(memory_budget="64KB").fit(scipy.sparse.csc_array(X), Y)
    _assert_same(small, expected, scipy.sparse.csr_array(X))


@on_stand_in
@each_model
@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
def test_host_data_are_worked_on_by_the_device_and_move_back(model: Any, kind: Any) -> None:
    expected = clone(model).fit(X, Y)
    there = clone(model).set_params(device="cuda").fit(kind(X), Y)
    assert isinstance(there.scores_, cupy.ndarray)
    _assert_same(there, expected, kind(X))
    back = there.to("cpu")
    assert isinstance(back.scores_, np.ndarray)
    _assert_same(back, expected, X)


@each_model
def test_folds_of_a_path_are_models_fitted_with_each_k(model: Any) -> None:
    if getattr(model, "threshold", None) is not None:
        with pytest.raises(ValueError, match="beside threshold="):
            sparsity_path(model, X, Y, ks=[1, 4], cv=3)
        return
    for held in (X, scipy.sparse.csr_array(X)):
        found = sparsity_path(model, held, Y, ks=[1, 4, 9], cv=StratifiedKFold(3))
        for fold, (train, test) in enumerate(StratifiedKFold(3).split(X, Y)):
            for row, k in enumerate([1, 4, 9]):
                one = clone(model).set_params(k=k).fit(held[train], Y[train])
                assert found.scores[row, fold] == one.score(held[test], Y[test])


def test_permutations_need_what_class_sums_determine() -> None:
    with pytest.raises(ValueError, match="with exposure=None only"):
        permutation_gains(SparsePoissonNB(scale="dispersion"), X, Y, 10)
    with pytest.raises(ValueError, match="needs the offset as a number") as error:
        permutation_gains(ShrunkenCentroidClassifier(), X, Y, 10)
    offset = ShrunkenCentroidClassifier().fit(X, Y).offset_
    assert f"offset={offset:.6g}" in str(error.value)
    found = permutation_gains(SparsePoissonNB(), X, Y, 200, random_state=0)
    asymptotic = SparsePoissonNB().fit(X, Y).pvalues_
    assert np.corrcoef(np.log(found.pvalues), np.log(asymptotic))[0, 1] > 0.9
