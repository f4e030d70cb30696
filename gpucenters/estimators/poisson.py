"""Sparse Poisson naive Bayes with scikit-learn's face."""

from __future__ import annotations

from contextvars import ContextVar, copy_context
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np

from .._docstrings import filled
from ..arrays.backend import Backend
from ..arrays.context import Context
from ..arrays.functions import chi2_tail, f_tail
from ..arrays.typing import Array
from ..blocks import Block
from ..blocks.samples import Samples, check_weights
from ..solvers.blocked import PoissonBlocks
from ..solvers.decisions import Decision
from ..solvers.null_gains import NullGain, poisson_null_gain
from ..solvers.poisson import (
    PoissonCenters,
    check_poisson_scale,
    dispersion_divisor,
    poisson_ratio,
    solve_poisson,
)
from ..solvers.user_input import check_alpha, exposed_samples, require_exposure, row_totals
from ..statistics.base import Statistics
from ..statistics.class_sums import ExposedSums
from ..statistics.recipe import Recipe
from .base import FeatureImportances
from .counts import LikelihoodRatioTests, NonNegativeCounts
from .fitted import FittedModel, formed

#: The exposures that the call of a method was given.
_GIVEN: ContextVar[Any] = ContextVar("exposure", default=None)


def _called(exposure: Any, method: Any, *args: Any, **kwargs: Any) -> Any:
    """A method called in a context of its own, which alone has the exposures.

    They are nowhere kept, whatever interrupts the call, and calls in several threads do not meet.
    """
    context = copy_context()
    context.run(_GIVEN.set, exposure)
    return context.run(method, *args, **kwargs)


def _row_exposure(name: str, kind: str, block: Block, ctx: Context) -> Array:
    """The exposures of rows to predict, (n,), by the kind that the model was fitted with."""
    given, n, backend = _GIVEN.get(), block.shape[0], block.backend
    if given is not None and kind != "given":
        raise ValueError(f"this {name} was fitted without exposure=, and so predicts without.")
    if given is None and kind == "given":
        raise ValueError(
            f"this {name} was fitted with exposure=: hand the exposures of "
            "these rows to this method too."
        )
    if kind == "total":
        return row_totals(block, ctx)
    given = check_weights(given, n, "exposure")
    if given is None:
        return backend.zeros(n) + 1.0
    exposure = backend.asarray(given)
    require_exposure(block, exposure, ctx)
    return exposure


def _exposed(decision: Any, name: str, kind: str) -> Decision:
    """A decision on the rows of each call: the exposures are nowhere kept."""
    return replace(decision, exposure=partial(_row_exposure, name, kind))


