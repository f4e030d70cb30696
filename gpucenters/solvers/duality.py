"""The dual of sparse multinomial naive Bayes: the least, over p, sum of the k largest h_i(p).

With p_c the share of class c, h_i(p) as in `divergence`, and D a set of k features,

    psi(k) = min over p of max over D of the sum of h_i(p) over D    (a constant C aside)

is convex in p, and each D gives a cut: for every p the sum over D is

    const - sum over c of B_c log p_c,    B_c = sum over D of f_ci,    least at p = B / sum(B).

For two classes p is one number. Simplicial decomposition (von Hohenbalken 1977), whose dual is the
method of cutting planes (Kelley 1960), with cuts that are curved as the function is: take the k
largest at p, add their cut, and go to the least point of the largest of all cuts. Where one cut is
enough, that point is its minimiser B / sum(B), as in a Newton step. The method ends at a p whose
own k largest form no new cut, in a kink where up to K cuts meet.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from ..arrays.functions import (
    array_namespace,
    backend_of,
    row_sums,
    to_float,
    to_floats,
    to_host,
    top_k,
)
from ..arrays.typing import Array
from .divergence import LOOPED_CLASSES, divergence
from .selection import ranking_key

_STEPS = 100  # at most; where Newton's method leaves the bracket, it is halved
_LAST_STEP = 1e-9  # the next one would be as its square, which is rounding
_ROUNDING = 1e-13  # relative difference of values that is rounding
_RELATIVE_GAP = 1e-13  # below it a gap is rounding
_CUTS_BEFORE_SLACK = 8
_MOST_CUTS = 500  # cuts at most; a gap that is then left is reported as it is


# The least point of the largest of a few cuts of two classes, where p is one number.
#
# A cut is ``const - B_0 log p_0 - B_1 log p_1``: convex, and least where p is B / sum(B). The
# least of the maximum is at that point of one cut, or where a cut that rises meets one that
# falls. With t the logarithm of p_0 / p_1, in which no share near zero is rounded, the slope of a
# cut is ``B_1 p_0 - B_0 p_1``. The numbers stay on the host: a few steps of Newton's method.


@dataclass(frozen=True)
class TwoClassCut:
    """``const - mass[0] log(p_0 / origin[0]) - mass[1] log(p_1 / origin[1])``."""

    const: float
    mass: list[float]
    origin: list[float]

    @property
    def least_at(self) -> float:
        """The t of its least value."""
        return math.log(self.mass[0] / self.mass[1])

    def value(self, t: float) -> float:
        """Its value."""
        terms = zip(self.mass, _shares(t), self.origin, strict=True)
        return self.const - math.fsum(b * math.log(p / o) for b, p, o in terms)

    def slope(self, t: float) -> float:
        """Its slope in t."""
        p = _shares(t)
        return self.mass[1] * p[0] - self.mass[0] * p[1]


def _shares(t: float) -> tuple[float, float]:
    small = math.exp(-abs(t))
    both = 1 / (1 + small), small / (1 + small)
    return both if t >= 0 else both[::-1]


def meet(cuts: list[TwoClassCut], p: list[float]) -> tuple[list[int], list[float]] | None:
    """The numbers of the cuts that meet in the least point of their maximum, and their shares.

    The last cut is new: it is the largest at p, the least point of the maximum of the others. None
    where rounding, or a third cut, leaves no such point.
    """
    *others, new = cuts
    end = new.least_at
    values = [cut.value(end) for cut in others]
    top = max(range(len(others)), key=values.__getitem__, default=-1)
    if top < 0 or values[top] <= new.value(end):
        return [len(others)], [1.0]
    t = _crossing(new, others[top], math.log(p[0] / p[1]), end)
    height = others[top].value(t)
    one, two = others[top].slope(t), new.slope(t)
    if one * two >= 0 or any(c.value(t) > height + _ROUNDING * abs(height) for c in others):
        return None
    share = one / (one - two)
    return [top, len(others)], [1.0 - share, share]


def _crossing(new: TwoClassCut, other: TwoClassCut, above: float, below: float) -> float:
    """Where two cuts have one value: ``new`` is larger at ``above``, and smaller at ``below``."""
    t = (above + below) / 2
    for _ in range(_STEPS):
        difference, slope = new.value(t) - other.value(t), new.slope(t) - other.slope(t)
        if difference > 0:
            above = t
        else:
            below = t
        following = t - difference / slope if slope else math.inf
        if not min(above, below) <= following <= max(above, below):
            following = (above + below) / 2
        t, step = following, abs(following - t)
        if step <= _LAST_STEP * (1 + abs(t)):
            break
    return t


@dataclass(frozen=True)
class Cut:
    """A set of k features, and what its sum of h_i is at any p."""

    support: Array  # int64 of shape (k,)
    mass: Array  # B_c: (K,), on the host
    const: float  # the sum of h_i at the origin of the logarithms

    @classmethod
    def of(cls, f: Array, support: Array, value: float, logs: Any) -> Self:
        """The cut of a set whose sum of h_i is ``value`` at the p of these logarithms."""
        xp = array_namespace(f)
        mass = to_host(row_sums(xp.take(f, support, axis=1)))
        return cls(support, mass, value + _dot(mass, logs))


@dataclass(frozen=True)
class DualPoint:
    """The solution of the dual."""

    p: list[float]  # K shares of the classes
    value: float  # the sum of the k largest h_i(p): no support has more
    h: Array  # h_i(p): (d,)
    # The k largest at p, and those of the cuts that meet there: the two sides of a kink; each (k,).
    supports: list[Array]


def solve_dual(
    f: Array,
    k: int,
    p: list[float],
    slack: Callable[[], float] = lambda: 0.0,
    h: Array | None = None,
) -> DualPoint:
    """Minimise the sum of the k largest h_i over the simplex, from smoothed class sums f, (K, d).

    Starts at the shares p, where h_i(p) may be known: h, (d,). ``slack()`` is how far above the
    minimum the value may be: asked for after some cuts, since few problems of two classes need so
    many.
    """
    xp, backend = array_namespace(f), backend_of(f)
    origin, h_origin = p, divergence(f, p) if h is None else h
    cuts: list[Cut] = []
    shares: list[float] = []
    best = math.inf, p
    allowed = 0.0
    kth: Array | None = None  # the k-th largest h of the step before
    for step in range(_MOST_CUTS):
        if step == _CUTS_BEFORE_SLACK:
            allowed = slack()
        logs = _logs(p, origin)
        # In place of logarithms of each feature: h is linear in ``logs``. Equal columns have equal
        # h, and other ties do not matter to the search.
        if len(p) > LOOPED_CLASSES:
            moved = backend.asarray(logs) @ f
        else:
            moved = sum((f[c, :] * logs[c] for c in range(1, len(p))), f[0, :] * logs[0])
        h = h_origin - moved
        support = top_k(h, k, kth)
        chosen = xp.take(h, support)
        value, kth = to_float(xp.sum(chosen)), xp.min(chosen)
        if value < best[0]:
            best = value, p
        cut = Cut.of(f, support, value, logs)
        lower = sum(w * _value(c, logs) for w, c in zip(shares, cuts, strict=True))
        known = any(_equal(c, cut) for c in cuts)
        if cuts and (known or best[0] - lower <= max(_RELATIVE_GAP * best[0], allowed)):
            break
        cuts, shares = _least_point([*cuts, cut], [*shares, 0.0 if cuts else 1.0], p, origin)
        p = _shares_of(cuts, shares)
    p, h = best[1], divergence(f, best[1])  # without the rounding of ``logs``
    support = top_k(ranking_key(h), k, kth)
    value = to_float(xp.sum(xp.take(h, support)))
    own = Cut.of(f, support, value, _logs(p, origin))
    others = [c.support for c in cuts if not _equal(c, own)]
    return DualPoint(p, value, h, [support, *others])


def _shares_of(cuts: list[Cut], shares: list[float]) -> list[float]:
    """The p of cuts that meet, in their shares: that of the mean of their masses."""
    xp = array_namespace(cuts[0].mass)
    if cuts[0].mass.shape[0] > LOOPED_CLASSES:
        b = to_floats(xp.asarray(shares) @ xp.stack([c.mass for c in cuts]))
    else:
        columns = zip(*(to_floats(c.mass) for c in cuts), strict=True)
        b = [math.fsum(map(math.prod, zip(shares, column, strict=True))) for column in columns]
    total = math.fsum(b)
    return [x / total for x in b]


def _logs(p: list[float], origin: list[float]) -> Any:
    """Logarithms of p, taken from ``origin`` so that little cancels: a list, of many an array."""
    logs = [math.log(a / b) for a, b in zip(p, origin, strict=True)]
    return to_host(logs) if len(logs) > LOOPED_CLASSES else logs


def _dot(mass: Array, logs: Any) -> float:
    if not isinstance(logs, list):
        return to_float(mass @ logs)
    return math.fsum(map(math.prod, zip(to_floats(mass), logs, strict=True)))


def _value(cut: Cut, logs: Any) -> float:
    """The sum of h_i over the set of a cut, at the p of these logarithms."""
    return cut.const - _dot(cut.mass, logs)


def _equal(one: Cut, other: Cut) -> bool:
    if not bool(array_namespace(one.mass).all(one.mass == other.mass)):
        return False
    return bool(array_namespace(one.support).all(one.support == other.support))


def _least_point(
    cuts: list[Cut], shares: list[float], p: list[float], origin: list[float]
) -> tuple[list[Cut], list[float]]:
    """The cuts that meet in the least point of their maximum, and their shares there."""
    if len(origin) == 2:
        found = meet([TwoClassCut(c.const, to_floats(c.mass), origin) for c in cuts], p)
        if found is not None:
            return [cuts[j] for j in found[0]], found[1]
    return _master(cuts, shares, origin)


def _master(
    cuts: list[Cut], shares: list[float], origin: list[float]
) -> tuple[list[Cut], list[float]]:
    """The cuts that meet in the least point of their maximum, and their shares there.

    The dual of that point: over shares w >= 0 with sum 1, maximise

        sum of w_j const_j - sum over c of b_c log(b_c / (sum(b) origin_c)),   b = sum of w_j B_j,

    which is concave. Newton steps within the shares that are not zero; a step that would make one
    negative ends there, and that cut is dropped. The few numbers stay on the host.
    """
    xp = array_namespace(cuts[0].mass)
    const, mass = xp.asarray([c.const for c in cuts]), xp.stack([c.mass for c in cuts])
    w, start = xp.asarray(shares), xp.asarray(origin)

    def value(w: Any) -> float:
        b = w @ mass
        return float(w @ const - b @ xp.log(b / (xp.sum(b) * start)))

    def slope(w: Any) -> Any:
        b = w @ mass
        return const - mass @ xp.log(b / (xp.sum(b) * start))

    free = [j for j in range(len(cuts)) if shares[j] > 0]
    for _ in range(50 + 10 * len(cuts)):
        g = slope(w)
        top, least = int(xp.argmax(g)), float(w @ g)
        if g[top] - least > _RELATIVE_GAP * abs(least) and top not in free:
            free.append(top)
        step = _newton(mass[free, :], g[free], w @ mass)
        # The step goes as far as the shares stay positive and the value rises. A rise near rounding
        # cannot be measured, and then the full Newton step is taken.
        far, falling = 1.0, [i for i, d in enumerate(step) if d < 0]
        hit = None
        for i in falling:
            room = float(-w[free[i]] / step[i])
            if room < far:
                far, hit = room, i
        rise, now = float(step @ g[free]), value(w)
        while far > 1e-12:
            new = w.copy()
            new[free] = xp.maximum(w[free] + far * step, 0.0)
            if value(new) >= now + 1e-4 * far * rise or rise <= 1e-9 * abs(now):
                break
            far, hit = far / 2, None
        else:
            if hit is None:
                break
            new = w.copy()
        w = new
        if hit is not None:
            w[free.pop(hit)] = 0.0
        w = w / xp.sum(w)
        if hit is None and rise <= 1e-16 * abs(now):
            break
    kept = [j for j in free if w[j] > 0]
    return [cuts[j] for j in kept], [float(w[j]) for j in kept]


def _newton(mass: Any, g: Any, b: Any) -> Any:
    """The Newton step of some shares, whose sum stays."""
    xp, j = array_namespace(mass), g.shape[0]
    centred = mass - xp.sum(mass, axis=1)[:, None] * (b / xp.sum(b))
    curvature = (centred / b) @ centred.T
    # Sets of equal mass in the classes leave a direction without curvature: the ridge bounds it.
    ridge = 1e-13 * (xp.max(xp.abs(curvature)) + xp.max(xp.abs(g)))
    system = xp.zeros((j + 1, j + 1))
    system[:j, :j] = curvature + ridge * xp.eye(j)
    system[:j, j] = system[j, :j] = 1.0
    right = xp.concat([g - xp.mean(g), xp.zeros(1)])
    step = xp.linalg.solve(system, right)[:j]
    return step / max(1.0, float(xp.max(xp.abs(step))))  # no share changes by more than 1
