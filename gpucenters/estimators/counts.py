"""What the naive Bayes models share: priors of the classes, p-values, and sums of counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays.backend import Backend
from ..arrays.context import Context
from ..arrays.namespace import array_namespace, to_numpy
from ..arrays.typing import Array
from ..blocks import Block
from ..solvers.blocked import WithinBlocks
from ..solvers.user_input import check_alpha, class_log_prior
from .base import FeatureSelector, read_only
from .fitted import learned
from .from_statistics import StatisticsClassifier
from .validation import snapshot


class ClassPriors(FeatureSelector, StatisticsClassifier):
    """Base of all of them: weights and priors of the classes."""

    _per_score = 1.0

    @learned
    def class_count_(self) -> Array:
        """Weight of each class; float64 of shape (n_classes,)."""
        return self._cached(
            "class_count",
            lambda centers, _, ctx: read_only(ctx.backend.asarray(list(self._class_weight()))),
        )

    @learned
    def class_log_prior_(self) -> Array:
        """Log prior of each class; float64 of shape (n_classes,)."""
        return self._cached(
            "class_log_prior",
            lambda centers, _, ctx: read_only(ctx.backend.asarray(self._log_prior())),
        )

    def _log_likelihood(self, block: Block, ctx: Context) -> Array:
        """Log-likelihoods of the rows in the classes met, (n, K), over all features."""
        raise NotImplementedError

    def _every_feature(self, ctx: Context) -> Array:
        return ctx.backend.arange(self.n_features_in_)

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
        self._selection()
        log_prior = self._log_prior()
        overflow = "the log-likelihood of row {row} of X overflows float64. Rescale X."
        likelihood = self._log_likelihood
        found, backend = self._finite_rows(X, "predict_joint_log_proba", likelihood, overflow)
        with self._fitted.backend.current():
            xp = array_namespace(found)
            by_class = xp.permute_dims(found, (1, 0))
            by_class = self._of_every_class(by_class, xp.zeros_like(by_class[0, :]))
            priors = self._fitted.backend.asarray(log_prior)
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

        def make(centers: Any, chosen: Any, ctx: Context) -> tuple[np.ndarray, np.ndarray]:
            statistics, met = self._ready().needed_statistics("pvalues_"), self._fitted.met
            statistics = statistics if met is None else statistics.of_classes(met)
            gain = self._likelihood_ratio(statistics, ctx)
            return read_only(to_numpy(gain)), read_only(self._tail(gain, statistics))

        return self._cached("tests", make)

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

    alpha: float
    fit_prior: bool
    class_prior: Any

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_alpha(self.alpha)
        if not isinstance(self.fit_prior, bool | np.bool_):
            raise ValueError(f"fit_prior={self.fit_prior!r} is not valid: use True or False.")

    def _params(self) -> dict[str, Any]:
        params = {name: getattr(self, name) for name in ("k", "alpha", "fit_prior")}
        return params | {"class_prior": snapshot(self.class_prior)}

    def _priors(self, params: dict[str, Any], weight: tuple[float, ...]) -> list[float]:
        return class_log_prior(params["fit_prior"], params["class_prior"], weight)

    @learned
    def feature_count_(self) -> Array:
        """Sum of each class and feature, without smoothing; float64, (n_classes, n_features)."""
        # Shared, so that the next batch is added to a copy.
        self._ready().share()
        return read_only(self._ready().needed_statistics("feature_count_").total)
