"""Decompositions of classes, which a file holds as their class statistics and their codes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from ..multiclass import (
    NestedDichotomiesClassifier,
    OneVsOneClassifier,
    OneVsRestClassifier,
    OutputCodeClassifier,
)
from ..multiclass._decomposition import Decomposition
from .state import Packer, Unpacker

#: The decompositions that a file may hold, which names them.
DECOMPOSITIONS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        NestedDichotomiesClassifier,
        OneVsOneClassifier,
        OneVsRestClassifier,
        OutputCodeClassifier,
    )
}


def pack_decomposition(model: Decomposition, packer: Packer) -> dict[str, Any]:
    """All but its joint model as JSON.

    Parameters
    ----------
    model : Decomposition
        Fitted.
    packer : Packer
    """
    name = type(model).__name__
    if DECOMPOSITIONS.get(name) is not type(model):
        raise TypeError(f"model files hold the models of gpucenters, and {name} is none of them.")
    params = model.get_params(deep=False)  # type: ignore[attr-defined]
    del params["estimator"]
    return {
        "class": name,
        "params": {n: packer.pack(v, n) for n, v in params.items()},
        "code_book": packer.pack(getattr(model, "code_book_", None), "code_book_"),
    }


def unpack_decomposition(section: dict[str, Any], joint: Any, unpacker: Unpacker) -> Any:
    """The decomposition that was packed, around its joint model.

    Parameters
    ----------
    section : dict
    joint : StatisticsClassifier
    unpacker : Unpacker
    """
    if section["class"] not in DECOMPOSITIONS:
        raise ValueError(f"this gpucenters does not know the model {section['class']!r}.")
    params = {n: unpacker.unpack(v) for n, v in section["params"].items()}
    model = DECOMPOSITIONS[section["class"]](clone(joint), **params)
    model._validate_params()
    book = unpacker.unpack(section["code_book"])
    if (book is not None) != isinstance(model, NestedDichotomiesClassifier | OutputCodeClassifier):
        raise ValueError("its code_book does not fit the rest.")
    if book is not None:
        _check(book, len(joint.classes_), nested=isinstance(model, NestedDichotomiesClassifier))
    model._restore(joint, book)
    return model


def _check(book: np.ndarray, n_classes: int, *, nested: bool) -> None:
    """Raise a ValueError unless an array holds codes of the classes."""
    good = book.ndim == 2 and book.shape[0] == n_classes and book.shape[1] > 0
    good = good and bool(np.all(np.isin(book, (-1.0, 0.0, 1.0) if nested else (-1.0, 1.0))))
    if nested:
        both = np.any(book < 0, axis=0) & np.any(book > 0, axis=0)
        good = good and book.shape[1] == n_classes - 1 and bool(np.all(both))
    if not good:
        raise ValueError("its code_book does not fit the rest.")
