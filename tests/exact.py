"""Brute-force oracle of the sparse l1 and l2 center classifiers, in exact fractions.

Every loss is minimised from its definition and every support of at most k features is tried, so
nothing here rests on the formulas that the solvers use. Meant for small problems only.
"""

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np


@dataclass(frozen=True)
class Exact:
    """Optimum of one problem with K classes and m features; all numbers are fractions."""

    free: list  # K x m, the minimiser of each class on its own
    lo: list  # K x m, lower end of each class's minimising interval (l2: free)
    hi: list  # K x m, upper end
    tied: list  # m, the common minimiser of all classes
    gain: list  # m, what freeing a feature takes off the objective
    support: tuple  # ascending, min(k, m) features
    centers: list  # K x m, free on the support and tied elsewhere
    objective: Fraction
    divisor: list  # m, what each feature's loss is divided by


def fractions(values):
    """Exact fractions of a nested sequence or array of numbers."""
    values = values.tolist() if hasattr(values, "tolist") else values
    return [fractions(v) if hasattr(v, "__len__") else _fraction(v) for v in values]


def _fraction(value):
    # NumPy integers would stay inside the fraction and overflow there
    return Fraction(value.item() if isinstance(value, np.generic) else value)


def _class_columns(X, y, weights):
    """Weight of each distinct value, as one counter per feature and class."""
    X, y = fractions(X), [int(c) for c in y]
    weights = [Fraction(1)] * len(y) if weights is None else fractions(weights)
    columns = [[Counter() for _ in range(max(y) + 1)] for _ in X[0]]
    for row, c, s in zip(X, y, weights, strict=True):
        if s:
            for i, x in enumerate(row):
                columns[i][c][x] += s
    if not all(columns[0]):
        raise ValueError("a class has no weight")
    return columns


def _minimise_l2(points):
    """Minimum and minimising interval of sum w (x - t)^2 = a t^2 - 2 b t + c."""
    a = sum(points.values())
    b = sum(w * x for x, w in points.items())
    c = sum(w * x * x for x, w in points.items())
    return c - b * b / a, b / a, b / a


def _minimise_l1(points):
    """Minimum and minimising interval of sum w |x - t|: convex, linear between the values."""
    loss = {t: sum(w * abs(x - t) for x, w in points.items()) for t in points}
    least = min(loss.values())
    flat = [t for t in loss if loss[t] == least]
    return least, min(flat), max(flat)


def rounded(gain, bits=40):
    """Fraction rounded to a number of significant bits: the ranking key."""
    if not gain:
        return gain
    exponent = gain.numerator.bit_length() - gain.denominator.bit_length()
    exponent -= gain < Fraction(2) ** exponent
    unit = Fraction(2) ** (exponent - bits + 1)
    return round(gain / unit) * unit


def select(gain, k):
    """Ascending features of the min(k, m) largest rounded gains, the lower index first."""
    order = sorted(range(len(gain)), key=lambda i: (-rounded(Fraction(gain[i])), i))
    return tuple(sorted(order[:k]))


def _solve(X, y, k, weights, divisor, minimise):
    """Exhaustive search over supports, with each feature's own minima found once."""
    columns = _class_columns(X, y, weights)
    m, K = len(columns), len(columns[0])
    divisor = [Fraction(1)] * m if divisor is None else fractions(divisor)
    free, lo, hi = ([[None] * m for _ in range(K)] for _ in range(3))
    tied, apart, together = [], [], []
    for i, column in enumerate(columns):
        everyone, least = Counter(), Fraction(0)
        for c, points in enumerate(column):
            total = sum(points.values())
            value, lo[c][i], hi[c][i] = minimise(points)
            free[c][i] = (lo[c][i] + hi[c][i]) / 2
            least += value / total
            for x, w in points.items():
                everyone[x] += w / total
        value, low, high = minimise(everyone)
        tied.append((low + high) / 2)
        apart.append(least / divisor[i])
        together.append(value / divisor[i])
        shared = max(r[i] for r in lo), min(r[i] for r in hi)
        assert (value == least) == (shared[0] <= shared[1])  # no gain: the intervals meet,
        assert value > least or (low, high) == shared  # and where they meet is the tied one
    gain = [t - a for a, t in zip(apart, together, strict=True)]

    def objective(support):
        return sum((apart if i in support else together)[i] for i in range(m))

    best = min(objective(s) for size in range(min(k, m) + 1) for s in combinations(range(m), size))
    support = select(gain, k)
    # exactly the optimum, unless unequal gains agree to 40 bits
    assert best <= objective(support) <= best + sum(gain) / 2**39
    centers = [[row[i] if i in support else tied[i] for i in range(m)] for row in free]
    return Exact(free, lo, hi, tied, gain, support, centers, objective(support), divisor)


