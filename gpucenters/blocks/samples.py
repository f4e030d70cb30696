"""The samples of a block: class codes, weights, and the weight of each class."""

from __future__ import annotations

import numbers
import operator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..arrays import sparsetools
from ..arrays.backend import Backend
from ..arrays.cached import cached_property
from ..arrays.functions import EXACT_INTEGERS
from ..arrays.inputs import check_input
from ..arrays.namespace import assume_canonical, is_numpy, is_numpy_or_cupy, sparse_module, to_numpy
from ..arrays.typing import Array

_LARGEST_WEIGHT = 1e100  # beyond it products of weights and values leave float64
_FEW_CLASSES = 16  # that are counted one by one: bincount would copy the codes to int64
_MOST_DENSE_CLASSES = 64  # whose indicator times rows is worth its arithmetic as a dense product


@dataclass(frozen=True)
class Samples:
    """Class codes and sample weights of the rows of X. Made by `make_samples`.

    Attributes
    ----------
    backend : Backend
        That of the block whose rows these are.
    codes : ndarray of shape (n,), the smallest unsigned integer type
        On the host.
    sample_weight : ndarray of shape (n,), float64, or None
        On the host; None where every row counts once.
    n_classes : int
    exposure : ndarray of shape (n,), float64, or None
        On the host: what the counts of each row are counted over. None where it is 1 in each.
    """

    backend: Backend
    codes: np.ndarray
    sample_weight: np.ndarray | None
    n_classes: int
    exposure: np.ndarray | None = None

    @cached_property
    def class_weight(self) -> list[float]:
        """W_c, the weight of each class."""
        if self.sample_weight is None and self.n_classes <= _FEW_CLASSES:
            return [float(np.count_nonzero(self.codes == c)) for c in range(self.n_classes)]
        sums = np.bincount(self.codes, weights=self.sample_weight, minlength=self.n_classes)
        return [float(w) for w in sums]

    @cached_property
    def count(self) -> list[int]:
        """Rows of positive weight in each class."""
        if self.sample_weight is None:
            return [int(w) for w in self.class_weight]
        rows = self.codes[self.sample_weight > 0]
        return [int(c) for c in np.bincount(rows, minlength=self.n_classes)]

    @cached_property
    def has_integer_weights(self) -> bool:
        """Whether all weights are integers with exact sums."""
        w = self.sample_weight
        return w is None or bool(np.all(w == np.floor(w)) and np.sum(w) < EXACT_INTEGERS)

    @cached_property
    def backend_codes(self) -> Array:
        """The codes on the backend of the block."""
        return self.backend.asarray(self.codes)

    @cached_property
    def backend_weights(self) -> Array | None:
        """The weights on the backend of the block."""
        return None if self.sample_weight is None else self.backend.asarray(self.sample_weight)

    @cached_property
    def class_exposure(self) -> list[float]:
        """The sum of weight times exposure of each class."""
        if self.exposure is None:
            return self.class_weight
        s = self.exposure if self.sample_weight is None else self.exposure * self.sample_weight
        return [float(e) for e in np.bincount(self.codes, weights=s, minlength=self.n_classes)]

    @cached_property
    def square_factors(self) -> np.ndarray | None:
        """1 / exposure of each row, by which its squares are multiplied; on the host."""
        e = self.exposure
        return None if e is None else 1.0 / np.where(e > 0, e, 1.0)

    @cached_property
    def backend_square_factors(self) -> Array | None:
        """The factors of squares on the backend of the block."""
        return None if self.square_factors is None else self.backend.asarray(self.square_factors)

    def shares(self, class_weight: list[float] | np.ndarray) -> np.ndarray:
        """The weight of each sample divided by that of its class, on the host."""
        share = 1.0 / np.asarray(class_weight)[self.codes]
        return share if self.sample_weight is None else share * self.sample_weight

    def by_class(self, start: int, stop: int) -> list[tuple[int, np.ndarray]]:
        """(class, row numbers counted from ``start``) for each class among rows start..stop."""
        codes = self.codes[start:stop]
        order = np.argsort(codes, kind="stable")  # a radix sort: the codes are small
        bounds = np.searchsorted(codes[order], np.arange(self.n_classes + 1))
        present = np.flatnonzero(np.diff(bounds))
        return [(int(c), order[bounds[c] : bounds[c + 1]]) for c in present]

    def with_exposure(self, exposure: Any) -> Samples:
        """These rows with exposures: n numbers of any library, finite and not negative."""
        return replace(self, exposure=check_weights(exposure, len(self.codes), "exposure"))

    def take(self, rows: slice | np.ndarray) -> Samples:
        """Some samples, in the order of the given row numbers."""
        s, e = self.sample_weight, self.exposure
        weights, exposure = (None if a is None else a[rows] for a in (s, e))
        return Samples(self.backend, self.codes[rows], weights, self.n_classes, exposure)

    def positive_by_class(self) -> list[np.ndarray]:
        """The rows of positive weight of each class, ascending."""
        rows, s = [np.empty(0, dtype=np.intp)] * self.n_classes, self.sample_weight
        for c, members in self.by_class(0, len(self.codes)):
            rows[c] = members if s is None else members[s[members] > 0]
        return rows

    def with_equal_weights_as_one(self) -> Samples:
        """These rows with weights 0 and 1, where all positive weights are equal."""
        w = self.sample_weight
        if w is None or not np.all((w == 0) | (w == np.max(w))):
            return self
        return replace(self, sample_weight=None if bool(np.all(w > 0)) else np.sign(w))

    # --- sums by class of dense rows, one for each sample -------------------------------------

    def class_sums(self, x: Array) -> Array:
        """Weighted sums of the rows of each class: (K, b) from (n, b), float64, C-contiguous."""
        if self._compiled:
            out = np.zeros((self.n_classes, x.shape[1]))
            sparsetools.add_rows(to_numpy(x), self._int32_codes, self._factors, out)
            return out
        return self._indicator @ x

    def residuals(self, x: Array, means: Array) -> Array:
        """``x - means[codes]``; on the host in the memory of ``x``."""
        if self._compiled:
            sparsetools.subtract_rows(to_numpy(means), self._int32_codes, to_numpy(x))
            return x
        return x - self.backend.xp.take(means, self._index, axis=0)

    @property
    def _compiled(self) -> bool:
        return is_numpy(self.backend.xp) and sparsetools.AVAILABLE

    @cached_property
    def _int32_codes(self) -> np.ndarray:
        return self.codes.astype(np.int32)

    @cached_property
    def _index(self) -> Array:
        return self.backend.asarray(self.codes.astype(np.int64))

    @cached_property
    def _factors(self) -> np.ndarray:
        return np.ones(len(self.codes)) if self.sample_weight is None else self.sample_weight

    @cached_property
    def _indicator(self) -> Any:
        """The matrix (K, n) of the weight of each sample, in the row of its class."""
        xp, n, k = self.backend.xp, len(self.codes), self.n_classes
        if k > _MOST_DENSE_CLASSES and is_numpy_or_cupy(xp):
            order = np.argsort(self.codes, kind="stable").astype(np.int32)
            bounds = np.searchsorted(self.codes[order], np.arange(k + 1)).astype(np.int32)
            parts = map(self.backend.asarray, (self._factors[order], order, bounds))
            return assume_canonical(sparse_module(xp).csr_matrix(tuple(parts), shape=(k, n)))
        found = xp.astype(self.backend.arange(k)[:, None] == self._index[None, :], xp.float64)
        weights = self.backend_weights
        return found if weights is None else found * weights


