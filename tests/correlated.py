"""Correlated data for Mahalanobis centers, and the comparison of two fitted models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest


def correlated(n_classes: int = 3, n: int = 60, m: int = 5, seed: int = 0) -> tuple[Any, Any]:
    """Correlated features of unlike scales, and classes apart in some of them."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % n_classes)
    X = rng.normal(size=(n, m)) @ (np.eye(m) + 0.6 * rng.normal(size=(m, m)))
    X[:, :2] += np.asarray([1.5, -1.0]) * y[:, None]
    return X, y


def residuals(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    return X - np.stack([X[y == c].mean(axis=0) for c in range(y.max() + 1)])[y]


def attribute(model: Any, name: str, backend: Any) -> np.ndarray:
    return backend.host(getattr(model, name))


def assert_same_model(found: Any, expected: Any, backend: Any, rtol: float = 1e-9) -> None:
    """Assert that two fitted models agree up to rounding."""
    np.testing.assert_array_equal(found.support_, expected.support_)
    close = {"rtol": rtol, "atol": 1e-10}
    assert found.objective_ == pytest.approx(expected.objective_, rel=rtol)
    assert found.shrinkage_ == pytest.approx(expected.shrinkage_, rel=rtol)
    for name in ("scores_", "centers_", "means_", "covariance_", "coef_", "intercept_"):
        a, b = attribute(found, name, backend), attribute(expected, name, backend)
        np.testing.assert_allclose(a, b, **close, err_msg=name)
