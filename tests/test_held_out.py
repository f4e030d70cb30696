"""Fits to all samples but some from their statistics: the bits of a fit to the other samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold
from strategies import quietly

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    SparseBernoulliNB,
    SparseGaussianNB,
    SparseMultinomialNB,
    SparsePoissonNB,
    sparsity_path,
)
from gpucenters.estimators.cross_validation import HeldOut
from gpucenters.estimators.fitted import FittedModel

MODELS = [
    L2CenterClassifier(),
    L2CenterClassifier(scale="std"),
    SparseBernoulliNB(),
    SparseMultinomialNB(),
    SparsePoissonNB(),
    SparseGaussianNB(),
]
each_model = pytest.mark.parametrize("model", MODELS, ids=str)


def _counts(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.arange(60) % 3
    more = (np.arange(9) % 3 == y[:, None]) & (rng.random((60, 9)) < 0.5)
    return rng.poisson(0.3, (60, 9)) + 2 * more, y


@each_model
@pytest.mark.parametrize("weighted", [False, True])
def test_has_the_bits_of_a_fit_to_the_other_samples(
    model: Any, weighted: bool, sparse_backend: Any
) -> None:
    X, y = _counts()
    weights = 1.0 + np.arange(60) % 4 if weighted else None
    rows = np.asarray([0, 7, 8, 30, 31, 59])
    rest = np.setdiff1d(np.arange(60), rows)
    for kind in (sparse_backend.csr, sparse_backend.csc):
        held_out = HeldOut.of(model, kind(X), y, weights)
        assert held_out is not None
        found = quietly(held_out.fit, kind(X[rows]), rows)
        assert found is not None
        expected = quietly(
            clone(model).fit, kind(X[rest]), y[rest], None if weights is None else weights[rest]
        )
        ours, theirs = FittedModel(found).centers, FittedModel(expected).centers
        assert ours.class_weight == theirs.class_weight
        for name in ours.ARRAYS:
            if getattr(theirs, name) is not None:
                a, b = (sparse_backend.host(getattr(c, name)) for c in (ours, theirs))
                np.testing.assert_array_equal(a, b, err_msg=name)
        assert found.objective_ == pytest.approx(expected.objective_, rel=1e-14)
        # The statistics of all samples are as before.
        again = quietly(held_out.fit, kind(X[rows]), rows)
        sparse_backend.assert_same(again.centers_, found.centers_)


def test_rounded_sums_are_not_used(on_host: Any) -> None:
    X, y = _counts()
    halves = on_host.csr(X / 3.0)
    weights = np.full(60, 0.5)
    assert HeldOut.of(L2CenterClassifier(), halves, y, None) is None
    assert HeldOut.of(L2CenterClassifier(), on_host.csr(X), y, weights) is None
    assert HeldOut.of(L2CenterClassifier(), X, y, None) is None  # dense moments are centred
    assert HeldOut.of(L1CenterClassifier(), on_host.csr(X), y, None) is None
    rows = np.arange(6)
    for model in (L2CenterClassifier(), L2CenterClassifier(scale="std"), SparseMultinomialNB()):
        large = X * 2.0**52
        held_out = HeldOut.of(model, on_host.csr(large), y, None)
        assert held_out is not None and held_out.fit(on_host.csr(large[rows]), rows) is None
    # Sums of squares that are exact, but whose products with the weights are not.
    large = X * 2.0**21
    held_out = HeldOut.of(L2CenterClassifier(), on_host.csr(large), y, None)
    assert held_out is not None and held_out.fit(on_host.csr(large[rows]), rows) is None
    # A feature that is ill-conditioned without the samples, and not with them.
    far, rows = X + 10000 * (np.arange(9) == 4), np.arange(15)
    far[rows, 4] = 0
    held_out = HeldOut.of(L2CenterClassifier(scale="std"), on_host.csr(far), y, None)
    assert held_out is not None and held_out.fit(on_host.csr(far[rows]), rows) is None


def test_a_class_without_other_samples_is_left_to_a_fit(on_host: Any) -> None:
    X, y = _counts()
    held_out = HeldOut.of(L2CenterClassifier(), on_host.csr(X), y, None)
    assert held_out is not None
    rows = np.flatnonzero(y == 1)
    assert held_out.fit(on_host.csr(X[rows]), rows) is None
    folds = [(np.setdiff1d(np.arange(60), r), r) for r in (rows, np.arange(5), np.arange(5, 9))]
    found = sparsity_path(L2CenterClassifier(), on_host.csr(X), y, ks=[3], cv=folds)
    train, test = folds[0]
    one = L2CenterClassifier(k=3).fit(X[train], y[train])
    assert found.scores[0, 0] == one.score(X[test], y[test])


@each_model
def test_folds_of_counts_are_not_fitted_to_their_training_samples(
    model: Any, monkeypatch: pytest.MonkeyPatch, on_host: Any
) -> None:
    X, y = _counts()
    fitted, fit = [], type(model).fit
    monkeypatch.setattr(
        type(model),
        "fit",
        lambda self, X, *rest: (fitted.append(X.shape[0]), fit(self, X, *rest))[1],
    )
    sparse = quietly(sparsity_path, model, on_host.csr(X), y, ks=[2, 9], cv=KFold(5))
    assert not fitted
    dense = quietly(sparsity_path, model, on_host.array(X), y, ks=[2, 9], cv=KFold(5))
    assert fitted == [48] * 5
    np.testing.assert_array_equal(sparse.scores, dense.scores)
    # Training samples that are not the others are cut out.
    fitted.clear()
    half = [(np.arange(60)[t::2], np.arange(60)[t::2][:3]) for t in range(2)] * 3
    quietly(sparsity_path, model, on_host.csr(X), y, ks=[2], cv=half)
    assert 30 in fitted
