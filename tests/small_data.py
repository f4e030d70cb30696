"""Small data, models and calls that several files of tests share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
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
from gpucenters.solvers import l1_centers, l2_centers

CENTER_MODELS = [L2CenterClassifier(), L2CenterClassifier(scale="std"), L1CenterClassifier()]
KINDS = [L2CenterClassifier, L1CenterClassifier]
PLAIN = np.array([[0.0, 1, 0, 2], [1, 0, 5, 2], [0, 3, 1, 9], [4, 4, 0, 1], [2, 0, 7, 0]])
Y = np.array([0, 1, 0, 1, 1])


def model_id(value: Any) -> str | None:
    if isinstance(value, L2CenterClassifier | L1CenterClassifier):
        return type(value).__name__[:2].lower() + ("-scale" if value.scale else "")
    return getattr(value, "__name__", None)


each_center_model = pytest.mark.parametrize("model", CENTER_MODELS, ids=model_id)
each_kind = pytest.mark.parametrize("kind", KINDS, ids=model_id)


# The stand-in for CuPy computes with NumPy, which warns where CUDA does not.
quiet = pytest.mark.filterwarnings("ignore:.* encountered in:RuntimeWarning")


def fit_plain(model: Any, backend: Any = None) -> Any:
    X = PLAIN if backend is None else backend.array(PLAIN)
    return clone(model).fit(X, Y)


def quiet_containers(values: np.ndarray, backend: Any) -> list[Any]:
    with np.errstate(invalid="ignore"):
        return backend.containers(values)


def prediction_calls(model: Any, X: Any) -> list[Any]:
    """Everything of a fitted model that takes X alone."""
    names = ["predict", "decision_function", "predict_proba", "predict_log_proba"]
    return [getattr(model, name) for name in names if hasattr(model, name)]


def with_value(value: float) -> np.ndarray:
    X = PLAIN.copy()
    X[3, 2] = value
    return X


_rng = np.random.default_rng(0)
NORMAL = _rng.standard_normal((40, 6))
NORMAL[20:, 2] += 3
HALVES = np.repeat([0, 1], 20)
MODELS_WITH_PRIORS = [
    (L2CenterClassifier(k=2), "priors"),
    (MahalanobisCenterClassifier(k=2), "priors"),
    (SparseBernoulliNB(k=2), "class_prior"),
    (SparseMultinomialNB(k=2), "class_prior"),
    (SparsePoissonNB(k=2), "class_prior"),
    (SparseGaussianNB(k=2), "priors"),
    (ShrunkenCentroidClassifier(k=2), "priors"),
]
THIRDS = np.arange(40) % 3
COUNTS = _rng.poisson(1.0, (40, 6))
SOLVERS = [l2_centers, l1_centers]
