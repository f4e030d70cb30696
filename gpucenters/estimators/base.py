"""The base of the models that are solved for every k at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.feature_selection import SelectorMixin

from ..arrays.backend import backend_of
from ..arrays.context import Context, run_with_oom_retry
from ..arrays.namespace import to_numpy
from ..arrays.typing import Array
from ..blocks import Block
from ..blocks.convert import as_block, put_columns, take_columns
from ..solvers.decisions import log_softmax, softmax
from ..solvers.null_gains import NullGain
from ..solvers.selection import check_k
from ..solvers.user_input import log_priors
from .fitted import FittedModel, formed, learned, read_only
from .model import Classifier
from .validation import check_backend, check_container, check_X

__all__ = ["CenterClassifier", "Classifier", "check_center_classifier", "read_only"]
if TYPE_CHECKING:
    _Classifier = Classifier
else:
    _Classifier = object


class CenterClassifier(Classifier):
    """Base of the center classifiers, solved for every k at once, with class probabilities."""

    k: Any
    _per_score: float  # scores times it are log densities, up to a term that the classes share

    def _check_parameters(self) -> None:
        check_k(self.k)
        super()._check_parameters()

    def _null_gain(self, block: Block, ctx: Context) -> NullGain:
        """The gains of this fitted model under permuted labels, for `permutation_gains`."""
        raise NotImplementedError

    @learned
    def ranking_(self) -> np.ndarray:
        """The selected features by descending score; int64 of shape (k,), on the host."""
        return read_only(to_numpy(FittedModel(self).selection.ranking))

    @formed
    def scores_(self, fitted: FittedModel, ctx: Context) -> Array:
        """The gain of each feature; float64 of shape (n_features,), on the model's device."""
        return fitted.centers.feature_scores(fitted.selection, ctx)

    @learned
    def scale_(self) -> Array | None:
        """What each feature is divided by; float64 of shape (n_features,), or None."""
        return read_only(getattr(FittedModel(self).centers, "scale", None))

    @formed
    def centers_(self, fitted: FittedModel, ctx: Context) -> Array:
        """Class centers on the support; float64 of shape (n_classes, k), in the units of X."""
        return fitted.of_every_class(*fitted.centers.centers_at(fitted.selection.support))

    @formed
    def objective_(self, fitted: FittedModel, ctx: Context) -> float:
        """The minimum of the objective for this k, in scaled units."""
        return fitted.centers.objective(fitted.selection.support, ctx)

    def with_k(self, k: int | float | str) -> Self:
        """A fitted copy of this model at another k, without the data.

        Parameters
        ----------
        k : int, float or "all"

        Returns
        -------
        model
            Equal to one fitted with this k on the same data.
        """
        fitted = FittedModel(self)
        centers = fitted.centers
        selection = fitted.run(lambda ctx: centers.select(k, ctx))
        new = fitted.copy(params=fitted.state.params | {"k": k}, selection=selection)
        new.k = k
        return new

    # --- predicting ----------------------------------------------------------------------------

    def _priors(self, params: dict[str, Any], weight: tuple[float, ...]) -> list[float]:
        return log_priors(params.get("priors", "uniform"), weight)

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
        fitted = FittedModel(self)
        scores, backend = fitted.scores(X, method, relative=True)
        with fitted.backend.current():
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


class FeatureImportances:
    """For models without ``coef_``, by which meta-estimators would rank features."""

    scores_: Any

    @learned
    def feature_importances_(self) -> np.ndarray:
        """The gain of each feature, on the host: what meta-estimators rank features by."""
        return read_only(to_numpy(self.scores_))


# The coefficients of decisions that are linear in the features.


class LinearClassifier(Classifier):
    """Coefficients and intercept of a model whose decision is a `LinearDecision`."""

    _linear = True

    def _widened(self, narrow: Array, fitted: FittedModel, ctx: Context) -> Array:
        """(q, m) from the (q, d) of the features that the form reads, with zeros for the others."""
        decision: Any = fitted.decision()
        xp, columns = ctx.backend.xp, to_numpy(decision.columns)
        source = np.zeros(self.n_features_in_, dtype=np.int64)
        source[columns] = np.arange(1, len(columns) + 1)
        wide = xp.concat([ctx.backend.zeros((narrow.shape[0], 1)), narrow], axis=1)
        return xp.take(wide, ctx.backend.asarray(source), axis=1)

    @formed
    def coef_(self, fitted: FittedModel, ctx: Context) -> Array:
        """Coefficients of the decision, zero for features that it does not read."""
        decision: Any = fitted.decision()
        narrow = ctx.backend.xp.permute_dims(decision.form.coef, (1, 0))
        return fitted.decided_by_class(self._widened(narrow, fitted, ctx), 0.0)

    @formed
    def intercept_(self, fitted: FittedModel, ctx: Context) -> Array:
        """Constants of the decision."""
        decision: Any = fitted.decision()
        shift, coef, offset, *_ = decision.form
        return fitted.decided_by_class(offset - shift @ coef, -math.inf)


# The methods of a classifier that is a feature selector too.


class FeatureSelector(SelectorMixin, _Classifier):
    """For a `Classifier` whose support numbers features of X. Comes first among the bases."""

    def _get_support_mask(self) -> np.ndarray:
        support = FittedModel(self).support
        mask = np.zeros(self.n_features_in_, dtype=np.bool_)
        mask[support] = True
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
        support = FittedModel(self).selection.support
        checked = check_X(self, X, reset=False, in_parts=True)
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
        support, checked = FittedModel(self).selection.support, check_container(X, self)
        if checked.shape[1] != support.shape[0]:
            raise ValueError(
                f"X has {checked.shape[1]} features, but {type(self).__name__} has selected "
                f"{support.shape[0]}: X has a different shape than during fitting."
            )

        def widen(ctx: Context) -> Any:
            block = as_block(checked, ctx.backend, summed=False, checked=True)
            block.check_finite(False, ctx)
            return put_columns(checked, support, self.n_features_in_)

        return run_with_oom_retry(widen, backend_of(checked), self.memory_budget)
