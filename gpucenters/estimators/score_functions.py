"""Score functions: what SelectKBest and its relatives rank features by."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..arrays.backend import resolve_backend
from ..arrays.context import Context, run_with_oom_retry
from ..arrays.functions import clip_negative
from ..arrays.typing import Array
from ..blocks import Block
from ..blocks.convert import as_block
from ..blocks.samples import Samples, make_samples
from ..blocks.transforms import NotNegative
from ..solvers.bernoulli import binarized
from ..solvers.data import check_alpha
from ..statistics.base import Recipe
from ..statistics.class_sums import ClassSums, feature_sums
from .gaussian import SparseGaussianNB
from .naive_bayes import SparseBernoulliNB
from .poisson import SparsePoissonNB
from .validation import check_container, encode, host_labels

# Score functions of the naive Bayes kind, for SelectKBest and its relatives.


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
    alpha, X = check_alpha(alpha), check_container(X, "odds_ratio")

    def score(ctx: Context) -> Array:
        block, samples = _enter(X, y, "odds_ratio", ctx)
        # Values are checked as they are, and then read as present or absent.
        block.check_finite(False, ctx)
        documents = Recipe("class sums").of(binarized(block, 0.0, "odds_ratio"), samples, ctx)
        return ctx.backend.xp.abs(_log_odds_ratio(documents, alpha))

    return run_with_oom_retry(score, resolve_backend(None, X), None)


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
    alpha, X = check_alpha(alpha), check_container(X, "thresholded_multinomial")

    def score(ctx: Context) -> Array:
        counts = Recipe("class sums").of(*_enter(X, y, "thresholded_multinomial", ctx), ctx)
        return ctx.backend.xp.abs(log_share_ratio(counts, ctx, alpha))

    return run_with_oom_retry(score, resolve_backend(None, X), None)


def _enter(X: Any, y: Any, name: str, ctx: Context) -> tuple[Block, Samples]:
    block = replace(as_block(X, ctx.backend, checked=True), transform=NotNegative(name))
    labels = host_labels(y, name, block.shape[0])
    classes, codes = encode(np.asarray(labels))
    if len(classes) != 2:
        raise ValueError(
            f"{name} compares two classes, but y holds {len(classes)}: {classes[:5].tolist()}. "
            "For more, score one class against the rest."
        )
    return block, make_samples(codes, block.shape[0], ctx.backend, n_classes=2)


def _log_odds_ratio(documents: ClassSums, alpha: float) -> Array:
    """Log of the odds to have each feature in class 1, over those in class 0: shape (m,).

    Of Mladenic & Grobelnik, with P = (f_c + alpha) / (n_c + 2 alpha) over documents that have it.
    """
    xp = documents.backend.xp
    weight = documents.backend.asarray(documents.class_weight)[:, None]
    odds = xp.log(documents.total + alpha) - xp.log(clip_negative(weight - documents.total) + alpha)
    return odds[1, :] - odds[0, :]


def log_share_ratio(counts: ClassSums, ctx: Context, alpha: float) -> Array:
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
