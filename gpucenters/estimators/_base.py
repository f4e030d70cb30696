"""The bases of all classifiers: predicting with a model that is fitted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from ..arrays.backend import Backend
from ..arrays.context import Context
from ..arrays.namespace import array_namespace
from ..arrays.typing import Array
from ..blocks.block import Block
from ..blocks.convert import as_block
from ._model import CenterModel, Model, read_only
from .labels import accuracy, decode
from .probabilities import log_softmax, softmax
from .validation import check_backend, check_X, output_backend

__all__ = ["CenterClassifier", "Classifier", "check_center_classifier", "read_only"]


class Classifier(ClassifierMixin, Model):
    """Base of all classifiers: a subclass scores (`_scores`)."""

    _linear = False  # whether scores are a product with X, for which duplicates need not be summed

    def _scores(self, block: Block, ctx: Context, *, relative: bool) -> Array:
        """(n, K) scores, larger is better; (n, 1) for two classes: class 1 less class 0.

        ``relative``: a row of scores may have its largest score subtracted.
        """
        raise NotImplementedError

    @staticmethod
    def _binary_scores(models: Sequence[Any], block: Block, ctx: Context) -> list[Array]:
        """Scores, (n,), of each of several models of this class and of two classes."""
        return [model._scores(block, ctx, relative=False)[:, 0] for model in models]

    def _prepare(self) -> None:
        """Form what scores need outside of the work on X, which may be done in several tries."""
        self._selection()

    def _score_rows(self, X: Any, method: str, *, relative: bool = False) -> tuple[Array, Backend]:
        """Scores of the rows of X where the model lives, and the backend where outputs belong."""
        self._prepare()
        scores, backend = self._finite_rows(
            X,
            method,
            partial(self._scores, relative=relative),
            "the scores of row {row} of X overflow float64: its values are too far from the "
            "centers. Rescale X, at fit as well.",
        )
        if self._fitted.met is None:
            return scores, backend
        with self._fitted.backend.current():
            xp = array_namespace(scores)
            by_class = xp.permute_dims(scores, (1, 0))
            if scores.shape[1] == 1:
                by_class = xp.concat([-by_class / 2, by_class / 2])
            never = xp.full_like(by_class[0, :], -np.inf)
            return xp.permute_dims(self._of_every_class(by_class, never), (1, 0)), backend

    def _finite_rows(
        self, X: Any, method: str, task: Callable[[Block, Context], Array], overflow: str
    ) -> tuple[Array, Backend]:
        """``task`` of X as a block, checked to be finite, and the backend where outputs belong.

        ``overflow`` is the message where the values of X are finite and those of a row are not.
        """
        self._ready()
        checked = check_X(self, X, reset=False, in_parts=True)
        check_backend(self, checked, method)

        def work(ctx: Context) -> Array:
            xp = ctx.backend.xp
            block = as_block(checked, ctx.backend, summed=not self._linear, checked=True)
            block = self._read(block)
            found = task(block, ctx)
            if not bool(xp.all(xp.isfinite(found))):
                block.check_finite(False, ctx)
                row = int(xp.nonzero(~xp.all(xp.isfinite(found), axis=1))[0][0])
                raise ValueError(overflow.format(row=row))
            return found

        return self._run(work), output_backend(checked)

    def decision_function(self, X: Any) -> Array:
        """Scores of the samples.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Of dense X only the selected features are read: what is wrong elsewhere is not seen.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes), float64
            For two classes, positive means ``classes_[1]``; for more, the largest score wins. In
            the library and on the device of X.
        """
        scores, backend = self._score_rows(X, "decision_function")
        return backend.move(scores[:, 0] if scores.shape[1] == 1 else scores)

    def _predict_codes(self, X: Any, method: str) -> tuple[Array, Backend]:
        scores, backend = self._score_rows(X, method)
        xp = array_namespace(scores)
        with self._fitted.backend.current():
            if scores.shape[1] == 1:
                return xp.astype(scores[:, 0] > 0, xp.int64), backend
            return xp.argmax(scores, axis=1), backend

    def predict(self, X: Any) -> Array:
        """The class of each sample; ties go to the first class.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Of dense X only the selected features are read: what is wrong elsewhere is not seen.

        Returns
        -------
        array of shape (n_samples,)
            In the library and on the device of X; string labels are always NumPy.
        """
        codes, backend = self._predict_codes(X, "predict")
        return decode(codes, self.classes_, backend)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of `predict` on the given samples.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels that the model does not know are misses.
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        float

        Raises
        ------
        TypeError, ValueError
            As scikit-learn's ``accuracy_score``: for labels that are missing, continuous, or
            strings where the classes are numbers.
        """
        codes = self._predict_codes(X, "score")[0]
        return accuracy(codes, y, self.classes_, type(self).__name__, sample_weight)


class CenterClassifier(Classifier, CenterModel):
    """Base of the center classifiers, which have class probabilities, and a score for every k."""

    _per_score: float  # scores times it are log densities, up to a term that the classes share

    def _priors(self, params: dict[str, Any], weight: tuple[float, ...]) -> list[float]:
        """Log priors of classes of these weights, -inf for a weight of 0; zeros for no priors.

        ``params`` are the parameters of the fit, or those of the model.
        """
        return [0.0] * len(weight)

    def _log_prior(self) -> list[float]:
        """Log priors of all classes; -inf for those not met."""
        return self._priors(self._ready().params, self._class_weight())

    def _log_prior_of_met(self) -> list[float]:
        return [p for p in self._log_prior() if p > -math.inf]

    def _class_weight(self) -> tuple[float, ...]:
        """Weights of all classes; 0 for those not met."""
        of_met, met = self._centers().class_weight, self._fitted.met
        if met is None:
            return of_met
        weight = dict(zip(met, of_met, strict=True))
        return tuple(weight.get(c, 0.0) for c in range(len(self.classes_)))

    def _scores_of_supports(
        self, supports: list[Array], block: Block, ctx: Context
    ) -> Array | None:
        """Scores with each support, (q, S, n), as `_scores` gives them; None for one at a time."""
        return None

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities of the samples; they never contradict `predict`.

        Those of l2 centers are of Gaussians of unit (or ``scale_``) variance at the centers; those
        of l1 centers of Laplace densities of unit scale (or of ``scale_``). Neither is calibrated:
        see `sklearn.calibration.CalibratedClassifierCV`.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes), float64
        """
        return self._probabilities(X, "predict_proba", softmax)

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of class probabilities; finite where the probability itself underflows.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes), float64
        """
        return self._probabilities(X, "predict_log_proba", log_softmax)

    def _probabilities(self, X: Any, method: str, function: Callable[..., Array]) -> Array:
        scores, backend = self._score_rows(X, method, relative=True)
        with self._fitted.backend.current():
            return backend.move(function(scores, self._per_score))


def check_center_classifier(estimator: Any, caller: str, instead: str = "") -> None:
    """Raise a TypeError unless the estimator has class centers for every number of features.

    Parameters
    ----------
    estimator : object
    caller : str
    instead : str
        What to do with an estimator of another package.
    """
    if isinstance(estimator, CenterClassifier):
        return
    name = type(estimator).__name__
    if type(estimator).__module__.partition(".")[0] == __name__.partition(".")[0]:
        raise TypeError(
            f"{caller} takes a model of gpucenters with class centers for every number of "
            f"features, and {name} has none."
        )
    raise TypeError(f"{caller} takes a model of gpucenters, got {name}.{instead}")
