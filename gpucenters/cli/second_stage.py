"""The second stage of ``gpucenters fit``: what classifies by the features that a model selects."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

_GRID = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)  # of C, the inverse of the ridge
_SHARE = 0.2  # of the samples, on which C is chosen


class SecondStage(StrEnum):
    """What classifies."""

    LOGISTIC = "logistic"


def fitted_stage(model: Any, vectorizer: Any, X: Any, y: Any, seed: int) -> tuple[Any, ...]:
    """The steps behind a model, fitted.

    C is that of best accuracy on one validation split, for which the model is fitted to the other
    samples alone; of equal ones the least.

    Parameters
    ----------
    model : estimator
        Fitted to X and y.
    vectorizer : vectorizer of scikit-learn, or None
        What X comes from, where the data are texts.
    X : array or sparse matrix of shape (n_samples, n_features)
        On the host.
    y : ndarray of shape (n_samples,)
    seed : int
        Of the validation split.
    """
    from sklearn.base import clone
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedShuffleSplit
    from sklearn.pipeline import make_pipeline

    from ..arrays.on_disk import is_on_disk

    if is_on_disk(X):
        raise ValueError("the data do not fit into memory: leave --second-stage out.")
    try:
        split = StratifiedShuffleSplit(1, test_size=_SHARE, random_state=seed).split(y, y)
        train, held_out = next(split)
    except ValueError as error:
        raise ValueError(
            f"--second-stage chooses its ridge on {_SHARE:.0%} of the samples, and these are too "
            f"few: {error}"
        ) from error
    before = _scaler(model, vectorizer, X)
    stages = {C: make_pipeline(*before, LogisticRegression(C=C, max_iter=1000)) for C in _GRID}
    selector = clone(model).fit(X[train], y[train])
    A, B = selector.transform(X[train]), selector.transform(X[held_out])
    accuracy = {C: s.fit(A, y[train]).score(B, y[held_out]) for C, s in stages.items()}
    best = stages[max(accuracy, key=accuracy.__getitem__)].fit(model.transform(X), y)
    return tuple(step for _, step in best.steps)


def _scaler(model: Any, vectorizer: Any, X: Any) -> list[Any]:
    """The step in front: log ratios for counts of words, none for TF-IDF, deviations for others."""
    from scipy.sparse import issparse
    from sklearn.preprocessing import StandardScaler

    from .. import LogRatioScaler

    if hasattr(vectorizer, "idf_"):
        return []
    selects = hasattr(model, "get_support")  # features of X themselves, not functions of them
    if vectorizer is not None and selects:
        return [LogRatioScaler()]
    return [StandardScaler(with_mean=not (issparse(X) and selects))]
