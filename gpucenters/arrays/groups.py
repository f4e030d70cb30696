"""The rows of X by class: codes, weights, and how much weight each class has."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .devices import Place
from .namespace import to_numpy
from .typing import Array

_HEAVIEST = 1e100  # beyond it products of weights and values leave float64
_EXACT = 2.0**53  # whole numbers below it are exact in float64


@dataclass(frozen=True)
class Groups:
    """Class codes and sample weights of the rows of X. Made by `group_rows`.

    Attributes
    ----------
    place : Place
        Where the blocks are that these rows belong to.
    codes : ndarray of shape (n,), the smallest unsigned integer type
        On the host.
    weights : ndarray of shape (n,), float64, or None
        On the host; None where every row counts once.
    n_classes : int
    """

    place: Place
    codes: np.ndarray
    weights: np.ndarray | None
    n_classes: int

    @cached_property
    def weight(self) -> list[float]:
        """W_c, the weight of each class."""
        if self.weights is None and self.n_classes <= 16:  # without a copy as wide integers
            return [float(np.count_nonzero(self.codes == c)) for c in range(self.n_classes)]
        sums = np.bincount(self.codes, weights=self.weights, minlength=self.n_classes)
        return [float(w) for w in sums]

    @cached_property
    def count(self) -> list[int]:
        """Rows of positive weight in each class."""
        if self.weights is None:
            return [int(w) for w in self.weight]
        rows = self.codes[self.weights > 0]
        return [int(c) for c in np.bincount(rows, minlength=self.n_classes)]

    @cached_property
    def whole(self) -> bool:
        """Whether all weights are whole numbers with exact sums."""
        w = self.weights
        return w is None or bool(np.all(w == np.floor(w)) and np.sum(w) < _EXACT)

    @cached_property
    def device_codes(self) -> Array:
        """The codes where the blocks are."""
        return self.place.asarray(self.codes)

    @cached_property
    def device_weights(self) -> Array | None:
        """The weights where the blocks are."""
        return None if self.weights is None else self.place.asarray(self.weights)

    def by_class(self, start: int, stop: int) -> list[tuple[int, np.ndarray]]:
        """(class, row numbers counted from ``start``) for each class among rows start..stop."""
        codes = self.codes[start:stop]
        order = np.argsort(codes, kind="stable")  # a radix sort: the codes are small
        bounds = np.searchsorted(codes[order], np.arange(self.n_classes + 1))
        present = np.flatnonzero(np.diff(bounds))
        return [(int(c), order[bounds[c] : bounds[c + 1]]) for c in present]

    def of_rows(self, start: int, stop: int) -> Groups:
        """The groups of the rows start..stop alone."""
        weights = None if self.weights is None else self.weights[start:stop]
        return Groups(self.place, self.codes[start:stop], weights, self.n_classes)

    def positive_by_class(self) -> list[np.ndarray]:
        """The rows of positive weight of each class, ascending."""
        rows: list[np.ndarray] = [np.empty(0, dtype=np.intp)] * self.n_classes
        for c, members in self.by_class(0, len(self.codes)):
            rows[c] = members if self.weights is None else members[self.weights[members] > 0]
        return rows

    def with_equal_weights_as_one(self) -> Groups:
        """These rows with weights 0 and 1, where all positive weights are equal."""
        w = self.weights
        if w is None:
            return self
        positive = w > 0
        if not np.all(w[positive] == w[positive][:1]):
            return self
        ones = None if bool(np.all(positive)) else positive.astype(np.float64)
        return Groups(self.place, self.codes, ones, self.n_classes)


def group_rows(
    codes: Any, n_samples: int, place: Place, *, n_classes: int | None = None, weights: Any = None
) -> Groups:
    """Check class codes and sample weights, and keep them beside the blocks at ``place``.

    Parameters
    ----------
    codes : array of integers of shape (n_samples,), of any library
        Classes 0..K-1.
    n_samples : int
    place : Place
    n_classes : int, optional
        K; by default the largest code + 1.
    weights : array of shape (n_samples,), of any library, optional
        Non-negative and finite; 0 leaves the row out.

    Raises
    ------
    ValueError
        For lengths that differ, codes out of range, negative or non-finite weights.
    """
    codes = to_numpy(codes)
    if codes.ndim != 1 or codes.shape[0] != n_samples:
        raise ValueError(f"y has shape {codes.shape}, but X has {n_samples} samples.")
    if codes.dtype.kind not in "iub":
        raise TypeError(f"class codes must be integers 0..K-1, got an array of {codes.dtype}.")
    largest = int(codes.max()) if codes.size else -1
    k = largest + 1 if n_classes is None else operator.index(n_classes)
    if k < 1:
        raise ValueError(f"n_classes={n_classes!r} is not a number of classes.")
    if codes.size and (int(codes.min()) < 0 or largest >= k):
        bad = int(np.flatnonzero((codes < 0) | (codes >= k))[0])
        raise ValueError(f"class code {codes[bad]} in row {bad} is not one of 0..{k - 1}.")
    codes = codes.astype(np.min_scalar_type(max(k - 1, 0)), copy=False)
    return Groups(place, codes, check_weights(weights, n_samples), k)


def check_weights(weights: Any, n_samples: int) -> np.ndarray | None:
    """Sample weights as float64 on the host; None where all are 1. Raises for bad ones."""
    if weights is None:
        return None
    if isinstance(weights, str | dict):
        raise TypeError(f"sample_weight must be an array of numbers, got {weights!r}.")
    weights = to_numpy(weights)
    if weights.ndim == 0 and weights.dtype.kind in "iufb":
        weights = np.full(n_samples, float(weights))
    if weights.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got {weights.ndim}D array.")
    if weights.shape[0] != n_samples:
        raise ValueError(
            f"sample_weight.shape == {weights.shape}, expected {(n_samples,)}: one per sample."
        )
    if weights.dtype.kind not in "iufbO":
        raise TypeError(f"sample_weight must hold real numbers, got {weights.dtype}.")
    try:
        weights = weights.astype(np.float64)
    except OverflowError as error:
        raise ValueError("sample_weight holds a number that float64 cannot hold.") from error
    bad = np.flatnonzero(~np.isfinite(weights))
    if bad.size:
        raise ValueError(
            f"sample_weight contains NaN or infinity, first in row {bad[0]}: {weights[bad[0]]}."
        )
    bad = np.flatnonzero(weights < 0)
    if bad.size:
        raise ValueError(
            f"Negative values in data passed to `sample_weight`, first in row {bad[0]}: "
            f"{weights[bad[0]]}."
        )
    bad = np.flatnonzero((weights > 0) & ((weights < 1 / _HEAVIEST) | (weights > _HEAVIEST)))
    if bad.size:
        raise ValueError(
            f"sample_weight is {weights[bad[0]]} in row {bad[0]}: weights must be 0 or between "
            f"{1 / _HEAVIEST:g} and {_HEAVIEST:g}. Divide them by their mean."
        )
    return None if bool(np.all(weights == 1.0)) else weights


def check_every_class(groups: Groups, names: Any = None) -> None:
    """Raise a ValueError that names a class left without weight."""
    for c, count in enumerate(groups.count):
        if count == 0:
            name = c if names is None else names[c]
            raise ValueError(
                f"class {name} is left without weight: it has no sample, or all of its sample "
                "weights are zero."
            )
