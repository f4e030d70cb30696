"""The problem of GMEB, and how good any weights and multipliers are for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ...arrays.backend import Backend
from ...arrays.cached import cached_property
from ...arrays.context import Context
from ...arrays.functions import to_float, to_floats
from ...arrays.typing import Array
from ...reductions.working_columns import TwoClasses
from .norm import worst_case_l1, worst_case_l1_dual

_EPS = 2.0**-52


@dataclass(frozen=True)
class Problem:
    """Minimise the hinge loss H of f + b, f = (x - mean)'w, subject to Omega(w) <= 1.

    Its dual: maximise 1'mu - Omega*(g), g = X'(y mu), over 0 <= mu <= c and y'mu = 0, where y is
    the sign of a sample and c its weight.

    Attributes
    ----------
    data : TwoClasses
        The l samples of positive weight.
    mean : array of shape (m,), float64
    p, q : arrays of shape (m,), float64
        Second moments of class +1 and -1 about ``mean``, divided by R+ and R-; exactly zero where a
        feature is constant up to rounding.
    budget : float
        sqrt(2 / (1 / R+ + 1 / R-)): by it features are brought to unit second moments.
    """

    data: TwoClasses
    mean: Array
    p: Array
    q: Array
    budget: float

    @property
    def backend(self) -> Backend:
        """That of the data."""
        return self.data.backend

    @cached_property
    def class_weight(self) -> tuple[float, float]:
        """The weights of class +1 and of class -1."""
        plus, minus = self._class_sums(self.data.weight)
        return plus, minus

    @cached_property
    def scale(self) -> float:
        """The loss of w = 0."""
        return 2 * min(self.class_weight)

    @cached_property
    def varies(self) -> Array:
        """Where features are not constant: (m,), bool."""
        return self.p + self.q > 0

    def gradient(self, mu: Array, ctx: Context) -> Array:
        """X'(y mu): (m,), zero for constant features. One pass over X."""
        xp, sign = self.backend.xp, self.data.sign
        # y'mu = 0 makes centring void, but for rounding.
        g = self.data.signed_sums(mu, ctx) - self.mean * xp.sum(sign * mu)
        return xp.where(self.varies, g, xp.zeros_like(g))

    def feasible(self, mu: Array) -> Array:
        """Multipliers clipped to [0, c], those of the heavier class scaled so that y'mu = 0."""
        xp, sign, weight = self.backend.xp, self.data.sign, self.data.weight
        mu = xp.where(mu > 0, xp.where(mu < weight, mu, weight), xp.zeros_like(mu))
        plus, minus = self._class_sums(mu)
        if min(plus, minus) <= 0:
            return xp.zeros_like(mu)
        least = min(plus, minus)
        return mu * xp.where(sign > 0, xp.ones_like(mu) * (least / plus), least / minus)

    def _class_sums(self, x: Array) -> list[float]:
        """The sums of x over class +1 and over class -1."""
        xp, sign = self.backend.xp, self.data.sign
        zero = xp.zeros_like(x)
        both = xp.stack([xp.where(sign > 0, x, zero), xp.where(sign < 0, x, zero)])
        return to_floats(xp.sum(both, axis=1))

    def best_offset(self, f: Array) -> float:
        """The b that minimises the hinge loss: the W+ / W quantile of y - f.

        The midpoint where any number between two neighbours does.
        """
        xp, wanted = self.backend.xp, self.class_weight[0]
        t = self.data.sign - f
        order = xp.argsort(t)
        t, weight = xp.take(t, order), xp.cumulative_sum(xp.take(self.data.weight, order))
        n = t.shape[0]
        rounding = max(1e-12, n * _EPS) * sum(self.class_weight)
        k = min(int(xp.sum(xp.astype(weight < wanted - rounding, xp.int64))), n - 1)
        low, high, at = to_floats(xp.stack([t[k], t[min(k + 1, n - 1)], weight[k]]))
        return (low + high) / 2 if abs(at - wanted) <= rounding else low

    def hinge_loss(self, f: Array, b: float) -> float:
        """H of scores f + b."""
        xp = self.backend.xp
        loss = 1 - self.data.sign * (f + b)
        return to_float(xp.sum(self.data.weight * xp.where(loss > 0, loss, xp.zeros_like(loss))))

    def dual(self, mu: Array, ctx: Context) -> Dual:
        """How good multipliers are, after they are made feasible. One pass over X."""
        mu = self.feasible(mu)
        g = self.gradient(mu, ctx)
        multiplier, t = worst_case_l1_dual(g, self.p, self.q)
        return Dual(mu, g, to_float(self.backend.xp.sum(mu)), multiplier, t)


class Dual(NamedTuple):
    """Feasible multipliers.

    Attributes
    ----------
    mu : array of shape (l,), float64
    g : array of shape (m,), float64
        X'(y mu).
    total : float
        1'mu.
    multiplier, t : float
        Omega*(g), and the t where it is attained.
    """

    mu: Array
    g: Array
    total: float
    multiplier: float
    t: float

    @classmethod
    def zero(cls, problem: Problem) -> Dual:
        """Multipliers of zero, which prove that H is not negative."""
        zeros = problem.backend.zeros
        return cls(zeros(problem.data.sign.shape[0]), zeros(problem.p.shape[0]), 0.0, 0.0, 0.5)

    @property
    def bound(self) -> float:
        """The lower bound on H that they prove."""
        return max(0.0, self.total - self.multiplier)

    def bound_with(self, e: float) -> float:
        """That on H + e Omega."""
        return self.total - max(0.0, self.multiplier - e)


class Certificate(NamedTuple):
    """How far weights can be from the optimum at most.

    Attributes
    ----------
    w : array of shape (m,), float64
        Feasible weights.
    offset : float
        The best b for these.
    objective : float
        H.
    omega, t : float
        Omega(w), and the t where it is attained.
    dual : Dual
    """

    w: Array
    offset: float
    objective: float
    omega: float
    t: float
    dual: Dual

    @property
    def gap(self) -> float:
        """The objective less the lower bound: never negative."""
        return max(0.0, self.objective - self.dual.bound)


def certificate(problem: Problem, w: Array, mu: Array, ctx: Context) -> Certificate:
    """The certificate of any weights and multipliers, which are made feasible first.

    Parameters
    ----------
    problem : Problem
    w : array of shape (m,), float64
    mu : array of shape (l,), float64
    ctx : Context
    """
    xp, zero = problem.backend.xp, problem.backend.zeros(1)
    w = xp.where(problem.varies, w, zero)
    omega, t = worst_case_l1(w, problem.p, problem.q)
    if omega > 1:
        w, omega = w / omega, 1.0
    used = xp.nonzero(w)[0]
    f = problem.backend.zeros(problem.data.sign.shape[0])
    if used.shape[0]:
        shift, one = xp.take(problem.mean, used), xp.ones_like(xp.take(w, used))
        f = problem.data.columns(used, shift, one, ctx).product(xp.take(w, used))
    b = problem.best_offset(f)
    return Certificate(w, b, problem.hinge_loss(f, b), omega, t, problem.dual(mu, ctx))