@filled
class SparsePoissonNB(FeatureImportances, NonNegativeCounts, LikelihoodRatioTests):
    """Sparse Poisson naive Bayes classifier and feature selector, for counts.

    The counts of a sample are Poisson with the mean of its exposure times a rate, which may differ
    between classes in k features only: the k for which the likelihood is provably largest, for any
    number of classes. One pass over X solves the problem for every k at once: see `with_k`. With
    the row totals as exposures it is the multinomial model with fixed shares of the classes: with
    ``k="all"`` and little smoothing it is scikit-learn's MultinomialNB.

    Parameters
    ----------
    alpha : float, default=1.0
        Smoothing: this many events are added to each class where as many are expected; below 1e-10
        it counts as 1e-10. Features of equal rates and features never seen have no gain.
    exposure : {"total", None}, default="total"
        What the counts of a sample are counted over: the sum of the row over all features (the
        length of a document, the size of a library), or 1. Other exposures are handed as
        ``exposure=`` to `fit`, `partial_fit` and `statistics`, and then to the methods that predict
        too (scikit-learn's metadata routing: ``set_fit_request(exposure=True)``).
    scale : {None, "dispersion"}, default=None
        "dispersion": divide the gain and the scores of each feature by its variance within the
        classes relative to Poisson's, where that is above 1: for counts that come in bursts.

    Attributes
    ----------
    scores_ : array of shape (n_features,), float64
        Gain of each feature: what its own rates for the classes add to the log-likelihood, divided
        by the dispersion. Exactly zero where these are equal.
    pvalues_ : ndarray of shape (n_features,), float64
        Of likelihood-ratio tests of twice the gain without smoothing: chi-squared with n_classes -
        1 degrees of freedom; with a dispersion by the F distribution. Asymptotic: wrong for rare
        features, and for sample weights that are no counts.
    centers_ : array of shape (n_classes, k), float64
        Rates of the features of the support, for a unit of exposure.
    scale_ : array of shape (n_features,), float64, or None
        Dispersions, at least 1.
    objective_ : float
        Negative log-likelihood of the counts and their prior, up to terms that no rate changes.
    class_exposure_ : array of shape (n_classes,), float64
        Weighted sums of the exposures of each class.
    feature_count_ : array of shape (n_classes, n_features), float64
        Class sums.

    References
    ----------
    .. [1] D. Witten, "Classification and clustering of sequencing data using a Poisson model",
       Annals of Applied Statistics 5(4), 2011.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from gpucenters import SparsePoissonNB
    >>> texts = ["fine film", "fine and moving", "dull film", "dull and long"]
    >>> words = CountVectorizer().fit(texts)
    >>> model = SparsePoissonNB(k=2).fit(words.transform(texts), [1, 1, 0, 0])
    >>> words.get_feature_names_out()[model.support_].tolist()
    ['dull', 'fine']
    >>> model.predict(words.transform(["a fine and long film"])).tolist()
    [1]
    """

    def __init__(
        self,
        k: int | float | str = "all",
        *,
        alpha: float = 1.0,
        exposure: str | None = "total",
        scale: str | None = None,
        fit_prior: bool = True,
        class_prior: Any = None,
        class_weight: Any = None,
        device: str | None = None,
        memory_budget: int | str | None = None,
        verbose: bool = False,
    ) -> None:
        self.k = k
        self.alpha = alpha
        self.exposure = exposure
        self.scale = scale
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.class_weight = class_weight
        self.device = device
        self.memory_budget = memory_budget
        self.verbose = verbose

    _solution_params = (*NonNegativeCounts._solution_params, "scale", "exposure")
    _kept_params = ("scale", "exposure")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_poisson_scale(self.scale)
        if self.exposure is not None and not isinstance(self.exposure, str):
            raise ValueError(
                "exposure must be 'total' or None: hand numbers for each row to fit(X, y, "
                "exposure=...) and to the methods that predict."
            )
        if self.exposure not in ("total", None):
            raise ValueError(f"exposure={self.exposure!r} is not valid: use 'total' or None.")

    # --- exposures -----------------------------------------------------------------------------

    def _kind(self) -> str:
        """What the exposure of a row is in this call."""
        if _GIVEN.get() is not None:
            return "given"
        return "unit" if self.exposure is None else "total"

    def _enter(
        self, X: Any, codes: np.ndarray, classes: np.ndarray, sample_weight: Any, ctx: Context
    ) -> tuple[Block, Samples]:
        block, samples = super()._enter(X, codes, classes, sample_weight, ctx)
        kind, given, squares = self._kind(), _GIVEN.get(), self.scale is not None
        return block, exposed_samples(block, samples, kind, given, ctx, squares=squares)

    # --- solving -------------------------------------------------------------------------------

    def _recipe(self) -> Recipe:
        squares = self.scale is not None
        return Recipe(
            "exposed sums", self._value_transform(), per_feature=squares, exposure=self._kind()
        )

    def _check_streaming(self, params: dict[str, Any]) -> None:
        super()._check_streaming(params)
        before = FittedModel(self).statistics("partial_fit").recipe.exposure == "given"
        if before != (self._kind() == "given"):
            raise ValueError("exposure= must be handed to each call of partial_fit, or to none.")

    def _solve_from(
        self, statistics: ExposedSums, params: dict[str, Any], ctx: Context
    ) -> PoissonCenters:
        scaled = params["scale"] is not None
        return solve_poisson(statistics, ctx, check_alpha(params["alpha"]), scaled=scaled)

    def _null_gain(self, block: Block, ctx: Context) -> NullGain:
        kind = self._kind()
        return poisson_null_gain(block, check_alpha(self.alpha), kind, self.scale, ctx)

    def _decision(self, fitted: FittedModel) -> Decision:
        kind = fitted.located()[0].kind
        return _exposed(super()._decision(fitted), type(self).__name__, kind)

    def _log_likelihood(self, fitted: Any, block: Block, ctx: Context) -> Array:
        form = fitted.centers.likelihood_form(fitted.selection.support)
        decision = _exposed(form, type(self).__name__, fitted.centers.kind)
        return decision.scores(block, ctx, relative=False)

    def _likelihood_ratio(self, statistics: ExposedSums, ctx: Context) -> Array:
        return poisson_ratio(statistics, ctx)

    def _within_blocks(self, backend: Backend, n_classes: int, n_features: int) -> PoissonBlocks:
        alpha, scaled = check_alpha(self.alpha), self.scale is not None
        return PoissonBlocks(backend, n_classes, n_features, alpha, scaled=scaled)

    def _tail(self, gain: Array, statistics: ExposedSums) -> np.ndarray:
        k, centers = statistics.shape[0], FittedModel(self).centers
        scale = getattr(centers, "scale", None)
        if scale is None:
            return chi2_tail(2 * gain, k - 1)
        left = dispersion_divisor(statistics.class_weight, statistics.count)
        return f_tail(2 * gain / scale / (k - 1), k - 1, left)

    @formed
    def class_exposure_(self, fitted: FittedModel, ctx: Context) -> Array:
        """Weighted sum of the exposures of each class; float64 of shape (n_classes,)."""
        of_met = ctx.backend.asarray(list(fitted.located()[0].exposure))
        return fitted.of_every_class(of_met, of_met[0] * 0)

    # --- the methods that take exposures -------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None) -> Self:
        return _called(exposure, super().fit, X, y, sample_weight)

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        exposure: Any = None,
    ) -> Self:
        return _called(exposure, super().partial_fit, X, y, classes, sample_weight)

    def _add_batch(
        self,
        X: Any,
        y: Any,
        known: np.ndarray,
        sample_weight: Any = None,
        exposure: Any = None,
    ) -> Self:
        # `partial_fit` has given them already.
        exposure = _GIVEN.get() if exposure is None else exposure
        return _called(exposure, super()._add_batch, X, y, known, sample_weight)

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
        options = {"classes": classes, "sample_weight": sample_weight, "nonzero": nonzero}
        return _called(exposure, super().statistics, X, y, **options)

    def decision_function(self, X: Any, exposure: Any = None) -> Array:
        return _called(exposure, super().decision_function, X)

    def predict(self, X: Any, exposure: Any = None) -> Array:
        return _called(exposure, super().predict, X)

    def predict_proba(self, X: Any, exposure: Any = None) -> Array:
        return _called(exposure, super().predict_proba, X)

    def predict_log_proba(self, X: Any, exposure: Any = None) -> Array:
        return _called(exposure, super().predict_log_proba, X)

    def score(self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None) -> float:
        return _called(exposure, super().score, X, y, sample_weight)

    def predict_joint_log_proba(self, X: Any, exposure: Any = None) -> Array:
        return _called(exposure, super().predict_joint_log_proba, X)
