"""Counts times the log ratios of their shares in the classes, in front of a linear model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..arrays.backend import backend_of
from ..arrays.context import Context, run_with_oom_retry
from ..arrays.namespace import array_namespace
from ..arrays.typing import Array
from ..blocks.convert import as_block, scale_columns
from ..blocks.samples import make_samples, raise_without_weight
from ..blocks.transforms import NotNegative
from ..solvers.data import check_alpha
from ..statistics.base import Recipe
from .score_functions import log_share_ratio
from .validation import (
    check_X,
    encode,
    host_labels,
    raise_for_one_class,
    require_backend,
    validated,
)


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
            return ctx.backend.xp.stack([log_share_ratio(pair, ctx, alpha) for pair in pairs])

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
