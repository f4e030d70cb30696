"""The worst-case weighted l1 norm and its dual.

For p, q >= 0 and a(t) = t p + (1 - t) q,

    Omega(w) = max over 0 <= t <= 1 of sum_j |w_j| sqrt(a_j(t)),
    Omega*(g) = min over 0 <= t <= 1 of max_j |g_j| / sqrt(a_j(t)).

Features with p = q = 0 are constant: their weights count nothing, and g is read as 0 there.
"""

from __future__ import annotations

import math

from ...arrays.functions import array_namespace, to_float, to_floats
from ...arrays.typing import Array

_EPS = 2.0**-52
_MOST_STEPS = 200
_NEGLIGIBLE = 1e-100  # relative to the largest: the square is still a normal number


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
        near = abs(new - t) <= 4 * _EPS or high - low <= 4 * _EPS
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
                if lowest >= known * (1 - 4 * _EPS) or new[0] == new[1]:
                    break
                if new[1] > new[0]:
                    rising = new
                else:
                    falling = new
    best = to_float(xp.min(t * at_one + u * at_zero))
    return (largest / math.sqrt(best) if best > 0 else math.inf), t
