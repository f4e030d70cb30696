"""Binary problems that are all solved from one set of class statistics."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import _num_samples, check_is_fitted

from ..arrays.backend import Backend
from ..arrays.context import Context
from ..arrays.inputs import exact_values
from ..arrays.namespace import array_namespace, to_numpy
from ..arrays.typing import Array
from ..blocks import Block
from ..blocks.samples import raise_without_weight
from ..estimators.fitted import FittedModel, add_batch, adopt
from ..estimators.from_statistics import StatisticsClassifier
from ..estimators.validation import (
    accuracy,
    check_backend,
    decode,
    encode,
    encode_against,
    host_labels,
    raise_for_one_class,
)
from ..solvers.decisions import scores_of_each
from ..statistics import Statistics
from .copies import Copies, is_determined, where

# The model of a binary problem in which all classes are on one side.


class ConstantClassifier(ClassifierMixin, BaseEstimator):
    """A classifier of one class, whose score is its label: fitted as it is made.

    Parameters
    ----------
    label : int
    """

    def __init__(self, label: int) -> None:
        self.label = label

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def classes_(self) -> np.ndarray:
        """The one label."""
        return np.asarray([self.label])

    def decision_function(self, X: Any) -> np.ndarray:
        """The label as a score: (n_samples,)."""
        return np.repeat(self.classes_, _num_samples(X))

    predict = decision_function


def _takes_batches(self: Any) -> bool:
    """Whether statistics do, or the class of scikit-learn, which may have no ``partial_fit``."""
    return is_determined(self.estimator) or bool(super(Decomposition, self).partial_fit)


class Decomposition(Copies):
    """Base of the decompositions, in front of scikit-learn's class of the same name.

    Where class statistics determine the model, all binary problems are solved from those of all
    classes, which are kept, in the form of a joint model that is not solved. What follows from
    them is formed when it is first asked for. All else is left to scikit-learn's class.

    A subclass says what the binary problems are (`_problems`), which attributes it has beside
    theirs (`_attributes`), and what follows from the scores of their models (`_predict_codes`).
    """

    classes_: np.ndarray

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        if is_determined(self.estimator):
            tags.array_api_support = inner.array_api_support
            tags.classifier_tags.poor_score = inner.classifier_tags.poor_score
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classes_")

    def __copy__(self) -> Self:
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        if self._is_shared():
            new._joint = copy.copy(self._joint)  # a batch for one must not change the other
        return new

    # --- what a subclass says ------------------------------------------------------------------

    def _problems(self, statistics: Statistics) -> Iterable[Statistics | int]:
        """The statistics of each binary problem; the label instead, where there is only one."""
        raise NotImplementedError

    def _attributes(self, classes: np.ndarray) -> dict[str, Any]:
        """The attributes that follow from the classes alone."""
        return {}

    def _takes(self, y: Any) -> bool:
        """Whether labels of this form have class statistics."""
        return True

    def _predict_codes(self, X: Any, method: str) -> tuple[Array, Backend]:
        """The class codes of the samples, and the backend where outputs belong."""
        raise NotImplementedError

    # --- fitting -------------------------------------------------------------------------------

    def _is_shared(self) -> bool:
        """Whether the binary models come from shared statistics."""
        return "_joint" in vars(self)

    def fit(self, X: Any, y: Any, **fit_params: Any) -> Self:
        """Fit the binary models.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Read once, and never copied, where class statistics determine the model.
        y : array of shape (n_samples,)
            Class labels: numbers or strings, at least two classes.
        **fit_params : dict
            What the ``fit`` of the model takes, as ``sample_weight``, by metadata routing.

        Returns
        -------
        self
        """
        self._validate_params()  # type: ignore[attr-defined]
        if not (is_determined(self.estimator) and self._takes(y)):
            self.__dict__ = self._parameters_alone()
            return super().fit(X, self._exact(X, y), **fit_params)  # type: ignore[misc]
        joint = clone(self.estimator)
        statistics = joint.statistics(X, y, **self._routed("fit", fit_params))
        raise_for_one_class(type(self).__name__, statistics.classes)
        raise_without_weight(statistics.count, statistics.classes)
        adopt(joint, statistics)
        new = copy.copy(self)
        new._commit(joint)
        new.estimators_  # noqa: B018 (solves them)
        self.__dict__ = new.__dict__
        return self

    @where(_takes_batches)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, **partial_fit_params: Any) -> Self:
        """Add a batch of samples; the binary models are solved when they are first asked for.

        Where class statistics determine the model, any split of the rows gives what `fit` gives on
        all of them, as the ``partial_fit`` of the model has it, and a call that fails changes
        nothing. Samples of every class must have come before the first prediction.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels among ``classes``.
        classes : array of shape (n_classes,), optional
            All labels that will ever come; needed in the first call.
        **partial_fit_params : dict
            What the ``partial_fit`` of the model takes, by metadata routing.

        Returns
        -------
        self
        """
        self._validate_params()  # type: ignore[attr-defined]
        refitted = "_estimators" in vars(self)
        if refitted or not (is_determined(self.estimator) and self._takes(y)):
            y = self._exact(X, y)
            known = None if classes is None else exact_values(classes, "classes")
            return super().partial_fit(X, y, known, **partial_fit_params)  # type: ignore[misc]
        first = not self._is_shared()
        joint = clone(self.estimator) if first else self._joint
        add_batch(joint, X, y, classes, **self._routed("partial_fit", partial_fit_params))
        if first:
            self._commit(joint)
        return self

    def _exact(self, X: Any, y: Any) -> Any:
        """Labels for scikit-learn's class, in an array that holds their exact values."""
        if not self._takes(y):
            return y
        labels = host_labels(y, type(self).__name__, _num_samples(X))
        encode(labels)  # refuses labels that are no classes
        return labels

    def get_metadata_routing(self) -> MetadataRouter:
        """The metadata that ``fit`` and ``partial_fit`` route: see scikit-learn's user guide.

        Returns
        -------
        MetadataRouter
        """
        mapping = MethodMapping()
        for method in ("fit", "partial_fit"):
            mapping.add(caller=method, callee=method)
        return MetadataRouter(owner=self).add(estimator=self.estimator, method_mapping=mapping)

    def _routed(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """What of the metadata the model asks for."""
        if params and not get_config()["enable_metadata_routing"]:
            raise ValueError(
                f"{type(self).__name__}.{method}() passes {sorted(params)} on only if metadata "
                "routing is enabled: call sklearn.set_config(enable_metadata_routing=True), and "
                f"set_{method}_request of the estimator."
            )
        return getattr(process_routing(self, method, **params).estimator, method)

    def _parameters_alone(self) -> dict[str, Any]:
        """The attributes that no fit has set."""
        fitted = {"_joint", "_estimators", "_code_book"}
        return {n: v for n, v in vars(self).items() if not n.endswith("_") and n not in fitted}

    def _commit(self, joint: StatisticsClassifier) -> None:
        """Set all fitted attributes in one assignment, which no interrupt can divide."""
        names = ("classes_", "n_features_in_", "feature_names_in_")
        new = {name: vars(joint)[name] for name in names if name in vars(joint)}
        new |= self._attributes(joint.classes_)
        self.__dict__ = self._parameters_alone() | new | {"_joint": joint}

    # --- the binary models ---------------------------------------------------------------------

    @property
    def estimators_(self) -> Sequence[Any]:
        """The binary models."""
        if not self._is_shared():
            return self._estimators
        cache = FittedModel(self._joint).state.cache
        if "estimators" not in cache:
            cache["estimators"] = self._solve()
        return cache["estimators"]

    @estimators_.setter
    def estimators_(self, models: Sequence[Any]) -> None:
        self._estimators = models

    def _solve(self) -> list[Any]:
        joint = self._joint
        statistics = FittedModel(joint).statistics("estimators_")
        unmet = [x for x, n in zip(self.classes_.tolist(), statistics.count, strict=True) if not n]
        if unmet:
            raise NotFittedError(
                f"this {type(self).__name__} has seen no sample of class {unmet[0]!r} yet: call "
                "partial_fit with some first."
            )
        models: list[Any] = []
        for problem in self._problems(statistics):
            if not isinstance(problem, Statistics):
                models.append(ConstantClassifier(problem))
                continue
            model = clone(joint)
            adopt(model, problem, solved=True)
            models.append(model)
        return models

    # --- predicting ----------------------------------------------------------------------------

    def _scores(
        self, X: Any, method: str, models: Sequence[Any] | None = None
    ) -> tuple[Array, Backend]:
        """Scores of the rows of X by binary models: (n, L), where the models live; the backend.

        X is validated once for all, and read once where the scores are linear. The bits are those
        of each model's ``decision_function``.
        """
        check_is_fitted(self)
        check_backend(self._joint, X, method, type(self).__name__)
        models = self.estimators_ if models is None else models
        solved = [model for model in models if not isinstance(model, ConstantClassifier)]
        decisions = [FittedModel(model).decision() for model in solved]

        def score(block: Block, ctx: Context) -> Array:
            xp = ctx.backend.xp
            found = iter(scores_of_each(decisions, block, ctx))
            every = [
                ctx.backend.zeros(block.shape[0]) + model.label
                if isinstance(model, ConstantClassifier)
                else next(found)[:, 0]
                for model in models
            ]
            return xp.permute_dims(xp.stack(every), (1, 0))

        return FittedModel(self._joint).finite_rows(X, method, score)

    def predict(self, X: Any) -> Array:
        """The class of each sample; ties go to the first class.

        Parameters
        ----------
        X : {array, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
            In the library and on the device of X, where class statistics determine the model;
            string labels are always NumPy.
        """
        check_is_fitted(self)
        if not self._is_shared():
            return self._predict_apart(X)
        codes, backend = self._predict_codes(X, "predict")
        return decode(codes, self.classes_, backend)

    def _predict_apart(self, X: Any) -> Array:
        """The classes by binary models that were fitted one by one."""
        return super().predict(X)  # type: ignore[misc]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        check_is_fitted(self)
        if self._is_shared():
            codes, _ = self._predict_codes(X, "score")
        elif self._takes(y):
            codes = encode_against(to_numpy(super().predict(X)), self.classes_)  # type: ignore[misc]
        else:
            return super().score(X, y, sample_weight)  # type: ignore[misc]
        return accuracy(codes, y, self.classes_, type(self).__name__, sample_weight)

    score.__doc__ = StatisticsClassifier.score.__doc__


def largest(scores: Array) -> Array:
    """Class codes from scores: the largest; of one score for two classes its sign."""
    xp = array_namespace(scores)
    if scores.shape[1] == 1:
        return xp.astype(scores[:, 0] > 0, xp.int64)
    return xp.argmax(scores, axis=1)
