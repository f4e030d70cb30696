"""The variables of the interior point method, and its problem: GMEB with few features.

With Z the working columns times y, scaled so that p + q is about 2:

    min  c'xi + e Omega(w)     subject to  y (f + b) >= 1 - xi,  xi >= 0,  Omega(w) <= budget
    max  1'mu - budget (A + B - e)         |Z'mu| <= phi(A, B),  0 <= mu <= c,  y'mu = 0,
                                           A, B >= 0,  A + B >= e

phi = sqrt((A + B)(A p + B q)) is concave, and smooth but at A = B = 0, which e > 0 keeps off. The
multiplier of the budget is lambda = A + B, and t = A / (A + B).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from ...arrays.backend import Backend
from ...arrays.functions import array_namespace, to_float, to_floats
from ...arrays.typing import Array
from ...reductions.working_columns import WorkingColumns


@dataclass(frozen=True)
class Restricted:
    """The problem with d features.

    Attributes
    ----------
    backend : Backend
    columns : WorkingColumns
    sign, weight : arrays of shape (l,)
        y and c.
    p, q : arrays of shape (d,)
    e : float, positive
    budget : float
    scale : float
        The loss of w = 0.
    """

    backend: Backend
    columns: WorkingColumns
    sign: Array
    weight: Array
    p: Array
    q: Array
    e: float
    budget: float
    scale: float

    def product(self, w: Array) -> Array:
        """``Z @ w``."""
        return self.sign * self.columns.product(w)

    def transposed_product(self, v: Array) -> Array:
        """``Z.T @ v``."""
        return self.columns.transposed_product(self.sign * v)


class Phi(NamedTuple):
    """The function phi and its derivatives by A and B: arrays of shape (d,)."""

    value: Array
    by_a: Array
    by_b: Array

    @classmethod
    def at(cls, a: float, b: float, p: Array, q: Array) -> Phi:
        """At A = a and B = b."""
        inside = a * p + b * q
        value = array_namespace(p).sqrt((a + b) * inside)
        double = 2 * value
        return cls(value, (inside + (a + b) * p) / double, (inside + (a + b) * q) / double)

    def curvature(self, w: Array, p: Array, q: Array) -> list[float]:
        """Minus the second derivatives of w'phi: by A twice, by both, by B twice."""
        xp, (f, g, h) = array_namespace(w), self
        terms = xp.stack([(p - g * g) / f, ((p + q) / 2 - g * h) / f, (q - h * h) / f])
        return to_floats(-(terms @ w))


class Products(NamedTuple):
    """The products of a variable and its multiplier, one for each inequality."""

    mu: Array
    xi: Array
    rise: Array
    fall: Array
    a: float
    b: float
    over: float

    def subtracted_from(self, *numbers: Any) -> Products:
        """Seven numbers, or one for all, less these."""
        numbers = numbers * len(self) if len(numbers) == 1 else numbers
        return Products(*(x - own for x, own in zip(numbers, self, strict=True)))


@dataclass(frozen=True)
class Point:
    """The variables, or a direction.

    Attributes
    ----------
    mu : array of shape (l,)
    rise, fall : arrays of shape (d,)
        The slacks phi - Z'mu and phi + Z'mu.
    a, b, over : float
        A, B and A + B - e.
    plus, minus : arrays of shape (d,)
        Of the weights w = plus - minus: the multipliers of the slacks.
    offset : float
    u, xi : arrays of shape (l,)
        The multipliers of mu >= 0 and of mu <= c.
    of_a, of_b, of_over : float
        Those of a, b and over.
    """

    mu: Array
    rise: Array
    fall: Array
    a: float
    b: float
    over: float
    plus: Array
    minus: Array
    offset: float
    u: Array
    xi: Array
    of_a: float
    of_b: float
    of_over: float

    @property
    def _dual(self) -> tuple:
        return self.mu, self.rise, self.fall, self.a, self.b, self.over

    @property
    def _primal(self) -> tuple:
        arrays = self.plus, self.minus, self.offset, self.u, self.xi
        return *arrays, self.of_a, self.of_b, self.of_over

    def moved(self, d: Point, dual: float, primal: float) -> Point:
        """The point after a step of these lengths."""
        return Point(
            *(x + dual * dx for x, dx in zip(self._dual, d._dual, strict=True)),
            *(x + primal * dx for x, dx in zip(self._primal, d._primal, strict=True)),
        )

    def products(self, weight: Array) -> Products:
        """The products of all variables and their multipliers."""
        return self._products(weight - self.mu)

    def second_order(self) -> Products:
        """Of a direction: what the products change by beyond the first order."""
        return self._products(-self.mu)

    def _products(self, room: Array) -> Products:
        return Products(
            *(self.u * self.mu, self.xi * room, self.plus * self.rise, self.minus * self.fall),
            *(self.of_a * self.a, self.of_b * self.b, self.of_over * self.over),
        )

    def complementarity(self, weight: Array) -> float:
        """The sum of all products: the gap, where the point is feasible."""
        xp, found = array_namespace(weight), self.products(weight)
        arrays = [xp.sum(part) for part in found[:4]]
        return to_float(sum(arrays[1:], arrays[0])) + sum(found[4:])

    def longest(self, d: Point) -> tuple[float, float]:
        """The longest steps, dual and primal, that leave all variables positive; at most inf."""
        xp = array_namespace(self.mu)
        sides = (
            ((self.mu, d.mu), (self.rise, d.rise), (self.fall, d.fall)),
            ((self.plus, d.plus), (self.minus, d.minus), (self.u, d.u), (self.xi, d.xi)),
        )
        found = []
        for pairs in sides:
            x, dx = (xp.concat([pair[i] for pair in pairs]) for i in (0, 1))
            ratio = xp.where(dx < 0, x, xp.ones_like(x)) / xp.where(dx < 0, -dx, xp.zeros_like(dx))
            found.append(xp.min(ratio))
        dual, primal = to_floats(xp.stack(found))
        numbers = (self.a, d.a), (self.b, d.b), (self.over, d.over)
        of_numbers = (self.of_a, d.of_a), (self.of_b, d.of_b), (self.of_over, d.of_over)
        return (
            min([dual, *(-x / dx for x, dx in numbers if dx < 0)]),
            min([primal, *(-x / dx for x, dx in of_numbers if dx < 0)]),
        )
