"""Sparse Gaussian naive Bayes with scikit-learn's face."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._docstrings import filled
from ..arrays.backend import Backend
from ..arrays.context import Context
from ..arrays.functions import chi2_tail
from ..arrays.typing import Array
from ..blocks import Block
from ..reductions.distances import distance_scores
from ..solvers.blocked import GaussianBlocks
from ..solvers.gaussian import (
    GaussianCenters,
    check_gaussian,
    gaussian_ratio,
    negative_log_density,
    solve_gaussian,
)
from ..solvers.null_gains import NullGain, gaussian_null_gain
from ..solvers.user_input import check_priors, log_priors
from ..statistics.moments import ClassMoments
from ..statistics.recipe import Recipe
from .base import FeatureImportances
from .counts import ClassPriors, LikelihoodRatioTests
from .fitted import FittedModel, formed, learned


@filled
class SparseGaussianNB(FeatureImportances, ClassPriors, LikelihoodRatioTests):
    """Sparse Gaussian naive Bayes classifier and feature selector.

    Gaussian naive Bayes where mean and variance may differ between classes in k features only: the
    k for which the likelihood is provably largest, for any number of classes. One pass over X
    solves the problem for every k at once: see `with_k`. With ``k="all"`` it is scikit-learn's
    GaussianNB; with ``ddof=1`` diagonal quadratic, and with ``pooling=1`` diagonal linear
    discriminant analysis.

    Class variances reward features that are constant, or nearly so, in one class: their density
    there is as large as ``var_smoothing`` allows, so that they rank first. That is what the
    likelihood says, and it harms where features are rare, as words are. Pooling is the remedy: with
    ``pooling=1`` all classes share their variance, and values in between mix both.

    Sparse data are never made dense.

    Parameters
    ----------
    pooling : float, default=0.0
        0: each class has its own variance. 1: all share their mean variance. Between: a mixture.
    var_smoothing : float, default=1e-9
        This share of the largest variance of all features is added to the variances.
    ddof : {0, 1}, default=0
        The variance of a class is divided by its weight less this.
    priors : {"empirical", "uniform"} or array of shape (n_classes,), default=None
        Class priors, in the order of ``classes_``. None is "empirical".
    class_weight : "balanced" or dict from labels to weights, default=None
        Factors of the sample weights of each class: given (1 for labels left out), or by which all
        classes weigh the same. They change gains, shared means and variances, and empirical priors.

    Attributes
    ----------
    scores_ : array of shape (n_features,), float64
        Gain of each feature: what its own means and variances for the classes add to the
        log-likelihood. Exactly zero where these are equal, and for features that are constant.
    pvalues_ : ndarray of shape (n_features,), float64
        Of likelihood-ratio tests of twice the gain without smoothing: chi-squared with n_classes -
        1 (``pooling=1``) or 2 (n_classes - 1) degrees of freedom (``pooling=0``); there is none for
        other poolings. Asymptotic: wrong for rare features, and for sample weights that are no
        counts.
    centers_ : array of shape (n_classes, k), float64
        Class means of the features of the support.
    variances_ : array of shape (n_classes, k), float64
        Their variances, pooled and smoothed; 0 for a feature that is constant.
    epsilon_ : float
        What is added to the variances.
    objective_ : float
        Negative log-likelihood.

    Notes
    -----
    scikit-learn's GaussianNB takes ``epsilon_`` from X without the sample weights, and in
    `partial_fit` from the last batch alone; here it is of all samples and their weights.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gpucenters import SparseGaussianNB
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = SparseGaussianNB(k=3).fit(X, y)
    >>> model.get_feature_names_out().tolist()
    ['area error', 'worst perimeter', 'worst area']
    """

    def __init__(
        self,
        k: int | float | str = "all",
        *,
        pooling: float = 0.0,
        var_smoothing: float = 1e-9,
        ddof: int = 0,
        priors: Any = None,
        class_weight: Any = None,
        device: str | None = None,
        memory_budget: int | str | None = None,
        verbose: bool = False,
    ) -> None:
        self.k = k
        self.pooling = pooling
        self.var_smoothing = var_smoothing
        self.ddof = ddof
        self.priors = priors
        self.class_weight = class_weight
        self.device = device
        self.memory_budget = memory_budget
        self.verbose = verbose

    _solution_params = ("k", "pooling", "var_smoothing", "ddof", "priors")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_gaussian(self.pooling, self.var_smoothing, self.ddof)
        check_priors(self.priors)

    def _priors(self, params: dict[str, Any], weight: tuple[float, ...]) -> list[float]:
        return log_priors("empirical" if params["priors"] is None else params["priors"], weight)

    def _recipe(self) -> Recipe:
        return Recipe("class moments", per_feature=True)

    def _solve_from(
        self, statistics: ClassMoments, params: dict[str, Any], ctx: Context
    ) -> GaussianCenters:
        chosen = params["pooling"], params["var_smoothing"], params["ddof"]
        return solve_gaussian(statistics, ctx, *chosen)

    def _null_gain(self, block: Block, ctx: Context) -> NullGain:
        return gaussian_null_gain(self.pooling, self.epsilon_, self.ddof)

    def _log_likelihood(self, fitted: Any, block: Block, ctx: Context) -> Array:
        params, constant = fitted.centers.likelihood_form(fitted.selection.support)
        k = params[0].shape[0]
        if k == 2:  # of two classes there would be the difference alone
            params = tuple(ctx.backend.xp.concat([p, p[1:, :]]) for p in params)
        every = ctx.backend.arange(self.n_features_in_)
        found = distance_scores(block, every, negative_log_density, params, None, ctx)
        return found[:, :k] - constant

    def _likelihood_ratio(self, statistics: ClassMoments, ctx: Context) -> Array:
        pooling = self._fitted.params["pooling"]
        if pooling not in (0, 1):
            raise ValueError(
                f"there are p-values for pooling 0 and 1 only, not for pooling={pooling!r}, of "
                "which the distribution is not known."
            )
        return gaussian_ratio(statistics, ctx, pooling)

    def _within_blocks(self, backend: Backend, n_classes: int, n_features: int) -> GaussianBlocks:
        if (self.pooling, self.ddof) != (1, 0):
            raise ValueError(
                "gains within blocks take one variance for all classes and blocks: use "
                f"SparseGaussianNB(pooling=1, ddof=0), not pooling={self.pooling!r} and "
                f"ddof={self.ddof!r}."
            )
        return GaussianBlocks(backend, n_classes, n_features, float(self.var_smoothing))

    def _tail(self, gain: Array, statistics: ClassMoments) -> np.ndarray:
        parameters = 1 if self._fitted.params["pooling"] else 2
        return chi2_tail(2 * gain, parameters * (statistics.shape[0] - 1))

    @formed
    def variances_(self, fitted: FittedModel, ctx: Context) -> Array:
        """Variances of each class on the support; float64 of shape (n_classes, k)."""
        held, columns = fitted.located()
        return fitted.of_every_class(*held.variances_at(columns))

    @learned
    def epsilon_(self) -> float:
        """What is added to the variances."""
        return FittedModel(self).located()[0].epsilon
