"""Random small labelled data with ties, offsets, far classes and extreme scales, and their fits."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

EPS = Fraction(1, 2**52)
OFFSETS = (1e3, 3.9e7, 1e9, 2.0**31 - 1, 2.0**40)


def put(X: np.ndarray, form: str) -> Any:
    """X in another container."""
    if form in ("C", "F"):
        return np.array(X, order=form)
    if form == "reversed":
        return np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]
    if form == "swapped":
        return X.astype(X.dtype.newbyteorder())
    X = X.astype(np.float32) if X.dtype == np.float16 else X  # SciPy has no float16
    if form != "repeated":
        return getattr(sp, form)(X)
    # Each value twice, halved, in reversed order.
    A = sp.coo_array(X.astype(np.float64) / 2)
    order = np.argsort(np.concatenate([A.row, A.row]), kind="stable")
    rows = np.concatenate([A.row, A.row])[order]
    parts = [np.concatenate([p, p])[order][::-1] for p in (A.data, A.col)]
    indptr = np.searchsorted(rows[-1] - rows[::-1], np.arange(len(X) + 1)) if len(rows) else None
    if indptr is None:
        return sp.csr_matrix(X.shape)
    counts = np.bincount(rows, minlength=len(X))
    flipped = sp.csr_matrix((*parts, np.concatenate([[0], np.cumsum(counts[::-1])])), X.shape)
    return flipped[::-1]


FORMS = ["C", "F", "reversed", "swapped", "csr_array", "csc_matrix", "coo_array", "repeated"]


@dataclass
class Problem:
    """Data, and how a model gets them: ``repr`` gives an expression that makes it again."""

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None
    how: str  # "fit", "partial_fit" or "merge"
    cuts: list[int]  # where the parts begin and end
    forms: list[str]  # the container of each part

    def __repr__(self) -> str:
        w = None if self.weights is None else f"np.array({self.weights.tolist()})"
        return (
            f"Problem(np.array({self.X.tolist()}, {self.X.dtype.name!r}), "
            f"np.array({self.y.tolist()}), {w}, {self.how!r}, {self.cuts}, {self.forms})"
        )

    @property
    def K(self) -> int:
        return int(self.y.max()) + 1

    @property
    def sparse(self) -> bool:
        return any(form not in FORMS[:4] for form in self.forms)

    @property
    def size(self) -> list[Fraction]:
        """The largest absolute value of each feature."""
        return [Fraction(float(v)) for v in np.abs(self.X.astype(np.float64)).max(axis=0)]

    @property
    def whole(self) -> bool:
        """Whether all class sums are integers that float64 holds."""
        s = np.ones(len(self.y)) if self.weights is None else self.weights
        X = self.X.astype(np.float64)
        integers = np.array_equal(X, np.round(X)) and np.array_equal(s, np.round(s))
        return bool(integers and (np.abs(X).T @ s).max() * max(s.max(), 1) < 2**53)

    def fitted(self, model: Any) -> Any:
        """The model, fitted in this problem's way."""
        first: Any = None
        for (a, b), form in zip(pairwise(self.cuts), self.forms, strict=True):
            X, y = put(self.X[a:b], form), self.y[a:b]
            s = None if self.weights is None else self.weights[a:b]
            if self.how == "fit":
                return model.fit(X, y, sample_weight=s)
            if self.how == "partial_fit":
                model.partial_fit(X, y, classes=range(self.K), sample_weight=s)
            else:
                part = model.statistics(X, y, classes=range(self.K), sample_weight=s)
                first = part if first is None else first.merge(part)
        return model if first is None else model.fit_statistics(first)


def again(problem: Problem, model: Any, *more: str) -> str:
    """Lines of Python that make the problem and its model again."""
    return "\n".join(
        [
            "import numpy as np; from gpucenters import *; from tests.attack.problems import *",
            f"problem = {problem!r}",
            f"model = problem.fitted({' '.join(repr(model).split())})",
            *more,
        ]
    )


def _integers(rng: np.random.Generator, n: int, m: int) -> np.ndarray:
    X = rng.integers(-3, 4, (n, m)).astype(np.float64)
    for i in range(m):
        kind = rng.choice(
            ["plain", "few", "offset", "tied", "constant"], p=[0.3, 0.2, 0.2, 0.2, 0.1]
        )
        if kind == "few":
            X[:, i] *= rng.random(n) < 0.3
        elif kind == "offset":
            X[:, i] += rng.choice(OFFSETS)
        elif kind == "tied":  # its gain is that of an earlier column
            X[:, i] = rng.choice([-1, 1]) * X[:, rng.integers(i + 1)] + rng.choice([0, *OFFSETS])
        elif kind == "constant":
            X[:, i] = rng.choice([0, 1, *OFFSETS])
    return X


