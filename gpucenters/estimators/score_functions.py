"""Score functions of features, and a scaler of counts by log ratios between classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..arrays.backend import backend_of, resolve_backend
from ..arrays.context import Context, run_with_oom_retry
from ..arrays.functions import clip_negative
from ..arrays.namespace import array_namespace
from ..arrays.typing import Array
from ..blocks import Block
from ..blocks.convert import as_block, scale_columns
from ..blocks.samples import Samples, make_samples, raise_without_weight
from ..blocks.transforms import NotNegative
from ..solvers.bernoulli import binarized
from ..solvers.user_input import check_alpha
from ..statistics.class_sums import ClassSums, feature_sums
from ..statistics.recipe import Recipe
from .gaussian import SparseGaussianNB
from .naive_bayes import SparseBernoulliNB
from .poisson import SparsePoissonNB
from .validation import (
    check_container,
    check_X,
    encode,
    host_labels,
    raise_for_one_class,
    require_backend,
    validated,
)

# --- score functions: what SelectKBest and its relatives rank features by ----------------------


def odds_ratio(X: Any, y: Any, alpha: float = 1.0) -> Array:
    """Absolute log odds ratio of each feature between two classes.

    A feature is in a document where its value is positive. With f_c the documents of class c that
    have it, n_c all of them, and P_c = (f_c + alpha) / (n_c + 2 alpha), the score is the absolute
    value of log[ P_1 (1 - P_0) / ((1 - P_1) P_0) ] [1]_: how much it tells, whichever class it
    speaks for.

    Parameters
    ----------
    X : array or CSR/CSC matrix of shape (n_samples, n_features)
        Counts, or whether a feature is there. Of any library.
    y : array of shape (n_samples,)
        Labels of two classes.
    alpha : float, default=1.0
        Smoothing; below 1e-10 it counts as 1e-10.

    Returns
    -------
    array of shape (n_features,), float64
        Larger is better. In the library and on the device of X.

    Raises
    ------
    ValueError
        For other than two classes, negative values, NaN and infinity (named by feature and row).

    References
    ----------
    .. [1] D. Mladenic and M. Grobelnik, "Feature Selection for Unbalanced Class Distribution and
       Naive Bayes", ICML 1999.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.feature_selection import SelectKBest
    >>> from gpucenters import odds_ratio
    >>> X = np.asarray([[1, 0, 2], [3, 1, 0], [0, 1, 1], [0, 0, 0]])
    >>> odds_ratio(X, [0, 0, 1, 1]).round(2)
    array([2.2, 0. , 0. ])
    >>> SelectKBest(odds_ratio, k=1).fit(X, [0, 0, 1, 1]).get_support(indices=True)
    array([0])
    """

    def log_odds_ratio(block: Block, samples: Samples, ctx: Context, alpha: float) -> Array:
        # Values are checked as they are, and then read as present or absent.
        block.check_finite(False, ctx)
        documents = Recipe("class sums").of(binarized(block, 0.0, "odds_ratio"), samples, ctx)
        xp, total = ctx.backend.xp, documents.total
        weight = ctx.backend.asarray(documents.class_weight)[:, None]
        odds = xp.log(total + alpha) - xp.log(clip_negative(weight - total) + alpha)
        return odds[1, :] - odds[0, :]

    return _absolute(log_odds_ratio, X, y, alpha, "odds_ratio")


def thresholded_multinomial(X: Any, y: Any, alpha: float = 1.0) -> Array:
    """Absolute log ratio of each feature's share in two classes: thresholded multinomial NB.

    With theta_c the shares of plain multinomial naive Bayes, theta_ci = (f_ci + alpha) / (sum of
    f_c + alpha m), the score is the absolute value of log theta_1i - log theta_0i. To keep the k
    largest is the baseline TMNB of [1]_.

    Parameters
    ----------
    X : array or CSR/CSC matrix of shape (n_samples, n_features)
        Counts, or other values that are not negative. Of any library.
    y : array of shape (n_samples,)
        Labels of two classes.
    alpha : float, default=1.0
        Smoothing; below 1e-10 it counts as 1e-10.

    Returns
    -------
    array of shape (n_features,), float64
        Larger is better. In the library and on the device of X.

    Raises
    ------
    ValueError
        For other than two classes, negative values, NaN and infinity (named by feature and row).

    References
    ----------
    .. [1] A. Askari, A. d'Aspremont and L. El Ghaoui, "Naive Feature Selection: Sparsity in Naive
       Bayes", AISTATS 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from gpucenters import thresholded_multinomial
    >>> X = np.asarray([[3, 0, 1], [2, 1, 1], [0, 3, 1], [1, 2, 1]])
    >>> thresholded_multinomial(X, [0, 0, 1, 1]).round(2)
    array([1.1, 1.1, 0. ])
    """

    def log_ratio(block: Block, samples: Samples, ctx: Context, alpha: float) -> Array:
        return _log_share_ratio(Recipe("class sums").of(block, samples, ctx), ctx, alpha)

    return _absolute(log_ratio, X, y, alpha, "thresholded_multinomial")


def _absolute(
    log_ratio: Callable[[Block, Samples, Context, float], Array],
    X: Any,
    y: Any,
    alpha: float,
    name: str,
) -> Array:
    """The absolute value of a log ratio, (m,), of data of two classes that are not negative."""
    alpha, X = check_alpha(alpha), check_container(X, name)

    def score(ctx: Context) -> Array:
        block = replace(as_block(X, ctx.backend, checked=True), transform=NotNegative(name))
        classes, codes = encode(host_labels(y, name, block.shape[0]))
        if len(classes) != 2:
            raise ValueError(
                f"{name} compares two classes, but y holds {len(classes)}: "
                f"{classes[:5].tolist()}. For more, score one class against the rest."
            )
        samples = make_samples(codes, block.shape[0], ctx.backend, n_classes=2)
        return ctx.backend.xp.abs(log_ratio(block, samples, ctx, alpha))

    return run_with_oom_retry(score, resolve_backend(None, X), None)


def _log_share_ratio(counts: ClassSums, ctx: Context, alpha: float) -> Array:
    """Log theta_1 - log theta_0 of plain multinomial naive Bayes: shape (m,)."""
    xp, total = counts.backend.xp, counts.total
    mass = [s + alpha * total.shape[1] for s in feature_sums(total, ctx)]
    return xp.log((total[1, :] + alpha) / mass[1]) - xp.log((total[0, :] + alpha) / mass[0])


def poisson_gain(X: Any, y: Any, *, exposure: Any = "total") -> tuple[np.ndarray, np.ndarray]:
    """Gains of Poisson rates and their p-values, for counts.

    Parameters
    ----------
    X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)
        Counts.
    y : array of shape (n_samples,)
        Class labels.
    exposure : {"total", None} or array of shape (n_samples,), default="total"
        What the counts of each sample are counted over: the sum of the row, 1, or what is given.

    Returns
    -------
    scores : ndarray of shape (n_features,), float64
        What rates of their own for the classes add to the log-likelihood, without smoothing.
    pvalues : ndarray of shape (n_features,), float64
        Of twice the scores: chi-squared with n_classes - 1 degrees of freedom. Asymptotic: wrong
        for rare features.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.feature_selection import SelectKBest
    >>> from gpucenters import poisson_gain
    >>> texts = ["fine film", "fine and moving", "dull film", "dull and long"]
    >>> words = CountVectorizer().fit(texts)
    >>> best = SelectKBest(poisson_gain, k=2).fit(words.transform(texts), [1, 1, 0, 0])
    >>> words.get_feature_names_out()[best.get_support()].tolist()
    ['dull', 'fine']
    """
    if exposure is None or isinstance(exposure, str):
        return SparsePoissonNB(exposure=exposure).fit(X, y)._tests()
    return SparsePoissonNB().fit(X, y, exposure=exposure)._tests()


def gaussian_gain(X: Any, y: Any, *, pooling: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Gains of Gaussian means and variances and their p-values.

    Parameters
    ----------
    X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)
    y : array of shape (n_samples,)
        Class labels.
    pooling : {0, 1}, default=0.0
        0: mean and variance differ between classes. 1: the mean alone, as in one-way analysis of
        variance.

    Returns
    -------
    scores : ndarray of shape (n_features,), float64
        What parameters of their own for the classes add to the log-likelihood, without smoothing;
        infinite where a feature is constant in a class (``pooling=0``) or in each (1).
    pvalues : ndarray of shape (n_features,), float64
        Of twice the scores: chi-squared with 2 (n_classes - 1) degrees of freedom, or n_classes - 1
        (``pooling=1``). Asymptotic.

    Examples
    --------
    >>> import numpy as np
    >>> from gpucenters import gaussian_gain
    >>> scores, pvalues = gaussian_gain(np.asarray([[0.0], [2.0], [4.0], [10.0]]), [0, 0, 1, 1])
    >>> scores.round(6), pvalues.round(4)
    (array([3.08089]), array([0.0459]))
    """
    return SparseGaussianNB(pooling=pooling).fit(X, y)._tests()


