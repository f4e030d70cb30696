"""P-values of all label vectors in exact arithmetic, on small data that are rich in ties.

For the tests and the attack. Gains are computed from their definitions, with fractions, and
logarithms and roots of 60 digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse
from exact import fractions
from exact_bayes import log, times

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    ShrunkenCentroidClassifier,
    SparseBernoulliNB,
    SparseGaussianNB,
    SparseMultinomialNB,
    SparsePoissonNB,
    permutation_gains,
)
from gpucenters.estimators.permutation import LabelPermutations

EPS = Fraction(1, 2**52)
TIE = Decimal(10) ** -40  # of the largest gain
ACROSS = Decimal(10) ** -5  # gains of two features that differ by less count as equal, or not
NEAR = Decimal(10) ** -6  # gains that are less by such a share may count as equal, or not

MODELS = [
    L2CenterClassifier(),
    L2CenterClassifier(scale="std"),
    L2CenterClassifier(scale="pooled"),
    L1CenterClassifier(),
    L1CenterClassifier(scale="std"),
    L1CenterClassifier(scale="pooled"),
    SparseBernoulliNB(),
    SparseMultinomialNB(),
    SparsePoissonNB(),
    SparsePoissonNB(exposure=None),
    SparsePoissonNB(exposure=None, scale="dispersion"),
    SparseGaussianNB(),
    SparseGaussianNB(pooling=1),
    ShrunkenCentroidClassifier(offset=0.5),
    ShrunkenCentroidClassifier(offset=0),
]
LABELS = [((0, 1), (2, 2)), ((0, 1), (3, 3)), ((0, 1), (2, 4)), ((0, 1, 2), (2, 2, 2))]
CONTAINERS = [np.asarray, np.asfortranarray, scipy.sparse.csr_array, scipy.sparse.csc_matrix]


def draw(rng: np.random.Generator) -> tuple[Any, np.ndarray, np.ndarray, dict[str, Any]]:
    """(model, X, y, other arguments of `permutation_gains`)."""
    model = MODELS[rng.integers(len(MODELS))]
    y = rng.permutation(np.repeat(*LABELS[rng.integers(len(LABELS))]))
    counts = isinstance(model, SparseBernoulliNB | SparseMultinomialNB | SparsePoissonNB)
    offsets = [0, 1, 37, 1e4] if counts else [0, 37, -0.3, 1e6, 1e9]
    X = np.stack([_column(rng, y) for _ in range(rng.integers(1, 4))], axis=1)
    X = X + rng.choice(offsets, X.shape[1])
    X = X[:, rng.integers(0, X.shape[1], rng.integers(1, 4))]  # some of them twice
    X = (np.abs(X) if counts else X) * rng.choice([1, 1, 0.1, 1e-8, 1e8])
    X = X.astype(rng.choice([np.float32, np.float64, np.float64]))
    more: dict[str, Any] = {"n_permutations": int(rng.choice([5, 200])), "random_state": 0}
    kind = rng.choice(["all", "all", "within", "groups"])
    if kind == "within":
        more["groups"] = rng.integers(0, 2, len(y))
        if all(len(set(y[more["groups"] == g])) == 1 for g in set(more["groups"])):
            del more["groups"]
    elif kind == "groups":
        more["groups"] = y * 3 + rng.integers(0, 3, len(y))
        more["permute"] = "groups"
    return model, X, y, more


def _column(rng: np.random.Generator, y: np.ndarray) -> np.ndarray:
    n, kind = len(y), rng.integers(8)
    if kind == 0:
        return rng.integers(0, 3, n).astype(float)
    if kind == 1:
        return np.round(rng.normal(size=n), 1)
    if kind == 2:  # symmetric about zero
        half = rng.normal(size=(n + 1) // 2)
        return rng.permutation(np.concatenate([half, -half])[:n])
    if kind == 3:  # two values
        return rng.choice(rng.normal(size=2), n)
    if kind == 4:  # the same within each class
        return rng.normal(size=3)[y]
    if kind == 5:
        return np.full(n, rng.normal())
    if kind == 6:
        return rng.normal(size=n) * (rng.random(n) < 0.5)
    return rng.normal(size=n)


def gains(model: Any, X: list[list[Fraction]], y: Any) -> list[Decimal]:
    """The gain of each feature."""
    classes, m = sorted(set(y)), len(X[0])
    rows = [[x for x, c in zip(X, y, strict=True) if c == k] for k in classes]
    lists = [[[x[i] for x in rows[c]] for c in range(len(rows))] for i in range(m)]
    if isinstance(model, L2CenterClassifier):
        return [_l2(model, of) for of in lists]
    if isinstance(model, L1CenterClassifier):
        return [_l1(model, of) for of in lists]
    if isinstance(model, SparseGaussianNB):
        most = max(_squares(_joined(of)) / len(y) for of in lists)
        return [_gaussian(model, of, Fraction(model.var_smoothing) * most) for of in lists]
    if isinstance(model, ShrunkenCentroidClassifier):
        return [_shrunken(of, Fraction(model.offset)) for of in lists]
    if isinstance(model, SparseBernoulliNB):
        return [_bernoulli(of) for of in lists]
    if isinstance(model, SparsePoissonNB) and model.exposure is None:
        exposure = [Fraction(len(r)) for r in rows]
    else:
        exposure = [sum(map(sum, r)) for r in rows]
    if isinstance(model, SparseMultinomialNB):  # the masses of the classes, smoothed
        exposure = [e + m for e in exposure]
        return [_against([sum(v) + 1 for v in of], exposure, Fraction(0)) for of in lists]
    found = [_against([sum(v) for v in of], exposure, Fraction(1)) for of in lists]
    if model.scale:
        found = [g / _dispersion(of) for g, of in zip(found, lists, strict=True)]
    return found


def _joined(of: list[list[Fraction]]) -> list[Fraction]:
    return [x for v in of for x in v]


def _root(x: Fraction) -> Decimal:
    return times(x, Decimal(1)).sqrt()


def _squares(values: list[Fraction]) -> Fraction:
    mean = sum(values) / len(values)
    return sum((x - mean) ** 2 for x in values)


def _variance(model: Any, of: list[list[Fraction]]) -> tuple[Fraction, bool]:
    """(square of the scale, whether the classes are separated)."""
    n = sum(map(len, of))
    variance = _squares(_joined(of)) / n
    if model.scale is None or not variance:
        return Fraction(1), False
    pooled, least = sum(map(_squares, of)) / (n - len(of)), n * EPS * variance
    if model.scale == "std":
        return variance, False
    return max(pooled, least), pooled <= least


def _separation(of: list[list[Fraction]]) -> Fraction:
    """The square of the distance of two classes that are separated."""
    a, b = map(len, of)
    return Fraction((a + b) ** 2, a * b * (a + b)) / EPS


def _l2(model: Any, of: list[list[Fraction]]) -> Decimal:
    means = [sum(v) / len(v) for v in of]
    variance, separates = _variance(model, of)
    if separates and len(of) == 2:
        return times(_separation(of) / 2, Decimal(1))
    return times(_squares(means) / variance, Decimal(1))


def _l1(model: Any, of: list[list[Fraction]]) -> Decimal:
    cost = [lambda t, v=v: sum(abs(x - t) for x in v) / len(v) for v in of]
    free = sum(min(map(f, v)) for f, v in zip(cost, of, strict=True))
    variance, separates = _variance(model, of)
    if separates and len(of) == 2:
        return _root(_separation(of))
    return times(min(sum(f(t) for f in cost) for t in _joined(of)) - free, 1 / _root(variance))


def _bernoulli(of: list[list[Fraction]]) -> Decimal:
    ones = [sum(x > 0 for x in v) + Fraction(1) for v in of]
    zeros = [sum(x <= 0 for x in v) + Fraction(1) for v in of]
    sizes = [a + b for a, b in zip(ones, zeros, strict=True)]
    return sum(_against(counts, sizes, Fraction(0)) for counts in (ones, zeros))


def _against(counts: list[Any], exposure: list[Fraction], alpha: Fraction) -> Decimal:
    """The log-likelihood ratio of counts, smoothed, and shares of an exposure."""
    found, rate = Decimal(0), sum(counts) / sum(exposure) if sum(exposure) else Fraction(0)
    for f, e in zip(counts, exposure, strict=True):
        if f + alpha and f != rate * e:
            found += times(f + alpha, log((f + alpha) / (rate * e + alpha)))
    return found


def _dispersion(of: list[list[Fraction]]) -> Decimal:
    terms = [len(v) * _squares(v) / sum(v) for v in of if sum(v)]
    return times(max(Fraction(1), sum(terms) / (sum(map(len, of)) - len(of))), Decimal(1))


def _gaussian(model: Any, of: list[list[Fraction]], epsilon: Fraction) -> Decimal:
    n, pooling = sum(map(len, of)), Fraction(model.pooling)
    pooled, whole = sum(map(_squares, of)) / n, _squares(_joined(of)) / n
    if not whole:
        return Decimal(0)
    found = times(Fraction(n, 2), log(whole + epsilon))
    for v in of:
        u = (1 - pooling) * _squares(v) / len(v) + pooling * pooled + epsilon
        found -= times(Fraction(len(v), 2), log(u))
    return found


def _shrunken(of: list[list[Fraction]], offset: Fraction) -> Decimal:
    n = sum(map(len, of))
    sigma = _root(sum(map(_squares, of)) / (n - len(of))) + times(offset, Decimal(1))
    mean = sum(map(sum, of)) / n
    unit = [_root(Fraction(1, len(v)) - Fraction(1, n)) * (sigma or Decimal(1)) for v in of]
    off = [abs(sum(v) / len(v) - mean) for v in of]
    off = [a if a > n * EPS * abs(mean) else Fraction(0) for a in off]  # the rule of the model
    return max(times(a, 1 / u) for a, u in zip(off, unit, strict=True))


def vectors(y: np.ndarray, more: dict[str, Any]) -> np.ndarray:
    """The label vectors that `permutation_gains` compares, the observed one first: (P, n)."""
    labels = LabelPermutations.of(
        y, more.get("groups"), more.get("permute", "within"), more["n_permutations"], 0
    )
    others = labels.codes(np.arange(labels.count))
    return np.concatenate([y[None, :], others.T])


def differences(
    model: Any, X: Any, y: np.ndarray, more: dict[str, Any], data: Any
) -> Iterator[str]:
    """What is wrong with the p-values of ``data``, some container of X."""
    found = permutation_gains(model, data, y, **more)
    every = vectors(y, more)
    tries, m = len(every), X.shape[1]
    if found.n_permutations + (not found.exact) != tries:
        yield f"n_permutations {found.n_permutations}, exactly {tries}"
    # Whether the gains of each label vector (P, m) reach those observed: surely, and perhaps.
    sure, maybe = (np.empty((m, tries, m), dtype=bool) for _ in range(2))
    with localcontext() as context:
        context.prec = 60
        table = [gains(model, fractions(X), codes.tolist()) for codes in every]
        largest = [max(row[i] for row in table) for i in range(m)]
        for i, g in enumerate(table[0]):
            less = g * NEAR + NEAR**2 * largest[i] + _of_sums(model, X[:, i], y, g)
            if _is_separated(model, X[:, i], y):  # a variance of rounding has any size
                less = g * Decimal("0.99")
            for other in range(m):
                column, least, most = [row[other] for row in table], g - less, g - TIE * largest[i]
                if not np.array_equal(X[:, i], X[:, other]):  # each scale has its own rounding
                    across = ACROSS * g + less
                    least, most = g - across, g + across
                sure[i, :, other] = [max(a, 0) >= most for a in column]
                maybe[i, :, other] = [max(a, 0) >= least for a in column]
    order = found.ranking.tolist()
    for name, of in (("pvalues", _own), ("pvalues_fwer", _stepwise), ("false_discoveries", _all)):
        least, most = of(sure, order), of(maybe, order)
        values = getattr(found, name) * tries
        if np.any((values < least - 1e-9) | (values > most + 1e-9)):
            true = f"{least.tolist()} to {most.tolist()}"
            yield f"{name}: {values.tolist()} / {tries}, exactly {true}"
    if found.pvalues.min() < (1 - 1e-12) / tries:
        yield f"a p-value of {found.pvalues.min()}"


def _of_sums(model: Any, x: np.ndarray, y: np.ndarray, gain: Decimal) -> Decimal:
    """What the rounding of sums of counts may do to a gain: the bound of ``solvers/README.md``."""
    if not isinstance(model, SparseMultinomialNB | SparsePoissonNB):
        return Decimal(0)
    error = Decimal((len(y) + 16) / 2**50 * float(np.sqrt(x.sum(dtype=float) + y.max() + 1)))
    return 2 * error * max(gain, Decimal(0)).sqrt() + error * error


def _is_separated(model: Any, x: np.ndarray, y: np.ndarray) -> bool:
    """Whether the observed classes have no variance, up to rounding."""
    if getattr(model, "scale", None) != "pooled" and not isinstance(
        model, ShrunkenCentroidClassifier
    ):
        return False
    column = fractions(x)
    of = [[v for v, c in zip(column, y, strict=True) if c == k] for k in sorted(set(y.tolist()))]
    return sum(map(_squares, of)) <= _squares(column) / 10**12


def _own(reached: np.ndarray, order: list[int]) -> np.ndarray:
    return np.array([reached[i, :, i].sum() for i in range(len(order))])


def _all(reached: np.ndarray, order: list[int]) -> np.ndarray:
    return reached.sum(axis=(1, 2))


def _stepwise(reached: np.ndarray, order: list[int]) -> np.ndarray:
    found, before = np.zeros(len(order)), 0.0
    for rank, i in enumerate(order):
        before = found[i] = max(before, reached[i][:, order[rank:]].any(axis=1).sum())
    return found
