"""Where the weights of unordered values reach half: without sorting more than a few of the values.

Bounds come from a sample; the weight below them is summed, and the values between them are sorted.
So the result is exact, and how good the sample is decides on the time alone.
"""

from __future__ import annotations

import math

import numpy as np

from ..arrays.functions import backend_of
from ..arrays.grid import ranges
from ..arrays.namespace import array_namespace, is_numpy, to_numpy
from ..arrays.typing import Array

_WORTH_SAMPLING = 512  # values of a line
_DEVIATIONS = 1.5  # three standard deviations of a sample, each value of which is at random
_OF_RUNS = 1.6  # the same of one from ascending runs, where each run misses by a value at most


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
        near = xp.where(sure, near[0], low), xp.where(sure, near[1], high)
        found, following, _ = _between(table, weight, least, most, *near)
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
    """The ends of the interval, and whether they are sure to lie between these bounds."""
    xp, backend, (b, n) = array_namespace(table), backend_of(table), table.shape
    nothing = xp.zeros_like(weight[:1, :1])
    below, upto = table < low[:, None], table <= high[:, None]
    inside = upto ^ below
    base = total = _sum_where(below, weight)
    if bool(xp.any(low == high)):  # between these nothing is to be sorted
        total, inside = _sum_where(upto, weight), inside & (low < high)[:, None]
    entry = xp.nonzero(xp.reshape(inside, (-1,)))[0]
    first = xp.searchsorted(entry, n * backend.arange(b + 1))
    start, count = first[:-1, None], (first[1:] - first[:-1])[:, None]
    if entry.shape[0] == 0:
        return high, high, (low == high) & (base < least) & (total > most)
    slot = xp.zeros_like(start) + backend.arange(int(xp.max(count)))[None, :]
    used = slot < count
    position = xp.reshape(xp.where(used, start + slot, xp.zeros_like(slot)), (-1,))
    entry = xp.take(entry, position)
    infinity = xp.full_like(table[:1, :1], math.inf)
    x = xp.reshape(xp.take(xp.reshape(table, (-1,)), entry), used.shape)
    x = xp.where(used, x, infinity)
    index = entry % n if weight.shape[0] == 1 else entry
    w = xp.reshape(xp.take(xp.reshape(weight, (-1,)), index), used.shape)
    x, w = _in_order(x, xp.where(used, w, nothing))
    behind = base[:, None] + xp.cumulative_sum(w, axis=1)

    def number(mask: Array) -> Array:
        return xp.sum(xp.astype(mask, xp.int64), axis=1)[:, None]

    last = xp.zeros_like(count) + (x.shape[1] - 1)
    at = number(behind < least)
    found = xp.take_along_axis(x, xp.minimum(at, last), axis=1)
    after = number(x <= found)
    more = xp.take_along_axis(behind, after - 1, axis=1) > most
    following = xp.take_along_axis(x, xp.minimum(after, last), axis=1)
    inner, known = at < count, more | (after < count)
    following = xp.where(more | ~known, found, following)
    inner, known, found, following = (a[:, 0] for a in (inner, known, found, following))
    sure = (base < least) & xp.where(inner, known, (low == high) & (total > most))
    return xp.where(inner, found, high), xp.where(inner, following, high), sure
