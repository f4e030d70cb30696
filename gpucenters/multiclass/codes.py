"""Many classes by binary models: one a class, one a pair, or one a column of a code."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from sklearn import multiclass
from sklearn.metrics import pairwise_distances_argmin
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples, check_is_fitted

from .._docstrings import filled
from ..arrays.backend import Backend, backend_of
from ..arrays.context import Context
from ..arrays.namespace import is_numpy
from ..arrays.schedule import ranges
from ..arrays.typing import Array
from ..estimators.base import CenterClassifier
from ..estimators.fitted import FittedModel
from ..solvers.decisions import one_vs_rest, softmax
from ..statistics import Statistics
from .copies import has
from .decomposition import Decomposition, largest

# One binary problem for each class: it or not.


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
        with FittedModel(self._joint).backend.current():
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
            factor = FittedModel(self.estimators_[0]).per_score
            of_classes = softmax if scores.shape[1] == 1 else one_vs_rest
            return backend.move(of_classes(scores, factor))


# One binary problem for each pair of classes.


@filled
class OneVsOneClassifier(Decomposition, multiclass.OneVsOneClassifier):
    """One binary model for each pair of classes, of the samples of these two alone.

    `sklearn.multiclass.OneVsOneClassifier`, in one pass over X for a model that class statistics
    determine (every classifier of this package but l1 centers and GMEB). Other estimators, and
    models with a ``class_weight``, which is of each binary problem, are fitted to a part of X for
    each pair, by scikit-learn.

    Parameters
    ----------
    estimator : estimator
        The binary model.

    Attributes
    ----------
    estimators_ : list of n_classes * (n_classes - 1) / 2 estimators
        The binary models, with labels 0 and 1, of the pairs (0, 1), (0, 2), ..., (1, 2), ...
    n_classes_ : int
    pairwise_indices_ : None

    Notes
    -----
    Each binary model has sums of its own: all have K (K - 1) m numbers together, for K classes and
    m features. On what is equal to separate fits to the bit: see `OneVsRestClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from gpucenters import L2CenterClassifier
    >>> from gpucenters.multiclass import OneVsOneClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = OneVsOneClassifier(L2CenterClassifier(k=4, scale="std")).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.94
    """

    def __init__(self, estimator: Any, *, n_jobs: int | None = None) -> None:
        super().__init__(estimator, n_jobs=n_jobs)

    def _problems(self, statistics: Statistics) -> Iterator[Statistics]:
        for pair in itertools.combinations(range(statistics.shape[0]), 2):
            problem = statistics.of_classes(pair)
            problem.classes = None
            yield problem

    def _attributes(self, classes: np.ndarray) -> dict[str, Any]:
        return {"pairwise_indices_": None}

    def _votes(self, X: Any, method: str) -> tuple[Array, Backend]:
        """Votes for each class plus a third of a vote at most for its confidence: (n, K).

        The confidence is the sum s of the scores for the class, as s / (3 (|s| + 1)).
        """
        models, k = self.estimators_, len(self.classes_)
        pairs = list(itertools.combinations(range(k), 2))
        ctx = Context.of(FittedModel(self._joint).backend, self._joint.memory_budget)
        n = _num_samples(X)
        xp, votes, confidence = ctx.backend.xp, [0.0] * k, [0.0] * k
        for first, last in ranges(len(models), max(1, ctx.budget // (32 * max(n, 1)))):
            scores, backend = self._scores(X, method, models[first:last])
            with ctx.backend.current():
                for i, (a, b) in enumerate(pairs[first:last]):
                    score = scores[:, i]
                    wins = xp.astype(score > 0, xp.float64)
                    votes[a], votes[b] = votes[a] + (1 - wins), votes[b] + wins
                    confidence[a], confidence[b] = confidence[a] - score, confidence[b] + score
        with ctx.backend.current():
            found = [v + s / (3 * (xp.abs(s) + 1)) for v, s in zip(votes, confidence, strict=True)]
            return xp.permute_dims(xp.stack(found), (1, 0)), backend

    def _predict_codes(self, X: Any, method: str) -> tuple[Array, Backend]:
        votes, backend = self._votes(X, method)
        with FittedModel(self._joint).backend.current():
            return FittedModel(self._joint).backend.xp.argmax(votes, axis=1), backend

    @has("decision_function")
    def decision_function(self, X: Any) -> Array:
        """The votes for each class, and less than half a vote for the confidence in it.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes), float64
        """
        if not self._is_shared():
            return super().decision_function(X)
        votes, backend = self._votes(X, "decision_function")
        return backend.move(votes[:, 1] if votes.shape[1] == 2 else votes)


# Binary problems that the bits of random codes of the classes make.


@filled
class OutputCodeClassifier(Decomposition, multiclass.OutputCodeClassifier):
    """One binary model for each bit of random codes of the classes.

    `sklearn.multiclass.OutputCodeClassifier`, in one pass over X for a model that class statistics
    determine (every classifier of this package but l1 centers and GMEB): the sums of both sides of
    a bit follow from those of each class. Other estimators, and models with a ``class_weight``,
    which is of each binary problem, are fitted to X once for each bit, by scikit-learn. A sample
    has the class whose code is nearest to its scores.

    Parameters
    ----------
    estimator : estimator
        The binary model.
    code_size : float, default=1.5
        Bits of a code for each class: ``int(n_classes * code_size)`` binary models.
    random_state : int, RandomState instance or None, default=None
        Draws the codes, the same as scikit-learn's.

    Attributes
    ----------
    estimators_ : list of estimators
        The binary models, with labels -1 and 1. Of a bit that all classes share, a classifier whose
        score is the bit.
    code_book_ : ndarray of shape (n_classes, n_bits), float64
        The codes: -1 and 1.

    Notes
    -----
    On what is equal to separate fits to the bit: see `OneVsRestClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from gpucenters import L2CenterClassifier
    >>> from gpucenters.multiclass import OutputCodeClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = OutputCodeClassifier(L2CenterClassifier(scale="std"), code_size=2, random_state=10)
    >>> round(model.fit(X, y).score(X, y), 2)
    0.97
    """

    def __init__(
        self,
        estimator: Any,
        *,
        code_size: float = 1.5,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(estimator, code_size=code_size, random_state=random_state, n_jobs=n_jobs)

    _sides = (-1.0, 1.0)

    def _attributes(self, classes: np.ndarray) -> dict[str, Any]:
        bits = int(len(classes) * self.code_size)
        if bits == 0:
            raise ValueError(
                f"code_size={self.code_size} gives codes without a bit for {len(classes)} classes: "
                "use a larger one."
            )
        random = check_random_state(self.random_state).uniform(size=(len(classes), bits))
        return {"code_book_": np.where(random > 0.5, 1.0, -1.0)}

    def _problems(self, statistics: Statistics) -> Iterator[Statistics | int]:
        for bits in self.code_book_.T.astype(int):
            labels, sides = np.unique(bits, return_inverse=True)
            if len(labels) == 1:
                yield int(labels[0])
            else:
                yield statistics.merge_classes(sides.tolist(), labels)

    def _predict_codes(self, X: Any, method: str) -> tuple[Array, Backend]:
        scores, backend = self._scores(X, method)
        here = FittedModel(self._joint).backend
        with here.current():
            if is_numpy(here.xp):  # scikit-learn's own function, for its rounding
                return pairwise_distances_argmin(scores, self.code_book_), backend
            # Codes of -1 and 1 have one norm, so that the nearest has the largest product.
            return here.xp.argmax(scores @ here.asarray(self.code_book_.T), axis=1), backend
