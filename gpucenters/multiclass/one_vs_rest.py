"""One binary problem for each class: it or not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn import multiclass
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils.validation import check_is_fitted

from .._docstrings import filled
from ..arrays.backend import Backend, backend_of
from ..arrays.typing import Array
from ..estimators._base import CenterClassifier
from ..estimators.probabilities import one_vs_rest, softmax
from ..statistics import Statistics
from ._copies import has
from ._decomposition import Decomposition, largest


@filled
class OneVsRestClassifier(Decomposition, multiclass.OneVsRestClassifier):
    """One binary model for each class, against all other classes.

    `sklearn.multiclass.OneVsRestClassifier`, in one pass over X for a model that class statistics
    determine (every classifier of this package but l1 centers and GMEB): the sums of the other
    classes follow from those of each class. Other estimators are fitted to X once for each class,
    by scikit-learn, as are models with a ``class_weight``, which is of each binary problem, and any
    estimator to multilabel ``y``.

    Parameters
    ----------
    estimator : estimator
        The binary model.
    verbose : int, default=0
        Progress of these fits.

    Attributes
    ----------
    estimators_ : list of n_classes estimators
        The binary models, with labels 0 and 1; of two classes there is one.
    n_classes_ : int
    label_binarizer_ : LabelBinarizer
    multilabel_ : bool

    Notes
    -----
    Weights, sums and what follows from them have the bits of separate fits where the sums are
    exact, as those of integers are; second moments about the mean of dense data, and covariances,
    are equal up to rounding.

    Beside the binary models (2 K m numbers for K classes and m features) the statistics of all
    classes are kept, so that `partial_fit` goes on from there.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from gpucenters import L2CenterClassifier
    >>> from gpucenters.multiclass import OneVsRestClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = OneVsRestClassifier(L2CenterClassifier(k=4, scale="std")).fit(X, y)
    >>> [binary.support_.tolist() for binary in model.estimators_]
    [[0, 5, 6, 12], [0, 2, 9, 12], [6, 9, 10, 11]]
    >>> round(model.score(X, y), 2)
    0.97
    """

    def __init__(self, estimator: Any, *, n_jobs: int | None = None, verbose: int = 0) -> None:
        super().__init__(estimator, n_jobs=n_jobs, verbose=verbose)

    def _problems(self, statistics: Statistics) -> Iterable[Statistics]:
        if statistics.shape[0] == 2:
            return [statistics.merge_classes([0, 1])]
        return statistics.one_vs_rest()

    def _attributes(self, classes: np.ndarray) -> dict[str, Any]:
        return {"label_binarizer_": LabelBinarizer(sparse_output=True).fit(classes)}

    def _takes(self, y: Any) -> bool:
        shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
        return len(shape) != 2 or shape[1] == 1

    def _predict_codes(self, X: Any, method: str) -> tuple[Array, Backend]:
        scores, backend = self._scores(X, method)
        with self._joint._fitted.backend.current():
            return largest(scores), backend

    @property
    def _has_centers(self) -> bool:
        """Whether each binary model was fitted on its own, and is one of this package."""
        apart = not self._is_shared() and not self.multilabel_
        return apart and all(isinstance(m, CenterClassifier) for m in self.estimators_)

    def _predict_apart(self, X: Any) -> Array:
        if not self._has_centers:
            return super()._predict_apart(X)
        scores = super().decision_function(X)  # of ties scikit-learn's predict takes the last one
        codes = scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes.astype(np.intp)]

    @has("decision_function")
    def decision_function(self, X: Any) -> Array:
        """The score of each class by its binary model.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes), float64
        """
        if not self._is_shared():
            return super().decision_function(X)
        scores, backend = self._scores(X, "decision_function")
        return backend.move(scores[:, 0] if scores.shape[1] == 1 else scores)

    @has("predict_proba")
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes by their binary models, divided by their sum.

        Those of the models of this package never contradict `predict`.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes), float64
        """
        check_is_fitted(self)
        if self._is_shared():
            scores, backend = self._scores(X, "predict_proba")
        elif not self._has_centers:
            return super().predict_proba(X)
        else:
            scores = super().decision_function(X)
            backend = backend_of(scores)
            scores = scores[:, None] if scores.ndim == 1 else scores
        with backend_of(scores).current():
            factor = self.estimators_[0]._per_score
            of_classes = softmax if scores.shape[1] == 1 else one_vs_rest
            return backend.move(of_classes(scores, factor))
