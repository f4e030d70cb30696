"""The linear system of one step of the interior point method."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...arrays.backend import Backend
from ...arrays.functions import array_namespace, to_float, to_floats
from ...arrays.linalg import factorised
from ...arrays.typing import Array
from ...reductions.working_columns import WorkingColumns

_FEW = 300  # features that are all factorised
_MATTERS = 1.0  # the least share of a feature's curvature to its ridge to be factorised
_TOL = 1e-4  # in the norm of the matrix; what is left is in the residual of the next step
_MOST_ITERATIONS = 300
_RIDGE = 1e-13  # relative: equal columns leave directions without curvature
_KEPT_OF_TANGENT = 0.5


# The variables of the interior point method, and its problem: GMEB with few features.
#
# With Z the working columns times y, scaled so that p + q is about 2:
#
#     min  c'xi + e Omega(w)     subject to  y (f + b) >= 1 - xi,  xi >= 0,  Omega(w) <= budget
#     max  1'mu - budget (A + B - e)         |Z'mu| <= phi(A, B),  0 <= mu <= c,  y'mu = 0,
#                                            A, B >= 0,  A + B >= e
#
# phi = sqrt((A + B)(A p + B q)) is concave, and smooth but at A = B = 0, which e > 0 keeps off.
# The multiplier of the budget is lambda = A + B, and t = A / (A + B).


@dataclass(frozen=True)
class Restricted:
    """The problem with d features."""

    backend: Backend
    columns: WorkingColumns
    sign: Array  # y: (l,)
    weight: Array  # c: (l,)
    p: Array  # (d,)
    q: Array  # (d,)
    e: float  # positive
    budget: float
    scale: float  # the loss of w = 0

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
    """The variables, or a direction."""

    mu: Array  # (l,)
    rise: Array  # the slack phi - Z'mu: (d,)
    fall: Array  # the slack phi + Z'mu: (d,)
    a: float  # A
    b: float  # B
    over: float  # A + B - e
    # The multipliers of these: of rise and fall, the weights w = plus - minus; of y'mu = 0; of
    # mu >= 0 and of mu <= c; of A, B and A + B - e.
    plus: Array  # (d,)
    minus: Array  # (d,)
    offset: float
    u: Array  # (l,)
    xi: Array  # (l,)
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


# Systems with the matrix of a weighted ridge regression with an intercept.
#
# Most features of a wide problem hardly matter to it: their ridge is large. Those that do are
# factorised, and the method of conjugate gradients does the rest.


def weighted_least_squares(
    columns: WorkingColumns, weight: Array, ridge: Array, backend: Backend
) -> Callable[[Array], Array]:
    """``solve(b)`` for [Z 1]' diag(weight) [Z 1] + diag(ridge, 0), b of shape (d + 1,).

    The columns are Z, (n, d); weight, (n,), and ridge, (d,), are positive.
    """
    xp, d = backend.xp, ridge.shape[0]
    cross, last = columns.transposed_product(weight), backend.zeros(1)
    all_matter = d <= _FEW
    if all_matter:
        squares, matters = ridge, xp.ones_like(ridge, dtype=xp.bool)
    else:
        squares = columns.squares(weight)
        matters = squares > _MATTERS * ridge
    chosen = xp.nonzero(matters)[0]
    few, added = chosen.shape[0], xp.concat([xp.take(ridge, chosen), last])
    matrix = backend.zeros((few + 1, few + 1))
    if few:
        part = columns if all_matter else columns.take(chosen)
        matrix[:few, :few] = part.gram(weight)
        matrix[:few, few] = matrix[few, :few] = xp.take(cross, chosen)
    matrix[few, few] = xp.sum(weight)
    unit = 1 / xp.sqrt(xp.linalg.diagonal(matrix) + added)
    matrix *= unit[:, None]
    matrix *= unit
    eye = xp.eye(few + 1, dtype=xp.float64, device=backend.device)
    matrix += eye * (added * unit * unit + _RIDGE)
    factor = factorised(matrix, backend)
    # Where a feature, or the intercept, is in the factorised part; the others have the diagonal.
    inside = xp.concat([matters, xp.ones_like(last, dtype=xp.bool)])
    at, chosen = xp.cumulative_sum(xp.astype(inside, xp.int64)) - 1, xp.nonzero(inside)[0]
    at = xp.where(inside, at, xp.zeros_like(at))
    inverse = xp.concat([1 / (ridge + squares), last])

    def product(z: Array) -> Array:
        w, offset = z[:-1], z[-1]
        v = weight * (columns.product(w) + offset)
        return xp.concat([columns.transposed_product(v) + ridge * w, xp.reshape(xp.sum(v), (1,))])

    def preconditioned(b: Array) -> Array:
        if all_matter:
            return unit * factor(unit * b)
        solved = unit * factor(unit * xp.take(b, chosen))
        return xp.where(inside, xp.take(solved, at), inverse * b)

    def solve(b: Array) -> Array:
        x = preconditioned(b)
        size = _TOL * _TOL * to_float(b @ x)
        residual = b - product(x)
        step = z = preconditioned(residual)
        left = to_float(residual @ z)
        for _ in range(_MOST_ITERATIONS):
            image = product(step)
            bend = to_float(step @ image)
            if not (left > 0 and bend > 0):  # as far as rounding allows
                break
            x = x + (left / bend) * step
            residual = residual - (left / bend) * image
            z = preconditioned(residual)
            before, left = left, to_float(residual @ z)
            if left <= size:
                break
            step = z + (left / before) * step
        return x

    return solve


class Newton:
    """The Newton equations at a point: one factorisation for all right sides.

    Everything is eliminated but the change of the d weights and the offset, by the matrix
    [Z y]' E [Z y] + diag(1 / (plus / rise + minus / fall), 0), E = 1 / (u / mu + xi / (c - mu)),
    and that of A and B, by a system of two.
    """

    def __init__(self, problem: Restricted, x: Point) -> None:
        c, y, xp = problem.weight, problem.sign, array_namespace(x.mu)
        self._problem, self._x, self._room = problem, x, c - x.mu
        self._phi = phi = Phi.at(x.a, x.b, problem.p, problem.q)
        self._total = total = x.plus + x.minus
        slope = problem.transposed_product(x.mu)
        self._of_samples = problem.product(x.plus - x.minus) + x.offset * y - 1 + x.xi - x.u
        self._of_rise = x.rise - phi.value + slope
        self._of_fall = x.fall - phi.value - slope
        largest = self._of_samples, self._of_rise / phi.value, self._of_fall / phi.value
        numbers = [xp.max(xp.abs(residual)) for residual in largest]
        numbers += [y @ x.mu, total @ phi.by_a, total @ phi.by_b, c @ x.xi, total @ phi.value]
        *errors, self._balance, by_a, by_b, hinge, omega = to_floats(xp.stack(numbers))
        self._of_a = problem.budget - by_a - x.of_a - x.of_over
        self._of_b = problem.budget - by_b - x.of_b - x.of_over
        ends = abs(self._of_a) / problem.budget, abs(self._of_b) / problem.budget
        errors = [*errors, *ends, abs(self._balance) / problem.scale]
        self.gap = x.complementarity(c)
        self.error = max(errors) if math.isfinite(sum(errors) + self.gap) else math.inf
        self.objective = hinge + problem.e * omega / (x.a + x.b)

    def factorise(self) -> None:
        """Form and factorise the matrices, for `direction`."""
        problem, x, xp = self._problem, self._x, array_namespace(self._x.mu)
        total = self._total
        self._flex = flex = 1 / (x.u / x.mu + x.xi / self._room)
        self._up, self._down = x.plus / x.rise, x.minus / x.fall
        self._stiff, self._skew = self._up + self._down, self._up - self._down
        solve = weighted_least_squares(problem.columns, flex, 1 / self._stiff, problem.backend)
        self._solve = solve
        slopes = xp.stack([self._phi.by_a, self._phi.by_b], axis=1)
        self._coupling = xp.concat(
            [(self._skew / self._stiff)[:, None] * slopes, xp.zeros_like(slopes[:1, :])]
        )
        responses = [solve(self._coupling[:, i]) for i in (0, 1)]
        self._response = xp.stack(responses, axis=1)
        rest = (self._stiff - self._skew * self._skew / self._stiff)[:, None]
        both = xp.matrix_transpose(slopes) @ (rest * slopes)
        both = both + xp.matrix_transpose(self._coupling) @ self._response
        aa, ab, ba, bb = to_floats(xp.reshape(both, (4,)))
        bend = self._phi.curvature(total, problem.p, problem.q)
        over = x.of_over / x.over
        self._two = (
            (aa + bend[0] + x.of_a / x.a + over, ab + bend[1] + over),
            (ba + bend[1] + over, bb + bend[2] + x.of_b / x.b + over),
        )

    def direction(self, target: float, predictor: Point | None = None) -> Point:
        """The step towards products of ``target``, with the second order of a predictor."""
        problem, x, phi = self._problem, self._x, self._phi
        y, xp = problem.sign, array_namespace(x.mu)
        to = x.products(problem.weight).subtracted_from(target)
        if predictor is not None:
            to = predictor.second_order().subtracted_from(*to)
        of_samples = to.mu / x.mu - to.xi / self._room - self._of_samples
        up = self._up * (self._of_rise + to.rise / x.plus)
        down = self._down * (self._of_fall + to.fall / x.minus)
        first, ratio = up - down, self._skew / self._stiff
        rest = up + down - ratio * first
        bent = self._flex * of_samples
        top = problem.transposed_product(bent) + first / self._stiff
        balance = xp.reshape(y @ bent, (1,)) + self._balance
        z = self._solve(xp.concat([top, balance]))
        low = xp.stack([phi.by_a @ rest, phi.by_b @ rest]) + z @ self._coupling
        low_a, low_b = to_floats(low)
        over = to.over / x.over
        da, db = _solve_two(
            self._two,
            low_a - self._of_a + to.a / x.a + over,
            low_b - self._of_b + to.b / x.b + over,
        )
        z = z - da * self._response[:, 0] - db * self._response[:, 1]
        w, offset = z[:-1], z[-1]
        mu = self._flex * (of_samples - problem.product(w) - y * offset)
        rises = da * phi.by_a + db * phi.by_b
        slope = (w - first) / self._stiff + ratio * rises  # Z' mu
        plus = up - self._up * (rises - slope)
        minus = down - self._down * (rises + slope)
        return Point(
            mu=mu,
            rise=(to.rise - x.rise * plus) / x.plus,
            fall=(to.fall - x.fall * minus) / x.minus,
            a=da,
            b=db,
            over=da + db,
            plus=plus,
            minus=minus,
            offset=to_float(offset),
            u=(to.mu - x.u * mu) / x.mu,
            xi=(to.xi + x.xi * mu) / self._room,
            of_a=(to.a - x.of_a * da) / x.a,
            of_b=(to.b - x.of_b * db) / x.b,
            of_over=(to.over - x.of_over * (da + db)) / x.over,
        )

    def longest(self, d: Point) -> tuple[float, float]:
        """The longest steps, dual and primal, that leave all variables positive."""
        xp = array_namespace(d.mu)
        dual, primal = self._x.longest(d)
        room = xp.where(d.mu > 0, self._room, xp.ones_like(d.mu))
        room = room / xp.where(d.mu > 0, d.mu, xp.zeros_like(d.mu))
        return min(dual, to_float(xp.min(room))), primal

    def in_range(self, d: Point, length: float) -> float:
        """The dual step, made so short that phi keeps half of what its tangent says."""
        x, phi, problem = self._x, self._phi, self._problem
        xp, tangent = array_namespace(d.mu), d.a * phi.by_a + d.b * phi.by_b
        for _ in range(40):
            here = Phi.at(x.a + length * d.a, x.b + length * d.b, problem.p, problem.q).value
            if bool(xp.all(here >= _KEPT_OF_TANGENT * (phi.value + length * tangent))):
                break
            length *= 0.7
        return length


def _solve_two(matrix: tuple, one: float, two: float) -> tuple[float, float]:
    (a, b), (c, d) = matrix
    if abs(c) > abs(a):
        a, b, c, d, one, two = c, d, a, b, two, one
    factor = c / a
    y = (two - factor * one) / (d - factor * b)
    return (one - b * y) / a, y
