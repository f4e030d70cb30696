"""The features that column generation works on, and the weights that it finds for them."""

from __future__ import annotations

from dataclasses import dataclass

from ...arrays.context import Context
from ...arrays.functions import index_mask, to_float
from ...arrays.typing import Array
from .interior_point import InnerSolution
from .norm import worst_case_l1
from .point import Restricted
from .problem import Problem

_SEPARATED = 1e-5  # margins that are less than 1 by no more than this are 1 but for rounding
_TINY = 1e-300


@dataclass(frozen=True)
class Weights:
    """Feasible weights of a working set, and what they reach.

    Attributes
    ----------
    working : array of int64 of shape (d,)
    w : array of shape (d,), float64
    offset : float
    t, omega : float
        Omega(w), and the t where it is attained.
    loss : float
        H.
    """

    working: Array
    w: Array
    offset: float
    t: float
    omega: float
    loss: float

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
    """The problem with some features alone.

    Parameters
    ----------
    problem : Problem
    working : array of int64 of shape (d,)
        Ascending; of features that are not constant.
    e : float
    ctx : Context
    """

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
        return 4 * columns.size <= self.restricted.sign.shape[0] * self._working.shape[0]

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
