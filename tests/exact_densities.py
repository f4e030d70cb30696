"""Brute-force oracle of Poisson, Gaussian and shrunken centers, from their definitions.

Sums are fractions and logarithms have 50 digits, so nothing here rests on the formulas that the
solvers use. Meant for small problems only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations
from typing import Any

from exact import fractions, rounded, select
from exact_bayes import DIGITS, log, times

STEP = Fraction(1, 1000)


@dataclass(frozen=True)
class Truth:
    """Optima of one problem for every k."""

    gain: list  # what freeing a feature saves, as fractions; exactly 0 where free is tied
    loss: Fraction  # the objective with all features free
    supports: dict  # by k, found among all supports of k features
    free: list  # K x m parameters, fractions
    tied: list  # m parameters


def moments(X: Any, y: Any, weights: Any = None) -> tuple[list, list, list]:
    """(W_c, sums, centred second moments) as fractions: K, K x m, K x m."""
    X, y = fractions(X), [int(c) for c in y]
    s = [Fraction(1)] * len(y) if weights is None else fractions(weights)
    K, m = max(y) + 1, len(X[0])
    W = [sum(w for w, label in zip(s, y, strict=True) if label == c) for c in range(K)]
    rows = [[(w, x) for w, x, label in zip(s, X, y, strict=True) if label == c] for c in range(K)]
    S = [[sum(w * x[i] for w, x in rows[c]) for i in range(m)] for c in range(K)]
    M = [
        [sum(w * (x[i] - S[c][i] / W[c]) ** 2 for w, x in rows[c]) for i in range(m)]
        for c in range(K)
    ]
    return W, S, M


def _exhaustive(
    loss: Callable[[int, int, Any], Decimal], free: list, tied: list, scale: list
) -> Truth:
    """All supports of a separable problem: ``loss(c, i, parameter)`` summed over classes c.

    The optimum is checked to be one: parameters beside ``free`` and ``tied`` cost more.
    """
    K, m = len(free), len(tied)

    def of(i: int, params: list) -> Decimal:
        return sum(loss(c, i, params[c]) for c in range(K))

    apart = [of(i, [free[c][i] for c in range(K)]) for i in range(m)]
    together = [of(i, [tied[i]] * K) for i in range(m)]
    for i in range(m):
        for near in _beside(tied[i]):
            assert of(i, [near] * K) >= together[i]
        for c in range(K):
            for near in _beside(free[c][i]):
                assert loss(c, i, near) >= loss(c, i, free[c][i])
    same = [all(free[c][i] == tied[i] for c in range(K)) for i in range(m)]
    gain = [
        Fraction(0) if s else (Fraction(t) - Fraction(a)) / d
        for a, t, s, d in zip(apart, together, same, scale, strict=True)
    ]
    every = [Fraction(a) / d for a, d in zip(apart, scale, strict=True)]
    supports = {}
    for k in range(1, m + 1):
        values = {
            D: sum(every) + sum(gain[i] for i in range(m) if i not in D)
            for D in combinations(range(m), k)
        }
        support, best = select(gain, k), min(values.values())
        # exactly the optimum, unless unequal gains agree to 40 bits
        assert best <= values[support] <= best + sum(gain) / 2**39
        supports[k] = support
    return Truth(gain, sum(every), supports, free, tied)


def _beside(params: Any) -> list:
    """Parameters near to these, all positive ones staying so."""
    if not isinstance(params, tuple):
        return [params * (1 + STEP), params * (1 - STEP)]
    found = []
    for a in range(len(params)):
        for sign in (1, -1):
            step = params[a] * STEP if a else STEP
            found.append((*params[:a], params[a] + sign * step, *params[a + 1 :]))
    return found


def exact_poisson(
    X: Any,
    y: Any,
    exposure: Any,
    alpha: Fraction = Fraction(1),
    weights: Any = None,
    dispersion: bool = False,
) -> Truth:
    """Sparse Poisson naive Bayes: the parameters are ratios of the rate of a class to that of all.

    The likelihood of the ratio r of class c is that of the counts, Poisson with the mean t r e for
    a row of exposure e, times a Gamma prior of alpha events where alpha are expected.
    """
    with localcontext() as context:
        context.prec = DIGITS
        W, f, _ = moments(X, y, weights)
        K, m = len(W), len(f[0])
        s = [Fraction(1)] * len(y) if weights is None else fractions(weights)
        e, X, y = fractions(exposure), fractions(X), [int(c) for c in y]
        E = [sum(w * v for w, v, c in zip(s, e, y, strict=True) if c == d) for d in range(K)]
        t = [sum(f[c][i] for c in range(K)) / (sum(E) or 1) for i in range(m)]
        free = [[(f[c][i] + alpha) / (t[i] * E[c] + alpha) for i in range(m)] for c in range(K)]
        scale = [Fraction(1)] * m
        if dispersion:
            for i in range(m):
                found = Fraction(0)
                for c in range(K):
                    if f[c][i]:
                        q = sum(
                            w * x[i] ** 2 / v
                            for w, x, v, d in zip(s, X, e, y, strict=True)
                            if d == c and x[i] and w
                        )
                        found += E[c] * q / f[c][i] - f[c][i]
                scale[i] = max(Fraction(1), found / (sum(W) - K))

        def loss(c: int, i: int, r: Fraction) -> Decimal:
            found = times(E[c] * t[i] * r + alpha * r, Decimal(1)) - times(alpha, log(r))
            return found - times(f[c][i], log(t[i] * r)) if f[c][i] else found

        return _exhaustive(loss, free, [Fraction(1)] * m, scale)


def exact_gaussian(
    X: Any,
    y: Any,
    pooling: Fraction = Fraction(0),
    var_smoothing: Fraction = Fraction(0),
    ddof: int = 0,
    weights: Any = None,
) -> Truth:
    """Sparse Gaussian naive Bayes: parameters are (mean, variance); constant features are dropped.

    The loss of class c is that of rows with its mean and its pooled and smoothed variance.
    """
    with localcontext() as context:
        context.prec = DIGITS
        W, S, M = moments(X, y, weights)
        K, m, whole = len(W), len(S[0]), sum(W)
        mean = [[S[c][i] / W[c] for i in range(m)] for c in range(K)]
        grand = [sum(S[c][i] for c in range(K)) / whole for i in range(m)]
        of_all = [
            sum(M[c][i] + W[c] * (mean[c][i] - grand[i]) ** 2 for c in range(K)) / whole
            for i in range(m)
        ]
        e = var_smoothing * max(of_all)
        free = [[None] * m for _ in range(K)]
        tied = [(Fraction(0), Fraction(1))] * m
        for i in range(m):
            v = [M[c][i] / (W[c] - ddof) for c in range(K)]
            pool = sum(w * a for w, a in zip(W, v, strict=True)) / whole
            u = [(1 - pooling) * a + pooling * pool + e for a in v]
            between = sum(W[c] * (mean[c][i] - grand[i]) ** 2 for c in range(K)) / whole
            if of_all[i]:
                tied[i] = grand[i], pool + e + between
            for c in range(K):
                free[c][i] = (mean[c][i], u[c]) if of_all[i] else tied[i]

        def loss(c: int, i: int, params: tuple) -> Decimal:
            if not of_all[i]:
                return Decimal(0)
            (mu, v), (mean_c, u) = params, free[c][i]
            far = times((u + (mean_c - mu) ** 2) / v, Decimal(1))
            return times(W[c] / 2, log(v) + far + LOG_2_PI)

        return _exhaustive(loss, free, tied, [Fraction(1)] * m)


def exact_gaussian_scores(
    X: Any, y: Any, rows: Any, pooling: Fraction, var_smoothing: Fraction
) -> tuple[list, list]:
    """(joint log densities, what rounding may do to them) of some rows: n x K fractions and floats.

    Rounding: of a mean, to its last bits; of a variance, to a share of it; of a feature near zero;
    of the sum.
    """
    with localcontext() as context:
        context.prec = DIGITS
        W, S, M = moments(X, y)
        K, m, whole = len(W), len(S[0]), sum(W)
        mean = [[S[c][i] / W[c] for i in range(m)] for c in range(K)]
        grand = [sum(S[c][i] for c in range(K)) / whole for i in range(m)]
        between = [
            sum(W[c] * (mean[c][i] - grand[i]) ** 2 for c in range(K)) / whole for i in range(m)
        ]
        pool = [sum(M[c][i] for c in range(K)) / whole for i in range(m)]
        e = var_smoothing * max(a + b for a, b in zip(pool, between, strict=True))
        u = [
            [(1 - pooling) * M[c][i] / W[c] + pooling * pool[i] + e for i in range(m)]
            for c in range(K)
        ]
        varies = [pool[i] + between[i] > 0 for i in range(m)]
        scores, bounds = [], []
        for x in fractions(rows):
            found, rounding = [], []
            for c in range(K):
                score, error = log(W[c] / whole), 1e-14
                for i in range(m):
                    # A feature that is constant is taken to stay so.
                    z2 = (x[i] - mean[c][i]) ** 2 / u[c][i] * varies[i]
                    score -= (LOG_2_PI + log(u[c][i]) + times(z2, Decimal(1))) / 2
                    size, z2 = abs(float(mean[c][i])) / float(u[c][i]) ** 0.5, float(z2)
                    step = 2.0**-50 * size
                    share = len(y) * 2.0**-50 + (len(y) * step) ** 2
                    error += 2.0**-40 + (z2**0.5 + step) * step
                    error += (1 + z2 + abs(float(log(u[c][i])))) * share
                found.append(Fraction(score))
                rounding.append(error + 2.0**-45 * abs(float(score)))
            scores.append(found)
            bounds.append(rounding)
        return scores, bounds


LOG_2_PI = Decimal("1.8378770664093454835606594728112352797227949472755668")


@dataclass(frozen=True)
class TrueCentroids:
    """Shrunken centroids of one threshold; numbers of 50 digits as fractions."""

    size: list  # max_c |d_c|
    threshold: Fraction
    support: tuple
    centroids: list  # K x m
    scale: list


def exact_shrunken(
    X: Any, y: Any, k: int | None, threshold: Any = None, weights: Any = None, offset: Any = None
) -> TrueCentroids:
    """Nearest shrunken centroids at k features (None: all) or at a threshold."""
    with localcontext() as context:
        context.prec = DIGITS
        W, S, M = moments(X, y, weights)
        K, m, whole = len(W), len(S[0]), sum(W)
        root = lambda q: Fraction(times(q, Decimal(1)).sqrt())  # noqa: E731
        s = [root(sum(M[c][i] for c in range(K)) / (whole - K)) for i in range(m)]
        ordered = sorted(s)
        median = (ordered[(m - 1) // 2] + ordered[m // 2]) / 2
        s0 = median if offset is None else Fraction(offset)
        scale = [a + s0 or Fraction(1) for a in s]
        grand = [sum(S[c][i] for c in range(K)) / whole for i in range(m)]
        unit = [root(1 / w - 1 / whole) for w in W]
        dev = [[S[c][i] / W[c] - grand[i] for i in range(m)] for c in range(K)]
        d = [[dev[c][i] / (unit[c] * scale[i]) for i in range(m)] for c in range(K)]
        size = [max(abs(d[c][i]) for c in range(K)) for i in range(m)]
        keys = [rounded(a) for a in size]
        delta = Fraction(0) if threshold is None else Fraction(threshold)
        if k is not None and k < m:
            delta = sorted(size, reverse=True)[k]
        support = tuple(i for i in range(m) if keys[i] > rounded(delta))
        centroids = [[grand[i] for i in range(m)] for c in range(K)]
        for c in range(K):
            for i in support:
                a = max(abs(d[c][i]) - delta, 0) * unit[c] * scale[i]
                a = a if dev[c][i] > 0 else -a
                centroids[c][i] += a

                def cost(a: Fraction, c: int = c, i: int = i) -> Fraction:
                    return (dev[c][i] - a) ** 2 / 2 + delta * unit[c] * scale[i] * abs(a)

                near = scale[i] * STEP
                assert cost(a) <= min(cost(a + near), cost(a - near))
        return TrueCentroids(size, delta, support, centroids, scale)
