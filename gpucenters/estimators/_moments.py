"""Models that class moments determine: they can be fitted in batches."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError

from ..arrays.convert import Block
from ..arrays.devices import Place
from ..arrays.typing import Array
from ..arrays.work import Work, carry_out
from ..solvers.centers import Centers
from ..solvers.class_sums import ClassSums
from ._base import CenterClassifier, Fitted, read_only
from .labels import encode, encode_against, host_labels
from .probabilities import log_softmax, softmax
from .validation import check_place, check_X, keeping_on_error, work_place


class MomentClassifier(CenterClassifier):
    """Base of the models that can be fitted in batches.

    A subclass makes empty moments (`_empty_moments`), solves from moments (`_solve_from`), says
    which parameters a solution depends on (`_params`) and checks those that a stream must keep
    (`_check_streaming`). Its scores times ``_per_score`` are log densities, up to a term that the
    classes share.
    """

    _per_score = 0.5

    def _params(self) -> dict[str, Any]:
        raise NotImplementedError

    def _check_streaming(self, n_classes: int, params: dict[str, Any] | None) -> None:
        """Raise for parameters that do not fit the classes, or ``params`` of the last call."""

    def _empty_moments(self, block: Block, n_classes: int, work: Work) -> ClassSums:
        raise NotImplementedError

    def _solve_from(self, moments: ClassSums, params: dict[str, Any]) -> Centers:
        raise NotImplementedError

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add a batch of samples: the moments are kept, never the data (Remark 5 of the paper).

        Any split of the rows gives the model that `fit` gives on all of them, to the bit where the
        sums are exact. A call that fails leaves the model as it was. Predicting before each class
        was met raises a NotFittedError that names those missing.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels among ``classes``.
        classes : array of shape (n_classes,)
            All labels that will ever come; needed in the first call, optional later.
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        self
        """
        first = not hasattr(self, "_fitted")
        self._check_parameters()
        known = self._known_classes(classes, first)
        self._check_streaming(len(known), None if first else self._fitted.params)
        kept = ("n_features_in_", "feature_names_in_") if first else ()
        with keeping_on_error(self, *kept):
            checked = check_X(self, X, reset=first)
            codes = encode_against(host_labels(y, type(self).__name__, checked.shape[0]), known)
            if not first:
                check_place(self, checked, "partial_fit")
            place = work_place(self, checked) if first else self._fitted.place

            def add(place: Place, work: Work) -> ClassSums:
                block, groups = self._enter(checked, codes, known, sample_weight, place)
                if first:
                    moments = self._empty_moments(block, len(known), work)
                else:
                    moments = self._fitted.own_moments().to(place)
                return moments.add_batch(block, groups, work)

            moments = carry_out(add, place, self.memory_budget, verbose=self.verbose)
        self.classes_, self._fitted = read_only(known), Fitted(place, None, self._params(), moments)
        return self

    def _known_classes(self, classes: Any, first: bool) -> np.ndarray:
        if classes is None:
            if first:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            return self.classes_
        if isinstance(classes, set | frozenset):
            classes = list(classes)
        given, _ = encode(np.asarray(classes).ravel())
        if first and len(given) < 2:
            raise ValueError(f"classes must name at least two classes, got {given.tolist()}.")
        if not first and not np.array_equal(given, self.classes_):
            raise ValueError(
                f"classes={given.tolist()} is not the same as on the last call to partial_fit: "
                f"{self.classes_.tolist()}."
            )
        return given

    def _solve_moments(self, fitted: Fitted) -> Centers:
        assert fitted.moments is not None
        missing = [
            label
            for label, count in zip(self.classes_.tolist(), fitted.moments.count, strict=True)
            if count == 0
        ]
        if missing:
            raise NotFittedError(
                f"this {type(self).__name__} has seen no sample of class "
                f"{', '.join(map(repr, missing))} yet: call partial_fit with some first."
            )
        moments = fitted.moments

        def solve(place: Place, work: Work) -> Centers:
            return self._solve_from(moments.to(place), fitted.params)

        return carry_out(solve, fitted.place, self.memory_budget)

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities of the samples; they never contradict `predict`.

        Those of center models are of Gaussians of unit (or ``scale_``) variance at the centers.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes), float64
        """
        scores, place = self._score_rows(X, "predict_proba")
        with self._fitted.place.current():
            return place.move(softmax(scores, self._per_score))

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of class probabilities; finite where the probability itself underflows.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes), float64
        """
        scores, place = self._score_rows(X, "predict_log_proba")
        with self._fitted.place.current():
            return place.move(log_softmax(scores, self._per_score))
