"""Nested dichotomies of estimators that class statistics do not determine."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples, check_is_fitted

from ..arrays.typing import Array
from ..estimators.labels import accuracy, decode, encode, host_labels, raise_for_one_class


class RefittedDichotomies(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Binary models that are each fitted to the rows of their classes.

    What scikit-learn's classes are to the other decompositions.
    """

    def fit(self, X: Any, y: Any, **fit_params: Any) -> Self:
        """Fit a copy of the estimator at each node."""
        params = self._routed("fit", fit_params)
        X = X.tocsr() if hasattr(X, "tocsr") else X  # rows are taken
        y = host_labels(y, type(self).__name__, _num_samples(X))
        classes, codes = encode(y)
        raise_for_one_class(type(self).__name__, classes)
        book = self._draw(len(classes), lambda: clone(self.estimator).fit(X, y, **params))
        self.estimators_ = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit)(clone(self.estimator), X, sides[codes].astype(int), params)
            for sides in book.T
        )
        self._code_book, self.classes_ = book, classes
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimators_[0], name):
                setattr(self, name, getattr(self.estimators_[0], name))
        return self

    def predict(self, X: Any) -> Array:
        """The class of each sample."""
        codes, backend = self._predict_codes(X, "predict")
        return decode(codes, self.classes_, backend)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of `predict`."""
        codes, _ = self._predict_codes(X, "score")
        return accuracy(codes, y, self.classes_, type(self).__name__, sample_weight)

    def _log_sides(self, X: Any) -> list[Array]:
        """Log probabilities of the two sides of each node: (n, 2)."""
        check_is_fitted(self)
        return [log_proba(model, X) for model in self.estimators_]


def _fit(model: Any, X: Any, sides: np.ndarray, params: dict[str, Any]) -> Any:
    """A model fitted to the rows of a node, whose sides are -1 and 1."""
    if np.all(sides):
        return model.fit(X, sides, **params)
    rows = np.flatnonzero(sides)
    parts = {
        name: _safe_indexing(value, rows) if np.ndim(value) and len(value) == len(sides) else value
        for name, value in params.items()
    }
    return model.fit(_safe_indexing(X, rows), sides[rows], **parts)


def log_proba(model: Any, X: Any) -> Array:
    """Log probabilities of the two classes of a model: (n, 2)."""
    with np.errstate(divide="ignore"):
        if hasattr(model, "predict_log_proba"):
            return model.predict_log_proba(X)
        return np.log(model.predict_proba(X))
