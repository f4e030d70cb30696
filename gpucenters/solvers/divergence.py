"""Relative entropy in a form that never cancels: what both naive Bayes models rank by."""

from __future__ import annotations

from ..arrays.ops import array_namespace
from ..arrays.typing import Array

# Below it the difference loses more digits than ranking keys can spare, and the series is exact.
_SMALL = 1e-2
_TERMS = 9


def phi(z: Array) -> Array:
    """``(1 + z) log(1 + z) - z`` for z >= -1: convex, not negative, and 0 at 0 exactly."""
    xp = array_namespace(z)
    one = xp.ones_like(z)
    grown = 1 + z
    # (0 log 0 is 0: where 1 + z is 0, or below by rounding, the logarithm is not taken.)
    log = xp.log1p(xp.where(grown > 0, z, 0 * one))
    series = one / (_TERMS * (_TERMS - 1))
    for n in range(_TERMS - 1, 1, -1):
        series = 1 / (n * (n - 1)) - z * series
    series = z * z * series
    exact = xp.where(grown > 0, grown, 0 * one) * log - z
    return xp.where(xp.abs(z) < _SMALL, series, xp.where(exact > 0, exact, 0 * one))


def divergence(f: Array, p: list[float]) -> Array:
    """h_i(p) = sum over c of f_ci log( f_ci / (g_i p_c) ), where g_i = sum over c of f_ci.

    What feature i adds to the log-likelihood of counts when its share among the classes may differ
    from p: not negative, convex in p, and 0 where the shares are p.

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


def entropy_distance(p: Array, q: list[float]) -> Array:
    """Relative entropy of each row of p (j, K), which sums to 1, to the shares q: shape (j,)."""
    xp = array_namespace(p)
    total = xp.zeros_like(p[:, 0])
    for c, share in enumerate(q):
        total = total + share * phi(p[:, c] / share - 1)
    return total
