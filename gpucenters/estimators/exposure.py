"""Methods of a model whose samples have an exposure each: handed in, or read off X."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from .._docstrings import filled
from ..arrays.context import Context
from ..arrays.typing import Array
from ..blocks import Block
from ..blocks.samples import Samples, check_weights
from ..solvers.data import exposed_samples, require_exposure, row_totals
from ..statistics.base import Statistics
from .base import CenterClassifier
from .from_statistics import StatisticsClassifier


@filled
class ExposedClassifier(StatisticsClassifier):
    """Base of such a model: its methods take ``exposure`` beside X.

    Each call works on a copy that holds the exposures of the rows of its X, so that they are
    nowhere kept, and calls of several threads do not meet.
    """

    exposure: Any
    _of_rows: Any = None  # the exposures that this call was given

    def _with_exposure(self, exposure: Any) -> Self:
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__, _of_rows=exposure)
        return new

    def _take_state(self, other: Self) -> Self:
        """Take the state of a copy, in one assignment."""
        self.__dict__ = {n: value for n, value in other.__dict__.items() if n != "_of_rows"}
        return self

    def _keeps_squares(self) -> bool:
        """Whether squares are summed, divided by the exposures."""
        raise NotImplementedError

    def _kind(self) -> str:
        """What the exposure of a row is in this call."""
        if self._of_rows is not None:
            return "given"
        return "unit" if self.exposure is None else "total"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.exposure is not None and not isinstance(self.exposure, str):
            raise ValueError(
                "exposure must be 'total' or None: hand numbers for each row to fit(X, y, "
                "exposure=...) and to the methods that predict."
            )
        if self.exposure not in ("total", None):
            raise ValueError(f"exposure={self.exposure!r} is not valid: use 'total' or None.")

    def _enter(
        self, X: Any, codes: np.ndarray, classes: np.ndarray, sample_weight: Any, ctx: Context
    ) -> tuple[Block, Samples]:
        block, samples = super()._enter(X, codes, classes, sample_weight, ctx)
        squares = self._keeps_squares()
        kind, given = self._kind(), self._of_rows
        return block, exposed_samples(block, samples, kind, given, ctx, squares=squares)

    def _row_exposure(self, kind: str, block: Block, ctx: Context) -> Array:
        """The exposures of rows to predict, (n,), by the kind that the model was fitted with."""
        if kind != "given" and self._of_rows is not None:
            raise ValueError(
                f"this {type(self).__name__} was fitted without exposure=, and so predicts without."
            )
        if kind == "total":
            return row_totals(block, ctx)
        n, backend = block.shape[0], block.backend
        ones = backend.zeros(n) + 1.0
        if kind == "unit":
            return ones
        if self._of_rows is None:
            raise ValueError(
                f"this {type(self).__name__} was fitted with exposure=: hand the exposures of "
                "these rows to this method too."
            )
        given = check_weights(self._of_rows, n, "exposure")
        if given is None:
            return ones
        exposure = backend.asarray(given)
        require_exposure(block, exposure, ctx)
        return exposure

    # --- the methods, with exposures -----------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None) -> Self:
        work = self._with_exposure(exposure)
        return self._take_state(StatisticsClassifier.fit(work, X, y, sample_weight))

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        exposure: Any = None,
    ) -> Self:
        work = self._with_exposure(exposure)
        return self._take_state(
            StatisticsClassifier.partial_fit(work, X, y, classes, sample_weight)
        )

    def _add_batch(
        self,
        X: Any,
        y: Any,
        known: np.ndarray,
        sample_weight: Any = None,
        exposure: Any = None,
    ) -> Self:
        # A copy that `partial_fit` has made holds the exposures already.
        if exposure is None:
            return super()._add_batch(X, y, known, sample_weight)
        work = self._with_exposure(exposure)
        return self._take_state(work._add_batch(X, y, known, sample_weight))

    def statistics(
        self,
        X: Any,
        y: Any,
        *,
        classes: Any = None,
        sample_weight: Any = None,
        nonzero: bool = False,
        exposure: Any = None,
    ) -> Statistics:
        work = self._with_exposure(exposure)
        return StatisticsClassifier.statistics(
            work, X, y, classes=classes, sample_weight=sample_weight, nonzero=nonzero
        )

    def decision_function(self, X: Any, exposure: Any = None) -> Array:
        return CenterClassifier.decision_function(self._with_exposure(exposure), X)

    def predict(self, X: Any, exposure: Any = None) -> Array:
        return CenterClassifier.predict(self._with_exposure(exposure), X)

    def predict_proba(self, X: Any, exposure: Any = None) -> Array:
        return CenterClassifier.predict_proba(self._with_exposure(exposure), X)

    def predict_log_proba(self, X: Any, exposure: Any = None) -> Array:
        return CenterClassifier.predict_log_proba(self._with_exposure(exposure), X)

    def score(self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None) -> float:
        return CenterClassifier.score(self._with_exposure(exposure), X, y, sample_weight)
