"""The part of a classifier that is a feature selector too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.feature_selection import SelectorMixin

from ..arrays.convert import as_block, put_columns, take_columns
from ..arrays.devices import place_of
from ..arrays.namespace import array_namespace, is_numpy, is_sparse
from .validation import check_place, check_X

if TYPE_CHECKING:
    from ._base import CenterClassifier as _Classifier
else:
    _Classifier = object


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
                self._check_finite(check_X(self, X, reset=False))  # says which feature and row
                raise
        checked = check_X(self, X, reset=False)
        check_place(self, checked, "transform")
        with place_of(checked).current():
            self._check_finite(checked)
            return take_columns(checked, place_of(checked).move(self._selection().support))

    @staticmethod
    def _check_finite(X: Any) -> None:
        as_block(X, place_of(X), summed=False, checked=True).check_finite(squares=False)

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
