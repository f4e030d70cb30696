"""Scores of the predictions for every k.

The usual scores are computed for all k from labels and decision values; any other score that
scikit-learn knows is asked of a stand-in for the model at each k, which holds its predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import check_scoring
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from ..arrays.functions import EPS
from ..estimators.path_predictions import PathPredictions
from ..estimators.validation import encode, positions

DEFAULT = "accuracy"
_ACCURACY = 1e-13  # of the mean log loss


class Predictions(ClassifierMixin, BaseEstimator):
    """What a fitted model predicts for the test samples at one k, as scorers ask for it.

    Parameters
    ----------
    found : PathPredictions
    number : int
        That of the k.
    classes : ndarray of shape (n_classes,)
    """

    def __init__(self, found: PathPredictions, number: int, classes: np.ndarray) -> None:
        self.found = found
        self.number = number
        self.classes = classes
        self.classes_ = classes

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> np.ndarray:
        """Labels."""
        return self.classes[self.found.codes[self.number]]

    def decision_function(self, X: Any) -> np.ndarray:
        """Decision values."""
        assert self.found.decision is not None
        values = self.found.decision[self.number]
        return values[:, 0] if values.shape[1] == 1 else values

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities."""
        assert self.found.probability is not None
        return self.found.probability[self.number]

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


# --- scores that are computed directly ----------------------------------------------------------


@dataclass
class _Outcome:
    """Test labels and predictions for all k, for test samples of all classes.

    ``truth`` are codes of shape (n,), among the classes of the model.
    """

    found: PathPredictions
    truth: np.ndarray
    classes: np.ndarray

    @cached_property
    def confusion(self) -> np.ndarray:
        """Samples of class c (rows) that are predicted as d (columns), (S, K, K)."""
        k = len(self.classes)
        base = self.truth.astype(np.int64) * k
        counts = [np.bincount(base + codes, minlength=k * k) for codes in self.found.codes]
        return np.stack(counts).reshape(-1, k, k)

    @cached_property
    def hits(self) -> np.ndarray:
        """Samples of each class that are predicted right: (S, K)."""
        return np.diagonal(self.confusion, axis1=1, axis2=2)

    @cached_property
    def f1(self) -> np.ndarray:
        """The F1 score of each class: (S, K)."""
        return 2.0 * self.hits / (self.confusion.sum(axis=2) + self.confusion.sum(axis=1))


def _accuracy(x: _Outcome) -> np.ndarray:
    # (Without counts of all pairs of classes, which take several times as long.)
    truth = x.truth.astype(x.found.codes.dtype)
    return np.asarray([np.count_nonzero(codes == truth) / len(truth) for codes in x.found.codes])


def _balanced_accuracy(x: _Outcome) -> np.ndarray:
    return np.mean(x.hits / x.confusion.sum(axis=2), axis=1)


def _f1(x: _Outcome) -> np.ndarray:
    return x.f1[:, int(np.flatnonzero(x.classes == 1)[0])]


def _f1_macro(x: _Outcome) -> np.ndarray:
    return np.asarray([np.average(row) for row in x.f1])


def _f1_weighted(x: _Outcome) -> np.ndarray:
    weights = x.confusion[0].sum(axis=1)
    return np.asarray([np.average(row, weights=weights) for row in x.f1])


def _probability_of_truth(x: _Outcome) -> np.ndarray:
    """The probability of each sample's own class, (S, n), as scikit-learn's scorer reads it."""
    assert x.found.probability is not None
    if len(x.classes) > 2:
        return x.found.probability[:, np.arange(len(x.truth)), x.truth]
    p = x.found.probability[:, :, 1]  # of two classes the one alone
    return np.where(x.truth == 1, p, 1 - p)


def _negative_log_loss(x: _Outcome) -> np.ndarray:
    p = np.clip(_probability_of_truth(x), EPS, 1 - EPS)
    return np.log(p).mean(axis=1)


