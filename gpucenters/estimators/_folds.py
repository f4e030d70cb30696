"""Training and test samples of each fold, for every search over folds."""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import (
    GroupShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
    check_cv,
)

from ..arrays.backend import backend_of
from ..arrays.namespace import array_namespace, is_numpy, is_sparse, to_numpy


class Fold(NamedTuple):
    """Row numbers of the training and of the test samples of one fold, not negative.

    Some rows may be in neither, and rows may be repeated.
    """

    train: np.ndarray
    test: np.ndarray

    def is_partition(self, n_samples: int) -> bool:
        """Whether each sample is in one of the two, once."""
        return np.array_equal(np.sort(np.concatenate(self)), np.arange(n_samples))


def make_splitter(
    cv: Any,
    y: np.ndarray,
    groups: Any = None,
    n_splits: int | None = None,
    test_size: Any = None,
    random_state: Any = None,
) -> Any:
    """The splitter that the parameters of `sparsity_path` mean."""
    if n_splits is None:
        splitter = check_cv(5 if cv is None else cv, y, classifier=True)
        if isinstance(splitter, StratifiedKFold) and splitter is not cv:
            most = int(np.unique(y, return_counts=True)[1].max())
            if splitter.n_splits > most:  # named as the parameter here is
                raise ValueError(
                    f"cv={splitter.n_splits} folds need as many samples of a class, and the "
                    f"largest class has {most} sample{'s' * (most != 1)}: use fewer folds, or more "
                    "samples."
                )
        return splitter
    if cv is not None:
        raise ValueError("cv and n_splits exclude each other: cv has its own number of splits.")
    if isinstance(n_splits, bool) or not isinstance(n_splits, numbers.Integral) or n_splits < 1:
        raise ValueError(f"n_splits={n_splits!r} is not valid: use a number of splits.")
    kind = StratifiedShuffleSplit if groups is None else GroupShuffleSplit
    return kind(n_splits, test_size=test_size, random_state=random_state)


def split(X: Any, y: np.ndarray, splitter: Any, params: Mapping[str, Any]) -> list[Fold]:
    """The folds of a splitter."""
    # Splitters of scikit-learn read the number of rows alone, and know no matrices on a device.
    rows = X if is_numpy(array_namespace(X)) else np.zeros((len(y), 1))
    params = {name: value for name, value in params.items() if value is not None}
    found = [
        Fold(
            _row_numbers(train, len(y), f"fold {number} of cv", "training"),
            _row_numbers(test, len(y), f"fold {number} of cv", "test"),
        )
        for number, (train, test) in enumerate(splitter.split(rows, y, **params))
    ]
    if not found:
        raise ValueError("cv makes no folds.")
    return found


def _row_numbers(rows: Any, n: int, fold: str, what: str) -> np.ndarray:
    """Row numbers, from 0 on, of what a splitter gives: numbers or a mask."""
    rows = to_numpy(rows)
    if rows.size == 0:
        raise ValueError(f"{fold} has no {what} samples.")
    if rows.dtype == bool:
        if rows.shape != (n,):
            raise ValueError(
                f"{fold} has a mask of {what} samples of shape {rows.shape}, but X has {n} samples."
            )
        return _row_numbers(np.flatnonzero(rows), n, fold, what)
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise ValueError(
            f"{fold} has {what} samples of shape {rows.shape} and type {rows.dtype}: use row "
            "numbers or a mask, of one dimension."
        )
    beyond = rows[(rows >= n) | (rows < -n)]
    if beyond.size:
        raise ValueError(f"{fold} names the {what} sample {beyond[0]}, but X has {n} samples.")
    rows = rows.astype(np.int64)
    return np.where(rows < 0, rows + n, rows)


def check_test_weights(folds: list[Fold], weight: np.ndarray | None) -> None:
    """Raise a ValueError for a fold whose test samples have no weight: they have no mean score."""
    for number, fold in enumerate(folds):
        if weight is not None and not np.any(weight[fold.test] > 0):
            raise ValueError(
                f"fold {number} of cv has no test sample of positive weight, so that it has no "
                "score: use other folds, or leave samples of weight zero out of X."
            )


@contextmanager
def naming_fold(number: int) -> Iterator[None]:
    """A ValueError in the body says which fold it is of."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"fold {number} cannot be fitted or scored: {error}") from error


def take_rows(X: Any, rows: np.ndarray) -> Any:
    """Some rows of an array or a CSR matrix, in its own library and type."""
    xp, backend = array_namespace(X), backend_of(X)
    if is_numpy(xp):
        return X[rows]
    with backend.current():
        index = backend.asarray(rows.astype(np.int64))
        return X[index] if is_sparse(X) else xp.take(X, index, axis=0)


def take_of_each(params: Mapping[str, Any], rows: np.ndarray, n_samples: int) -> dict[str, Any]:
    """The values of some rows of each parameter that has one value for each sample."""
    found = {}
    for name, value in params.items():
        array = None if value is None or np.isscalar(value) else to_numpy(value)
        each = array is not None and array.ndim > 0 and array.shape[0] == n_samples
        found[name] = array[rows] if each and array is not None else value
    return found
