"""Comparison of cumulative weights with one half: of a class, and of all classes together.

Prop. 2 of Calafiore & Fracastoro needs the comparison to be exact where two halves can be equal, so
integer weights are compared as integers. Other weights are compared with a tolerance above the
rounding of their sums.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..arrays.namespace import array_namespace
from ..arrays.typing import Array
from ..blocks.samples import Samples

_INT_LIMIT = 2**63
_UNIT_ROUNDOFF = 2.0**-53
_ANY_ORDER = 1e-6  # more than sums of 10^9 weights differ by, or their tolerance


def _tolerance(samples: Samples) -> float:
    return max(1e-12, 2 * sum(samples.count) * _UNIT_ROUNDOFF)


@dataclass(frozen=True)
class ClassHalf:
    """Half of the weight of each class; masses have shape (K, b).

    Attributes
    ----------
    total : array of shape (K, 1)
        W_c, of int64 where weights are integers.
    least, most : arrays of shape (K, 1)
        Twice a mass from ``least`` to ``most`` counts as W_c. Equal where weights are integers.
    """

    total: Array
    least: Array
    most: Array

    @classmethod
    def of(cls, samples: Samples) -> ClassHalf:
        """The rule for these samples."""
        backend, weight = samples.backend, samples.class_weight
        if samples.has_integer_weights:
            total = backend.asarray([int(w) for w in weight], dtype=backend.xp.int64)[:, None]
            return cls(total, total, total)
        tolerance = _tolerance(samples)
        total = backend.asarray(weight)[:, None]
        return cls(total, total * (1 - tolerance), total * (1 + tolerance))

    def reached(self, mass: Array) -> Array:
        """Whether a mass is at least half of its class's weight."""
        return 2 * mass >= self.least

    def exceeded(self, mass: Array) -> Array:
        """Whether a mass is more than half of its class's weight."""
        return 2 * mass > self.most


# Which columns of sparse data may have a median other than zero: counts of their entries tell.


def enough_stored(stored: Array, least: float, *, weighted: bool) -> Array:
    """Whether columns (m,) store so many entries that half of some class may be among them.

    ``least`` is the weight of the smallest class. Few samples may have it where they are weighted.
    """
    return stored > 0 if weighted else 2 * stored >= least


def worth_a_count_by_class(stored: Array, enough: Array, entries: int, n_classes: int) -> bool:
    """Whether so many entries are in columns with enough that a count by class saves time."""
    if n_classes * stored.shape[0] > entries:
        return False
    xp = array_namespace(stored)
    return 8 * int(xp.sum(xp.where(enough, stored, stored * 0))) >= entries


def perhaps_half(mass: Array, weight: Array) -> Array:
    """Whether half of some class may be in a column, were its mass (K, m) summed in another order.

    ``weight`` holds W_c: (K,).
    """
    return array_namespace(mass).any(2 * mass >= (1 - _ANY_ORDER) * weight[:, None], axis=0)


@dataclass(frozen=True)
class JointHalf:
    """Half of the weight of all classes together, where each class has total weight one.

    Attributes
    ----------
    factor : array of shape (K, 1)
        2 / W_c up to a common factor, of int64 where the comparison is exact.
    goal : int or float
        The sum over the classes of mass times factor at one half.
    tolerance : float or int
        Sides that differ by less count as equal; 0 where the comparison is exact.
    """

    factor: Array
    goal: float
    tolerance: float

    @classmethod
    def of(cls, samples: Samples) -> JointHalf:
        """The exact rule where the numbers fit in int64, else one with a tolerance."""
        backend, weight, k = samples.backend, samples.class_weight, samples.n_classes
        if samples.has_integer_weights:
            common = math.lcm(*(int(w) for w in weight))
            if 2 * k * common < _INT_LIMIT:
                factors = [[2 * (common // int(w))] for w in weight]
                return cls(backend.asarray(factors, dtype=backend.xp.int64), k * common, 0)
        shares = [[2.0 / w] for w in weight]
        return cls(backend.asarray(shares), float(k), k * _tolerance(samples))

    def reached(self, mass: Array) -> Array:
        """Whether the joint share is at least one half: (b,) from masses of shape (K, b)."""
        return self._sum(mass) >= self.goal - self.tolerance

    def exceeded(self, mass: Array) -> Array:
        """Whether the joint share is more than one half: (b,) from masses of shape (K, b)."""
        return self._sum(mass) > self.goal + self.tolerance

    def _sum(self, mass: Array) -> Array:
        xp = array_namespace(mass)
        share = xp.astype(mass, self.factor.dtype) * self.factor
        return xp.sum(share, axis=0, dtype=share.dtype)
