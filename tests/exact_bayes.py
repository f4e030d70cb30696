"""Brute-force oracle of sparse naive Bayes: likelihoods from their definition, every support tried.

Counts are fractions and logarithms have 50 digits, so nothing here rests on the formulas that the
solvers use. Meant for small problems only.
"""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations

import numpy as np
from exact import fractions, select

DIGITS = 50


@dataclass(frozen=True)
class ExactBayes:
    """Optimum of one problem with K classes and m features."""

    support: tuple  # ascending; for the multinomial the lexicographically first of the best
    log_theta: np.ndarray  # K x m, free on the support and tied elsewhere
    likelihood: float  # the largest log-likelihood with at most k free features
    every: dict  # log-likelihood by support of size min(k, m)
    gain: list  # Bernoulli: what freeing a feature adds, as fractions of 50 digits
    digits: dict  # log-likelihood by support, as decimals of 50 digits


def sums(X, y, weights=None):
    """(weight of each class, class sums) as fractions."""
    X, y = fractions(X), [int(c) for c in y]
    weights = [Fraction(1)] * len(y) if weights is None else fractions(weights)
    k, m = max(y) + 1, len(X[0])
    weight, total = [Fraction(0)] * k, [[Fraction(0)] * m for _ in range(k)]
    for row, c, s in zip(X, y, weights, strict=True):
        weight[c] += s
        for i, x in enumerate(row):
            total[c][i] += s * x
    return weight, total


def log(x):
    """Natural logarithm of a fraction."""
    return Decimal(x.numerator).ln() - Decimal(x.denominator).ln()


def times(a, d):
    """A fraction times a decimal."""
    return Decimal(a.numerator) * d / Decimal(a.denominator)


def exact_bernoulli(X, y, k, alpha=Fraction(1), weights=None):
    """Sparse Bernoulli naive Bayes; X holds zeros and ones."""
    with localcontext() as context:
        context.prec = DIGITS
        weight, total = sums(X, y, weights)
        K, m = len(weight), len(total[0])

        def likelihood(i, theta):
            found = Decimal(0)
            for c in range(K):
                f, n = total[c][i] + alpha, weight[c] + 2 * alpha
                found += times(f, log(theta[c])) + times(n - f, log(1 - theta[c]))
            return found

        free = [
            [(total[c][i] + alpha) / (weight[c] + 2 * alpha) for c in range(K)] for i in range(m)
        ]
        pooled = sum(weight) + 2 * K * alpha
        tied = [[sum(t[i] for t in total) + K * alpha] for i in range(m)]
        tied = [[t[0] / pooled] * K for t in tied]
        apart = [likelihood(i, free[i]) for i in range(m)]
        together = [likelihood(i, tied[i]) for i in range(m)]
        same = [len(set(p)) == 1 for p in free]
        gain = [
            Fraction(0) if s else Fraction(a - t)
            for a, t, s in zip(apart, together, same, strict=True)
        ]
        digits = {
            D: sum(apart[i] if i in D else together[i] for i in range(m))
            for D in combinations(range(m), min(k, m))
        }
        every = {D: float(value) for D, value in digits.items()}
        support = select(gain, k)
        best = max(every.values())
        assert every[support] >= best - 1e-9 * abs(best)
        theta = [free[i] if i in support else tied[i] for i in range(m)]
        log_theta = np.array([[float(log(theta[i][c])) for i in range(m)] for c in range(K)])
        return ExactBayes(support, log_theta, every[support], every, gain, digits)


def exact_multinomial(X, y, k, alpha=Fraction(1), weights=None):
    """Sparse multinomial naive Bayes, from the likelihood of its maximiser for each support.

    On a support the shares are those of each class, scaled so that all K sums over the support
    are the pooled one, which is the constraint that theta sums to 1 with the rest tied.
    """
    with localcontext() as context:
        context.prec = DIGITS
        _, total = sums(X, y, weights)
        K, m = len(total), len(total[0])
        f = [[t + alpha for t in row] for row in total]
        g = [sum(row[i] for row in f) for i in range(m)]
        S = sum(g)
        logs = [[log(x) for x in row] for row in f]
        tied = [log(x / S) for x in g]
        plain = [sum(times(f[c][i], tied[i]) for c in range(K)) for i in range(m)]
        own = [sum(times(f[c][i], logs[c][i]) for c in range(K)) for i in range(m)]

        def shift(D, c):
            B = [sum(row[i] for i in D) for row in f]
            return log(sum(B) / (B[c] * S)), B[c]

        def likelihood(D):
            found = sum(own[i] if i in D else plain[i] for i in range(m))
            for c in range(K):
                offset, B = shift(D, c)
                found += times(B, offset)
            return found

        exact = {D: likelihood(D) for D in combinations(range(m), min(k, m))}
        best = max(exact.values())
        close = Decimal(10) ** (10 - DIGITS) * abs(best)
        support = min(D for D, value in exact.items() if value >= best - close)
        log_theta = np.array(
            [
                [
                    float(logs[c][i] + shift(support, c)[0] if i in support else tied[i])
                    for i in range(m)
                ]
                for c in range(K)
            ]
        )
        np.testing.assert_allclose(np.exp(log_theta).sum(axis=1), 1, rtol=1e-12)
        every = {D: float(value) for D, value in exact.items()}
        return ExactBayes(support, log_theta, float(best), every, [], exact)


def random_counts(rng, classes=None, binary=False, most=7):
    """Small (X, y, weights, k) of counts full of ties."""
    K = int(rng.integers(2, 4)) if classes is None else classes
    n, m = int(rng.integers(K, 14)), int(rng.integers(1, most))
    X = rng.poisson(rng.choice([0.3, 1.0, 3.0]), (n, m))
    if rng.random() < 0.3:
        X[:, rng.integers(m)] = X[:, rng.integers(m)]
    if binary:
        X = (X > 0).astype(np.int64)
    y = rng.permutation(np.append(np.arange(K), rng.integers(K, size=n - K)))
    weights = None
    if rng.random() < 0.4:
        weights = rng.integers(0, 4, size=n)
        for c in range(K):
            if not weights[y == c].any():
                weights[rng.choice(np.flatnonzero(y == c))] = 1
    return X, y, weights, int(rng.integers(1, m + 1))
