"""Columns of X under many permutations of the labels: the class codes, and medians of columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..arrays.backend import Backend
from ..arrays.cached import cached_property
from ..arrays.namespace import array_namespace
from ..arrays.typing import Array
from ..blocks.samples import Samples
from .sorted_columns import JointHalf

_OF_SQUARES = 2.0**-51  # the rounding of a sum of squares of n values is n times as large, or less


@dataclass(frozen=True, eq=False)
class PermutedCodes:
    """Class codes of n samples in p permutations of the observed labels.

    Attributes
    ----------
    codes : array of integers of shape (n, p)
        On the backend of the samples.
    samples : Samples
        One of the permutations, without weights: each has as many samples of each class.
    """

    codes: Array
    samples: Samples
    _indicators: dict[int, Array] = field(default_factory=dict, repr=False)

    @property
    def count(self) -> int:
        """How many permutations there are."""
        return self.codes.shape[1]

    def indicator(self, c: int) -> Array:
        """1.0 where a sample is in class c: (n, p), float64. Formed once."""
        if c not in self._indicators:
            xp = array_namespace(self.codes)
            self._indicators[c] = xp.astype(self.codes == c, xp.float64)
        return self._indicators[c]

    def class_sums(self, product: Callable[[Array], Array], total: Array | None) -> Array:
        """``product`` of the indicator of each class: (K, b, p).

        With the exact ``total`` over all samples, the last class is what the others leave of it.
        """
        k = self.samples.n_classes
        sums = [product(self.indicator(c)) for c in range(k - (total is not None))]
        if total is not None:
            sums.append(total[:, None] - sum(sums[1:], sums[0]))
        return self.samples.backend.xp.stack(sums)

    @property
    def class_weight(self) -> Array:
        """W_c: (K, 1, 1), on the backend."""
        return self.samples.backend.asarray(self.samples.class_weight)[:, None, None]

    def about_class_means(self, total: Array, square: Array) -> Array:
        """Sums of squares about the class means, from class sums of x and x^2: (K, b, p).

        0 for those of rounding.
        """
        found = square - total * (total / self.class_weight)
        rounding = _OF_SQUARES * self.class_weight * square
        return array_namespace(found).where(found > rounding, found, 0 * found)


@dataclass(frozen=True)
class PermutedColumns:
    """Columns (b) that are sorted once, under p permutations: to a model b * p features.

    With the methods of `SortedColumns` that medians need. One walk along the sorted rows counts the
    samples of each class so far, of all columns and permutations side by side: so no list of values
    is made for each permutation.

    Attributes
    ----------
    permuted : PermutedCodes
    values : array of shape (n, b), float64
        Each column ascending.
    origin : array of integers of shape (n, b)
        The sample of each value.
    """

    permuted: PermutedCodes
    values: Array
    origin: Array

    @property
    def samples(self) -> Samples:
        """Those of one permutation."""
        return self.permuted.samples

    @property
    def backend(self) -> Backend:
        """That of the samples."""
        return self.samples.backend

    def _rows(self, first: int = 0, last: int | None = None) -> Iterator[tuple[int, Array]]:
        """(row, class of the value in this row of each column and permutation, (b, p))."""
        xp, n = self.backend.xp, self.values.shape[0]
        for i in range(first, n if last is None else last):
            yield i, xp.take(self.permuted.codes, self.origin[i, :], axis=0)

    @cached_property
    def _row_numbers(self) -> Any:
        """The type of row numbers and counts, as small as can be: a walk reads little memory."""
        xp, n = self.backend.xp, self.values.shape[0]
        return xp.uint8 if n < 2**8 else xp.uint16 if n < 2**16 else xp.int64

    @cached_property
    def _halves(self) -> tuple[list[Array], list[Array], Array, Array]:
        """Rows at which half of the weight is reached, and exceeded: of each class, and jointly."""
        xp, kind, k = self.backend.xp, self._row_numbers, self.samples.n_classes
        weight = [int(w) for w in self.samples.class_weight]
        joint = JointHalf.of(self.samples)
        # The sum of all masses times factors is twice their half.
        types = ((xp.int16, 2**15), (xp.int32, 2**31), (xp.int64, 2**63))
        wide = next((t for t, limit in types if 2 * joint.most < limit), xp.float64)
        wide = wide if joint.is_exact else xp.float64
        factor = [xp.astype(joint.factor[c, 0], wide) for c in range(k)]
        shape = (self.values.shape[1], self.permuted.count)
        mass, low, high = ([self.backend.zeros(shape, kind) for _ in range(k)] for _ in range(3))
        joint_low, joint_high = self.backend.zeros(shape, kind), self.backend.zeros(shape, kind)
        for i, code in self._rows():
            for c in range(k - 1):
                mass[c] += xp.astype(code == c, kind)
            mass[-1] = xp.full_like(joint_low, i + 1) - sum(mass[1:-1], mass[0])
            for c in range(k):
                low[c] += xp.astype(mass[c] < (weight[c] + 1) // 2, kind)
                high[c] += xp.astype(mass[c] <= weight[c] // 2, kind)
            shares = [xp.astype(mass[c], wide) * factor[c] for c in range(k)]
            total = sum(shares[1:], shares[0])
            joint_low += xp.astype(total < joint.least, kind)
            joint_high += xp.astype(total <= joint.most, kind)
        return low, high, joint_low, joint_high

    def _values_at(self, row: Array) -> Array:
        """The value in a row of each column and permutation: (b * p,)."""
        xp, (n, b) = self.backend.xp, self.values.shape
        row = xp.minimum(xp.astype(row, xp.int64), self.backend.asarray(n - 1))
        at = row * b + self.backend.arange(b)[:, None]
        return xp.take(xp.reshape(self.values, (-1,)), xp.reshape(at, (-1,)))

    def class_intervals(self) -> tuple[Array, Array]:
        """Ends of the interval of medians of each class: two arrays of shape (K, b * p)."""
        low, high, _, _ = self._halves
        xp = self.backend.xp
        return (
            xp.stack([self._values_at(row) for row in low]),
            xp.stack([self._values_at(row) for row in high]),
        )

    def joint_interval(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Ends of the interval of joint medians, whatever the bounds: two arrays of (b * p,)."""
        return self._values_at(self._halves[2]), self._values_at(self._halves[3])

    def loss_difference(self, center: Array, other: Array) -> Array:
        """Sum of |x - other| - |x - center| over each class: (K, b * p).

        For the class medians and the joint ones. A sample beyond both points counts by plus or
        minus their distance, and half of the class, rounded down, lies beyond its median on the far
        side: only the samples between the two points are summed.
        """
        xp, kind, k = self.backend.xp, self._row_numbers, self.samples.n_classes
        low, high, joint_low, joint_high = self._halves
        shape = joint_low.shape
        above = [xp.reshape(other[c, :] > center[c, :], shape) for c in range(k)]
        first = [xp.where(above[c], high[c], joint_high) for c in range(k)]
        last = [xp.where(above[c], joint_low, low[c]) for c in range(k)]
        sums = [self.backend.zeros(shape) for _ in range(k)]
        between = [self.backend.zeros(shape, kind) for _ in range(k)]
        # Relative to the middle of the column, so that sums of values far from zero keep digits.
        middle = self.values[self.values.shape[0] // 2, :]
        nothing = self.backend.asarray(0.0)
        bounds: tuple[int, int | None] = (0, None)
        if not self.backend.sync_is_expensive:
            bounds = min(int(xp.min(f)) for f in first), 1 + max(int(xp.max(x)) for x in last)
            bounds = bounds[0], min(bounds[1], self.values.shape[0])
        for i, code in self._rows(*bounds):
            x = (self.values[i, :] - middle)[:, None]
            for c in range(k):
                inside = (code == c) & (first[c] <= i) & (last[c] >= i)
                between[c] += xp.astype(inside, kind)
                sums[c] += xp.where(inside, x, nothing)
        found = []
        for c, weight in enumerate(self.samples.class_weight):
            m, t = (xp.reshape(p[c, :], shape) - middle[:, None] for p in (center, other))
            count = xp.astype(between[c], xp.float64)
            terms = (t + m) * count - 2 * sums[c]
            beyond = xp.abs(t - m) * (2 * (weight // 2) + count - weight)
            found.append(xp.reshape(beyond + xp.where(above[c], terms, -terms), (-1,)))
        return xp.stack(found)

    def distances(self, center: Array) -> Array:
        """Sums over the samples x of |x - center|: see `SortedColumns`."""
        xp, k = self.backend.xp, self.samples.n_classes
        center = xp.reshape(center, (k, self.values.shape[1], self.permuted.count))
        classes = xp.arange(k, dtype=self.permuted.codes.dtype, device=self.backend.device)[
            :, None, None
        ]
        sums = xp.zeros_like(center)
        for i, code in self._rows():
            terms = xp.abs(self.values[i, :][None, :, None] - center)
            sums = sums + xp.where(code[None, :, :] == classes, terms, xp.zeros_like(terms))
        return xp.reshape(sums, (k, -1))
