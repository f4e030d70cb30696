"""Random problems of paths against a refit of each k, for the tests and the attack.

Data have ties of many kinds: between features, classes, samples and scores.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import clone
from sklearn.metrics import get_scorer
from sklearn.model_selection import (
    KFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    ShrunkenCentroidClassifier,
    SparseBernoulliNB,
    SparseGaussianNB,
    SparseMultinomialNB,
    SparsePoissonNB,
    SparsityPathCV,
    sparsity_path,
)
from gpucenters.estimators.path_predictions import predict_path

COUNTS = (SparseBernoulliNB, SparseMultinomialNB, SparsePoissonNB)
MODELS = (
    L1CenterClassifier,
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    ShrunkenCentroidClassifier,
    SparseGaussianNB,
    *COUNTS,
)
OF_LABELS = ["accuracy", "balanced_accuracy", "f1_macro", "f1_weighted", "matthews_corrcoef"]
OF_VALUES = ["neg_log_loss", "roc_auc", "roc_auc_ovr", "neg_brier_score"]


def _model(rng: np.random.Generator, kind: type) -> Any:
    def one(*values: Any) -> Any:
        return values[rng.integers(len(values))]

    if kind is L1CenterClassifier:
        return kind(scale=one(None, "std", "pooled"))
    if kind is L2CenterClassifier:
        return kind(scale=one(None, None, "std", "pooled"), priors=one("uniform", "empirical"))
    if kind is MahalanobisCenterClassifier:
        return kind(covariance=one("pooled", "total"), shrinkage=one(0.1, 0.9))
    if kind is ShrunkenCentroidClassifier:
        return kind(offset=one("median", 0.0, 1.0), priors=one("empirical", "uniform"))
    if kind is SparseGaussianNB:
        return kind(pooling=one(0.0, 0.5, 1.0), var_smoothing=0.1)
    prior = bool(one(True, False))
    if kind is SparsePoissonNB:
        return kind(exposure=one("total", None), scale=one(None, "dispersion"), fit_prior=prior)
    return kind(alpha=one(1.0, 0.1, 1e-10), fit_prior=prior)


def _data(rng: np.random.Generator, y: np.ndarray, m: int, counts: bool) -> np.ndarray:
    n, k = len(y), int(y.max()) + 1
    X = rng.integers(0, 4, (n, m)) * (rng.random((n, m)) < rng.choice([0.3, 0.7, 1.0]))
    if rng.random() < 0.3:
        X = rng.poisson(rng.gamma(0.5, 2, (k, m))[y])
    X = X.astype(np.float64)
    X[:, 0] = X[:, -1]  # equal features
    if k > 2 and rng.random() < 0.5:  # equal classes
        X[y == 1] = X[y == 2][:1]
    if k > 2 and rng.random() < 0.4:  # classes tied by symmetry
        X[:] = np.eye(k, m)[y] * rng.integers(1, 4)
    if rng.random() < 0.3:  # equal samples
        X = X[rng.integers(0, max(1, n // 3), n)]
    if not counts:
        X += rng.choice([0.0, -1.0, -2.0, 1e3]) + (rng.random() < 0.2) * 2.0**30 * (y == 0)[:, None]
    return X * rng.choice([1.0, 1.0, 0.1, 1 / 3]) if rng.random() < 0.7 else X


def _folds(rng: np.random.Generator, X: np.ndarray, y: np.ndarray) -> list[tuple[Any, Any]]:
    """Folds of all kinds: with gaps, repeated rows, masks and rows in neither side."""
    n, seed = len(y), int(rng.integers(2**31))
    kinds: list[Any] = [
        KFold(5, shuffle=True, random_state=seed),  # of integers each is all but the test rows
        StratifiedKFold(3, shuffle=True, random_state=seed),
        RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=seed),
        TimeSeriesSplit(2, gap=int(rng.integers(2))),
        ShuffleSplit(3, train_size=0.5, test_size=0.3, random_state=seed),
        "repeated",
        "masks",
    ]
    kind = kinds[rng.integers(len(kinds))]
    if isinstance(kind, str):
        folds = [(train, test) for train, test in rng.integers(0, n, (3, 2, n))]
        if kind == "masks":
            folds = [tuple(np.isin(np.arange(n), side) for side in fold) for fold in folds]
        return folds
    return list(kind.split(X, y))


def _held(rng: np.random.Generator, X: np.ndarray) -> Any:
    kind = str(rng.choice(["C", "F", "csr_matrix", "csr_array", "csc_matrix"]))
    whole = np.array_equal(X, np.round(X))
    kinds = ["float64", "float64", "float32", *(["int64", "int32"] if whole else [])]
    X = X.astype(str(rng.choice(kinds)))
    return np.asarray(X, order=kind) if len(kind) == 1 else getattr(scipy.sparse, kind)(X)


def _weights(rng: np.random.Generator, n: int) -> np.ndarray | None:
    kind = rng.choice(["none", "none", "whole", "zeros", "real"])
    if kind == "none":
        return None
    return rng.random(n) + 0.1 if kind == "real" else rng.integers(kind == "whole", 4, n) * 1.0


def _drawn(rng: np.random.Generator, counts: bool) -> tuple[Any, Any, Any, Any]:
    """(X, y, weights, folds) of labels that have nothing to do with the folds."""
    wide = rng.random() < 0.25
    classes, m = (int(rng.integers(2, most)) for most in ((13, 40) if wide else (6, 8)))
    more = rng.integers(0, classes, rng.integers(0, 16))
    y = rng.permutation(np.concatenate([np.repeat(np.arange(classes), 3), more]))
    X = _data(rng, y, m, counts)
    return X, y, _weights(rng, len(y)), _folds(rng, X, y)


def _symmetric(rng: np.random.Generator, counts: bool) -> tuple[Any, Any, Any, Any]:
    """(X, y, weights, folds) of classes that are images of each other, with rows that are ties.

    The features of a class are those of another in turn, or mirrored: rows that are their own image
    are ties, by rounding alone where values are not integers. A further class may be far or near.
    """
    classes, rows, blocks = (int(rng.integers(*bounds)) for bounds in ((2, 5), (3, 7), (1, 6)))
    unit, pairs = rng.choice([0.1, 0.7, 1.0, 1 / 3]), np.arange(rows)
    Z = rng.integers(0, 6, (rows, blocks, classes)) * unit
    if rng.random() < 0.5:  # each feature twice: rows that are the mirror of their other half tie
        Z, pairs = Z.reshape(rows, -1), np.concatenate([pairs, pairs[1:], pairs[1:]])
        mirror, plain = 5 * unit - Z, np.concatenate([Z, Z], axis=1)
        ties = [np.concatenate(both, axis=1)[1:] for both in ((Z, mirror), (mirror, Z))]
        parts = [np.concatenate([half, *ties]) for half in (plain, np.abs(5 * unit - plain))]
    else:
        if rng.random() < 0.3:
            Z = Z + rng.random((rows, blocks, classes))
        Z = np.where(rng.random((rows, 1, 1)) < 0.4, Z[:, :, :1], Z)
        parts = [np.roll(Z, c, axis=2).reshape(rows, -1) for c in range(classes)]
    if rng.random() < 0.5:
        parts.append(parts[0] + rng.choice([0.0, 1.0, 2.0**20]))
    X = np.concatenate(parts)
    if not counts:
        X -= rng.choice([0.0, X.mean(), 5.0])
    y = np.repeat(np.arange(len(parts)), len(pairs))
    side, weight = rng.integers(0, 2, rows), _weights(rng, rows)
    side[:2] = 0, 1
    every = np.tile(side[pairs], len(parts))
    weight = None if weight is None else np.tile(weight[pairs], len(parts))
    return X, y, weight, [(np.arange(len(y)), np.arange(len(y))), (every == 0, every == 1)]


def problem_differences(rng: np.random.Generator, kind: type) -> Iterator[str]:
    """Where a path differs from the refits of one random problem; "" for each comparison."""
    model, counts = _model(rng, kind), kind in COUNTS
    X, y, weight, folds = (_symmetric if rng.random() < 0.5 else _drawn)(rng, counts)
    held = _held(rng, X)
    ks = sorted(set(rng.integers(1, X.shape[1] + 1, 2).tolist()))
    scoring = [str(name) for name in rng.choice(OF_LABELS, 2, replace=False)]
    # Far from a class values are rounded by more than their scores are compared to.
    if np.abs(X).max() < 100 and rng.random() < 0.3:
        scoring.append(str(rng.choice(OF_VALUES)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from _differences(model, held, y, weight, folds, ks, scoring)
        if rng.random() < 0.2:
            yield from _search(model, held, y, weight, folds, ks)


def _differences(
    model: Any,
    X: Any,
    y: np.ndarray,
    weight: np.ndarray | None,
    folds: list[tuple[Any, Any]],
    ks: list[int],
    scoring: list[str],
) -> Iterator[str]:
    rows = X.tocsr() if scipy.sparse.issparse(X) else X
    scores: dict[str, Any] = {name: np.zeros((len(ks), len(folds))) for name in scoring}
    chosen = np.zeros((len(ks), X.shape[1]))
    try:
        for f, (train, test) in enumerate(folds):
            given = None if weight is None else weight[train]
            for s, k in enumerate(ks):
                one = clone(model).set_params(k=k).fit(rows[train], y[train], given)
                chosen[s, one.support_ if hasattr(one, "support_") else []] += 1
                for name in scoring:
                    scores[name][s, f] = get_scorer(name)(one, rows[test], y[test])
    except ValueError as error:  # of the data, as a fold that lacks a class
        if "is not valid" in str(error):
            raise
        scores = {}
    options = {"ks": ks, "cv": folds, "scoring": scoring, "sample_weight": weight}
    try:
        path = sparsity_path(model, X, y, **options)
    except ValueError as error:
        if scores:
            yield f"the path raises: {error}"
        return
    if not scores:
        yield "a refit raises and the path does not"
        return
    for name, expected in scores.items():
        same = path.scores[name] == expected
        if name in OF_VALUES:
            same = np.isclose(path.scores[name], expected, rtol=1e-10, atol=1e-12, equal_nan=True)
        difference = f"{name}: {path.scores[name].tolist()}, refits have {expected.tolist()}"
        yield "" if np.all(same) else difference
    if chosen.any():
        found = path.selection_frequency.toarray() * len(folds)
        yield "" if np.allclose(found, chosen) else f"supports: {found}, refits have {chosen}"
    yield from _labels(model, rows, y, weight, folds[0], ks)


def _search(
    model: Any, X: Any, y: np.ndarray, weight: Any, folds: list[tuple[Any, Any]], ks: list[int]
) -> Iterator[str]:
    """The model that a search refits."""
    try:
        search = SparsityPathCV(model, ks, cv=folds[:2]).fit(X, y, sample_weight=weight)
    except ValueError:
        return
    one = clone(model).set_params(k=search.best_k_).fit(X, y, weight)
    same = np.array_equal(search.predict(X), one.predict(X))
    yield "" if same else "SparsityPathCV predicts what a refit does not"


def _labels(
    model: Any, rows: Any, y: np.ndarray, weight: Any, fold: tuple[Any, Any], ks: list[int]
) -> Iterator[str]:
    """The labels and values of each sample, beside those of `with_k` and of a refit."""
    train, asked = fold[0], rows
    given = None if weight is None else weight[train]
    every = clone(model).set_params(k="all").fit(rows[train], y[train], given)
    found = predict_path(every, asked, ks, decision=True, probability=True)
    for s, k in enumerate(ks):
        one, other = clone(model).set_params(k=k), every.with_k(k)
        one.fit(rows[train], y[train], given)
        expected, values = one.predict(asked), one.decision_function(asked)
        labels = every.classes_[found.codes[s]]
        same = np.array_equal(labels, expected)
        yield "" if same else f"k={k}: labels {labels.tolist()}, a refit has {expected.tolist()}"
        same = np.array_equal(other.predict(asked), expected) and np.array_equal(
            other.decision_function(asked), values
        )
        yield "" if same else f"with_k({k}) is not a refit"
        near = 1e-9 + 8 * found.bound[s]  # rounding, where a class is far away
        same = np.allclose(found.decision[s], values.reshape(len(labels), -1), 1e-9, near)
        yield "" if same else f"k={k}: decision values"
        same = np.allclose(found.probability[s], one.predict_proba(asked), 1e-8, near)
        yield "" if same else f"k={k}: probabilities"
