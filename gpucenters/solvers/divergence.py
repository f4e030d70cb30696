"""Relative entropy in a form without cancellation, by which both naive Bayes models rank."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import add

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


def divergence(f: Array, p: list[float]) -> Array:
    """Relative entropy h_i(p) of each feature: sum over c of f_ci log( f_ci / (g_i p_c) ).

    With g_i the sum over c of f_ci: how much the log-likelihood of counts grows if the shares of
    feature i among the classes may differ from p. Not negative, convex in p, and 0 where the shares
    are p. (Theorem 2.)

    Parameters
    ----------
    f : array of shape (K, d), float64, positive
    p : list of K positive floats that sum to 1

    Returns
    -------
    array of shape (d,)
    """
    xp = array_namespace(f)
    g = xp.sum(f, axis=0)
    h = xp.zeros_like(g)
    for c, share in enumerate(p):
        expected = g * share
        h = h + expected * phi((f[c, :] - expected) / expected)
    return h


def kl_divergence(p: Iterable[Array], q: list[float]) -> Array:
    """Relative entropy of shares p, an array for each class, to the shares q, elementwise."""
    terms = (share * phi(part / share - 1) for share, part in zip(q, p, strict=True))
    return reduce(add, terms)
