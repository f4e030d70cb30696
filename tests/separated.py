"""Classes that three features separate, and the comparison of models to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np


def separated(n_classes: int, n: int = 30, m: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Real numbers, of which the first three features separate the classes."""
    rng = np.random.default_rng(n_classes)
    y = np.arange(n) % n_classes
    X = rng.normal(size=(n, m))
    X[:, :3] += np.asarray([6.0, -4.0, 2.0]) * y[:, None]
    return X, y


def assert_identical(found: Any, expected: Any, X: Any, backend: Any) -> None:
    """Assert that two fitted models are equal to the last bit."""
    for name in ("classes_", "support_", "ranking_"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert found.objective_ == expected.objective_
    for a, b in (
        (found.centers_, expected.centers_),
        (found.scores_, expected.scores_),
        (found.decision_function(X), expected.decision_function(X)),
        (found.predict(X), expected.predict(X)),
    ):
        np.testing.assert_array_equal(backend.host(a), backend.host(b))


def assert_identical_on_host(found: Any, expected: Any, X: Any) -> None:
    np.testing.assert_array_equal(found.support_, expected.support_)
    np.testing.assert_array_equal(found.centers_, expected.centers_)
    np.testing.assert_array_equal(found.decision_function(X), expected.decision_function(X))
