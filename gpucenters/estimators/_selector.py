"""The methods of a classifier that is a feature selector too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.feature_selection import SelectorMixin

from ..arrays.backend import backend_of
from ..arrays.context import Context, run_with_oom_retry
from ..arrays.namespace import array_namespace, is_numpy, is_sparse
from ..blocks.convert import as_block, put_columns, take_columns
from .validation import check_backend, check_X

if TYPE_CHECKING:
    from ._base import CenterClassifier as _Classifier
else:
    _Classifier = object


class FeatureSelector(SelectorMixin, _Classifier):
    """For a `CenterClassifier` whose support numbers features of X. Comes first among the bases."""

    def _get_support_mask(self) -> np.ndarray:
        self._ready()
        mask = np.zeros(self.n_features_in_, dtype=np.bool_)
        mask[self._support()] = True
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
            check_backend(self, X, "transform")
            try:
                return super().transform(X)
            except ValueError:
                checked = check_X(self, X, reset=False)
                ctx = Context.of(backend_of(checked))
                block = as_block(checked, ctx.backend, summed=False, checked=True)
                block.check_finite(False, ctx)  # says where
                raise
        checked, support = check_X(self, X, reset=False), self._selection().support
        check_backend(self, checked, "transform")

        def select(ctx: Context) -> Any:
            block = as_block(checked, ctx.backend, summed=False, checked=True)
            block.check_finite(False, ctx)
            return take_columns(checked, support, ctx)

        return run_with_oom_retry(select, backend_of(checked), self.memory_budget)

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
        if X.ndim != 2 or X.shape[1] != len(self._support()):
            raise ValueError("X has a different shape than during fitting.")
        with backend_of(X).current():
            return put_columns(X, self._selection().support, self.n_features_in_)
