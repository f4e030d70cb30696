"""The number of features chosen by cross-validation: a classifier and feature selector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, TypeVar

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    MetaEstimatorMixin,
    TransformerMixin,
    clone,
)
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import MetadataRouter
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted

from ..arrays.context import Context
from ..arrays.namespace import is_sparse
from ..blocks.convert import as_block
from ..estimators.cross_validation import check_rule
from ..estimators.fitted import FittedModel
from ..estimators.validation import as_classes, check_backend, check_X, host_labels
from .scoring import Scoring, metadata_router
from .sparsity_path import check_model, sparsity_path

Method = TypeVar("Method", bound=Callable[..., Any])


def _has(name: str) -> Callable[[Method], Method]:
    """Of methods that only some models have."""

    def check(self: SparsityPathCV) -> bool:
        getattr(getattr(self, "best_estimator_", self.estimator), name)
        return True

    return available_if(check)


def _of_best(name: str, doc: str) -> Any:
    """An attribute of the best model."""
    return property(lambda self: getattr(self._fitted(), name), doc=doc)


_OF_CLASSES = "(n_samples, n_classes)"


def _says_best(name: str, what: str, shape: str) -> Any:
    """A method of rows of X that asks the best model."""

    def method(self: SparsityPathCV, X: Any) -> Any:
        return self._ask(name, X)

    method.__name__, method.__qualname__ = name, f"SparsityPathCV.{name}"
    method.__doc__ = f"""{what}, by the best model.

        Parameters
        ----------
        X : {{array, sparse matrix, DataFrame}} of shape (n_samples, n_features)

        Returns
        -------
        array of shape {shape}
        """
    return _has(name)(method)


class SparsityPathCV(ClassifierMixin, MetaEstimatorMixin, TransformerMixin, BaseEstimator):
    """A model whose number of features is chosen by cross-validation.

    Every k is scored from one fit for each fold (`sparsity_path`), and the model is fitted to all
    samples with the k that is chosen. It predicts and selects features as the model does.

    Parameters
    ----------
    estimator : estimator
        A model of this package. Its ``k`` does not matter.
    ks : iterable of int, float or "all", default=None
        Numbers of features, or fractions of them. None is about 40 geometric steps from 1 to all.
    cv : int, splitter or iterable, default=5
        Folds, stratified if it is a number.
    rule : {"best", "one-standard-error"}, default="best"
        Take the k of best mean score, or the smallest k whose mean score is within one standard
        error of it.
    scoring : str, callable, list, tuple or dict, default="accuracy"
        As in `sklearn.model_selection.cross_validate`. Of several the first one chooses k.
    n_jobs : int, default=None
        Folds that are worked on at once, in threads.

    Attributes
    ----------
    best_k_ : int
        The number of features that was chosen.
    best_estimator_ : estimator
        The model fitted to all samples with this number.
    best_score_ : float
        Mean score of the first scoring at this number. Of the best of many it is optimistic.
    path_ : SparsityPath
        All scores.
    support_, ranking_, scores_, centers_, coef_, intercept_, feature_importances_
        Those of ``best_estimator_``, where it has them.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only where X had string column names.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gpucenters import L2CenterClassifier, SparsityPathCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SparsityPathCV(L2CenterClassifier(scale="std"), rule="one-standard-error")
    >>> model.fit(X, y).best_k_
    3
    >>> model.transform(X).shape
    (569, 3)
    """

    def __init__(
        self,
        estimator: Any,
        ks: Any = None,
        cv: Any = 5,
        *,
        rule: str = "best",
        scoring: Any = "accuracy",
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.ks = ks
        self.cv = cv
        self.rule = rule
        self.scoring = scoring
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = self.estimator.__sklearn_tags__()
        tags.input_tags, tags.classifier_tags = inner.input_tags, inner.classifier_tags
        tags.array_api_support = inner.array_api_support
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_estimator_")

    def get_metadata_routing(self) -> MetadataRouter:
        """The metadata that ``fit`` routes: see scikit-learn's user guide.

        Returns
        -------
        MetadataRouter
        """
        scorer = Scoring(self.scoring, self.estimator).scorer
        splitter = check_cv(self.cv, classifier=True)
        return metadata_router(self, self.estimator, splitter, scorer)

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Score every k by cross-validation, choose one, and fit the model with it.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        **params : dict
            ``sample_weight`` for the fits, ``groups`` for the splitter.

        Returns
        -------
        self
        """
        check_rule(self.rule)
        check_model(self.estimator, type(self).__name__)
        unknown = sorted(params.keys() - {"sample_weight", "groups"})
        if unknown:
            raise TypeError(f"fit got an unexpected keyword argument: {unknown[0]!r}.")
        path = sparsity_path(
            self.estimator,
            X,
            y,
            ks=self.ks,
            cv=self.cv,
            scoring=self.scoring,
            n_jobs=self.n_jobs,
            **params,
        )
        best_k = path.choose(self.rule)
        weight = {k: v for k, v in params.items() if k == "sample_weight" and v is not None}
        self.best_estimator_ = clone(self.estimator).set_params(k=best_k).fit(X, y, **weight)
        self.path_, self.best_k_ = path, best_k
        first = path.scores_of()
        self.best_score_ = float(first[int(np.searchsorted(path.ks, best_k))].mean())
        return self

    def _fitted(self) -> Any:
        check_is_fitted(self)
        return self.best_estimator_

    def _ask(self, method: str, X: Any) -> Any:
        """What a method of the best model says to X, all of which must be finite."""
        best = self._fitted()
        check_backend(best, X, method, type(self).__name__)
        if not is_sparse(X) and method != "transform":  # of dense X models read the support alone
            checked = check_X(best, X, reset=False)

            def check(ctx: Context) -> None:
                as_block(checked, ctx.backend, checked=True).check_finite(False, ctx)

            FittedModel(best).run(check)
        return getattr(best, method)(X)

    classes_ = _of_best("classes_", "Class labels.")
    n_features_in_ = _of_best("n_features_in_", "Number of features of X.")
    feature_names_in_ = _of_best("feature_names_in_", "Names of the features of X.")
    support_ = _of_best("support_", "The selected features, ascending.")
    ranking_ = _of_best("ranking_", "The same by descending score.")
    scores_ = _of_best("scores_", "The gain of each feature, at the chosen k.")
    centers_ = _of_best("centers_", "Class centers of the selected features.")
    coef_ = _of_best("coef_", "The weights of a linear decision, where the model has them.")
    intercept_ = _of_best("intercept_", "The constants of a linear decision, where it is one.")
    feature_importances_ = _of_best(
        "feature_importances_", "The weights of the features, where the model has no ``coef_``."
    )

    predict = _says_best("predict", "Labels", "(n_samples,)")
    decision_function = _says_best(
        "decision_function", "Scores", "(n_samples,) or (n_samples, n_classes)"
    )
    predict_proba = _says_best("predict_proba", "Class probabilities", _OF_CLASSES)
    predict_log_proba = _says_best(
        "predict_log_proba", "Logarithms of class probabilities", _OF_CLASSES
    )
    predict_joint_log_proba = _says_best(
        "predict_joint_log_proba", "Joint log probabilities", _OF_CLASSES
    )

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The score of the best model by the first scoring.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        float
        """
        best = self._fitted()
        scoring = Scoring(self.scoring, best)
        if scoring.names[0] == "accuracy" and scoring.single:
            return best.score(X, y, sample_weight)
        params = {} if sample_weight is None else {"sample_weight": sample_weight}
        y = as_classes(host_labels(y, type(self).__name__, _num_samples(X)), best.classes_)
        found = scoring.scorer(best, X, y, **params)
        return float(found[scoring.names[0]] if isinstance(found, dict) else found)

    def transform(self, X: Any) -> Any:
        """The features that the best model selects.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        array or sparse matrix of shape (n_samples, k)
        """
        return self._ask("transform", X)

    @_has("inverse_transform")
    def inverse_transform(self, X: Any) -> Any:
        """X with zeros for the features that are not selected.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n_samples, k)

        Returns
        -------
        array or sparse matrix of shape (n_samples, n_features)
        """
        return self._fitted().inverse_transform(X)

    @_has("get_support")
    def get_support(self, indices: bool = False) -> np.ndarray:
        """The selected features as a mask, or as numbers.

        Parameters
        ----------
        indices : bool, default=False

        Returns
        -------
        ndarray
        """
        return self._fitted().get_support(indices)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the selected features.

        Parameters
        ----------
        input_features : array of shape (n_features,), optional

        Returns
        -------
        ndarray of shape (k,)
        """
        return self._fitted().get_feature_names_out(input_features)