def _reals(rng: np.random.Generator, y: np.ndarray, m: int) -> np.ndarray:
    n = len(y)
    X = rng.standard_normal((n, m))
    for i in range(m):
        kind = rng.choice(["plain", "few", "offset", "long", "scaled", "near", "constant", "class"])
        if kind == "few":
            X[:, i] *= rng.random(n) < 0.4
        elif kind == "offset":
            X[:, i] += rng.choice(OFFSETS)
        elif kind == "long":
            X[:, i] = rng.lognormal(0, 3, n)
        elif kind == "scaled":
            X[:, i] *= 10.0 ** rng.integers(-8, 9)
        elif kind == "near":
            X[:, i] = 1 + X[:, i] * 10.0 ** rng.integers(-16, -5)
        elif kind == "constant":
            X[:, i] = rng.choice([0.1, 1 / 3, 1e9 + 0.1])
        elif kind == "class":
            X[:, i] = rng.integers(0, 3, y.max() + 1)[y] * 0.7 + 0.3
    return X * 10.0 ** rng.choice([0, 0, 0, -60, 60, 0, -5, 5])


def _weights(rng: np.random.Generator, y: np.ndarray) -> np.ndarray | None:
    n, kind = (
        len(y),
        rng.choice(["none", "whole", "zeros", "real", "equal", "spread"], p=[0.4] + 5 * [0.12]),
    )
    if kind == "none":
        return None
    if kind == "real":
        return rng.random(n) + 1e-3
    if kind == "equal":
        return np.full(n, rng.choice([0.1, 3.0, 1e-20]))
    if kind == "spread":
        return 10.0 ** rng.integers(-6, 7, n)
    s = rng.integers(1 - (kind == "zeros"), 4, n).astype(np.float64)
    s[[np.flatnonzero(y == c)[0] for c in range(y.max() + 1)]] = 1
    return s


def draw(rng: np.random.Generator, streams: bool = True, most: int = 6) -> Problem:
    """A problem of 2 to 5 classes; half of them are of integers."""
    K, m = int(rng.integers(2, 6)), int(rng.integers(1, most))
    n = int(rng.integers(K + 1, 20))
    y = rng.permutation(np.append(np.arange(K), rng.integers(0, K, n - K)))
    if rng.random() < 0.3:  # classes of 2 or 4, whose means float64 holds
        y = rng.permutation(np.repeat(np.arange(K), rng.choice([2, 4])))
        n = len(y)
    integer = rng.random() < 0.5
    X = _integers(rng, n, m) if integer else _reals(rng, y, m)
    if rng.random() < 0.4:  # a far class, in one feature or all
        far, where = rng.integers(K), slice(None) if rng.random() < 0.5 else rng.integers(m)
        shift = np.round(10.0 ** rng.uniform(2, 9)) * rng.choice([-1, 1])
        scatter = 1.0 if integer else X.std(axis=0)[where]
        X[y == far, where] += shift * scatter
    if not integer and rng.random() < 0.2:
        X = X.astype(np.float32)
    elif np.abs(X).max() < 2048 and rng.random() < 0.1:
        X = X.astype(np.float16)
    how = str(rng.choice(["fit", "fit", "partial_fit", "merge"])) if streams else "fit"
    inner = rng.integers(1, n, rng.integers(1, 5)) if how != "fit" else []
    cuts = sorted({0, n, *map(int, inner)})
    forms = [str(rng.choice(FORMS)) for _ in cuts[1:]]
    if rng.random() < 0.5:
        forms = forms[:1] * len(forms)
    if not np.all(np.isfinite(X.astype(np.float64))):
        return draw(rng, streams, most)
    return Problem(X, y, _weights(rng, y), how, cuts, forms)


def queries(rng: np.random.Generator, problem: Problem) -> np.ndarray:
    """Rows to predict: the data, midpoints of two rows and of two class means, and rows nearby."""
    X, y = problem.X.astype(np.float64), problem.y
    means = np.array([X[y == c].mean(axis=0) for c in range(problem.K)])
    a, b = (X[rng.integers(len(X), size=6)] for _ in range(2))
    p, q = (means[rng.integers(len(means), size=6)] for _ in range(2))
    middle = (p + q) / 2
    beside = np.nextafter(middle, rng.choice([-np.inf, np.inf], middle.shape))
    return np.concatenate(
        [X, (a + b) / 2, middle, beside, np.round(middle) if problem.whole else p]
    )
