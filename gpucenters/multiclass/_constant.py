"""The model of a binary problem in which all classes are on one side."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import _num_samples


class ConstantClassifier(ClassifierMixin, BaseEstimator):
    """A classifier of one class, whose score is its label: fitted as it is made.

    Parameters
    ----------
    label : int
    """

    def __init__(self, label: int) -> None:
        self.label = label

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def classes_(self) -> np.ndarray:
        """The one label."""
        return np.asarray([self.label])

    def decision_function(self, X: Any) -> np.ndarray:
        """The label as a score: (n_samples,)."""
        return np.repeat(self.classes_, _num_samples(X))

    predict = decision_function
