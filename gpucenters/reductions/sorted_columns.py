"""Sorted columns: the values of each class in each column, ascending, and their medians.

Dense and sparse data share this form. A column of one class is a list of *items*. In a dense block
an item is a sample. In a sparse block all zeros of the column, stored or not, are one item with
their joint weight.

A median is an interval (Prop. 2 of Calafiore & Fracastoro, with every tie settled): W(z) is the
weight of the values up to z. Its low end is the smallest value with W(low) >= W/2, its high end the
next larger value if W(low) = W/2, else the same. Whole-number weights are compared exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ..arrays import kernels
from ..arrays.backend import Backend
from ..arrays.functions import UNIT_ROUNDOFF
from ..arrays.namespace import array_namespace, is_numpy, to_numpy
from ..arrays.typing import Array
from ..blocks.samples import Samples

_INT_LIMIT = 2**63


def _tolerance(samples: Samples) -> float:
    return max(1e-12, 2 * sum(samples.count) * UNIT_ROUNDOFF)


def _class_half(samples: Samples) -> tuple[Array, Array]:
    """(least, most), (K, 1): twice a mass from least to most counts as the weight of the class.

    They are equal, and of int64, where weights are integers.
    """
    backend, weight = samples.backend, samples.class_weight
    if samples.has_integer_weights:
        total = backend.asarray([int(w) for w in weight], dtype=backend.xp.int64)[:, None]
        return total, total
    tolerance, total = _tolerance(samples), backend.asarray(weight)[:, None]
    return total * (1 - tolerance), total * (1 + tolerance)


@dataclass(frozen=True)
class JointHalf:
    """Half of the weight of all classes together, where each class has total weight one.

    Attributes
    ----------
    factor : array of shape (K, 1)
        2 / W_c up to a common factor, of int64 where the comparison is exact.
    least, most : int or float
        Sums over the classes of mass times factor from ``least`` to ``most`` count as one half.
    """

    factor: Array
    least: float
    most: float

    @classmethod
    def of(cls, samples: Samples) -> JointHalf:
        """The exact rule where the numbers fit in int64, else one with a tolerance."""
        backend, weight, k = samples.backend, samples.class_weight, samples.n_classes
        if samples.has_integer_weights:
            common = math.lcm(*(int(w) for w in weight))
            if 2 * k * common < _INT_LIMIT:
                factors = [[2 * (common // int(w))] for w in weight]
                factor = backend.asarray(factors, dtype=backend.xp.int64)
                return cls(factor, k * common, k * common)
        shares, tolerance = [[2.0 / w] for w in weight], k * _tolerance(samples)
        return cls(backend.asarray(shares), k - tolerance, k + tolerance)

    @property
    def is_exact(self) -> bool:
        """Whether sums are compared exactly."""
        return self.least == self.most

    def reached(self, mass: Array) -> Array:
        """Whether the joint share is at least one half: (b,) from masses of shape (K, b)."""
        return self._sum(mass) >= self.least

    def exceeded(self, mass: Array) -> Array:
        """Whether the joint share is more than one half: (b,) from masses of shape (K, b)."""
        return self._sum(mass) > self.most

    def _sum(self, mass: Array) -> Array:
        xp = array_namespace(mass)
        share = xp.astype(mass, self.factor.dtype) * self.factor
        return xp.sum(share, axis=0, dtype=share.dtype)


@dataclass(frozen=True, kw_only=True)
class SortedColumns:
    """Items of K classes in b columns.

    Attributes
    ----------
    samples : Samples
    values : array of shape (N,)
        All stored values; those of one class and column are contiguous and ascending.
    start : array of int64 of shape (K, b)
        Where they begin.
    n_items : array of int64 of shape (K, b)
        How many items there are, the zero item included.
    bisections : int
        Bound on the steps of a search by bisection for an item of one list.
    zero_at : array of int64 of shape (K, b) or None
        Position of the zero item; not below ``n_items`` where there is none. None: no list has one.
    zero_mass : array of shape (K, b) or None
        Its weight, int64 where weights are counts.
    weights, cumulative : array of shape (N,) or None
        Weights of the stored values and their running sum within each list; None counts each once.
    """

    samples: Samples
    values: Array
    start: Array
    n_items: Array
    bisections: int
    zero_at: Array | None = None
    zero_mass: Array | None = None
    weights: Array | None = None
    cumulative: Array | None = None

    @property
    def backend(self) -> Backend:
        """That of the samples."""
        return self.samples.backend

    @property
    def shape(self) -> tuple[int, int]:
        """(K, b)."""
        return self.n_items.shape

    def _stored(self, item: Array) -> Array:
        """How many stored values come before ``item``: all items but the zero item are stored."""
        if self.zero_at is None:
            return item
        xp = self.backend.xp
        return item - xp.astype(item > self.zero_at, xp.int64)

    def _take(self, array: Array, position: Array) -> Array:
        xp = self.backend.xp
        if array.shape[0] == 0:
            return self.backend.zeros(position.shape, array.dtype)
        if is_numpy(xp):
            return to_numpy(array).take(to_numpy(position), mode="clip")
        zero = xp.zeros_like(position)
        inside = xp.minimum(xp.maximum(position, zero), zero + (array.shape[0] - 1))
        return xp.reshape(xp.take(array, xp.reshape(inside, (-1,))), position.shape)

    @property
    def has_unit_items(self) -> bool:
        """Whether each item is one stored value of weight one."""
        return self.zero_at is None and self.cumulative is None

    def _look_up(self, position: Array) -> Array:
        """Stored values (float64) by their position; unspecified for positions out of range."""
        return self.backend.xp.astype(self._take(self.values, position), self.backend.xp.float64)

    def value(self, item: Array) -> Array:
        """The value of each item (float64); unspecified for items out of range."""
        xp = self.backend.xp
        stored = self._look_up(self.start + self._stored(item))
        if self.zero_at is None:
            return stored
        return xp.where(item == self.zero_at, self.backend.asarray(0.0), stored)

    def _value_or_infinity(self, item: Array, end: Array) -> Array:
        xp = self.backend.xp
        return xp.where(item < end, self.value(item), self.backend.asarray(math.inf))

    def mass(self, item: Array) -> Array:
        """The weight of all items before ``item``."""
        xp = self.backend.xp
        stored = self._stored(item)
        if self.cumulative is None:
            mass = stored
        else:
            before = self._take(self.cumulative, self.start + stored - 1)
            mass = xp.where(stored > 0, before, self.backend.zeros((), before.dtype))
        if self.zero_at is None:
            return mass
        passed = xp.astype(item > self.zero_at, mass.dtype)
        return mass + passed * self.zero_mass

    def first(
        self,
        predicate: Callable[[Array], Array],
        low: Array | None = None,
        high: Array | None = None,
    ) -> Array:
        """The first item, of all or in low..high, for which a monotone predicate holds: (K, b).

        By bisection; ``high`` where there is none.
        """
        xp = self.backend.xp
        low = xp.zeros_like(self.n_items) if low is None else low
        high = self.n_items if high is None else high
        for _ in range(self.bisections):
            middle = (low + high) // 2
            holds = predicate(middle)
            open_ = low < high
            high = xp.where(open_ & holds, middle, high)
            low = xp.where(open_ & ~holds, middle + 1, low)
        return low

    def items_below(self, bound: Array, *, or_equal: bool = False) -> Array:
        """How many items of each list are below (or equal to) a value: (K, b).

        ``bound`` is of shape (b,) or (K, b).
        """

        def beyond(item: Array) -> Array:
            return self.value(item) > bound if or_equal else self.value(item) >= bound

        return self.first(beyond)

    def class_intervals(self) -> tuple[Array, Array]:
        """Ends of the interval of medians of each class and column: two arrays of shape (K, b)."""
        xp, (least, most) = self.backend.xp, _class_half(self.samples)
        if self.backend.sync_is_expensive:
            return kernels.class_intervals(self, least, most)
        if self.has_unit_items:  # the number of items is their weight
            item = (self.n_items + 1) // 2 - 1
        else:
            item = self.first(lambda i: 2 * self.mass(i + 1) >= least)
        low = self.value(item)
        more = 2 * self.mass(item + 1) > most
        last = item + 1 >= self.n_items
        return low, xp.where(more | last, low, self.value(item + 1))

    def joint_interval(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Ends of the interval of joint medians, each class with total weight one: two of (b,).

        ``low`` and ``high``, (b,), are values between which the interval lies.
        """
        half = JointHalf.of(self.samples)
        if self.backend.sync_is_expensive:
            return kernels.joint_intervals(self, half.factor, half.least, half.most, low, high)
        return self._joint_interval(half, low, high)

    def _joint_interval(self, half: JointHalf, low: Array, high: Array) -> tuple[Array, Array]:
        xp = self.backend.xp
        two = self.has_unit_items and self.shape[0] == 2 and half.is_exact
        found = self._search_two(half) if two else self._search(half, low, high)
        # The next larger value, where exactly half of the weight lies at or below ``found``.
        upto = self.items_below(found, or_equal=True)
        following = xp.min(self._value_or_infinity(upto, self.n_items), axis=0)
        more = half.exceeded(self.mass(upto)) | ~xp.isfinite(following)
        return found, xp.where(more, found, following)

    def _search(self, half: JointHalf, low: Array, high: Array) -> Array:
        """The smallest value with at least half of the weight up to it, among any number of lists.

        A bisection over the K sorted lists at once, without merging them. Each round takes the
        middle item of what is left of each list, takes the weighted median of these K as the pivot,
        and drops all items on the wrong side of it: at least a quarter of what is left.
        """
        xp, backend = self.backend.xp, self.backend
        k = self.shape[0]
        classes = xp.arange(k, dtype=xp.int64, device=backend.device)[:, None]
        left = self.items_below(low)
        right = self.items_below(high, or_equal=True)
        found = high
        most = int(xp.max(xp.sum(right - left, axis=0)))
        rounds = math.ceil(math.log(max(most, 1)) / math.log(4 / 3)) + 2
        for _ in range(rounds):
            active = right - left
            pivot, owner, own = self._pivot(left, active)
            is_owner = classes == owner

            # A total order on items: by value, then class, then position in the list.
            def after(i: Array, pivot: Array = pivot, owner: Array = owner) -> Array:
                value = self.value(i)
                return (value > pivot) | ((value == pivot) & (classes > owner))

            split = self.first(after, left, right)
            split = xp.where(is_owner, own + 1, split)
            some = xp.sum(active, axis=0) > 0
            reached = half.reached(self.mass(split))
            found = xp.where(some & reached, pivot, found)
            right = xp.where(some & reached, xp.where(is_owner, own, split), right)
            left = xp.where(some & ~reached, split, left)
        return found

    def _search_two(self, half: JointHalf) -> Array:
        """The same for two lists of unit weights: one bisection for each, a step of two look-ups.

        With i + 1 items of one list at or below its item i, the other must have a known number
        there.
        """
        xp, backend = self.backend.xp, self.backend
        goal = backend.asarray(half.least, dtype=xp.int64)
        other = xp.flip(half.factor, axis=0)
        start, size = xp.flip(self.start, axis=0), xp.flip(self.n_items, axis=0)

        def enough(item: Array) -> Array:
            lacking = goal - (item + 1) * half.factor
            need = (lacking + other - 1) // other  # of the other list, rounded up
            last = self._look_up(start + need - 1)
            return (need <= 0) | ((need <= size) & (last <= self.value(item)))

        item = self.first(enough)
        return xp.min(self._value_or_infinity(item, self.n_items), axis=0)

    def _pivot(self, left: Array, active: Array) -> tuple[Array, Array, Array]:
        """Value, class and position of the median of the middles, weighted by their lengths."""
        xp = self.backend.xp
        middle = left + active // 2
        value = self._value_or_infinity(middle, left + active)
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

    def weighted_sums(self, f: Callable[..., Array], *parameters: Array) -> Array:
        """Sums over the items x of their weight times ``f(x, *p)``.

        Parameters
        ----------
        f : callable, elementwise
            Its p are the list's own parameters.
        *parameters : arrays of shape (K, b)

        Returns
        -------
        array of shape (K, b), float64
        """
        raise NotImplementedError

    def _sums(self, f: Callable[..., Array], ends: tuple[Array, ...], *parameters: Array) -> Array:
        """`weighted_sums` of a function of distances to ``ends``; on CUDA by one kernel."""
        if not self.backend.sync_is_expensive:
            return self.weighted_sums(f, *parameters)
        stored = self._stored(self.n_items)
        sums = kernels.distance_sums(self.values, self.start, stored, self.weights, *ends)
        if self.zero_mass is None:
            return sums
        at_zero = f(self.backend.zeros(self.shape), *parameters)
        return sums + self.backend.xp.astype(self.zero_mass, sums.dtype) * at_zero

    def distances(self, center: Array) -> Array:
        """Sums of weight times |x - center| over the items: (K, b), as the centers."""
        return self._sums(lambda x, center: abs(x - center), (center,), center)

    def loss_difference(self, center: Array, other: Array) -> Array:
        """Sum of weight times (|x - other| - |x - center|) over the items, without cancellation.

        Beyond the two points it is plus or minus their distance, so x may be clipped to the
        interval between them, however far away it is.
        """
        xp, towards = self.backend.xp, other - center
        nothing = xp.zeros_like(towards)
        ends = xp.minimum(towards, nothing), xp.maximum(towards, nothing)

        def terms(x: Array, center: Array, low: Array, high: Array, half: Array) -> Array:
            return half - xp.minimum(xp.maximum(x - center, low), high)

        halves = self._sums(terms, (center, other), center, *ends, 0.5 * towards)
        return 2 * xp.where(other < center, -halves, halves)
