"""Ways to select k features, each in its own library's code.

Each takes training data, classes and ascending numbers of features, and yields
(k, seconds, selected features) as it gets there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.feature_selection import RFE, chi2, f_classif
from sklearn.linear_model import Lasso, LogisticRegression

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    SparseMultinomialNB,
    odds_ratio,
    thresholded_multinomial,
)

from ..peers import naive_feature_selection
from .limits import timed

Selected = tuple[int, float, np.ndarray]
Selector = Callable[[Any, np.ndarray, list[int]], Iterator[Selected]]


def ranked(ranking: Callable[[Any, np.ndarray], np.ndarray]) -> Selector:
    """A ranking serves every k: its time is that of each."""

    def select(X: Any, y: np.ndarray, ks: list[int]) -> Iterator[Selected]:
        seconds, best = timed(lambda: ranking(X, y))
        for k in ks:
            yield k, seconds, best[:k]

    return select


def _scored(score: Callable[[Any, np.ndarray], np.ndarray]) -> Selector:
    return ranked(lambda X, y: np.argsort(-np.nan_to_num(score(X, y)), kind="stable"))


def _each(support: Callable[[Any, np.ndarray, int], np.ndarray]) -> Selector:
    """Each k is solved on its own."""

    def select(X: Any, y: np.ndarray, ks: list[int]) -> Iterator[Selected]:
        for k in ks:
            yield k, *timed(lambda k=k: support(X, y, k))

    return select


def _path(coefficients: Callable[[Any, np.ndarray], Iterator[np.ndarray]]) -> Selector:
    """The largest k coefficients of the first model with as many; time adds up on the way there."""

    def select(X: Any, y: np.ndarray, ks: list[int]) -> Iterator[Selected]:
        models, spent, w = coefficients(X, y), 0.0, np.zeros(0)
        for k in ks:
            if k > len(y):  # An l1 penalty leaves at most as many coefficients as samples.
                return
            while np.count_nonzero(w) < k:
                seconds, w = timed(lambda: next(models, None), most=0)
                if w is None:  # no penalty is so small that k features stay
                    return
                spent += seconds
            yield k, spent, np.argsort(-np.abs(w), kind="stable")[:k]

    return select


def _l1_logistic(X: Any, y: np.ndarray) -> Iterator[np.ndarray]:
    for C in 2.0 ** np.arange(-14, 8):
        model = LogisticRegression(C=C, l1_ratio=1, solver="liblinear")
        yield model.fit(X, y).coef_.ravel()


def _lasso(X: Any, y: np.ndarray) -> Iterator[np.ndarray]:
    X, y = (X.tocsc() if hasattr(X, "tocsc") else np.asfortranarray(X)), 2.0 * y - 1
    model = Lasso(warm_start=True, tol=1e-3)
    for alpha in np.max(np.abs(X.T @ (y - y.mean()))) / len(y) * 2.0 ** -np.arange(1, 20):
        yield model.set_params(alpha=alpha).fit(X, y).coef_


def _logistic_rfe(X: Any, y: np.ndarray, k: int) -> np.ndarray:
    model = LogisticRegression(solver="liblinear", C=1.0)
    return RFE(model, n_features_to_select=k, step=0.3).fit(X, y).get_support(indices=True)


def _authors(X: Any, y: np.ndarray, k: int) -> np.ndarray:
    kind = naive_feature_selection()
    if kind is None:
        raise ImportError("the extra bench is not installed")
    with np.errstate(all="ignore"):
        return np.flatnonzero(kind(k=k).fit(X, y).mask_)


def _multinomial(X: Any, y: np.ndarray, k: int) -> np.ndarray:
    return SparseMultinomialNB(k=k).fit(X, y).support_


L2 = ranked(lambda X, y: L2CenterClassifier().fit(X, y).ranking_)
L1 = ranked(lambda X, y: L1CenterClassifier().fit(X, y).ranking_)

MULTINOMIAL: dict[str, Selector] = {
    "SMNB": _each(_multinomial),
    "SMNB (authors)": _each(_authors),
}
PENALISED: dict[str, Selector] = {
    "l1-logistic": _path(_l1_logistic),
    "Lasso": _path(_lasso),
    "logistic-RFE": _each(_logistic_rfe),
}
UNSCALED = "SMNB (authors), counts"  # gets the data before the division by standard deviations
TEXT: dict[str, Selector] = {
    "l2-SC": L2,
    **MULTINOMIAL,
    UNSCALED: MULTINOMIAL["SMNB (authors)"],
    "odds ratio": _scored(odds_ratio),
    "TMNB": _scored(thresholded_multinomial),
    "chi2": _scored(lambda X, y: chi2(X, y)[0]),
    **PENALISED,
}
GENES: dict[str, Selector] = {
    "l2-SC": L2,
    "l1-SC": L1,
    **MULTINOMIAL,
    "F test": _scored(lambda X, y: f_classif(X, y)[0]),
    **PENALISED,
}
