"""Column generation: the inner problem on a working set of features, certified over all of them."""

from __future__ import annotations

import math
from typing import NamedTuple

from ...arrays.context import Context
from ...arrays.functions import array_namespace, to_float, top_k
from ...arrays.typing import Array
from .problem import Dual, Problem
from .working_set import Weights, WorkingSet, solve_restricted

_FIRST = 30  # features of the first working set; at least as many that violate are added a round
# Features of at least this ratio may be next. Sparse ones cost little: more of them are taken, for
# fewer rounds, as multipliers that nothing keeps from the constraints of all others violate many.
_NEAR, _NEAR_IF_CHEAP = 0.8, 0.5
_BINDING = 0.99  # features below it have no weight, if the gap is within the tolerance
_LEAST_REFERENCE = 1e-6  # of an objective, relative to the loss of w = 0
# Tolerances of the inner problem: to leave out small weights, to tell zeros, and the least one.
_NEARLY_CLEAN, _CLEAN, _LEAST_TAU = 1e-5, 1e-9, 1e-11


class Solution(NamedTuple):
    """The solution of a problem.

    Attributes
    ----------
    columns : array of int64 of shape (d,)
        The features whose weights are not zero, ascending.
    w : array of shape (d,), float64
    offset : float
        b: the decision is (x - mean)'w + b.
    t, omega : float
        Omega(w), and the t where it is attained.
    objective, bound, multiplier : float
        H, the lower bound on it, and the multiplier of the budget.
    working : array of int64
        The last working set: a start for a problem nearby.
    rounds : int
    """

    columns: Array
    w: Array
    offset: float
    t: float
    omega: float
    objective: float
    bound: float
    multiplier: float
    working: Array
    rounds: int

    @property
    def gap(self) -> float:
        """The objective less the lower bound: never negative."""
        return max(0.0, self.objective - self.bound)


def solve(
    problem: Problem, tol: float, max_rounds: int, ctx: Context, start: Array | None = None
) -> Solution:
    """The solution of a problem, to a gap of ``tol`` times the loss of w = 0 where rounding allows.

    Of all solutions that of least Omega is wanted: H + e Omega is minimised, with an e so small
    that it leaves a solution whose budget binds, or that separates the data, as it is. Elsewhere e
    becomes smaller than the tolerance.

    Parameters
    ----------
    problem : Problem
    tol : float
    max_rounds : int
        Rounds, each with one pass over X.
    ctx : Context
    start : array of int64, optional
        The first working set.
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
        dual = problem.dual(inner.mu, ctx)
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
    return Solution(
        best.working[used],
        best.w[used],
        *(best.offset, best.t, best.omega, best.loss),
        *(best_dual.bound, best_dual.multiplier if best_dual.bound > 0 else 0.0),
        xp.astype(working, xp.int64),
        rounds,
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
