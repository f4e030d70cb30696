"""What a fitted decomposition becomes without the data: another k, another device, a file."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Self, TypeVar

import numpy as np
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .. import _models
from ..estimators.fitted import FittedModel
from ..estimators.from_statistics import StatisticsClassifier
from ..estimators.saving import pack_model
from ..files.container import write
from ..files.state import Packer, Unpacker

_KINDS = {path.rpartition(".")[2]: path for path in _models.DECOMPOSITIONS}
Method = TypeVar("Method", bound=Callable[..., Any])


def is_determined(estimator: Any) -> bool:
    """Whether the class statistics of all classes determine the binary models.

    Class weights are those of each binary problem, to which the model is then refitted.
    """
    return isinstance(estimator, StatisticsClassifier) and estimator.class_weight is None


def where(check: Callable[[Any], Any]) -> Callable[[Method], Method]:
    """Of methods that are there where ``check(self)`` is true and raises no AttributeError."""
    return available_if(check)


def has(name: str) -> Callable[[Method], Method]:
    """Of methods that only some binary models have."""
    return where(attrgetter(f"estimator.{name}"))


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

    @where(lambda self: is_determined(self.estimator))
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

    @where(lambda self: is_determined(self.estimator))
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
        packer = Packer()
        document = pack_decomposition(self, packer)
        with FittedModel(self._joint).backend.current():
            write(path, document, packer.arrays)

    def _with(self, joint: StatisticsClassifier, models: list[Any], **params: Any) -> Self:
        """A copy with these models, and the same binary problems."""
        new, cache = copy.copy(self), FittedModel(self._joint).state.cache
        new.estimator = clone(self.estimator).set_params(**params)
        new._joint = joint
        kept = {name: cache[name] for name in ("code book",) if name in cache}
        FittedModel(joint).state.cache.update(kept, estimators=models)
        return new

    # --- codes, of those that have some --------------------------------------------------------

    _sides: tuple[float, ...] = ()  # the values of codes

    def _set_code_book(self, code_book: Any) -> None:
        self.code_book_ = code_book

    def _check_code_book(self, book: Any, n_classes: int) -> bool:
        """Whether an array holds codes of the classes."""
        shaped = book.ndim == 2 and book.shape[0] == n_classes and book.shape[1] > 0
        return shaped and bool(np.all(np.isin(book, self._sides)))


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


def pack_decomposition(decomposition: Any, packer: Packer) -> dict[str, Any]:
    """The sections of a file: of the joint model, and of all else."""
    joint, name = joint_model(decomposition), type(decomposition).__name__
    if name not in _KINDS or _models.found(_KINDS[name]) is not type(decomposition):
        raise TypeError(f"model files hold the models of gpucenters, and {name} is none of them.")
    params = decomposition.get_params(deep=False)
    del params["estimator"]
    section = {
        "class": name,
        "params": {n: packer.pack(v, n) for n, v in params.items()},
        "code_book": packer.pack(getattr(decomposition, "code_book_", None), "code_book_"),
    }
    return {"decomposition": section, "model": pack_model(joint, packer, full=True)[0]}


def unpack_decomposition(section: dict[str, Any], joint: Any, unpacker: Unpacker) -> Any:
    """The decomposition that was packed, around its joint model."""
    if not isinstance(joint, StatisticsClassifier) or FittedModel(joint).state.statistics is None:
        raise ValueError("it has no class statistics.")
    if section["class"] not in _KINDS:
        raise ValueError(f"this gpucenters does not know the model {section['class']!r}.")
    params = {n: unpacker.unpack(v) for n, v in section["params"].items()}
    new: Any = _models.found(_KINDS[section["class"]])(clone(joint), **params)
    new._validate_params()
    book = unpacker.unpack(section["code_book"])
    has_none, n_classes = not new._sides, len(joint.classes_)
    if (book is None) != has_none or not (has_none or new._check_code_book(book, n_classes)):
        raise ValueError("its code_book does not fit the rest.")
    new._commit(joint)
    if book is not None:
        new._set_code_book(book)
    return new
