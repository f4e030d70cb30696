"""Score functions of the naive Bayes kind, for SelectKBest and its relatives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..arrays.convert import Block, as_block
from ..arrays.devices import Place, resolve_place
from ..arrays.groups import Groups, group_rows
from ..arrays.reading import NotNegative
from ..arrays.typing import Array
from ..arrays.work import Work, carry_out
from ..solvers.baselines import log_odds_ratio, log_share_ratio
from ..solvers.bernoulli import binarized
from ..solvers.class_sums import check_alpha, class_sums
from .labels import encode, host_labels
from .validation import check_container


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

    def score(place: Place, work: Work) -> Array:
        block, groups = _enter(X, y, "odds_ratio", place)
        # Values are looked at as they are, and then read as there or not.
        block.check_finite(squares=False)
        documents = class_sums(binarized(block, 0.0, "odds_ratio"), groups, work)
        return place.xp.abs(log_odds_ratio(documents, alpha))

    return carry_out(score, resolve_place(None, X), None)


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

    def score(place: Place, work: Work) -> Array:
        counts = class_sums(*_enter(X, y, "thresholded_multinomial", place), work)
        return place.xp.abs(log_share_ratio(counts, alpha))

    return carry_out(score, resolve_place(None, X), None)


def _enter(X: Any, y: Any, name: str, place: Place) -> tuple[Block, Groups]:
    block = replace(as_block(X, place, checked=True), reading=NotNegative(name))
    labels = host_labels(y, name, block.shape[0])
    classes, codes = encode(np.asarray(labels))
    if len(classes) != 2:
        raise ValueError(
            f"{name} compares two classes, but y holds {len(classes)}: {classes[:5].tolist()}. "
            "For more, score one class against the rest."
        )
    return block, group_rows(codes, block.shape[0], place, n_classes=2)
