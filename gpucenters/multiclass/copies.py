"""What a fitted decomposition becomes without the data: another k, another device, a file."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, Self, TypeVar

from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..estimators.fitted import FittedModel
from ..estimators.from_statistics import StatisticsClassifier

Method = TypeVar("Method", bound=Callable[..., Any])


def is_determined(estimator: Any) -> bool:
    """Whether the class statistics of all classes determine the binary models.

    Class weights are those of each binary problem, to which the model is then refitted.
    """
    return isinstance(estimator, StatisticsClassifier) and estimator.class_weight is None


def has(name: str) -> Callable[[Method], Method]:
    """Of methods that only some binary models have."""

    def check(self: Any) -> bool:
        getattr(self.estimator, name)
        return True

    return available_if(check)


def _of_statistics(method: Method) -> Method:
    """Of methods for models that class statistics determine."""

    def check(self: Any) -> bool:
        return is_determined(self.estimator)

    return available_if(check)(method)


class Copies:
    """The methods that make such copies and files."""

    estimator: Any
    estimators_: Sequence[Any]
    _joint: StatisticsClassifier
    _estimators: Sequence[Any]
    _is_shared: Callable[[], bool]

    @has("with_k")
    def with_k(self, k: int | float | str) -> Self:
        """A fitted copy whose binary models are at another k, without the data.

        The binary problems stay as they are: the tree of nested dichotomies too, where another k
        would have grown another one.

        Parameters
        ----------
        k : int, float or "all"

        Returns
        -------
        model
        """
        check_is_fitted(self)
        models = [m.with_k(k) if hasattr(m, "with_k") else m for m in self.estimators_]
        if not self._is_shared():
            new = copy.copy(self)
            new.estimator, new._estimators = clone(self.estimator).set_params(k=k), models
            return new
        fitted = FittedModel(self._joint)
        joint = fitted.copy(params=fitted.state.params | {"k": k}, selection=None)
        joint.k = k
        return self._with(joint, models, k=k)

    @_of_statistics
    def to(self, device: str) -> Self:
        """A fitted copy that lives on another device, of a model that class statistics determine.

        Parameters
        ----------
        device : {"cpu", "cuda", "cuda:N", "auto"}
            "cpu" means NumPy. The ``device`` parameter of the copy's estimator is set to it.

        Returns
        -------
        model
        """
        joint = joint_model(self).to(device)
        models = [m.to(device) if hasattr(m, "to") else m for m in self.estimators_]
        return self._with(joint, models, device=device)

    @_of_statistics
    def save(self, path: Any) -> None:
        """Write the fitted model to one portable file, for `gpucenters.load`.

        Of a model that class statistics determine: the file holds these, and the binary models
        are solved from them when the loaded model is first used. `partial_fit` and `with_k` go on
        from it. For the rest see the method ``save`` of the binary model.

        Parameters
        ----------
        path : str, path-like or binary file
            Where to write; a file that is there is replaced.
        """
        joint_model(self)  # a TypeError where there is none
        from ..files import save

        save(self, path)

    def _with(self, joint: StatisticsClassifier, models: list[Any], **params: Any) -> Self:
        """A copy with these models, and the same binary problems."""
        new, cache = copy.copy(self), FittedModel(self._joint).state.cache
        new.estimator = clone(self.estimator).set_params(**params)
        new._joint = joint
        kept = {name: cache[name] for name in ("code book",) if name in cache}
        FittedModel(joint).state.cache.update(kept, estimators=models)
        return new

    def _set_code_book(self, code_book: Any) -> None:
        self.code_book_ = code_book


# For model files.


def joint_model(decomposition: Any) -> StatisticsClassifier:
    """The model of all classes that holds the statistics; raises where there is none."""
    check_is_fitted(decomposition)
    if not decomposition._is_shared():
        raise TypeError(
            f"this {type(decomposition).__name__} holds no class statistics, as its model "
            f"({type(decomposition.estimator).__name__}) was refitted for each binary problem, or "
            "y had several labels a sample."
        )
    return decomposition._joint


def restore(decomposition: Any, joint: StatisticsClassifier, code_book: Any) -> None:
    """Give a decomposition its joint model, and the code book where it has one."""
    decomposition._validate_params()
    decomposition._commit(joint)
    if code_book is not None:
        decomposition._set_code_book(code_book)
