"""Fits to all samples but some, without reading the others again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from ..arrays.context import Context, run_with_oom_retry
from ..statistics.base import Statistics
from ._statistics import StatisticsClassifier
from .labels import encode
from .validation import validated, work_backend


@dataclass(frozen=True)
class HeldOut:
    """The statistics of all samples, from which those of some can be taken away.

    Where sums of integers are exact, these are to the bit the statistics of the others.
    """

    model: StatisticsClassifier
    codes: np.ndarray
    classes: np.ndarray
    weight: np.ndarray | None
    statistics: Statistics

    @classmethod
    def of(cls, model: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> Self | None:
        """The statistics of X, y; None where sums are rounded, or are not what the model needs.

        Parameters
        ----------
        model : CenterClassifier
            Not changed.
        X : array or sparse matrix of shape (n, m)
        y : ndarray of shape (n,)
        weight : ndarray of shape (n,), or None
        """
        if not isinstance(model, StatisticsClassifier) or isinstance(model.class_weight, str):
            return None  # weights that balance the classes are others in each fold
        model = clone(model)
        model._check_parameters()
        checked, _ = validated(model, X)
        classes, codes = encode(y)

        def make(ctx: Context) -> Statistics | None:
            block, samples = model._enter(checked, codes, classes, weight, ctx)
            exact = block.has_implicit_zeros and samples.has_integer_weights
            if not exact or not block.holds_integers(ctx):
                return None
            return model._make_statistics(block, samples, ctx, mergeable=True)

        found = run_with_oom_retry(make, work_backend(model, checked), model.memory_budget)
        return None if found is None else cls(model, codes, classes, weight, found)

    def fit(self, X: Any, rows: np.ndarray) -> StatisticsClassifier | None:
        """The model fitted to all samples but ``rows``, whose data are X.

        None where it must be fitted to their data.
        """
        model, weight = clone(self.model), None if self.weight is None else self.weight[rows]
        checked, _ = validated(model, X)

        def take_away(ctx: Context) -> Statistics | None:
            block, samples = model._enter(checked, self.codes[rows], self.classes, weight, ctx)
            return self.statistics.without(block, samples, ctx)

        found = run_with_oom_retry(take_away, self.statistics.backend, model.memory_budget)
        if found is None or not all(found.count):
            return None
        found.classes = self.classes
        return model.fit_statistics(found)