def bernoulli_gain(
    X: Any, y: Any, *, binarize: float | None = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Gains of Bernoulli probabilities and their p-values: the G test of each 2 x K table.

    Parameters
    ----------
    X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)
    y : array of shape (n_samples,)
        Class labels.
    binarize : float or None, default=0.0
        Values above it are 1, others 0. None: X holds zeros and ones already.

    Returns
    -------
    scores : ndarray of shape (n_features,), float64
        What probabilities of their own for the classes add to the log-likelihood, without
        smoothing.
    pvalues : ndarray of shape (n_features,), float64
        Of twice the scores: chi-squared with n_classes - 1 degrees of freedom. Asymptotic: wrong
        for rare features.
    """
    return SparseBernoulliNB(binarize=binarize).fit(X, y)._tests()


# --- counts times the log ratios of their shares in the classes --------------------------------


class LogRatioScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Multiply counts by the log ratio of their shares in the classes.

    The features of NBSVM [1]_: behind a selector and in front of a linear model with a ridge
    penalty, which then costs features that tell the classes apart less than others. Presence
    (``CountVectorizer(binary=True)``) mostly does better than counts.

    Parameters
    ----------
    alpha : float, default=1.0
        Additive smoothing of the class sums; below 1e-10 it counts as 1e-10.

    Attributes
    ----------
    log_ratios_ : array of shape (1, n_features) or (n_classes, n_features), float64
        r of the second class against the first; for more than two classes, of each class against
        all others. Where X was.
    scale_ : array of shape (n_features,), float64
        What `transform` multiplies each feature by: r of two classes, with its sign; for more, the
        root of the mean of the squares over the classes.
    classes_ : ndarray of shape (n_classes,)
        Sorted class labels, on the host.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only where X had string column names.

    Notes
    -----
    With the class sums f_c over the n_features columns of X (those that a selector has left) and
    g_c = f_c + alpha, feature i has the log ratio (equation 1 of [1]_)

        r_i = log( (g_1i / sum of g_1) / (g_0i / sum of g_0) ),

    the coefficient of multinomial naive Bayes: that of `SparseMultinomialNB` on the same columns.

    Several classes have a column for each feature all the same. For a ridge penalty, K copies of
    a column with the factors r_1, ..., r_K are one column with the factor sqrt(r_1^2 + ... + r_K^2)
    [the least w_1^2 + ... + w_K^2 with w_1 r_1 + ... + w_K r_K = v is v^2 over that square]; the
    mean in place of the sum keeps the size of a ratio. For a scale of its own for each class, wrap
    this step and the model behind it in `sklearn.multiclass.OneVsRestClassifier`.

    References
    ----------
    .. [1] S. Wang and C. D. Manning, "Baselines and Bigrams: Simple, Good Sentiment and Topic
       Classification", ACL 2012.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from gpucenters import L2CenterClassifier, LogRatioScaler
    >>> texts = ["fine film", "fine and moving", "dull film", "dull and long"]
    >>> both = make_pipeline(
    ...     CountVectorizer(binary=True),
    ...     L2CenterClassifier(k=3, scale="std"),
    ...     LogRatioScaler(),
    ...     LogisticRegression(),
    ... ).fit(texts, [1, 1, 0, 0])
    >>> both[:-1].get_feature_names_out().tolist(), both[-2].scale_.round(2).tolist()
    (['dull', 'fine', 'long'], [-0.92, 1.28, -0.51])
    """

    log_ratios_: Array
    classes_: np.ndarray
    n_features_in_: int

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.target_tags.required = True
        tags.array_api_support = True
        return tags

    def _validate_params(self) -> None:
        check_alpha(self.alpha)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the log ratios.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Counts, presence, or other values that are not negative.
        y : array of shape (n_samples,)
            Class labels, at least two classes.
        sample_weight : array of shape (n_samples,), optional
            Non-negative. Weights count as repetitions.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For negative values, NaN and infinity (named by feature and row); for a class without
            samples of positive weight.
        """
        name, alpha = type(self).__name__, check_alpha(self.alpha)
        checked, attributes = validated(self, X)
        n = checked.shape[0]
        classes, codes = encode(host_labels(y, name, n))
        raise_for_one_class(name, classes)

        def log_ratios(ctx: Context) -> Array:
            block = as_block(checked, ctx.backend, checked=True)
            block = replace(block, transform=NotNegative(name))
            k = len(classes)
            samples = make_samples(codes, n, ctx.backend, n_classes=k, sample_weight=sample_weight)
            raise_without_weight(samples.count, classes)
            sums = Recipe("class sums").of(block, samples, ctx)
            pairs = [sums] if k == 2 else sums.one_vs_rest()
            return ctx.backend.xp.stack([_log_share_ratio(pair, ctx, alpha) for pair in pairs])

        found = run_with_oom_retry(log_ratios, backend_of(checked), None)
        kept = {n: value for n, value in vars(self).items() if n != "feature_names_in_"}
        self.__dict__ = kept | attributes | {"classes_": classes, "log_ratios_": found}
        return self

    @property
    def scale_(self) -> Array:
        """What each feature is multiplied by."""
        check_is_fitted(self)
        with backend_of(self.log_ratios_).current():
            if self.log_ratios_.shape[0] == 1:
                return self.log_ratios_[0, :]
            xp = array_namespace(self.log_ratios_)
            return xp.sqrt(xp.mean(self.log_ratios_ * self.log_ratios_, axis=0))

    def transform(self, X: Any) -> Any:
        """X with each feature multiplied by its ``scale_``.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        array or sparse matrix of shape (n_samples, n_features)
            In X's library, device and layout (or as ``set_output`` says), and in its type where
            that is a floating-point one, else float64.
        """
        scale, checked = self.scale_, check_X(self, X, reset=False)
        there, name = backend_of(scale), type(self).__name__
        require_backend(checked, there, name, "transform", "Move X, or fit this step there.")

        def scaled(ctx: Context) -> Any:
            block = as_block(checked, ctx.backend, summed=False, checked=True)
            block.check_finite(False, ctx)
            return scale_columns(checked, scale, ctx)

        return run_with_oom_retry(scaled, backend_of(checked), None)
