"""Weighted medians of sorted columns: of each class, and of all classes together.

Prop. 2 of Calafiore & Fracastoro, with every tie settled: W(z) is the weight of the values up to
z. The smallest value zbar with W(zbar) >= W/2 is the median if W(zbar) > W/2, else the median is
the midpoint of zbar and the next larger value. Whole-number weights are compared exactly.
"""

from __future__ import annotations

import math

from ..arrays.functions import array_namespace
from ..arrays.typing import Array
from ..reductions.half_weight import ClassHalf, JointHalf
from ..reductions.labelled_columns import LabelledColumns
from ..reductions.sorted_columns import SortedColumns


def midpoint(low: Array, high: Array) -> Array:
    """The middle of an interval; the value itself where both ends are equal."""
    return array_namespace(low).where(low == high, low, 0.5 * low + 0.5 * high)


def class_intervals(
    columns: SortedColumns | LabelledColumns, half: ClassHalf
) -> tuple[Array, Array]:
    """Ends of the interval of medians of each class and column: two arrays of shape (K, b)."""
    if isinstance(columns, LabelledColumns):
        return columns.class_intervals()
    xp = columns.backend.xp
    ends = columns.class_intervals(half)
    if ends is not None:
        return ends
    if columns.plain:  # the number of items is their weight
        item = (columns.size + 1) // 2 - 1
    else:
        start = xp.zeros_like(columns.size)
        item = columns.first(lambda i: half.reached(columns.mass(i + 1)), start, columns.size)
    low = columns.value(item)
    more = half.exceeded(columns.mass(item + 1))
    last = item + 1 >= columns.size
    return low, xp.where(more | last, low, columns.value(item + 1))


def tied_interval(
    columns: SortedColumns | LabelledColumns, half: JointHalf, low: Array, high: Array
) -> tuple[Array, Array]:
    """Ends of the interval of joint medians, each class with total weight one.

    Parameters
    ----------
    columns : SortedColumns
    half : JointHalf
    low, high : arrays of shape (b,)
        Values between which the interval lies.

    Returns
    -------
    low : array of shape (b,)
    high : array of shape (b,)
    """
    if isinstance(columns, LabelledColumns):
        return columns.tied_interval()
    xp, backend = columns.backend.xp, columns.backend
    k, b = columns.shape
    ends = columns.joint_interval(half, low, high)
    if ends is not None:
        return ends
    search = _search_two if columns.plain and k == 2 and not half.tolerance else _search
    found = search(columns, half, low, high)
    zero = xp.zeros_like(columns.size)
    # The next larger value, where exactly half of the weight lies at or below ``found``.
    upto = columns.first(lambda i: columns.value(i) > found, zero, columns.size)
    infinity = xp.full((k, b), float("inf"), dtype=xp.float64, device=backend.device)
    following = xp.min(xp.where(upto < columns.size, columns.value(upto), infinity), axis=0)
    more = half.exceeded(columns.mass(upto)) | ~xp.isfinite(following)
    return found, xp.where(more, found, following)


def _search(columns: SortedColumns, half: JointHalf, low: Array, high: Array) -> Array:
    """The smallest value with at least half of the weight up to it, among any number of lists.

    A bisection over the K sorted lists at once, without merging them. Each round takes the middle
    item of what is left of each list, takes the weighted median of these K as the pivot, and drops
    all items on the wrong side of it: at least a quarter of what is left.
    """
    xp, backend = columns.backend.xp, columns.backend
    k = columns.shape[0]
    zero = xp.zeros_like(columns.size)
    classes = xp.arange(k, dtype=xp.int64, device=backend.device)[:, None]
    left = columns.first(lambda i: columns.value(i) >= low, zero, columns.size)
    right = columns.first(lambda i: columns.value(i) > high, left, columns.size)
    found = high
    most = int(xp.max(xp.sum(right - left, axis=0)))
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


def _search_two(columns: SortedColumns, half: JointHalf, low: Array, high: Array) -> Array:
    """The same for two lists of unit weights: one bisection for each, a step of two look-ups.

    With i + 1 items of one list at or below its item i, the other must have a known number there.
    """
    xp, backend = columns.backend.xp, columns.backend
    goal = backend.asarray(half.goal, dtype=xp.int64)
    other = xp.flip(half.factor, axis=0)
    start, size = xp.flip(columns.start, axis=0), xp.flip(columns.size, axis=0)

    def enough(item: Array) -> Array:
        lacking = goal - (item + 1) * half.factor
        need = (lacking + other - 1) // other  # of the other list, rounded up
        last = columns.look_up(start + need - 1)
        return (need <= 0) | ((need <= size) & (last <= columns.value(item)))

    item = columns.first(enough, xp.zeros_like(columns.size), columns.size)
    infinity = xp.full(item.shape, float("inf"), dtype=xp.float64, device=backend.device)
    return xp.min(xp.where(item < columns.size, columns.value(item), infinity), axis=0)


def _pivot(columns: SortedColumns, left: Array, active: Array) -> tuple[Array, Array, Array]:
    """Value, class and position of the median of the lists' middles, weighted by their lengths."""
    xp = columns.backend.xp
    middle = left + active // 2
    infinity = xp.full(active.shape, float("inf"), dtype=xp.float64, device=columns.backend.device)
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
