"""The features that column generation works on, and the weights that it finds for them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from ...arrays.context import Context
from ...arrays.functions import array_namespace, index_mask, to_float, top_k
from ...arrays.typing import Array
from .newton import Newton, Phi, Point, Restricted
from .problem import Dual, Problem, worst_case_l1

_MOST_STEPS = 80
_MOST_STEPS_IN_VAIN = 15
_ROUNDING = 3e-8  # residuals can stay at this: the certificate does not rest on them
_SEPARATED = 1e-5  # margins that are less than 1 by no more than this are 1 but for rounding
_TINY = 1e-300


_FIRST = 30  # features of the first working set; at least as many that violate are added a round
# Features of at least this ratio may be next. Sparse ones cost little: more of them are taken, for
# fewer rounds, as multipliers that nothing keeps from the constraints of all others violate many.
_NEAR, _NEAR_IF_CHEAP = 0.8, 0.5
_BINDING = 0.99  # features below it have no weight, if the gap is within the tolerance
_LEAST_REFERENCE = 1e-6  # of an objective, relative to the loss of w = 0
# Tolerances of the inner problem: to leave out small weights, to tell zeros, and the least one.
_NEARLY_CLEAN, _CLEAN, _LEAST_TAU = 1e-5, 1e-9, 1e-11


# A primal-dual interior point method for GMEB with few features: Mehrotra's two directions.


class InnerSolution(NamedTuple):
    """What the method found."""

    w: Array  # (d,)
    active: Array  # bool, (d,): where a weight is more than a zero that has not been reached yet
    multiplier: float  # lambda
    t: float
    point: Point  # where it stopped: a start for a smaller tolerance


def solve_restricted(problem: Restricted, tol: float, start: Point | None = None) -> InnerSolution:
    """Solve to a relative gap of ``tol``, or as far as rounding allows.

    ``start`` is where the method stopped for the same problem and a larger tolerance.
    """
    scale, count = problem.scale, 2 * (problem.weight.shape[0] + problem.p.shape[0]) + 3
    point = best = _first_point(problem) if start is None else start
    least, at = math.inf, 0
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
    return _solution(problem, best)


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


def _solution(problem: Restricted, x: Point) -> InnerSolution:
    xp, w, multiplier = array_namespace(x.mu), x.plus - x.minus, x.a + x.b
    t = x.a / multiplier
    root = xp.sqrt(t * problem.p + (1 - t) * problem.q)
    size = xp.abs(w) * root
    # Of a weight and its slack one is zero at the solution: the smaller one.
    active = size > xp.minimum(x.rise, x.fall) / (multiplier * root) * xp.sum(size)
    return InnerSolution(w, active, multiplier, t, x)


@dataclass(frozen=True)
class Weights:
    """Feasible weights of a working set, and what they reach."""

    working: Array  # int64 of shape (d,)
    w: Array  # (d,)
    offset: float
    t: float  # where Omega(w) is attained
    omega: float  # Omega(w)
    loss: float  # H

    @classmethod
    def zero(cls, problem: Problem, working: Array) -> Weights:
        """Weights of zero."""
        f = problem.backend.zeros(problem.data.sign.shape[0])
        w, b = problem.backend.zeros(working.shape[0]), problem.best_offset(f)
        return cls(working, w, b, 0.5, 0.0, problem.hinge_loss(f, b))

    def with_e(self, e: float) -> float:
        """H + e Omega."""
        return self.loss + e * self.omega


class WorkingSet:
    """The problem with some features alone: d ascending ones, which are not constant."""

    def __init__(self, problem: Problem, working: Array, e: float, ctx: Context) -> None:
        xp = ctx.backend.xp
        self._problem, self._working, self._e = problem, working, e
        mean, self._p, self._q = (xp.take(x, working) for x in (problem.mean, problem.p, problem.q))
        square, budget = (self._p + self._q) / 2, problem.budget
        self._unit = xp.sqrt(square) * budget
        self.restricted = Restricted(
            backend=ctx.backend,
            columns=problem.data.columns(working, mean, self._unit, ctx),
            sign=problem.data.sign,
            weight=problem.data.weight,
            p=self._p / square,
            q=self._q / square,
            e=e / budget,
            budget=budget,
            scale=problem.scale,
        )

    @property
    def cheap(self) -> bool:
        """Whether its columns are sparse: more of them cost little."""
        columns = self.restricted.columns
        return 4 * columns.stored_values <= self.restricted.sign.shape[0] * self._working.shape[0]

    def weights(self, z: Array) -> Weights:
        """The weights of the inner problem in the units of X, made feasible."""
        problem, xp, sign = self._problem, self._problem.backend.xp, self._problem.data.sign
        w = z / self._unit
        omega, t = worst_case_l1(w, self._p, self._q)
        if omega > 1:
            z, w, omega = z / omega, w / omega, 1.0
        f = self.restricted.columns.product(z)
        b = problem.best_offset(f)
        margin = to_float(xp.min(sign * (f + b)))
        if 0 < 1 - margin < _SEPARATED and omega <= margin:
            w, f, b, omega = w / margin, f / margin, b / margin, omega / margin
        return Weights(self._working, w, b, t, omega, problem.hinge_loss(f, b))

    def cleaned(self, weights: Weights, active: Array, tol: float) -> Weights:
        """The weights of the active features alone, where that costs less than the tolerance."""
        xp = self._problem.backend.xp
        few = xp.where(active, weights.w, xp.zeros_like(weights.w))
        omega = worst_case_l1(few, self._p, self._q)[0]
        found = self.weights(few * self._unit * (weights.omega / omega if omega > 0 else 1.0))
        value = weights.with_e(self._e)
        allowed = tol / 2 * min(self._problem.scale, value)
        return found if found.with_e(self._e) <= value + allowed else weights

    def ratios(self, g: Array, inner: InnerSolution) -> tuple[Array, Array]:
        """How far features are from entering: |g| / (lambda sqrt(a(t))), above 1 if they must.

        Of all features, with zero for those of the working set; and of these.
        """
        problem, xp = self._problem, self._problem.backend.xp
        a = inner.t * problem.p + (1 - inner.t) * problem.q
        bound = max(inner.multiplier * problem.budget, _TINY) * xp.sqrt(a)
        ratio = xp.where(g != 0, xp.abs(g) / bound, xp.zeros_like(g))
        inside = xp.take(ratio, self._working)
        known = index_mask(self._working, problem.p.shape[0])
        return xp.where(known, xp.zeros_like(ratio), ratio), inside


# Column generation: the inner problem on a working set of features, certified over all of them.


class Solution(NamedTuple):
    """The solution of a problem."""

    columns: Array  # int64 of shape (d,): the features whose weights are not zero, ascending
    w: Array  # (d,)
    sigma: Array  # that of the paper, |w_j| / sqrt(a_j(t)): (d,)
    offset: float  # b: the decision is (x - mean)'w + b
    t: float  # where Omega(w) is attained
    omega: float  # Omega(w)
    objective: float  # H
    bound: float  # the lower bound on it
    multiplier: float  # of the budget
    scale: float  # the loss of w = 0
    working: Array  # int64: the last working set: a start for a problem nearby
    rounds: int


def solve(
    problem: Problem, tol: float, max_rounds: int, ctx: Context, start: Array | None = None
) -> Solution:
    """The solution of a problem, to a gap of ``tol`` times the loss of w = 0 where rounding allows.

    Of all solutions that of least Omega is wanted: H + e Omega is minimised, with an e so small
    that it leaves a solution whose budget binds, or that separates the data, as it is. Elsewhere e
    becomes smaller than the tolerance. Each round is one pass over X; ``start`` is the first
    working set.
    """
    scale = problem.scale
    floor = max(tol / 4, 1e-10) * scale
    e = max(to_float(ctx.backend.xp.min(problem.data.weight)) / 2, floor)
    if start is None:
        best_dual = problem.dual(problem.data.weight, ctx)
        working = _first_working_set(problem, best_dual)
    else:
        best_dual, working = Dual.zero(problem), start
    best, proof = Weights.zero(problem, working), best_dual
    features, point = None, None  # anew where the working set or e has changed
    tau, least_gap, rounds = 1e-2, math.inf, 0
    while rounds < max_rounds and working.shape[0]:
        rounds += 1
        if features is None:
            features, point = WorkingSet(problem, working, e, ctx), None
        inner = solve_restricted(features.restricted, tau, point)
        point = inner.point
        weights = features.weights(inner.w)
        if tau <= _NEARLY_CLEAN:
            weights = features.cleaned(weights, inner.active, tol)
        dual = problem.dual(point.mu, ctx)
        best_dual = max(best_dual, dual, key=lambda x: x.bound)
        proof = max(proof, dual, key=lambda x: x.bound_with(e))
        if weights.with_e(e) <= best.with_e(e):
            best = weights
        gap = best.loss - best_dual.bound
        gap_e = weights.with_e(e) - proof.bound_with(e)
        reference = min(scale, max(weights.with_e(e), _LEAST_REFERENCE * scale))
        ratio, inside = features.ratios(dual.g, inner)
        near = _NEAR_IF_CHEAP if features.cheap else _NEAR
        if gap_e <= tol * reference:
            if gap <= tol * scale:
                # Once more, so that zeros are told from small weights, and Omega is the least one.
                clean = _CLEAN if e > floor else max(_LEAST_TAU, min(_CLEAN, e / scale / 1000))
                if tau > clean:
                    tau, features = clean, None
                    if e > floor:
                        working = working[inner.active | (inside > _BINDING)]
                    continue
                if weights.loss - best_dual.bound <= tol * scale:
                    best = weights
                break
            if e > floor:  # optimal for H + e Omega, but e is too large for H alone
                e, proof, features = floor, dual, None
                continue
        violated = int(ctx.backend.xp.count_nonzero(ratio > 1 + 1e-9))
        if violated == 0:
            if tau <= _LEAST_TAU:
                break
            tau = max(min(tau * 1e-3, tol / 4), _LEAST_TAU)
            continue
        if gap_e < least_gap / 2:  # features leave only while the gap halves: no cycling
            working = working[inner.active | (inside > near)]
        least_gap = min(least_gap, gap_e)
        working, features = _enlarged(working, ratio, violated, features.cheap), None
        tau = max(1e-10, min(tau, gap_e / reference / 20))
    xp, used = ctx.backend.xp, best.w != 0
    columns, w, t = best.working[used], best.w[used], best.t
    a = t * xp.take(problem.p, columns) + (1 - t) * xp.take(problem.q, columns)
    return Solution(
        columns=columns,
        w=w,
        sigma=xp.abs(w) / xp.sqrt(a),
        offset=best.offset,
        t=t,
        omega=best.omega,
        objective=best.loss,
        bound=best_dual.bound,
        multiplier=best_dual.multiplier if best_dual.bound > 0 else 0.0,
        scale=scale,
        working=xp.astype(working, xp.int64),
        rounds=rounds,
    )


def _first_working_set(problem: Problem, dual: Dual) -> Array:
    """The features that a trivial dual point violates most."""
    xp = problem.backend.xp
    varying = xp.nonzero(problem.varies)[0]
    if varying.shape[0] <= _FIRST:
        return varying
    g, p, q = (xp.take(x, varying) for x in (dual.g, problem.p, problem.q))
    return xp.take(varying, top_k(xp.abs(g) / xp.sqrt(p + q), _FIRST))


def _enlarged(working: Array, ratio: Array, violated: int, cheap: bool) -> Array:
    """A working set with the features that violate most, and near ones: they are likely next."""
    xp, size = array_namespace(ratio), working.shape[0]
    near, most = (_NEAR_IF_CHEAP, 3 * size) if cheap else (_NEAR, size // 4)
    near_ones = min(most, int(xp.count_nonzero(ratio > near)))
    count = max(min(violated, max(_FIRST, size)), near_ones)
    return xp.sort(xp.concat([working, top_k(ratio, count)]))
