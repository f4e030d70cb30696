"""Sparse naive Bayes with scikit-learn's face."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._docstrings import filled
from ..arrays.backend import Backend
from ..arrays.context import Context
from ..arrays.functions import chi2_tail
from ..arrays.typing import Array
from ..blocks import Block
from ..blocks.transforms import Binarized
from ..reductions.products import product
from ..solvers.bernoulli import (
    BernoulliCenters,
    bernoulli_ratio,
    binarized,
    check_binarize,
    solve_bernoulli,
)
from ..solvers.blocked import BernoulliBlocks
from ..solvers.multinomial import (
    DEFAULT_TOL,
    MultinomialCenters,
    check_tol,
    solve_multinomial,
)
from ..solvers.null_gains import NullGain, bernoulli_null_gain, multinomial_null_gain
from ..solvers.user_input import check_alpha
from ..statistics.class_sums import ClassSums
from ..statistics.recipe import Recipe
from .base import LinearClassifier
from .counts import CountNaiveBayes, LikelihoodRatioTests, NonNegativeCounts
from .fitted import FittedModel, formed, learned


class _NaiveBayes(LinearClassifier, CountNaiveBayes):
    """Base of the two models whose decision is linear."""

    def _recipe(self) -> Recipe:
        return Recipe("class sums", self._value_transform())

    @formed
    def feature_log_prob_(self, fitted: Any, ctx: Context) -> Array:
        """Log of each class and feature's probability: its own on the support, tied elsewhere."""
        centers, support = fitted.centers, fitted.selection.support
        of_met = centers.log_theta(support)
        if fitted.state.met is None:
            return of_met
        return fitted.of_every_class(of_met, centers.log_theta(support[:0])[0, :])

    def _log_likelihood(self, fitted: Any, block: Block, ctx: Context) -> Array:
        form = fitted.centers.likelihood_form(fitted.selection.support)
        every = ctx.backend.arange(self.n_features_in_)
        return product(block, every, form.shift, form.coef, ctx) + form.offset


