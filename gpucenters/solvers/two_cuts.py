"""The least point of the largest of a few cuts of two classes, where p is one number.

A cut is ``const - B_0 log p_0 - B_1 log p_1``: convex, and least where p is B / sum(B). The least
of the maximum is at that point of one cut, or where a cut that rises meets one that falls. With t
the logarithm of p_0 / p_1, in which no share near zero is rounded, the slope of a cut is
``B_1 p_0 - B_0 p_1``. The numbers stay on the host: a few steps of Newton's method.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_STEPS = 100  # at most; where Newton's method leaves the bracket, it is halved
_LAST_STEP = 1e-9  # the next one would be as its square, which is rounding
_ROUNDING = 1e-13  # relative difference of values that is rounding


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
    """The cuts that meet in the least point of their maximum, and their shares there.

    Parameters
    ----------
    cuts : list of TwoClassCut
        The last one is new; it is the largest at p.
    p : list of 2 floats
        The least point of the maximum of the others.

    Returns
    -------
    tuple of lists, or None where rounding, or a third cut, leaves no such point
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
