"""Relative entropies in a form without cancellation, by which naive Bayes models rank."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from ..arrays.functions import array_namespace, backend_of, to_floats, to_host
from ..arrays.typing import Array

_SERIES_BELOW = 1e-3  # where the difference loses more digits than ranking keys can spare
_LOG_SERIES_BELOW = 1e-2
_FEW_CLASSES = 16  # that are worked on at a time
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
    xp = array_namespace(f)
    g = xp.sum(f, axis=0)
    h = xp.zeros_like(g)
    for part, share in _groups(p, f):
        expected = g * share
        h = h + xp.sum(expected * phi((f[part, ...] - expected) / expected), axis=0)
    return h


def _groups(p: Sequence[float | Array], like: Array) -> Iterator[tuple[slice, Any]]:
    """Some classes at a time, with their shares as a column: a call each would be slow for many."""
    if len(p) <= _FEW_CLASSES or not isinstance(p[0], float):
        yield from ((slice(c, c + 1), share) for c, share in enumerate(p))
        return
    shares = backend_of(like).asarray(p)[:, None]
    for first in range(0, len(p), _FEW_CLASSES):
        part = slice(first, first + _FEW_CLASSES)
        yield part, shares[part, :]


def kl_divergence(p: Array, q: list[float]) -> Array:
    """Relative entropy of each row of p (j, K), which sums to 1, to the shares q: shape (j,)."""
    xp = array_namespace(p)
    total = xp.zeros_like(p[:, 0])
    p = xp.permute_dims(p, (1, 0))
    for part, share in _groups(q, p):
        total = total + xp.sum(share * phi(p[part, :] / share - 1), axis=0)
    return total


def relative_entropy(mass: Array, p: list[float]) -> float:
    """That of masses (K,), made shares, to the shares p, times their sum: on the host."""
    mass = to_host(mass)
    if len(p) > _FEW_CLASSES:
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
