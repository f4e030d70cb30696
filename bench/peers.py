"""What users would take instead, and the bare calls that touch each value once."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.feature_selection import SelectKBest, chi2, f_classif
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.neighbors import NearestCentroid

Rows = dict[str, Callable[[], Any]]


def naive_feature_selection() -> Any:
    """The authors' NaiveFeatureSelection, 0.0.1, or None where it is not installed."""
    import sklearn.feature_selection._base

    # It imports a module that scikit-learn renamed in 0.24.
    name = "sklearn.feature_selection.base"
    sys.modules.setdefault(name, types.ModuleType(name)).__dict__.update(
        vars(sklearn.feature_selection._base)
    )
    try:
        from naive_feature_selection import NaiveFeatureSelection
    except ImportError:
        return None
    return NaiveFeatureSelection


def peers(X: Any, y: np.ndarray, k: int) -> Rows:
    """Fits of other libraries on the same data, and what predicts as the l1 model does."""
    sparse = scipy.sparse.issparse(X)
    small = X.shape[0] * X.shape[1] <= 5e8  # NearestCentroid makes several arrays of that size
    rows: Rows = {}
    if sparse:
        rows["MultinomialNB.fit"] = lambda: MultinomialNB().fit(X, y)
        rows["BernoulliNB.fit"] = lambda: BernoulliNB().fit(X, y)
        rows["SelectKBest(chi2).fit"] = lambda: SelectKBest(chi2, k=k).fit(X, y)
    if not sparse or small:
        rows["SelectKBest(f_classif).fit"] = lambda: SelectKBest(f_classif, k=k).fit(X, y)
    if small and not sparse:
        rows["GaussianNB.fit"] = lambda: GaussianNB().fit(X, y)
        if len(np.unique(y)) <= 100:  # of more it takes long
            nearest = NearestCentroid(metric="manhattan").fit(X, y)
            rows["NearestCentroid(manhattan).predict"] = lambda: nearest.predict(X)
    if small:
        for metric in ("euclidean", "manhattan"):
            rows[f"NearestCentroid({metric}).fit"] = lambda metric=metric: NearestCentroid(
                metric=metric
            ).fit(X, y)
        rows["NearestCentroid(shrink_threshold=1).fit"] = lambda: NearestCentroid(
            shrink_threshold=1.0
        ).fit(X, y)
    return rows


def authors(X: Any, y: np.ndarray, k: int, fitted: list[Any]) -> Rows:
    """The fit of the paper's closest rival; the last one is left in ``fitted``."""
    kind = naive_feature_selection()
    codes = np.unique(y, return_inverse=True)[1]
    if kind is None or not scipy.sparse.issparse(X) or codes.max() > 1:
        return {}

    def fit() -> None:
        fitted[:] = [kind(k=k).fit(X, codes)]

    return {"NaiveFeatureSelection.fit (authors)": fit}


def multinomial_values(X: Any, y: np.ndarray, supports: list[np.ndarray]) -> list[float]:
    """Log-likelihood of two classes' word counts with each support free, less that with none.

    Of plain class sums, without smoothing, as the authors' code (0.0.1) takes them.
    """
    codes = np.unique(y, return_inverse=True)[1]
    one_hot = np.zeros((X.shape[0], 2))
    one_hot[np.arange(X.shape[0]), codes] = 1
    f = (X.T @ one_hot).T
    values = []
    for support in supports:
        part = f[:, support]
        mass = part.sum(axis=1)
        expected = part.sum(axis=0) * (mass / mass.sum())[:, None]
        some = part > 0
        values.append(float(np.sum(part[some] * np.log(part[some] / expected[some]))))
    return values


def bare_calls(X: Any, y: np.ndarray) -> Rows:
    """The least that reads each value once."""
    codes = np.unique(y, return_inverse=True)[1]
    one_hot = np.zeros((X.shape[0], codes.max() + 1), dtype=np.float32)
    one_hot[np.arange(X.shape[0]), codes] = 1
    w32 = np.ones(X.shape[1], dtype=np.float32)
    w64 = np.ones(X.shape[1])
    if scipy.sparse.issparse(X):
        return {
            "bare X.T @ Y (float32)": lambda: X.T @ one_hot,
            "bare X @ w (float32)": lambda: X @ w32,
            "bare X @ w (float64 w)": lambda: X @ w64,
        }
    return {
        "bare X.sum(axis=0)": lambda: X.sum(axis=0, dtype=np.float64),
        "bare np.sort(X.T, axis=1)": lambda: np.sort(np.ascontiguousarray(X.T), axis=1),
    }
