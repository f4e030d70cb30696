"""One binary problem for each pair of classes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn import multiclass
from sklearn.utils.validation import _num_samples

from .._docstrings import filled
from ..arrays.backend import Backend
from ..arrays.context import Context
from ..arrays.grid import ranges
from ..arrays.typing import Array
from ..statistics import Statistics
from ._copies import has
from ._decomposition import Decomposition


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
        ctx = Context.of(self._joint._ready().backend, self._joint.memory_budget)
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
        with self._joint._fitted.backend.current():
            return self._joint._fitted.backend.xp.argmax(votes, axis=1), backend

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
