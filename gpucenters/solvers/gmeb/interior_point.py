"""A primal-dual interior point method for GMEB with few features: Mehrotra's two directions."""

from __future__ import annotations

import math
from typing import NamedTuple

from ...arrays.functions import array_namespace, to_float
from ...arrays.typing import Array
from .newton import Newton
from .point import Phi, Point, Restricted

_MOST_STEPS = 80
_MOST_STEPS_IN_VAIN = 15
_ROUNDING = 3e-8  # residuals can stay at this: the certificate does not rest on them


class InnerSolution(NamedTuple):
    """What the method found.

    Attributes
    ----------
    w : array of shape (d,)
    active : array of shape (d,), bool
        Where a weight is more than a zero that has not been reached yet.
    mu : array of shape (l,)
    multiplier : float
        lambda.
    t : float
    steps : int
    point : Point
        Where it stopped: a start for a smaller tolerance.
    """

    w: Array
    active: Array
    mu: Array
    multiplier: float
    t: float
    steps: int
    point: Point


def solve_restricted(problem: Restricted, tol: float, start: Point | None = None) -> InnerSolution:
    """Solve to a relative gap of ``tol``, or as far as rounding allows.

    Parameters
    ----------
    problem : Restricted
    tol : float
    start : Point, optional
        Where the method stopped for the same problem and a larger tolerance.
    """
    scale, count = problem.scale, 2 * (problem.weight.shape[0] + problem.p.shape[0]) + 3
    point = best = _first_point(problem) if start is None else start
    least, at, step = math.inf, 0, 0
    for step in range(_MOST_STEPS):
        system = Newton(problem, point)
        gap = system.gap
        # Relative to the objective where that is below the loss of w = 0, as for separable data.
        reference = min(scale, max(system.objective, 1e-6 * scale))
        residual = system.error if system.error > _ROUNDING else 0.0
        error = max(gap / reference, residual)
        if error < least:
            best, least, at = point, error, step
        if error <= tol or step - at > _MOST_STEPS_IN_VAIN or not math.isfinite(error):
            break
        try:
            system.factorise()
            predictor = system.direction(0.0)
            dual, primal = system.longest(predictor)
            after = point.moved(predictor, min(1.0, dual), min(1.0, primal))
            left = after.complementarity(problem.weight) / gap
            # No lower: the curvature of phi needs room to settle.
            target = max(min(max(left, 0.0), 1.0) ** 3 * gap, 0.1 * tol * reference) / count
            corrector = system.direction(target, predictor)
        except (ArithmeticError, ValueError):  # a matrix that rounding has made singular
            break
        dual, primal = system.longest(corrector)
        share = min(max(0.95, 1 - 10 * gap / scale), 0.9995)
        dual, primal = min(1.0, share * dual), min(1.0, share * primal)
        point = point.moved(corrector, system.in_range(corrector, dual), primal)
    return _solution(problem, best, step + 1)


def _first_point(problem: Restricted) -> Point:
    c, y, p, q, e = problem.weight, problem.sign, problem.p, problem.q, problem.e
    xp, scale, budget = array_namespace(c), problem.scale, problem.budget
    zero, d = xp.zeros_like(c), p.shape[0]
    of_class = xp.where(y > 0, xp.sum(xp.where(y > 0, c, zero)), xp.sum(xp.where(y < 0, c, zero)))
    mu = c * (scale / 4) / of_class
    slope = problem.transposed_product(mu)
    top = to_float(xp.max(xp.abs(slope) / xp.sqrt((p + q) / 2)))
    share = min(1.0, scale / (budget * top)) if top > 0 else 1.0
    mu, slope = share * mu, share * slope
    multiplier = max(2 * share * top, 0.1 * share * scale, 2 * e)
    a = multiplier / 2
    phi = Phi.at(a, a, p, q).value
    rise, fall = xp.maximum(phi - slope, 0.1 * phi), xp.maximum(phi + slope, 0.1 * phi)
    # Half of the budget to the features, half left.
    even = budget * multiplier / (4 * d)
    return Point(
        *(mu, rise, fall, a, a, multiplier - e),
        *(even / rise, even / fall, 0.0, zero + 0.5, zero + 0.5 * share),
        *(budget / 4, budget / 4, budget / 2),
    )


def _solution(problem: Restricted, x: Point, steps: int) -> InnerSolution:
    xp, w, multiplier = array_namespace(x.mu), x.plus - x.minus, x.a + x.b
    t = x.a / multiplier
    root = xp.sqrt(t * problem.p + (1 - t) * problem.q)
    size = xp.abs(w) * root
    # Of a weight and its slack one is zero at the solution: the smaller one.
    active = size > xp.minimum(x.rise, x.fall) / (multiplier * root) * xp.sum(size)
    return InnerSolution(w, active, x.mu, multiplier, t, steps, x)
