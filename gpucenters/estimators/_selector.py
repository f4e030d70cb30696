"""The methods of a classifier that is a feature selector too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.feature_selection import SelectorMixin

from ..arrays.backend import backend_of
from ..arrays.context import Context, run_with_oom_retry
from ..blocks.convert import as_block, put_columns, take_columns
from .validation import check_backend, check_container, check_X

if TYPE_CHECKING:
    from ._base import Classifier as _Classifier
else:
    _Classifier = object


class FeatureSelector(SelectorMixin, _Classifier):
    """For a `Classifier` whose support numbers features of X. Comes first among the bases."""

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
            In X's library, device, layout and type (or as ``set_output`` says).
        """
        support, checked = self._selection().support, check_X(self, X, reset=False, in_parts=True)
        check_backend(self, checked, "transform")

        def select(ctx: Context) -> Any:
            block = as_block(checked, ctx.backend, summed=False, checked=True)
            block.check_finite(False, ctx)
            # A data frame may stay one, with the types of its columns.
            return None if hasattr(X, "iloc") else take_columns(checked, support, ctx)

        chosen = run_with_oom_retry(select, backend_of(checked), self.memory_budget)
        return super().transform(X) if chosen is None else chosen

    def inverse_transform(self, X: Any) -> Any:
        """X with columns of zeros where `transform` left features out.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n_samples, k)

        Returns
        -------
        array or sparse matrix of shape (n_samples, n_features)
        """
        support, checked = self._selection().support, check_container(X, self)
        if checked.shape[1] != len(self._support()):
            raise ValueError(
                f"X has {checked.shape[1]} features, but {type(self).__name__} has selected "
                f"{len(self._support())}: X has a different shape than during fitting."
            )

        def widen(ctx: Context) -> Any:
            block = as_block(checked, ctx.backend, summed=False, checked=True)
            block.check_finite(False, ctx)
            return put_columns(checked, support, self.n_features_in_)

        return run_with_oom_retry(widen, backend_of(checked), self.memory_budget)