@filled
class SparseBernoulliNB(_NaiveBayes, LikelihoodRatioTests):
    """Sparse Bernoulli naive Bayes classifier and feature selector.

    Bernoulli naive Bayes where the probabilities may differ between classes in k features only: the
    k for which the likelihood is provably largest (Theorem 1 of [1]_, for any number of classes).
    One pass over X solves the problem for every k at once: see `with_k`. With ``k="all"`` it is
    scikit-learn's BernoulliNB.

    Parameters
    ----------
    binarize : float or None, default=0.0
        Values above it are 1, others 0. None: X holds zeros and ones already.

    Attributes
    ----------
    scores_ : array of shape (n_features,), float64
        Gain of each feature: what its own probabilities for the classes add to the log-likelihood.
        Exactly zero where these are equal.
    centers_ : array of shape (n_classes, k), float64
        Probabilities of the features of the support.
    objective_ : float
        Negative log-likelihood of the smoothed counts.
    feature_count_ : array of shape (n_classes, n_features), float64
        How much weight of each class has each feature.
    feature_log_prob_ : array of shape (n_classes, n_features), float64
        Log probabilities: of each class on the support, tied elsewhere.
    pvalues_ : ndarray of shape (n_features,), float64
        Of likelihood-ratio tests: chi-squared with n_classes - 1 degrees of freedom, of twice the
        gain without smoothing. Asymptotic: wrong for rare features, and for sample weights that
        are no counts.
    coef_ : array of shape (1, n_features) or (n_classes, n_features), float64
        The decision is ``B @ coef_.T + intercept_``, where B is X after ``binarize``: 1 where a
        value is above the threshold, else 0, so that counts above 1 change nothing. Zero outside
        the support. For more than two classes relative to the tied parameters: log odds ratios.

    References
    ----------
    .. [1] A. Askari, A. d'Aspremont and L. El Ghaoui, "Naive Feature Selection: Sparsity in Naive
       Bayes", AISTATS 2020.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from gpucenters import SparseBernoulliNB
    >>> texts = ["fine film", "fine and moving", "dull film", "dull and long"]
    >>> words = CountVectorizer().fit(texts)
    >>> model = SparseBernoulliNB(k=2).fit(words.transform(texts), [1, 1, 0, 0])
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
        binarize: float | None = 0.0,
        fit_prior: bool = True,
        class_prior: Any = None,
        class_weight: Any = None,
        device: str | None = None,
        memory_budget: int | str | None = None,
        verbose: bool = False,
    ) -> None:
        self.k = k
        self.alpha = alpha
        self.binarize = binarize
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.class_weight = class_weight
        self.device = device
        self.memory_budget = memory_budget
        self.verbose = verbose

    _solution_params = (*CountNaiveBayes._solution_params, "binarize")
    _kept_params = ("binarize",)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_binarize(self.binarize)

    def _value_transform(self) -> Binarized:
        return Binarized(type(self).__name__, self.binarize)

    def _read(self, block: Block) -> Block:
        return binarized(block, self.binarize, type(self).__name__)

    def _solve_from(
        self, statistics: ClassSums, params: dict[str, Any], ctx: Context
    ) -> BernoulliCenters:
        return solve_bernoulli(statistics, ctx, check_alpha(params["alpha"]))

    def _likelihood_ratio(self, statistics: ClassSums, ctx: Context) -> Array:
        return bernoulli_ratio(statistics, ctx)

    def _within_blocks(self, backend: Backend, n_classes: int, n_features: int) -> BernoulliBlocks:
        return BernoulliBlocks(backend, n_classes, n_features, check_alpha(self.alpha))

    def _tail(self, gain: Array, statistics: ClassSums) -> np.ndarray:
        return chi2_tail(2 * gain, statistics.shape[0] - 1)

    def _null_gain(self, block: Block, ctx: Context) -> NullGain:
        return bernoulli_null_gain(check_alpha(self.alpha))


@filled
class SparseMultinomialNB(_NaiveBayes, NonNegativeCounts):
    """Sparse multinomial naive Bayes classifier and feature selector.

    Multinomial naive Bayes where the shares of the features may differ between classes in k
    features only, chosen for the likelihood (Theorems 2 and 3 of [1]_, for any number of classes).
    With ``k="all"`` it is scikit-learn's MultinomialNB.

    The features of one k are tied to each other, and the best ones for different k need not be
    nested, so each k is solved on its own; the data are read once all the same: see `with_k`.

    Parameters
    ----------
    tol : float, default=1e-9
        The dual is solved until ``upper_bound_`` is within ``tol * |C|`` of the least bound, psi(k)
        (see Notes). Larger values save time where there are many classes.

    Attributes
    ----------
    scores_ : array of shape (n_features,), float64
        h_i at the solution of the dual for this k: see Notes.
    upper_bound_, lower_bound_, gap_ : float
        psi(k), which the log-likelihood of no k features exceeds; the log-likelihood of the
        features found; and their difference. With ``gap_`` 0 they are the best k features. All to
        rounding: that of the bounds is relative to C, below.
    centers_ : array of shape (n_classes, k), float64
        Shares of the features of the support.
    objective_ : float
        Negative log-likelihood of the smoothed counts: minus ``lower_bound_``.
    feature_count_ : array of shape (n_classes, n_features), float64
        Class sums.
    feature_log_prob_ : array of shape (n_classes, n_features), float64
        Log shares: of each class on the support, tied elsewhere.
    coef_ : array of shape (1, n_features) or (n_classes, n_features), float64
        The decision is ``X @ coef_.T + intercept_``; zero outside the support. For more than two
        classes relative to the tied parameters: logs of ratios of shares.

    Notes
    -----
    With f_c the smoothed class sums, g their sum over the classes, and p shares of the classes,

        h_i(p) = sum over c of f_ci log( f_ci / (g_i p_c) ) >= 0,
        psi(k) = C + the least, over p, of the sum of the k largest h_i(p),

    where C is the log-likelihood with all features tied. Let phi(k) be the log-likelihood of the
    best k features, and K the number of classes. Then it is guaranteed that

        psi(k - K + 1) <= phi(k) <= psi(k),

    for two classes psi(k - 1) <= phi(k), where Theorem 3 of [1]_ has psi(k - 4). The dual is solved
    by simplicial decomposition (a method of cutting planes) to the tolerance ``tol``; the
    support comes from the k largest h_i on all sides of the solution, ways between these, and swaps
    of features at the edge while ``gap_`` is not zero. It is never worse than the reconstruction
    that [1]_ gives. A gap that is left does not say that better features exist: the dual may be
    above what k features can reach, by more the smaller k and the more classes there are.

    References
    ----------
    .. [1] A. Askari, A. d'Aspremont and L. El Ghaoui, "Naive Feature Selection: Sparsity in Naive
       Bayes", AISTATS 2020.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from gpucenters import SparseMultinomialNB
    >>> texts = ["fine film", "fine and moving", "dull film", "dull and long"]
    >>> words = CountVectorizer().fit(texts)
    >>> model = SparseMultinomialNB(k=2).fit(words.transform(texts), [1, 1, 0, 0])
    >>> words.get_feature_names_out()[model.support_].tolist(), model.gap_
    (['dull', 'fine'], 0.0)
    >>> model.predict(words.transform(["a fine and long film"])).tolist()
    [1]
    """

    def __init__(
        self,
        k: int | float | str = "all",
        *,
        alpha: float = 1.0,
        fit_prior: bool = True,
        class_prior: Any = None,
        tol: float = DEFAULT_TOL,
        class_weight: Any = None,
        device: str | None = None,
        memory_budget: int | str | None = None,
        verbose: bool = False,
    ) -> None:
        self.k = k
        self.alpha = alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.tol = tol
        self.class_weight = class_weight
        self.device = device
        self.memory_budget = memory_budget
        self.verbose = verbose

    _solution_params = (*CountNaiveBayes._solution_params, "tol")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_tol(self.tol)

    def _solve_from(
        self, statistics: ClassSums, params: dict[str, Any], ctx: Context
    ) -> MultinomialCenters:
        return solve_multinomial(statistics, ctx, check_alpha(params["alpha"]), params["tol"])

    def _null_gain(self, block: Block, ctx: Context) -> NullGain:
        return multinomial_null_gain(block, check_alpha(self.alpha), ctx)

    @learned
    def gap_(self) -> float:
        """How much more log-likelihood any other k features could have, at most."""
        selection: Any = FittedModel(self).selection
        return selection.gap

    @learned
    def lower_bound_(self) -> float:
        """The log-likelihood of the features found."""
        return -self.objective_

    @learned
    def upper_bound_(self) -> float:
        """Upper bound psi(k) on the log-likelihood of any k features."""
        return self.lower_bound_ + self.gap_
