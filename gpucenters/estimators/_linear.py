"""Decisions that are linear in the features of the support."""

from __future__ import annotations

import numpy as np

from ..arrays.convert import Block
from ..arrays.typing import Array
from ._base import CenterClassifier, read_only


class LinearDecision(CenterClassifier):
    """Scores, coefficients and intercept of a model with a linear form (`_narrow_form`)."""

    _linear = True

    def _narrow_form(self) -> tuple[Array, Array, Array]:
        """(shift, slope, offset): the scores are ``(X[:, support] - shift) @ slope + offset``.

        Of shapes (d,), (d, q) and (q,), where q is 1 for two classes, else K.
        """
        raise NotImplementedError

    def _scores(self, block: Block) -> Array:
        shift, slope, offset = self._cached("narrow", self._narrow_form)
        return block.linear_scores(self._selection().support, shift, slope) + offset

    def _linear_form(self) -> tuple[Array, Array]:
        shift, slope, offset = self._cached("narrow", self._narrow_form)
        place = self._centers().place
        xp = place.xp
        source = np.zeros(self.n_features_in_, dtype=np.int64)
        source[self.support_] = np.arange(1, len(self.support_) + 1)
        narrow = xp.permute_dims(slope, (1, 0))
        zero = xp.zeros_like(narrow[:, :1])
        coef = xp.take(xp.concat([zero, narrow], axis=1), place.asarray(source), axis=1)
        return read_only(coef), read_only(offset - shift @ slope)

    @property
    def coef_(self) -> Array:
        """Coefficients of the decision, zero outside the support."""
        return self._cached("linear", self._linear_form)[0]

    @property
    def intercept_(self) -> Array:
        """Constants of the decision."""
        return self._cached("linear", self._linear_form)[1]
