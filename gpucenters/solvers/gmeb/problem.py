"""The problem of GMEB, and how good any weights and multipliers are for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from ...arrays.backend import Backend
from ...arrays.cached import cached_property
from ...arrays.context import Context
from ...arrays.functions import EPS, array_namespace, to_float, to_floats
from ...arrays.typing import Array
from ...reductions.working_columns import TwoClasses

_MOST_STEPS = 200
_NEGLIGIBLE = 1e-100  # relative to the largest: the square is still a normal number


# The worst-case weighted l1 norm and its dual.
#
# For p, q >= 0 and a(t) = t p + (1 - t) q,
#
#     Omega(w) = max over 0 <= t <= 1 of sum_j |w_j| sqrt(a_j(t)),
#     Omega*(g) = min over 0 <= t <= 1 of max_j |g_j| / sqrt(a_j(t)).
#
# Features with p = q = 0 are constant: their weights count nothing, and g is read as 0 there.


def worst_case_l1(w: Array, p: Array, q: Array) -> tuple[float, float]:
    """The worst-case weighted l1 norm, and the t where it is attained.

    The sum is concave in t: Newton's method on its slope, within a bracket.

    Parameters
    ----------
    w, p, q : arrays of shape (k,), float64
        p and q are not negative.

    Returns
    -------
    value : float
    t : float
        1/2 where all weights are zero.

    Examples
    --------
    >>> import numpy as np
    >>> value, t = worst_case_l1(np.asarray([0.5]), np.asarray([4.0]), np.asarray([1.0]))
    >>> value, t
    (1.0, 1.0)
    """
    xp = array_namespace(w)
    used = xp.nonzero((w != 0) & (p + q > 0))[0]
    if used.shape[0] == 0:
        return 0.0, 0.5
    w, p, q = xp.abs(xp.take(w, used)), xp.take(p, used), xp.take(q, used)
    difference = p - q

    def value(t: float) -> float:
        return to_float(xp.sum(w * xp.sqrt(t * p + (1 - t) * q)))

    def slopes(t: float) -> list[float]:
        root = xp.sqrt(t * p + (1 - t) * q)
        ratio = xp.where(difference == 0, xp.zeros_like(root), difference / root)
        terms = xp.stack([w * ratio / 2, -w * ratio * ratio / root / 4])
        return to_floats(xp.sum(terms, axis=1))

    if slopes(0.0)[0] <= 0:
        return value(0.0), 0.0
    if slopes(1.0)[0] >= 0:
        return value(1.0), 1.0
    low, high, t = 0.0, 1.0, 0.5
    for _ in range(_MOST_STEPS):
        slope, bend = slopes(t)
        low, high = (t, high) if slope > 0 else (low, t)
        new = t - slope / bend if bend < 0 else low
        if not low < new < high:
            new = (low + high) / 2
        near = abs(new - t) <= 4 * EPS or high - low <= 4 * EPS
        t = new
        if near:
            break
    return value(t), t


def worst_case_l1_dual(g: Array, p: Array, q: Array) -> tuple[float, float]:
    """The dual of the worst-case weighted l1 norm, and the t where it is attained.

    ``1 / Omega*^2 = max over t of min_j a_j(t) / g_j^2`` is a linear programme in two variables: go
    to where a rising and a falling line cross, take the lowest line there in place of one of them,
    and repeat. Each step is one pass over the features.

    Parameters
    ----------
    g, p, q : arrays of shape (m,), float64

    Returns
    -------
    value : float
        Infinite where some g_j is not zero but a_j is zero for the best t.
    t : float
        1/2 where g is zero.
    """
    xp = array_namespace(g)
    used = xp.nonzero((g != 0) & (p + q > 0))[0]
    if used.shape[0] == 0:
        return 0.0, 0.5
    g, p, q = xp.abs(xp.take(g, used)), xp.take(p, used), xp.take(q, used)
    size = p + q  # so that no feature's unit leads to underflow
    g = g / xp.sqrt(size)
    largest = to_float(xp.max(g))
    matter = xp.nonzero(g > _NEGLIGIBLE * largest)[0]
    ratio, p, q = (xp.take(x, matter) for x in (g / largest, p / size, q / size))
    at_one, at_zero = p / (ratio * ratio), q / (ratio * ratio)

    def line(j: Array) -> tuple[float, float]:
        return to_float(at_zero[j]), to_float(at_one[j])

    rising, falling = line(xp.argmin(at_zero)), line(xp.argmin(at_one))
    # u is 1 - t, without cancellation: a feature with p = 0 may hold t just off an end.
    t, u = 0.0, 1.0
    if rising[1] > rising[0]:
        t, u = 1.0, 0.0
        if falling[1] < falling[0]:
            for _ in range(_MOST_STEPS):
                t, u = falling[0] - rising[0], rising[1] - falling[1]
                t, u = t / (t + u), u / (t + u)
                values = t * at_one + u * at_zero
                j = xp.argmin(values)
                lowest, known = to_float(values[j]), t * rising[1] + u * rising[0]
                new = line(j)
                if lowest >= known * (1 - 4 * EPS) or new[0] == new[1]:
                    break
                if new[1] > new[0]:
                    rising = new
                else:
                    falling = new
    best = to_float(xp.min(t * at_one + u * at_zero))
    return (largest / math.sqrt(best) if best > 0 else math.inf), t


@dataclass(frozen=True)
class Problem:
    """Minimise the hinge loss H of f + b, f = (x - mean)'w, subject to Omega(w) <= 1.

    Its dual: maximise 1'mu - Omega*(g), g = X'(y mu), over 0 <= mu <= c and y'mu = 0, where y is
    the sign of a sample and c its weight.
    """

    data: TwoClasses  # the l samples of positive weight
    mean: Array  # (m,)
    # Second moments of class +1 and -1 about ``mean``, divided by R+ and R-; exactly zero where a
    # feature is constant up to rounding.
    p: Array  # (m,)
    q: Array  # (m,)
    budget: float  # sqrt(2 / (1 / R+ + 1 / R-)): by it features are brought to unit second moments

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
        rounding = max(1e-12, n * EPS) * sum(self.class_weight)
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
    """Feasible multipliers."""

    mu: Array  # (l,)
    g: Array  # X'(y mu): (m,)
    total: float  # 1'mu
    multiplier: float  # Omega*(g)
    t: float  # where it is attained

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
    """The certificate of any weights, (m,), and multipliers, (l,): they are made feasible first."""
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
