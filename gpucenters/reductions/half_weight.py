"""What a median needs: weights of halves, and the weighted interval of a sorted list."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays.functions import backend_of
from ..arrays.grid import ranges
from ..arrays.namespace import array_namespace, is_numpy, to_numpy
from ..arrays.typing import Array
from ..blocks.samples import Samples

_INT_LIMIT = 2**63
_UNIT_ROUNDOFF = 2.0**-53
_ANY_ORDER = 1e-6  # more than sums of 10^9 weights differ by, or their tolerance
_WORTH_SAMPLING = 512  # values of a line
_DEVIATIONS = 1.5  # three standard deviations of a sample, each value of which is at random
_OF_RUNS = 1.6  # the same of one from ascending runs, where each run misses by a value at most


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


def perhaps_not_zero(
    stored: Array,
    entries: int,
    weight: Sequence[float],
    by_class: Callable[[], Array],
    *,
    weighted: bool,
) -> Array:
    """Whether columns of sparse data may have a median other than zero in some class: (m,).

    A class has the median zero, and no other, where less than half of its weight is stored.

    Parameters
    ----------
    stored : array of shape (m,)
        Entries of each column,
    entries : int
        and of all columns.
    weight : K floats
        W_c.
    by_class : callable
        The weight of the entries of each class and column, (K, m): asked for where the number of
        entries leaves so many in question that it saves time.
    weighted : bool
        Whether samples have weights.
    """
    enough = enough_stored(stored, min(weight), weighted=weighted)
    if len(weight) * stored.shape[0] > entries:
        return enough
    xp = array_namespace(stored)
    if 8 * int(xp.sum(xp.where(enough, stored, stored * 0))) < entries:
        return enough
    return perhaps_half(by_class(), backend_of(stored).asarray(weight))


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


# Where the weights of unordered values reach half: without sorting more than a few of the values.
#
# Bounds come from a sample; the weight below them is summed, and the values between them are
# sorted. So the result is exact, and how good the sample is decides on the time alone.


def weighted_interval(
    table: Array,
    weight: Array,
    least: float,
    most: float,
    bounds: tuple[Array, Array],
    size: int,
    run_weight: float = math.inf,
) -> tuple[Array, Array]:
    """Ends of the interval, for each line, where the weights up to a value are from least to most.

    Its low end is the smallest value up to which the weights sum to ``least`` or more. Its high end
    is the next larger value if they sum to no more than ``most``, else the same.

    Parameters
    ----------
    table : array of shape (b, n)
        A line of values for each column.
    weight : array of shape (1, n) or (b, n)
        Those of the values, float64 or int64, positive.
    least, most : int or float
    bounds : two arrays of shape (b,)
        Values of the line between which the interval lies.
    size : int
        Values that are worked on in one go.
    run_weight : float
        Where lines are runs of ascending values with equal weights: the norm of one of each run.
    """
    xp, (b, n) = array_namespace(table), table.shape
    low, high = (xp.astype(bound, table.dtype) for bound in bounds)
    ends = []
    for cut in ranges(b, max(1, size // n)):
        part = slice(*cut)
        own = weight if weight.shape[0] == 1 else weight[part, :]
        ends.append(_of_lines(table[part, :], own, least, most, low[part], high[part], run_weight))
    one, other = (xp.astype(xp.concat(list(end)), xp.float64) for end in zip(*ends, strict=True))
    return one, other


def _of_lines(
    table: Array,
    weight: Array,
    least: float,
    most: float,
    low: Array,
    high: Array,
    run_weight: float,
) -> tuple[Array, Array]:
    xp, near = array_namespace(table), (low, high)
    if table.shape[1] >= _WORTH_SAMPLING:
        left, right = _estimate(table, weight, least, run_weight)
        near = xp.minimum(xp.maximum(low, left), high), xp.maximum(xp.minimum(high, right), low)
    found, following, sure = _between(table, weight, least, most, *near)
    if not bool(xp.all(sure)):
        line = xp.nonzero(~sure)[0]
        own = weight if weight.shape[0] == 1 else xp.take(weight, line, axis=0)
        bounds = (xp.take(bound, line) for bound in (low, high))
        again = _between(xp.take(table, line, axis=0), own, least, most, *bounds)
        place = xp.cumulative_sum(xp.astype(~sure, xp.int64)) - xp.astype(~sure, xp.int64)
        place = xp.minimum(place, xp.zeros_like(place) + (line.shape[0] - 1))
        found, following = (
            xp.where(sure, one, xp.take(other, place))
            for one, other in zip((found, following), again[:2], strict=True)
        )
    return found, following


def _estimate(table: Array, weight: Array, least: float, run_weight: float) -> tuple[Array, Array]:
    """Values of each line between which the weights most likely reach ``least``."""
    xp, n = array_namespace(table), table.shape[1]
    step = max(1, round(n ** (1 / 3)))
    x, w = table[:, step // 2 :: step], xp.astype(weight[:, step // 2 :: step], xp.float64)
    spread = _DEVIATIONS * xp.sqrt(xp.sum(w * w, axis=1))
    if math.isfinite(run_weight):
        spread = xp.minimum(spread, xp.full_like(spread, _OF_RUNS * run_weight))
    goal = xp.sum(w, axis=1) * (float(least) / xp.sum(xp.astype(weight, xp.float64), axis=1))
    x, w = _in_order(x, xp.broadcast_to(w, x.shape))
    upto = xp.cumulative_sum(w, axis=1)

    def at(weight: Array) -> Array:
        item = xp.sum(xp.astype(upto < weight[:, None], xp.int64), axis=1)[:, None]
        item = xp.minimum(item, xp.zeros_like(item) + (x.shape[1] - 1))
        return xp.take_along_axis(x, item, axis=1)[:, 0]

    left, middle, right = at(goal - spread), at(goal), at(goal + spread)
    # A value that many samples have is most likely the one.
    tied = (left == middle) | (middle == right)
    return xp.where(tied, middle, left), xp.where(tied, middle, right)


def _in_order(x: Array, w: Array) -> tuple[Array, Array]:
    """The values of each line, ascending, and their weights."""
    xp, (b, n) = array_namespace(x), x.shape
    order = xp.argsort(x, axis=1, stable=False)
    # (`take_along_axis` takes several times as long.)
    at = xp.reshape(order + n * backend_of(x).arange(b)[:, None], (-1,))
    x, w = (xp.reshape(xp.take(xp.reshape(a, (-1,)), at), (b, n)) for a in (x, w))
    return x, w


def _sum_where(mask: Array, weight: Array) -> Array:
    """The weights of each line where the mask is true, added up: (b,)."""
    xp = array_namespace(weight)
    if is_numpy(xp):  # several times as fast, for it makes no array of all weights
        host = to_numpy(mask)
        return np.einsum("ij,ij->i", host, np.broadcast_to(to_numpy(weight), host.shape))
    return xp.sum(xp.where(mask, weight, xp.zeros_like(weight[:1, :1])), axis=1)


def _between(
    table: Array, weight: Array, least: float, most: float, low: Array, high: Array
) -> tuple[Array, Array, Array]:
    """The ends of the interval, and whether they are sure to lie between these bounds.

    Only values strictly between the bounds are sorted: those of data with few values are few.
    """
    xp, backend, (b, n) = array_namespace(table), backend_of(table), table.shape
    low, high = low[:, None], high[:, None]
    upto_low = table <= low
    before, at_low, total = (
        _sum_where(mask, weight)[:, None] for mask in (table < low, upto_low, table <= high)
    )
    entry = xp.nonzero(xp.reshape((table < high) & ~upto_low, (-1,)))[0]
    values, behind = [low, high], [at_low, total]
    if entry.shape[0]:
        first = xp.searchsorted(entry, n * backend.arange(b + 1))
        start, count = first[:-1, None], (first[1:] - first[:-1])[:, None]
        slot = xp.zeros_like(start) + backend.arange(int(xp.max(count)))[None, :]
        used = slot < count
        position = xp.reshape(xp.where(used, start + slot, xp.zeros_like(slot)), (-1,))
        entry = xp.take(entry, position)
        x = xp.reshape(xp.take(xp.reshape(table, (-1,)), entry), used.shape)
        index = entry % n if weight.shape[0] == 1 else entry
        w = xp.reshape(xp.take(xp.reshape(weight, (-1,)), index), used.shape)
        x, w = _in_order(xp.where(used, x, high), xp.where(used, w, xp.zeros_like(w[:1, :1])))
        values.insert(1, x)
        behind.insert(1, at_low + xp.cumulative_sum(w, axis=1))
    x, upto = xp.concat(values, axis=1), xp.concat(behind, axis=1)

    def number(mask: Array) -> Array:
        return xp.sum(xp.astype(mask, xp.int64), axis=1)[:, None]

    at = number(upto < least)
    last = xp.zeros_like(at) + (x.shape[1] - 1)
    found = xp.take_along_axis(x, xp.minimum(at, last), axis=1)
    after = number(x <= found)
    more = xp.take_along_axis(upto, after - 1, axis=1) > most
    following = xp.take_along_axis(x, xp.minimum(after, last), axis=1)
    sure = (before < least) & (at <= last) & (more | (after <= last))
    found, following, sure = (a[:, 0] for a in (found, xp.where(more, found, following), sure))
    return found, following, sure
