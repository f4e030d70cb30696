"""Score functions for scikit-learn's selectors: (scores, p-values) of likelihood-ratio tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from .gaussian import SparseGaussianNB
from .naive_bayes import SparseBernoulliNB
from .poisson import SparsePoissonNB


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
