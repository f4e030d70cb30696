"""Data of every type, and the comparison of a fit on them with a fit on plain float64."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from gpucenters import L1CenterClassifier, L2CenterClassifier

MODELS = [
    L2CenterClassifier(k=3, scale="std"),
    L2CenterClassifier(k=3, priors="empirical"),
    L1CenterClassifier(k=3),
]
CLASSES = [2, 3]
FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]


def mixed_data(n_classes: int, kind: str = "f", n: int = 24, m: int = 7) -> tuple[np.ndarray, Any]:
    """Data that any type of this kind holds exactly, with zeros and no ties."""
    rng = np.random.default_rng(n_classes)
    y = np.arange(n) % n_classes
    if kind == "b":
        return (rng.random((n, m)) < 0.2 + 0.6 * ((y[:, None] + np.arange(m)) % 2)).astype(float), y
    X = rng.integers(0, 4, size=(n, m)).astype(float)
    X[:, [1, 2, 4, 5]] += np.asarray([3, 5, 2, 1]) * y[:, None]
    if kind in "if":
        X[:, 2] = -X[:, 2]
    if kind == "f":
        X += rng.integers(0, 8, size=(n, m)) / 8 * (X != 0)
    return X, y


def to_host(x: Any, backend: Any) -> np.ndarray:
    return x if isinstance(x, np.ndarray) else backend.host(x)


def assert_same_answers(model: Any, X: Any, plain: np.ndarray, y: Any, backend: Any) -> Any:
    """Fit on X and on plain float64, and compare attributes, decisions and predictions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # k may exceed the number of positive gains
        expected = clone(model).fit(plain, y)
        found = clone(model).fit(X, y)
    close = {"rtol": 1e-11, "atol": 1e-11}
    np.testing.assert_array_equal(found.support_, expected.support_)
    np.testing.assert_array_equal(found.ranking_, expected.ranking_)
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(to_host(found.centers_, backend), expected.centers_, **close)
    np.testing.assert_allclose(to_host(found.scores_, backend), expected.scores_, **close)
    decision = expected.decision_function(plain)
    np.testing.assert_allclose(to_host(found.decision_function(X), backend), decision, **close)
    both = np.sort(decision if decision.ndim == 2 else np.stack([decision, 0 * decision], 1), 1)
    rows = both[:, -1] - both[:, -2] > 1e-9  # rounding may break an exact tie
    assert rows.mean() > 0.3
    predicted = to_host(found.predict(X), backend)
    np.testing.assert_array_equal(predicted[rows], expected.predict(plain)[rows])
    return found


def _name(value: Any) -> Any:
    if isinstance(value, L2CenterClassifier | L1CenterClassifier):
        extra = ["scale"] if value.scale else ["priors"] if hasattr(value, "priors") else []
        return "-".join([type(value).__name__[:2].lower(), *extra])
    return getattr(value, "__name__", None)


each_model = pytest.mark.parametrize("model", MODELS, ids=_name)


def messy(
    plain: np.ndarray, layout: str, backend: Any, index: str = "int32", duplicates: float = 0.4
) -> Any:
    """The same values with unsorted indices, a share of duplicates, and stored zeros."""
    rng = np.random.default_rng(0)
    lines = plain if layout == "csr" else plain.T
    data, indices, indptr = [], [], [0]
    for line in lines:
        stored = np.flatnonzero((line != 0) | (rng.random(line.size) < 0.3))
        twice = stored[rng.random(stored.size) < duplicates]
        values = np.concatenate([line[stored] - np.isin(stored, twice), np.ones(twice.size)])
        order = rng.permutation(values.size)
        data.append(values[order])
        indices.append(np.concatenate([stored, twice])[order])
        indptr.append(indptr[-1] + order.size)
    kind = getattr(backend.sparse, f"{layout}_matrix")
    data, indices = np.concatenate(data), np.concatenate(indices).astype(index)
    if backend.name == "numpy":
        X = kind(plain.shape)
        X.data, X.indices, X.indptr = data, indices, np.asarray(indptr, dtype=index)
        for part in (X.data, X.indices, X.indptr):
            part.flags.writeable = False
        return X
    parts = [backend.array(p) for p in (data, indices, np.asarray(indptr, dtype=index))]
    return kind(tuple(parts), shape=plain.shape)
