"""The coefficients of decisions that are linear in the features."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arrays.context import Context
from ..arrays.namespace import to_numpy
from ..arrays.typing import Array
from ..solvers.centers import Centers
from ..solvers.selection import Selection
from ._base import Classifier, read_only
from ._fitted import learned


class LinearClassifier(Classifier):
    """Coefficients and intercept of a model whose decision is a `LinearDecision`."""

    _linear = True

    def _wide_form(self) -> tuple[Array, Array]:
        """(coefficients of all features, constants)."""

        def widen(centers: Centers, selection: Selection, ctx: Context) -> tuple[Array, Array]:
            shift, coef, offset, _ = decision.form
            xp = ctx.backend.xp
            coef_ = self._widened(xp.permute_dims(coef, (1, 0)), ctx)
            intercept = offset - shift @ coef
            if self._fitted.met is not None:
                if coef_.shape[0] == 1:
                    coef_ = xp.concat([-coef_ / 2, coef_ / 2])
                    intercept = xp.concat([-intercept / 2, intercept / 2])
                coef_ = self._of_every_class(coef_, xp.zeros_like(coef_[0, :]))
                intercept = self._of_every_class(intercept, xp.zeros_like(intercept[0]) - math.inf)
            return read_only(coef_), read_only(intercept)

        decision: Any = self._decision()
        return self._cached("wide form", widen)

    def _widened(self, narrow: Array, ctx: Context) -> Array:
        """(q, m) from the (q, d) of the features that the form reads, with zeros for the others."""
        decision: Any = self._decision()
        xp, columns = ctx.backend.xp, to_numpy(decision.columns)
        source = np.zeros(self.n_features_in_, dtype=np.int64)
        source[columns] = np.arange(1, len(columns) + 1)
        wide = xp.concat([ctx.backend.zeros((narrow.shape[0], 1)), narrow], axis=1)
        return xp.take(wide, ctx.backend.asarray(source), axis=1)

    @learned
    def coef_(self) -> Array:
        """Coefficients of the decision, zero for features that it does not read."""
        return self._wide_form()[0]

    @learned
    def intercept_(self) -> Array:
        """Constants of the decision."""
        return self._wide_form()[1]