def _loss_in_doubt(x: _Outcome) -> np.ndarray:
    """Whether rounding of probabilities near one matters, (S,): of two classes, the other's."""
    if len(x.classes) > 2:
        return np.zeros(len(x.found.codes), np.bool)
    p = np.maximum(_probability_of_truth(x), EPS)
    error = np.minimum(EPS / p, 1.0) * (x.truth == 0)
    return error.mean(axis=1) > _ACCURACY


def _roc_auc(x: _Outcome) -> np.ndarray:
    """The share of pairs of samples of both classes in the right order; ties count one half."""
    assert x.found.decision is not None
    positive = x.truth == 1
    n_pairs = int(positive.sum()) * int((~positive).sum())
    return np.asarray([_pairs_in_order(d[:, 0], positive) / n_pairs for d in x.found.decision])


def _order_in_doubt(x: _Outcome) -> np.ndarray:
    """Whether rounding may change the order of two samples of different classes: (S,)."""
    assert x.found.decision is not None
    found = []
    for values, bound in zip(x.found.decision[:, :, 0], x.found.bound, strict=True):
        order = np.argsort(values)
        near = np.diff(values[order]) <= 4 * bound
        found.append(bound > 0 and bool(np.any(near & (np.diff(x.truth[order]) != 0))))
    return np.asarray(found)


def _pairs_in_order(values: np.ndarray, positive: np.ndarray) -> float:
    order = np.argsort(values)
    values, positive = values[order], positive[order]
    last = np.flatnonzero(np.append(values[1:] != values[:-1], True))  # of equal values
    positives = np.diff(np.cumsum(positive)[last], prepend=0)
    negatives = np.diff(last + 1, prepend=0) - positives
    below = np.cumsum(negatives) - negatives
    return float(np.sum(positives * below) + np.sum(positives * negatives) / 2)


@dataclass(frozen=True)
class _Direct:
    function: Callable[[_Outcome], np.ndarray]
    binary: bool = False
    positive_is_one: bool = False
    decision: bool = False
    probability: bool = False
    in_doubt: Callable[[_Outcome], np.ndarray] | None = None


_DIRECT = {
    "accuracy": _Direct(_accuracy),
    "balanced_accuracy": _Direct(_balanced_accuracy),
    "f1": _Direct(_f1, binary=True, positive_is_one=True),
    "f1_macro": _Direct(_f1_macro),
    "f1_weighted": _Direct(_f1_weighted),
    "neg_log_loss": _Direct(_negative_log_loss, probability=True, in_doubt=_loss_in_doubt),
    "roc_auc": _Direct(_roc_auc, binary=True, decision=True, in_doubt=_order_in_doubt),
}


# --- scorings -----------------------------------------------------------------------------------


