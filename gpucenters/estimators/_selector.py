"""The part of a classifier that is a feature selector too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.feature_selection import SelectorMixin

from ..arrays.convert import as_block, put_columns, take_columns
from ..arrays.devices import Place, place_of
from ..arrays.namespace import array_namespace, is_numpy, is_sparse
from ..arrays.work import Work, carry_out
from .validation import check_place, check_X

if TYPE_CHECKING:
    from ._base import CenterClassifier as _Classifier
else:
    _Classifier = object


def _check_finite(X: Any, place: Place) -> None:
    as_block(X, place, summed=False, checked=True).check_finite(squares=False)


class FeatureSelector(SelectorMixin, _Classifier):
    """Beside a `CenterClassifier` whose support numbers features of X: those are what it selects.

    Named before it among the bases.
    """

    def _get_support_mask(self) -> np.ndarray:
        self._ready()
        mask = np.zeros(self.n_features_in_, dtype=np.bool_)
        mask[self.support_] = True
        return mask

    def transform(self, X: Any) -> Any:
        """The selected features of X, ascending.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        array or sparse matrix of shape (n_samples, k)
            In X's library, device, layout and type (or as `set_output` says).
        """
        self._ready()
        if not is_sparse(X) and is_numpy(array_namespace(X)):
            check_place(self, X, "transform")
            try:
                return super().transform(X)
            except ValueError:
                _check_finite(check_X(self, X, reset=False), place_of(X))  # says where
                raise
        checked, support = check_X(self, X, reset=False), self._selection().support
        check_place(self, checked, "transform")

        def choose(place: Place, work: Work) -> Any:
            _check_finite(checked, place)
            return take_columns(checked, support, place)

        return carry_out(choose, place_of(checked), self.memory_budget)

    def inverse_transform(self, X: Any) -> Any:
        """X with columns of zeros where `transform` left features out.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n_samples, k)

        Returns
        -------
        array or sparse matrix of shape (n_samples, n_features)
        """
        self._ready()
        if is_numpy(array_namespace(X)):
            return super().inverse_transform(X)
        if X.ndim != 2 or X.shape[1] != len(self.support_):
            raise ValueError("X has a different shape than during fitting.")
        with place_of(X).current():
            return put_columns(X, self._selection().support, self.n_features_in_)
