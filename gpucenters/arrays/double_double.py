"""Numbers of twice the precision, as unevaluated sums of two float64 arrays (high, low).

Dekker, "A floating-point technique for extending the available precision", Numer. Math. 18, 1971.
Each step is an operation of its own, which no compiler contracts. The values must stay below
2**990, so that the splitting of a factor does not overflow.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .namespace import array_namespace
from .typing import Array

_SPLITTER = 2.0**27 + 1  # leaves 26 of 53 significant bits


class Double(NamedTuple):
    """An array of numbers ``high + low``, where low is at most half a unit in the last of high."""

    high: Array
    low: Array


def two_sum(a: Array, b: Array) -> Double:
    """``a + b``, exactly."""
    high = a + b
    of_b = high - a
    return Double(high, (a - (high - of_b)) + (b - of_b))


def two_product(a: Any, b: Any) -> Double:
    """``a * b``, exactly, unless the error underflows."""
    high = a * b
    (a1, a2), (b1, b2) = _split(a), _split(b)
    return Double(high, a2 * b2 - (((high - a1 * b1) - a2 * b1) - a1 * b2))


def _split(a: Any) -> tuple[Any, Any]:
    c = a * _SPLITTER
    high = c - (c - a)
    return high, a - high


def add(a: Double, b: Double) -> Double:
    """``a + b`` with a relative error of a few 2**-104 (of the larger where they cancel)."""
    high, error = two_sum(a.high, b.high)
    low, rest = two_sum(a.low, b.low)
    high, error = two_sum(high, error + low)
    return two_sum(high, error + rest)


def negative(a: Double) -> Double:
    """``-a``."""
    return Double(-a.high, -a.low)


def multiply(a: Double, b: Double) -> Double:
    """``a * b``."""
    high, error = two_product(a.high, b.high)
    return two_sum(high, error + (a.high * b.low + a.low * b.high))


def divide(a: Double, b: Array) -> Double:
    """``a / b`` for a divisor of single length."""
    high = a.high / b
    product = two_product(high, b)
    rest = ((a.high - product.high) - product.low) + a.low
    return two_sum(high, rest / b)


def total(a: Double) -> Double:
    """The sum over the last axis, by pairs of neighbours: zeros at the end change no bit of it."""
    xp = array_namespace(a.high)
    count = a.high.shape[-1]
    while count > 1:
        even = count - count % 2
        left, right = (Double(*(x[..., first:even:2] for x in a)) for first in (0, 1))
        last = [x[..., even:count] for x in a]
        a = add(left, right)
        if count % 2:
            a = Double(*(xp.concat([x, y], axis=-1) for x, y in zip(a, last, strict=True)))
        count = a.high.shape[-1]
    if count == 0:
        zero = xp.sum(a.high, axis=-1)
        return Double(zero, zero)
    return Double(a.high[..., 0], a.low[..., 0])