def make_samples(
    codes: Any,
    n_samples: int,
    backend: Backend,
    *,
    n_classes: int | None = None,
    sample_weight: Any = None,
) -> Samples:
    """Check class codes and sample weights.

    Parameters
    ----------
    codes : array of integers of shape (n_samples,), of any library
        Classes 0..K-1.
    n_samples : int
    backend : Backend
        That of the block.
    n_classes : int, optional
        K; by default the largest code + 1.
    sample_weight : array of shape (n_samples,), of any library, optional
        Non-negative and finite; 0 leaves the row out.

    Raises
    ------
    ValueError
        For lengths that differ, codes out of range, negative or non-finite weights.
    """
    check_input(codes, "y")
    codes = to_numpy(codes)
    if codes.ndim != 1 or codes.shape[0] != n_samples:
        raise ValueError(f"y has shape {codes.shape}, but X has {n_samples} samples.")
    if codes.dtype.kind not in "iub":
        raise TypeError(f"class codes must be integers 0..K-1, got an array of {codes.dtype}.")
    largest = int(codes.max()) if codes.size else -1
    k = largest + 1 if n_classes is None else operator.index(n_classes)
    if not 1 <= k < 2**63:
        raise ValueError(f"n_classes={n_classes!r} is not a number of classes.")
    if codes.size and (int(codes.min()) < 0 or largest >= k):
        bad = int(np.flatnonzero((codes < 0) | (codes >= k))[0])
        raise ValueError(f"class code {codes[bad]} in row {bad} is not one of 0..{k - 1}.")
    codes = codes.astype(np.min_scalar_type(max(k - 1, 0)), copy=False)
    return Samples(backend, codes, check_weights(sample_weight, n_samples), k)