def exact_l2(X, y, k, weights=None, scale_squared=None):
    """Sparse l2 centers; each feature's loss is divided by its scale squared."""
    return _solve(X, y, k, weights, scale_squared, _minimise_l2)


def exact_l1(X, y, k, weights=None, scale=None):
    """Sparse l1 centers; each feature's loss is divided by its scale."""
    return _solve(X, y, k, weights, scale, _minimise_l1)


def variance(X, y, weights=None, kind="std"):
    """Squared scales: variance over all samples or "pooled" within classes, 1 where it is 0.

    A pooled one is at least n eps times that over all samples, of n samples of positive weight.
    """
    if kind not in ("std", "pooled"):
        raise ValueError(f"unknown kind {kind!r}")
    used = [int(c) for j, c in enumerate(y) if weights is None or weights[j]]
    if kind == "pooled" and len(used) == len(set(used)):
        raise ValueError("one sample in each class has no variance")
    result = []
    for column in _class_columns(X, y, weights):
        everyone = sum(column, Counter())
        total = sum(everyone.values())
        over_all = _spread(everyone) / total
        within = sum((_spread(g) for g in column), Fraction(0))
        # Weights that leave less than half a degree of freedom count no repetitions.
        free = total - len(column)
        pooled = within / (free if free >= Fraction(1, 2) else total)
        floor = len(used) * Fraction(1, 2**52) * over_all
        result.append((over_all if kind == "std" else max(pooled, floor)) or Fraction(1))
    return result


def _spread(points):
    """Weighted sum of squares about the mean."""
    mean = sum(w * x for x, w in points.items()) / sum(points.values())
    return sum(w * (x - mean) ** 2 for x, w in points.items())


def _distances(exact, x, power, features):
    """Distance of one sample from every center, summed over the features."""
    x = fractions(x)
    return [
        sum((abs(x[i] - row[i]) ** power / exact.divisor[i] for i in features), Fraction(0))
        for row in exact.centers
    ]


def predict_l2(exact, x, priors=None):
    """Class of the nearest center over all features, less 2 log prior; the first on ties."""
    distance = _distances(exact, x, 2, range(len(x)))
    if priors is not None:
        nearest = min(distance)
        distance = [
            float(d - nearest) - 2 * math.log(p) for d, p in zip(distance, priors, strict=True)
        ]
    return distance.index(min(distance))


def predict_l1(exact, x):
    """Class of the nearest center over all features; the first on ties."""
    distance = _distances(exact, x, 1, range(len(x)))
    return distance.index(min(distance))


def decision_l2(exact, x, priors=None):
    """Score_1 - score_0 of one sample, or the list of scores of more than two classes."""
    x = fractions(x)
    to_tied = sum((x[i] - exact.tied[i]) ** 2 / exact.divisor[i] for i in exact.support)
    score = [to_tied - d for d in _distances(exact, x, 2, exact.support)]
    logs = [0] * len(score) if priors is None else [2 * math.log(p) for p in priors]
    if len(score) == 2:
        return score[1] - score[0] + (logs[1] - logs[0])
    return [s + log for s, log in zip(score, logs, strict=True)]


def decision_l1(exact, x):
    """Distance_0 - distance_1 on the support, or minus the distances for other than two classes."""
    distance = _distances(exact, x, 1, exact.support)
    return distance[0] - distance[1] if len(distance) == 2 else [-d for d in distance]


def random_problem(rng, classes=None, zeros=None, weighted=None):
    """Small integer (X, y, weights, k) full of ties; arguments left out are drawn as well.

    classes is 2 or 3, zeros the share of entries set to 0, weighted whether weights are given.
    """
    classes = int(rng.integers(2, 4)) if classes is None else classes
    zeros = rng.choice([0.0, 0.3, 0.6, 0.9]) if zeros is None else zeros
    weighted = rng.random() < 0.5 if weighted is None else weighted
    n, m = int(rng.integers(max(2, classes), 13)), int(rng.integers(1, 7))
    spread = int(rng.integers(1, 6))
    X = rng.integers(-spread, spread + 1, size=(n, m))
    X[rng.random((n, m)) < zeros] = 0
    if rng.random() < 0.3:  # equal gains of different columns
        X[:, rng.integers(m)] = rng.choice([-1, 1]) * X[:, rng.integers(m)]
    y = rng.permutation(np.append(np.arange(classes), rng.integers(classes, size=n - classes)))
    weights = None
    if weighted:
        weights = rng.integers(0, 4, size=n)
        for c in range(classes):
            if not weights[y == c].any():
                weights[rng.choice(np.flatnonzero(y == c))] = rng.integers(1, 4)
    return X, y, weights, int(rng.integers(1, m + 1))
