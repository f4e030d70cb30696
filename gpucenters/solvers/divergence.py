"""Relative entropies in a form without cancellation, by which naive Bayes models rank."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from ..arrays.functions import array_namespace, backend_of, to_floats, to_host
from ..arrays.typing import Array

_SERIES_BELOW = 1e-3  # where the difference loses more digits than ranking keys can spare
_LOG_SERIES_BELOW = 1e-2
LOOPED_CLASSES = 16  # classes up to which a loop over them takes less time than arrays of all
_MOST_TERMS = 2**15  # of several classes that are worked on at a time
_LEAST = 2.0**-53  # of 1 + z


def phi(z: Array) -> Array:
    """``(1 + z) log(1 + z) - z`` for z >= -1: convex, not negative, and 0 at 0 exactly."""
    xp = array_namespace(z)
    small = xp.abs(z) < _SERIES_BELOW
    if not backend_of(z).sync_is_expensive:
        if bool(xp.all(small)):
            return _series(z)
        if not bool(xp.any(small)):
            return _exact(z)
    return xp.where(small, _series(z), _exact(z))


def _exact(z: Array) -> Array:
    # Where 1 + z is 0, or below by rounding, 0 log 0 is 0. What u is rounded by counts only in
    # the second order: (1 + z) log1p(z) - z, with `log1p` as below, is this.
    xp = array_namespace(z)
    u = xp.maximum(1 + z, _LEAST)
    return u * xp.log(u) - (u - 1)


def log1p(z: Array) -> Array:
    """``log(1 + z)`` for z > -1, by the logarithm of u = 1 + z and what that is rounded by.

    The array API's log1p is much slower.
    """
    u = 1 + z
    return array_namespace(z).log(u) + (z - (u - 1)) / u


def log_excess(z: Array) -> Array:
    """``z - log(1 + z)`` for z >= -1: convex, not negative, and 0 at 0 exactly."""
    xp = array_namespace(z)
    z = xp.maximum(z, _LEAST - 1)
    series = z * (-1 / 9) + 1 / 8
    for n in range(7, 1, -1):
        series = 1 / n - z * series
    return xp.where(xp.abs(z) < _LOG_SERIES_BELOW, z * z * series, z - log1p(z))


def _series(z: Any) -> Any:
    """The sum over n = 2 to 6 of (-z)^n / (n (n - 1)), by Horner's rule."""
    found = z * (-1 / 30) + 1 / 20
    for n in (4, 3, 2):
        found = 1 / (n * (n - 1)) - z * found
    return z * z * found


def divergence(f: Array, p: Sequence[float | Array]) -> Array:
    """Relative entropy h_i(p) of each feature: sum over c of f_ci log( f_ci / (g_i p_c) ).

    With g_i the sum over c of f_ci: how much the log-likelihood of counts grows if the shares of
    feature i among the classes may differ from p. Not negative, convex in p, and 0 where the shares
    are p. (Theorem 2.)

    Parameters
    ----------
    f : array of shape (K, ..., d), float64, positive
    p : sequence of K positive floats that sum to 1, or of arrays of such for each f
        Of shapes that broadcast to (..., d).

    Returns
    -------
    array of shape (..., d)
    """
    g = array_namespace(f).sum(f, axis=0)

    def term(classes: Any, share: Any) -> Array:
        expected = g * share
        return expected * phi((f[classes, ...] - expected) / expected)

    return sum_over_classes(term, p, f)


def sum_over_classes(
    term: Callable[[Any, Any], Array], p: Sequence[float | Array], like: Array
) -> Array:
    """The sum of ``term(classes, share)`` over the classes.

    The term is that of one class, given by its number, or of a slice of classes along the first
    axis, whose shares are a column: for many classes a call for each would be slow.
    """
    if len(p) <= LOOPED_CLASSES or not isinstance(p[0], float):
        return reduce(operator.add, map(term, range(len(p)), p))
    xp, shares = array_namespace(like), backend_of(like).asarray(p)[:, None]
    step = max(LOOPED_CLASSES, _MOST_TERMS // max(1, math.prod(like.shape[1:])))
    groups = (slice(c, c + step) for c in range(0, len(p), step))
    return reduce(operator.add, (xp.sum(term(g, shares[g, :]), axis=0) for g in groups))


def relative_entropy(mass: Array, p: list[float]) -> float:
    """That of masses (K,), made shares, to the shares p, times their sum: on the host."""
    mass = to_host(mass)
    if len(p) > LOOPED_CLASSES:
        total = math.fsum(to_floats(mass))
        expected = total * array_namespace(mass).asarray(p)
        return math.fsum(to_floats(expected * phi((mass - expected) / expected)))
    masses = to_floats(mass)
    total, found = math.fsum(masses), 0.0
    for b, share in zip(masses, p, strict=True):
        z = max(b / (total * share) - 1, _LEAST - 1)
        small = abs(z) < _SERIES_BELOW
        found += share * (_series(z) if small else (1 + z) * math.log1p(z) - z)
    return total * found
