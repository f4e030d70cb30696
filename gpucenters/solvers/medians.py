"""Weighted medians of sorted columns: of each class, and of all classes together.

Prop. 2 of Calafiore & Fracastoro, with every tie settled: W(z) is the weight of the values up to
z. The smallest value zbar with W(zbar) >= W/2 is the median if W(zbar) > W/2, else the median is
the midpoint of zbar and the next larger value. Whole-number weights are compared exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..arrays.ops import array_namespace
from ..arrays.ordering import SortedColumns
from ..arrays.typing import Array

_INT_LIMIT = 2**63
_EPS = 2.0**-53


@dataclass(frozen=True)
class Half:
    """How "at least half of the weight" is decided.

    Attributes
    ----------
    factor : array of shape (K, 1)
        2 / W_c up to a common factor: of int64 where the comparison is exact.
    goal : int or float
        What K halves make with these factors.
    tolerance : float or int
        Two sides that differ by less count as equal; 0 where the comparison is exact.
    """

    factor: Array
    goal: float
    tolerance: float

    @classmethod
    def of(cls, columns: SortedColumns, weight: list[float], n: int, whole: bool) -> Half:
        """The exact rule where the numbers fit in int64, else one with a tolerance."""
        place, k = columns.place, len(weight)
        if whole:
            common = math.lcm(*(int(w) for w in weight))
            if 2 * k * common < _INT_LIMIT:
                factors = [[2 * (common // int(w))] for w in weight]
                return cls(place.asarray(factors, dtype=place.xp.int64), k * common, 0)
        shares = [[2.0 / w] for w in weight]
        return cls(place.asarray(shares), float(k), k * max(1e-12, 2 * n * _EPS))

    def reached(self, mass: Array) -> Array:
        """Whether the joint share of the classes is at least a half; mass has shape (K, b)."""
        return self._sum(mass) >= self.goal - self.tolerance

    def exceeded(self, mass: Array) -> Array:
        """Whether it is more than a half."""
        return self._sum(mass) > self.goal + self.tolerance

    def _sum(self, mass: Array) -> Array:
        xp = array_namespace(mass)
        share = xp.astype(mass, self.factor.dtype) * self.factor
        total = share[0, :]
        for c in range(1, share.shape[0]):
            total = total + share[c, :]
        return total


def midpoint(low: Array, high: Array, columns: SortedColumns) -> Array:
    """The middle of an interval; the value itself where both ends are equal."""
    return columns.place.xp.where(low == high, low, 0.5 * low + 0.5 * high)


def class_intervals(
    columns: SortedColumns, weight: list[float], n: int, whole: bool
) -> tuple[Array, Array]:
    """Ends of the interval of medians of each class and column: two arrays of shape (K, b)."""
    xp, place = columns.place.xp, columns.place
    if whole:
        least = most = place.asarray([int(w) for w in weight], dtype=xp.int64)[:, None]
    else:
        tolerance = max(1e-12, 2 * n * _EPS)
        w = place.asarray(weight)[:, None]
        least, most = w * (1 - tolerance), w * (1 + tolerance)

    def reached(item: Array) -> Array:
        return 2 * columns.mass(item + 1) >= least

    if columns.plain:  # items and their weight are the same thing
        item = (columns.size + 1) // 2 - 1
    else:
        item = columns.first(reached, xp.zeros_like(columns.size), columns.size)
    low = columns.value(item)
    more = 2 * columns.mass(item + 1) > most
    last = item + 1 >= columns.size
    return low, xp.where(more | last, low, columns.value(item + 1))


def tied_interval(
    columns: SortedColumns, half: Half, low: Array, high: Array
) -> tuple[Array, Array]:
    """Ends of the interval of joint medians, each class with total weight one.

    Parameters
    ----------
    columns : SortedColumns
    half : Half
    low, high : arrays of shape (b,)
        Values between which the interval lies.

    Returns
    -------
    low, high : arrays of shape (b,)
    """
    xp, place = columns.place.xp, columns.place
    k, b = columns.shape
    search = _search_two if columns.plain and k == 2 and not half.tolerance else _search
    found = search(columns, half, low, high)
    zero = xp.zeros_like(columns.size)
    # The next larger value, where exactly half of the weight lies at or below ``found``.
    upto = columns.first(lambda i: columns.value(i) > found, zero, columns.size)
    infinity = xp.full((k, b), float("inf"), dtype=xp.float64, device=place.device)
    following = xp.min(xp.where(upto < columns.size, columns.value(upto), infinity), axis=0)
    more = half.exceeded(columns.mass(upto)) | ~xp.isfinite(following)
    return found, xp.where(more, found, following)


def _search(columns: SortedColumns, half: Half, low: Array, high: Array) -> Array:
    """The smallest value with at least half of the weight up to it, among any number of lists.

    A bisection over the K sorted lists at once, without merging them. Each round takes the middle
    item of what is left of each list, takes the weighted median of these K as the pivot, and drops
    all items on the wrong side of it: at least a quarter of what is left.
    """
    xp, place = columns.place.xp, columns.place
    k = columns.shape[0]
    zero = xp.zeros_like(columns.size)
    classes = xp.arange(k, dtype=xp.int64, device=place.device)[:, None]
    left = columns.first(lambda i: columns.value(i) >= low, zero, columns.size)
    right = columns.first(lambda i: columns.value(i) > high, left, columns.size)
    found = high
    # (Where to look at the numbers would stall, as many rounds as there might have to be.)
    most = columns.most if place.stalls else int(xp.max(xp.sum(right - left, axis=0)))
    rounds = math.ceil(math.log(max(most, 1)) / math.log(4 / 3)) + 2
    for _ in range(rounds):
        active = right - left
        pivot, owner, own = _pivot(columns, left, active)
        is_owner = classes == owner

        # A total order on items: by value, then class, then position in the list.
        def after(i: Array, pivot: Array = pivot, owner: Array = owner) -> Array:
            value = columns.value(i)
            return (value > pivot) | ((value == pivot) & (classes > owner))

        split = columns.first(after, left, right)
        split = xp.where(is_owner, own + 1, split)
        some = xp.sum(active, axis=0) > 0
        reached = half.reached(columns.mass(split))
        found = xp.where(some & reached, pivot, found)
        right = xp.where(some & reached, xp.where(is_owner, own, split), right)
        left = xp.where(some & ~reached, split, left)
    return found


def _search_two(columns: SortedColumns, half: Half, low: Array, high: Array) -> Array:
    """The same for two lists of unit weights: one bisection for each, a step of two look-ups.

    With i + 1 items of one list at or below its item i, the other must have a known number there.
    """
    xp, place = columns.place.xp, columns.place
    goal = place.asarray(half.goal, dtype=xp.int64)
    other = xp.flip(half.factor, axis=0)
    start, size = xp.flip(columns.start, axis=0), xp.flip(columns.size, axis=0)

    def enough(item: Array) -> Array:
        lacking = goal - (item + 1) * half.factor
        need = (lacking + other - 1) // other  # of the other list, rounded up
        last = columns.look_up(start + need - 1)
        return (need <= 0) | ((need <= size) & (last <= columns.value(item)))

    item = columns.first(enough, xp.zeros_like(columns.size), columns.size)
    infinity = xp.full(item.shape, float("inf"), dtype=xp.float64, device=place.device)
    return xp.min(xp.where(item < columns.size, columns.value(item), infinity), axis=0)


def _pivot(columns: SortedColumns, left: Array, active: Array) -> tuple[Array, Array, Array]:
    """Value, class and position of the median of the lists' middles, weighted by their lengths."""
    xp = columns.place.xp
    middle = left + active // 2
    infinity = xp.full(active.shape, float("inf"), dtype=xp.float64, device=columns.place.device)
    value = xp.where(active > 0, columns.value(middle), infinity)
    # Stable: among equal middles the lower class comes first, as in the order on items.
    order = xp.argsort(value, axis=0, stable=True)
    length = xp.take_along_axis(active, order, axis=0)
    behind = xp.cumulative_sum(length, axis=0)
    at = xp.sum(xp.astype(2 * behind < xp.sum(active, axis=0), xp.int64), axis=0)
    last = xp.zeros_like(at) + (active.shape[0] - 1)
    at = xp.minimum(at, last)[None, :]
    owner = xp.take_along_axis(order, at, axis=0)
    pivot = xp.take_along_axis(value, owner, axis=0)
    own = xp.take_along_axis(middle, owner, axis=0)
    return pivot[0, :], owner, own
