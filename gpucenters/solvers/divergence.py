"""Relative entropy in a form without cancellation, by which both naive Bayes models rank."""

from __future__ import annotations

from collections.abc import Sequence

from ..arrays.functions import array_namespace
from ..arrays.typing import Array

_SERIES_BELOW = 1e-3  # where the difference loses more digits than ranking keys can spare
_ABOVE_MINUS_ONE = -1 + 2.0**-53


def phi(z: Array) -> Array:
    """``(1 + z) log(1 + z) - z`` for z >= -1: convex, not negative, and 0 at 0 exactly."""
    xp = array_namespace(z)
    # Where 1 + z is 0, or below by rounding, 0 log 0 is 0.
    z = xp.where(z < _ABOVE_MINUS_ONE, xp.full_like(z, _ABOVE_MINUS_ONE), z)
    exact = (1 + z) * xp.log1p(z) - z
    # The sum over n >= 2 of (-z)^n / (n (n - 1)), by Horner's rule.
    series = z * (-1 / 30) + 1 / 20
    for n in (4, 3, 2):
        series = 1 / (n * (n - 1)) - z * series
    return xp.where(xp.abs(z) < _SERIES_BELOW, z * z * series, exact)


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
    for c, share in enumerate(p):
        expected = g * share
        h = h + expected * phi((f[c, ...] - expected) / expected)
    return h


def kl_divergence(p: Array, q: list[float]) -> Array:
    """Relative entropy of each row of p (j, K), which sums to 1, to the shares q: shape (j,)."""
    xp = array_namespace(p)
    total = xp.zeros_like(p[:, 0])
    for c, share in enumerate(q):
        total = total + share * phi(p[:, c] / share - 1)
    return total