def check_weights(weights: Any, n_samples: int, name: str = "sample_weight") -> np.ndarray | None:
    """Sample weights as float64 on the host; None where all are 1. Raises for bad ones.

    ``name`` is that of other numbers of which the same is asked.
    """
    if weights is None:
        return None
    if isinstance(weights, str | dict):
        raise TypeError(f"{name} must be an array of numbers, got {weights!r}.")
    check_input(weights, name)
    weights = to_numpy(weights)
    if weights.ndim == 0 and isinstance(weights.item(), numbers.Real):
        weights = np.full(n_samples, weights.item())
    if weights.ndim != 1:
        title = "Sample weights" if name == "sample_weight" else name
        raise ValueError(f"{title} must be 1D array or scalar, got {weights.ndim}D array.")
    if weights.shape[0] != n_samples:
        raise ValueError(
            f"{name}.shape == {weights.shape}, expected {(n_samples,)}: one per sample."
        )
    if weights.dtype.kind not in "iufbO":
        raise TypeError(f"{name} must hold real numbers, got {weights.dtype}.")
    try:
        weights = weights.astype(np.float64)
    except OverflowError as error:
        raise ValueError(f"{name} holds a number that float64 cannot hold.") from error
    bad = np.flatnonzero(~np.isfinite(weights))
    if bad.size:
        raise ValueError(
            f"{name} contains NaN or infinity, first in row {bad[0]}: {weights[bad[0]]}."
        )
    bad = np.flatnonzero(weights < 0)
    if bad.size:
        raise ValueError(
            f"Negative values in data passed to `{name}`, first in row {bad[0]}: {weights[bad[0]]}."
        )
    bad = np.flatnonzero(
        (weights > 0) & ((weights < 1 / _LARGEST_WEIGHT) | (weights > _LARGEST_WEIGHT))
    )
    if bad.size:
        raise ValueError(
            f"{name} is {weights[bad[0]]} in row {bad[0]}: it must be 0 or between "
            f"{1 / _LARGEST_WEIGHT:g} and {_LARGEST_WEIGHT:g}. Divide all of them by their mean."
        )
    return None if bool(np.all(weights == 1.0)) else weights


def raise_without_weight(counts: list[int], names: Any = None) -> None:
    """Raise a ValueError that names a class of which no sample of positive weight is counted."""
    for c, count in enumerate(counts):
        if count == 0:
            name = c if names is None else names[c]
            raise ValueError(
                f"class {name} is left without weight: it has no sample, or sample_weight (times "
                "class_weight) is zero for all of them."
            )
