"""Cross-validation: groups of samples, folds, what is scored without one, and the choice of k."""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import (
    GroupShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
    check_cv,
)

from ..arrays.backend import backend_of, resolve_backend
from ..arrays.context import Context, run_with_oom_retry
from ..arrays.inputs import exact_values, first_missing
from ..arrays.namespace import array_namespace, is_numpy, is_sparse, to_numpy
from ..statistics.base import Statistics
from .from_statistics import StatisticsClassifier
from .validation import encode, validated

RULES = ("best", "one-standard-error")
_ROUNDING = 1e-12  # of the largest score: means of equal scores in another order differ by less


# Groups of samples: blocks to permute labels in, and what splitters keep together.


def check_groups(groups: Any, n_samples: int) -> np.ndarray:
    """The group of each sample as a NumPy array of shape (n_samples,).

    Raises
    ------
    ValueError
        For another shape, and for groups that are missing or cannot be compared with each other.
    """
    found = np.asarray(exact_values(groups, "groups"))
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim != 1:
        raise ValueError(f"groups must have one entry for each sample, got shape {found.shape}.")
    if found.shape[0] != n_samples:
        raise ValueError(f"groups has {found.shape[0]} entries, but X has {n_samples} samples.")
    if found.dtype.kind == "T":
        found = found.astype(object)
    if missing := first_missing(found):
        row, what = missing
        raise ValueError(
            f"groups contains {what}, first in row {row}: leave such samples out, or name a group "
            "for them."
        )
    try:
        np.unique(found)
    except TypeError as error:
        kinds = [type(value) for value in found.tolist()]
        row = next((i for i, kind in enumerate(kinds) if kind is not kinds[0]), 0)
        raise ValueError(
            f"groups cannot be compared with each other: {found[row]!r} in row {row} beside "
            f"{found[0]!r}. Use numbers alone, or strings alone."
        ) from error
    return found


# Training and test samples of each fold, for every search over folds.


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


# Rules that choose one of several models by their scores on the test samples of each fold.


def check_rule(rule: Any) -> None:
    """Raise a ValueError unless it is the name of a rule."""
    if not isinstance(rule, str) or rule not in RULES:
        raise ValueError(f"rule={rule!r} is not valid: use {' or '.join(map(repr, RULES))}.")


def choose(scores: np.ndarray, rule: str, size: np.ndarray | None = None) -> int:
    """The smallest model that a rule lets pass.

    Parameters
    ----------
    scores : ndarray of shape (n_models, n_folds)
        Larger is better.
    rule : {"best", "one-standard-error"}
        "best" lets the best mean score pass, and those that differ from it by rounding alone. The
        other rule lets pass what is within one standard error of it: of the mean over the folds of
        the model that "best" chooses, with the divisor ``n_folds - 1`` of variances.
    size : ndarray of shape (n_models,), optional
        By default the models are in ascending order. Of equal sizes the first one is taken.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        Where all means are NaN.
    """
    check_rule(rule)
    means, n = scores.mean(axis=1), scores.shape[1]
    if np.all(np.isnan(means)):
        raise ValueError("all mean scores are NaN: none of the models is the best one.")
    size = np.arange(len(means)) if size is None else size
    top = int(np.nanargmax(means))

    def smallest(allowed: float) -> int:
        passing = np.flatnonzero(means >= means[top] - allowed)
        return int(passing[np.argmin(size[passing])])

    if not np.all(np.isfinite(scores[top])):
        return smallest(0.0)
    rounding = _ROUNDING * float(np.max(np.abs(scores[top])))
    best = smallest(rounding)
    if rule == "best" or n == 1:
        return best
    return smallest(rounding + float(scores[best].std(ddof=1)) / np.sqrt(n))


# Fits to all samples but some, without reading the others again.


@dataclass(frozen=True)
class HeldOut:
    """The statistics of all samples, from which those of some can be taken away.

    Where sums of integers are exact, these are to the bit the statistics of the others.
    """

    model: StatisticsClassifier
    codes: np.ndarray
    classes: np.ndarray
    weight: np.ndarray | None
    statistics: Statistics

    @classmethod
    def of(cls, model: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> Self | None:
        """The statistics of X, y; None where sums are rounded, or are not what the model needs.

        Parameters
        ----------
        model : CenterClassifier
            Not changed.
        X : array or sparse matrix of shape (n, m)
        y : ndarray of shape (n,)
        weight : ndarray of shape (n,), or None
        """
        if not isinstance(model, StatisticsClassifier) or isinstance(model.class_weight, str):
            return None  # weights that balance the classes are others in each fold
        model = clone(model)
        model._check_parameters()
        checked, _ = validated(model, X)
        classes, codes = encode(y)

        def make(ctx: Context) -> Statistics | None:
            block, samples = model._enter(checked, codes, classes, weight, ctx)
            exact = block.has_implicit_zeros and samples.has_integer_weights
            if not exact or not block.holds_integers(ctx):
                return None
            return model._make_statistics(block, samples, ctx, mergeable=True)

        found = run_with_oom_retry(
            make, resolve_backend(model.device, checked), model.memory_budget
        )
        return None if found is None else cls(model, codes, classes, weight, found)

    def fit(self, X: Any, rows: np.ndarray) -> StatisticsClassifier | None:
        """The model fitted to all samples but ``rows``, whose data are X.

        None where it must be fitted to their data.
        """
        model, weight = clone(self.model), None if self.weight is None else self.weight[rows]
        checked, _ = validated(model, X)

        def take_away(ctx: Context) -> Statistics | None:
            block, samples = model._enter(checked, self.codes[rows], self.classes, weight, ctx)
            return self.statistics.without(block, samples, ctx)

        found = run_with_oom_retry(take_away, self.statistics.backend, model.memory_budget)
        if found is None or not all(found.count):
            return None
        found.classes = self.classes
        return model.fit_statistics(found)
