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
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted

from ..arrays.context import Context
from ..arrays.namespace import is_sparse
from ..blocks.convert import as_block
from ..estimators.cross_validation import check_rule
from ..estimators.fitted import FittedModel
from ..estimators.validation import as_classes, check_backend, check_X, host_labels
from .scoring import Scoring
from .sparsity_path import check_model, sparsity_path

Method = TypeVar("Method", bound=Callable[..., Any])


def _has(name: str) -> Callable[[Method], Method]:
    """Of methods that only some models have."""

    def check(self: SparsityPathCV) -> bool:
        getattr(getattr(self, "best_estimator_", self.estimator), name)
        return True

    return available_if(check)


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
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        to_split = MethodMapping().add(caller="fit", callee="split")
        to_score = MethodMapping().add(caller="fit", callee="score")
        scorer = Scoring(self.scoring, self.estimator).scorer
        return (
            MetadataRouter(owner=self)
            .add(estimator=self.estimator, method_mapping=to_fit)
            .add(splitter=check_cv(self.cv, classifier=True), method_mapping=to_split)
            .add(scorer=scorer, method_mapping=to_score)
        )

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

    @property
    def classes_(self) -> np.ndarray:
        """Class labels."""
        return self._fitted().classes_

    @property
    def n_features_in_(self) -> int:
        """Number of features of X."""
        return self._fitted().n_features_in_

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the features of X."""
        return self._fitted().feature_names_in_

    @property
    def support_(self) -> np.ndarray:
        """The selected features, ascending."""
        return self._fitted().support_

    @property
    def ranking_(self) -> np.ndarray:
        """The same by descending score."""
        return self._fitted().ranking_

    @property
    def scores_(self) -> Any:
        """The gain of each feature, at the chosen k."""
        return self._fitted().scores_

    @property
    def centers_(self) -> Any:
        """Class centers of the selected features."""
        return self._fitted().centers_

    @property
    def coef_(self) -> Any:
        """The weights of a linear decision, where the model has them."""
        return self._fitted().coef_

    @property
    def intercept_(self) -> Any:
        """The constants of a linear decision, where the model has them."""
        return self._fitted().intercept_

    @property
    def feature_importances_(self) -> Any:
        """The weights of the features, where the model has them in place of ``coef_``."""
        return self._fitted().feature_importances_

    def predict(self, X: Any) -> Any:
        """Labels, by the best model.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        return self._ask("predict", X)

    def decision_function(self, X: Any) -> Any:
        """Scores, by the best model.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
        """
        return self._ask("decision_function", X)

    @_has("predict_proba")
    def predict_proba(self, X: Any) -> Any:
        """Class probabilities, by the best model.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        return self._ask("predict_proba", X)

    @_has("predict_log_proba")
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of class probabilities, by the best model.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        return self._ask("predict_log_proba", X)

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

    @_has("predict_joint_log_proba")
    def predict_joint_log_proba(self, X: Any) -> Any:
        """Joint log probabilities, by the best model.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        return self._ask("predict_joint_log_proba", X)

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
