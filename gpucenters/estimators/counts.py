"""What the naive Bayes models share: priors of the classes, p-values, and sums of counts."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..arrays.backend import Backend
from ..arrays.context import Context
from ..arrays.namespace import array_namespace, to_numpy
from ..arrays.typing import Array
from ..blocks import Block
from ..blocks.transforms import NotNegative
from ..solvers.blocked import WithinBlocks
from ..solvers.user_input import check_alpha, class_log_prior
from .base import FeatureSelector, read_only
from .fitted import FittedModel, formed, learned
from .from_statistics import StatisticsClassifier


class ClassPriors(FeatureSelector, StatisticsClassifier):
    """Base of all of them: weights and priors of the classes."""

    _per_score = 1.0

    @formed
    def class_count_(self, fitted: FittedModel, ctx: Context) -> Array:
        """Weight of each class; float64 of shape (n_classes,)."""
        return ctx.backend.asarray(list(fitted.class_weight))

    @formed
    def class_log_prior_(self, fitted: FittedModel, ctx: Context) -> Array:
        """Log prior of each class; float64 of shape (n_classes,)."""
        return ctx.backend.asarray(fitted.log_prior)

    def _log_likelihood(self, fitted: FittedModel, block: Block, ctx: Context) -> Array:
        """Log-likelihoods of the rows in the classes met, (n, K), over all features."""
        raise NotImplementedError

    def predict_joint_log_proba(self, X: Any) -> Array:
        """Joint log probabilities: the log prior of each class plus the sample's log-likelihood.

        Over all features, those with tied parameters too, as in scikit-learn, but for some terms
        that the classes share: the multinomial coefficient of `SparseMultinomialNB`, factorials,
        powers of the exposure and features never seen (`SparsePoissonNB`, where a dispersion
        divides each feature's part), and how far features that were constant in training are from
        their means (`SparseGaussianNB`).

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes), float64
            In the library and on the device of X.
        """
        fitted = FittedModel(self)
        likelihood, log_prior = partial(self._log_likelihood, fitted), fitted.log_prior
        fitted.selection  # noqa: B018 (formed before the work on X)
        overflow = "the log-likelihood of row {row} of X overflows float64. Rescale X."
        found, backend = fitted.finite_rows(X, "predict_joint_log_proba", likelihood, overflow)
        with fitted.backend.current():
            xp = array_namespace(found)
            by_class = xp.permute_dims(found, (1, 0))
            by_class = fitted.of_every_class(by_class, xp.zeros_like(by_class[0, :]))
            priors = fitted.backend.asarray(log_prior)
            return backend.move(xp.permute_dims(by_class, (1, 0)) + priors)


class LikelihoodRatioTests(StatisticsClassifier):
    """P-values of likelihood-ratio tests, of models that say what the statistic is."""

    def _likelihood_ratio(self, statistics: Any, ctx: Context) -> Array:
        """The gain of each feature without smoothing, half of the test's statistic: (m,)."""
        raise NotImplementedError

    def _tail(self, gain: Array, statistics: Any) -> np.ndarray:
        """The probability of at least such a gain where no feature differs between classes."""
        raise NotImplementedError

    def _within_blocks(self, backend: Backend, n_classes: int, n_features: int) -> WithinBlocks:
        """What sums the gains of the blocks up.

        Raises
        ------
        ValueError
            For parameters with which there are no gains within blocks.
        """
        raise NotImplementedError

    def _tests(self) -> tuple[np.ndarray, np.ndarray]:
        """(gain without smoothing, p-value) of each feature, on the host."""
        fitted = FittedModel(self)

        def make(ctx: Context) -> tuple[np.ndarray, np.ndarray]:
            statistics = fitted.met_statistics("pvalues_")
            gain = self._likelihood_ratio(statistics, ctx)
            return read_only(to_numpy(gain)), read_only(self._tail(gain, statistics))

        return fitted.cached("tests", make)

    @learned
    def pvalues_(self) -> np.ndarray:
        """P-values of likelihood-ratio tests; float64 of shape (n_features,), on the host.

        Of twice the gain without smoothing. Asymptotic: not to be trusted for rare features, nor
        where sample weights are no numbers of repetitions. They are of each feature on its own:
        see `sklearn.feature_selection.SelectFdr` for many.
        """
        return self._tests()[1]


class CountNaiveBayes(ClassPriors):
    """Base of the models of counts: class sums, smoothing and priors."""

    _solution_params: tuple[str, ...] = ("k", "alpha", "fit_prior", "class_prior")
    alpha: float
    fit_prior: bool
    class_prior: Any

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_alpha(self.alpha)
        if not isinstance(self.fit_prior, bool | np.bool_):
            raise ValueError(f"fit_prior={self.fit_prior!r} is not valid: use True or False.")

    def _priors(self, params: dict[str, Any], weight: tuple[float, ...]) -> list[float]:
        return class_log_prior(params["fit_prior"], params["class_prior"], weight)

    @learned
    def feature_count_(self) -> Array:
        """Sum of each class and feature, without smoothing; float64, (n_classes, n_features)."""
        fitted = FittedModel(self)
        fitted.state.share()  # so that the next batch is added to a copy
        return read_only(fitted.statistics("feature_count_").total)


class NonNegativeCounts(CountNaiveBayes):
    """Base of the models of counts that are no zeros and ones."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.classifier_tags.poor_score = True  # on real numbers, as MultinomialNB
        return tags

    def _value_transform(self) -> NotNegative:
        return NotNegative(type(self).__name__)