class Scoring:
    """The scores that are asked for.

    Parameters
    ----------
    scoring : str, callable, list, tuple, set or dict
        As in `sklearn.model_selection.cross_validate`.
    estimator : estimator
    """

    def __init__(self, scoring: Any, estimator: Any) -> None:
        scoring = DEFAULT if scoring is None else scoring
        #: As scikit-learn has it, for metadata routing and for a score of a fitted model.
        self.scorer = check_scoring(estimator, scoring=scoring)
        #: Whether there is one score, not several with names.
        self.single = isinstance(scoring, str) or callable(scoring)
        if isinstance(scoring, str):
            named = {scoring: scoring}
        elif callable(scoring):
            named = {getattr(scoring, "__name__", "score"): scoring}
        elif isinstance(scoring, dict):
            named = dict(scoring)
        else:
            named = {name: name for name in scoring}
        self.names = list(named)
        self._scorings = named
        self._direct = {n: _DIRECT[s] for n, s in named.items() if _is_direct(s)}
        self._estimator = estimator

    @property
    def _asks_others(self) -> bool:
        return len(self._direct) < len(self._scorings)

    @property
    def needs_decision(self) -> bool:
        """Whether decision values are asked for."""
        return self._asks_others or any(d.decision for d in self._direct.values())

    @property
    def needs_probability(self) -> bool:
        """Whether probabilities are asked for."""
        return self._asks_others or any(d.probability for d in self._direct.values())

    def in_doubt(self, found: PathPredictions, classes: np.ndarray, y: np.ndarray) -> np.ndarray:
        """For which k the rounding of decision values may change a score: (S,)."""
        doubt = np.zeros(len(found.codes), np.bool)
        if self._asks_others:  # what a scorer does with decision values is not known
            return ~doubt
        for direct in self._direct.values():
            if direct.in_doubt is not None and _serves(direct, classes):
                outcome = _outcome(found, classes, y)
                if outcome is not None:
                    doubt |= direct.in_doubt(outcome)
        return doubt

    def __call__(
        self,
        found: PathPredictions,
        classes: np.ndarray,
        X: Any,
        y: np.ndarray,
        params: Mapping[str, Any],
    ) -> dict[str, np.ndarray]:
        """The scores of the test samples X, y for every k: S numbers for each name."""
        scores, others = {}, dict(self._scorings)
        outcome = _outcome(found, classes, y)
        for name, direct in self._direct.items():
            if outcome is not None and _serves(direct, classes):
                scores[name] = direct.function(outcome)
                del others[name]
        if others:
            scoring = others[self.names[0]] if self.single else others
            scorer, rows = check_scoring(self._estimator, scoring=scoring), []
            for number in range(len(found.codes)):
                score = scorer(Predictions(found, number, classes), X, y, **params)
                rows.append(score if isinstance(score, dict) else {self.names[0]: score})
            scores |= {n: np.asarray([float(row[n]) for row in rows]) for n in rows[0]}
        return {name: scores.pop(name) for name in self.names if name in scores} | scores


def _is_direct(scoring: Any) -> bool:
    return isinstance(scoring, str) and scoring in _DIRECT


def _outcome(found: PathPredictions, classes: np.ndarray, y: np.ndarray) -> _Outcome | None:
    """The outcome where all classes of the model, and no others, are among the test labels."""
    present, codes = encode(y)
    at = positions(present, classes)
    if len(present) != len(classes) or np.any(at < 0):
        return None
    return _Outcome(found, at[codes], classes)


def _serves(direct: _Direct, classes: np.ndarray) -> bool:
    if direct.binary and len(classes) != 2:
        return False
    return not direct.positive_is_one or bool(np.any(classes == 1))


# What goes to fits, splitters and scorers.


class Routed(NamedTuple):
    """What goes to ``fit``, to the splitter and to the scorers."""

    fit: Mapping[str, Any]
    split: Mapping[str, Any]
    score: Mapping[str, Any]


def metadata_router(owner: Any, estimator: Any, splitter: Any, scorer: Any) -> MetadataRouter:
    """What ``fit`` passes to the fits of folds, to the splitter and to the scorers."""
    fit, split, score = (
        MethodMapping().add(caller="fit", callee=name) for name in ("fit", "split", "score")
    )
    return (
        MetadataRouter(owner=owner)
        .add(estimator=estimator, method_mapping=fit)
        .add(splitter=splitter, method_mapping=split)
        .add(scorer=scorer, method_mapping=score)
    )


def route(estimator: Any, splitter: Any, scoring: Scoring, weight: Any, groups: Any) -> Routed:
    """Metadata as `sklearn.model_selection.cross_validate` routes them."""
    weights = {} if weight is None else {"sample_weight": weight}
    if not sklearn.get_config().get("enable_metadata_routing", False):
        return Routed(weights, {"groups": groups}, {})
    given = weights | ({} if groups is None else {"groups": groups})
    router = metadata_router("sparsity_path", estimator, splitter, scoring.scorer)
    routed = process_routing(router, "fit", **given)
    return Routed(routed.estimator.fit, routed.splitter.split, routed.scorer.score)
