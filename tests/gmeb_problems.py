"""Random problems of GMEB of many kinds, for the tests and the attack."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

KINDS = [
    "generic",
    "constant columns",
    "duplicate columns",
    "v+ = 0 < v-",
    "tiny R, balanced",
    "tiny R, unbalanced",
    "huge R",
    "weights",
    "integers that contradict",
    "one sample in a class",
    "equal class means",
    "column scales",
    "more samples than features",
    "uncentred",
]


class Draw(NamedTuple):
    """Data of two classes; ``weight`` is None without weights."""

    X: np.ndarray
    y: np.ndarray
    r_plus: float
    r_minus: float
    weight: np.ndarray | None
    centred: bool


def draw(kind: str, seed: int) -> Draw:
    """A problem of a kind."""
    rng = np.random.default_rng([KINDS.index(kind), seed])
    n, d = int(rng.integers(6, 40)), int(rng.integers(1, 50))
    if kind == "more samples than features":
        d = int(rng.integers(1, 6))
    y = rng.random(n) < rng.uniform(0.2, 0.8)
    y[:2] = True, False
    X = rng.normal(size=(n, d)) * rng.uniform(0.1, 5, d)
    X += np.where(y, 1, -1)[:, None] * rng.normal(size=d) * (rng.random(d) < 0.5)
    X[y] *= rng.uniform(0.4, 2.5, d)  # spreads that differ, so that t is often inside (0, 1)
    r = rng.uniform(0.2, 8) * rng.uniform(0.8, 1.25, 2)
    weight, centred = None, True
    if kind == "constant columns":
        X[:, rng.random(d) < 0.5] = 0.1
    elif kind == "duplicate columns":
        X = np.concatenate([X, X, -2 * X], axis=1)
    elif kind == "v+ = 0 < v-":
        for j in np.flatnonzero(rng.random(d) < 0.6):
            z = rng.normal(size=(~y).sum())
            X[:, j], X[~y, j] = 0.0, z - z.mean()
    elif kind == "tiny R, balanced":
        n -= n % 2
        X, y = X[:n], np.arange(n) % 2 == 0
        X += np.where(y, 1, -1)[:, None]
        r = rng.uniform(1e-6, 1e-4, 2)
    elif kind == "tiny R, unbalanced":
        r = rng.uniform(1e-6, 1e-4, 2)
    elif kind == "huge R":
        r = rng.uniform(50, 5000, 2)
    elif kind == "weights":
        weight = rng.uniform(0.1, 3, n) * (rng.random(n) < 0.8)
        weight[:2] = 1
    elif kind == "integers that contradict":
        X = rng.integers(-2, 3, (n, d)).astype(float)
        X, y = np.concatenate([X, X]), np.concatenate([y, ~y])
        flip = rng.random(2 * n) < 0.2
        X[flip] = rng.integers(-2, 3, (flip.sum(), d))
    elif kind == "one sample in a class":
        y[:], y[1] = True, False
    elif kind == "equal class means":
        for of_class in (y, ~y):
            X[of_class] -= X[of_class].mean(axis=0)
    elif kind == "column scales":
        X *= 10.0 ** rng.uniform(-6, 6, d)
    elif kind == "uncentred":
        centred = False
        X = np.abs(X) * (rng.random(X.shape) < 0.3)
        X[np.ix_(y, rng.random(d) < 0.4)] = 0
        X[np.ix_(~y, rng.random(d) < 0.2)] = 0
    return Draw(X, y, float(r[0]), float(r[1]), weight, centred)
