"""GMEB: the experiments of its paper, and times beside the l1-SVM of scikit-learn.

Times are processor seconds of one thread, of fits that alternate; the l1-SVM gets standardised
features and the C with about as many coefficients.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from gpucenters import GMEBClassifier, GMEBClassifierCV
from gpucenters.estimators.cross_validation import choose

from .arguments import folder, rounds
from .timing import machine

GRID = np.linspace(1, 10, 7)
REAL = ("wdbc", "pima", "bupa", "cleveland", "ionosphere", "alon", "mfeat", "internet_ads_part")
BAYES_ANGLE = np.arccos(np.sqrt(0.703)) + np.pi / 4  # gives type 2 the paper's Bayes error of 9.6

Data = tuple[Any, np.ndarray]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the bench can be told."""
    parser.add_argument("parts", nargs="*", choices=list(PARTS), default=["times"])
    parser.add_argument("--repetitions", type=int, default=10, help="draws of synthetic data")
    parser.add_argument("--sets", nargs="+", choices=REAL, default=list(REAL))
    parser.add_argument(
        "--folds", type=int, default=10, help="of ten, on which real data are tested"
    )
    folder(parser)
    rounds(parser, 3)


def run(options: argparse.Namespace) -> None:
    """Print the parts that were asked for."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    results: dict[str, Any] = {"machine": machine()}
    with threadpool_limits(1):
        for part in options.parts:
            print(f"\n{part}")
            results[part] = PARTS[part](options)
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1) + "\n")


# --- times ---------------------------------------------------------------------------------------


def _dense(n: int, m: int, dtype: Any) -> Data:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    X = rng.standard_normal((n, m), dtype=np.float32)
    X[:, :20] += 0.3 * (2 * y[:, None] - 1)
    return X.astype(dtype), y


def _text(folder: str) -> Data:
    """TF-IDF of 10,000 reviews, the 100,000 most frequent words and pairs of words."""
    with gzip.open(Path(folder) / "imdb.train.tsv.gz", "rt", encoding="utf8") as lines:
        rows = [line.rstrip("\n").split("\t", 1) for line in lines]
    at = np.random.default_rng(0).permutation(len(rows))[:10_000]
    y = np.unique([rows[i][0] for i in at], return_inverse=True)[1]
    words = TfidfVectorizer(max_features=100_000, ngram_range=(1, 2))
    return words.fit_transform([rows[i][1] for i in at]).tocsr(), y


def _times(options: argparse.Namespace) -> list[dict[str, Any]]:
    shapes: list[tuple[str, Callable[[], Data], list[float]]] = [
        ("1,000 x 5,000 float64", lambda: _dense(1000, 5000, np.float64), [1, 3, 10]),
        ("3,000 x 20,000 float32", lambda: _dense(3000, 20_000, np.float32), [1, 3, 10]),
        ("10,606 x 6,195 counts", lambda: _counts(options.data), [1, 4, 100]),
        ("10,000 x 100,000 text", lambda: _text(options.data), [1, 3, 10, 30, 100]),
    ]
    print(f"{'shape':24}{'R':>5}{'gmeb s':>9}{'svm s':>9}{'ratio':>7}{'coef':>6}{'svm':>6}  gap")
    found = []
    for name, make, bounds in shapes:
        X, y = make()
        scaler = StandardScaler(with_mean=not scipy.sparse.issparse(X))
        scaled = scaler.fit_transform(X)
        for r in bounds:
            row = {"shape": name, "R": r} | _beside_svm(X, scaled, y, r, options.repeat)
            found.append(row)
            print(
                f"{name:24}{r:5g}{row['gmeb']:9.2f}{row['svm']:9.2f}{row['ratio']:7.2f}"
                f"{row['coefficients']:6d}{row['svm coefficients']:6d}  {row['gap']:.0e}",
                flush=True,
            )
    return found


def _counts(folder: str) -> Data:
    """Words of the phrases of MPQA, most of them in one phrase alone."""
    with gzip.open(Path(folder) / "mpqa.tsv.gz", "rt", encoding="utf8") as lines:
        rows = [line.rstrip("\n").split("\t", 1) for line in list(lines)[1:]]
    words = CountVectorizer(dtype=np.float64).fit_transform([row[1] for row in rows])
    return words.tocsr(), np.asarray([int(row[0]) for row in rows])


def _beside_svm(X: Any, scaled: Any, y: np.ndarray, r: float, repeat: int) -> dict[str, Any]:
    model = GMEBClassifier(r_plus=r)
    size = int(np.count_nonzero(model.fit(X, y).coef_))
    svm = _svm_of_size(scaled, y, size)
    ours, theirs = _alternate([lambda: model.fit(X, y), lambda: svm.fit(scaled, y)], repeat)
    return {
        "gmeb": ours,
        "svm": theirs,
        "ratio": ours / theirs,
        "coefficients": size,
        "svm coefficients": int(np.count_nonzero(svm.coef_)),
        "gap": float(model.gap_ / (2 * min(np.bincount(y)))),
        "rounds": int(model.n_iter_),
    }


def _svm(c: float) -> LinearSVC:
    return LinearSVC(penalty="l1", dual=False, C=c, random_state=0)


def _svm_of_size(X: Any, y: np.ndarray, size: int) -> LinearSVC:
    """The l1-SVM with about so many coefficients, by bisection on the logarithm of C."""
    low, high, best = -5.0, 0.0, (np.inf, _svm(1.0))
    for _ in range(8):
        middle = (low + high) / 2
        model = _svm(10**middle).fit(X, y)
        count = int(np.count_nonzero(model.coef_))
        best = min(best, (abs(count - size), model), key=lambda pair: pair[0])
        if best[0] <= 0.1 * size:
            break
        low, high = (low, middle) if count > size else (middle, high)
    return best[1]


def _alternate(work: list[Callable[[], Any]], repeat: int) -> list[float]:
    """The least processor seconds of each of several calls that alternate."""
    least = [np.inf] * len(work)
    for _ in range(repeat):
        for number, call in enumerate(work):
            start = time.process_time()
            call()
            least[number] = min(least[number], time.process_time() - start)
    return least


# --- the experiments of the paper ----------------------------------------------------------------


def _first_type(n: int, rng: np.random.Generator) -> Data:
    """202 features: three tell the classes apart in 70% of the samples, three in the others."""
    y = rng.integers(0, 2, n)
    sign = 2 * y - 1
    X = 20 * rng.normal(size=(n, 202))  # "variance 20" is a standard deviation of 20
    first = rng.random(n) < 0.7
    for j in range(3):
        X[:, j] = rng.normal(size=n) + first * sign * (j + 1)
        X[:, j + 3] = rng.normal(size=n) + ~first * sign * (j + 1)
    return X, y


def _second_type(n: int, rng: np.random.Generator) -> Data:
    """1,000 features: two of unequal variance, turned, tell the classes apart."""
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 1000))
    c, s = np.cos(BAYES_ANGLE), np.sin(BAYES_ANGLE)
    turned = (rng.normal(size=(n, 2)) * np.sqrt([1, 2])) @ np.array([[c, s], [-s, c]])
    X[:, :2] = turned + (2 * y - 1)[:, None]
    return X, y


def _fitted(X: np.ndarray, y: np.ndarray, r_minus: Any) -> dict[str, Any]:
    """GMEB by both rules, from the same cross-validation, and the l1-SVM."""
    best = GMEBClassifierCV(r_plus=GRID, r_minus=r_minus, tol=1e-4, rule="best").fit(X, y)
    bounds = best.grid_[choose(best.fold_scores_, "one-standard-error", best.grid_.sum(axis=1))]
    r_plus, r_minus = bounds.tolist()
    small = GMEBClassifier(r_plus=r_plus, r_minus=r_minus, tol=1e-4).fit(X, y)
    svm = make_pipeline(StandardScaler(), _svm(1.0))
    costs = {"linearsvc__C": np.logspace(-3, 1, 13)}
    return {
        "gmeb": best,
        "gmeb, one standard error": small,
        "l1-SVM, standardised": GridSearchCV(svm, costs, cv=5).fit(X, y),
    }


def _size(model: Any) -> int:
    if isinstance(model, GMEBClassifier):
        return len(model.support_)
    return int(np.count_nonzero(np.any(model.best_estimator_[-1].coef_, axis=0)))


def _table(
    name: str, cases: Iterator[tuple[Data, Data]], note: str = "", r_minus: Any = GRID
) -> dict[str, Any]:
    """Mean test errors in percent and numbers of features, with the standard errors of the means.

    Those of folds are of overlapping training sets: a little too small.
    """
    errors: dict[str, list[float]] = {}
    sizes: dict[str, list[int]] = {}
    for (X, y), (X_test, y_test) in cases:
        for key, model in _fitted(X, y, r_minus).items():
            errors.setdefault(key, []).append(100 * (1 - model.score(X_test, y_test)))
            sizes.setdefault(key, []).append(_size(model))
    found = {}
    for key in errors:
        (e, e_se), (s, s_se) = (_mean(values[key]) for values in (errors, sizes))
        found[key] = {"error": e, "error se": e_se, "features": s, "features se": s_se}
        print(
            f"{name:30}{key:26} error {e:5.1f} +- {e_se:4.1f}  features {s:6.1f} +- {s_se:5.1f}"
            f" {note}",
            flush=True,
        )
    return found


def _mean(values: list[Any]) -> tuple[float, float]:
    """The mean and its standard error."""
    spread = np.std(values, ddof=1) if len(values) > 1 else np.nan
    return float(np.mean(values)), float(spread / np.sqrt(len(values)))


def _table_3(options: argparse.Namespace) -> dict[str, Any]:
    def cases(n: int) -> Iterator[tuple[Data, Data]]:
        for number in range(options.repetitions):
            rng = np.random.default_rng([n, number])
            while True:
                X, y = _first_type(n, rng)
                if min(np.bincount(y, minlength=2)) >= 5:
                    break
            yield (X, y), _first_type(5000, rng)

    return {str(n): _table(f"n = {n}", cases(n)) for n in (20, 30, 40, 50)}


def _type_2(options: argparse.Namespace) -> dict[str, Any]:
    def cases() -> Iterator[tuple[Data, Data]]:
        for number in range(options.repetitions):
            rng = np.random.default_rng([1000, number])
            yield _second_type(100, rng), _second_type(1000, rng)

    return _table("type 2, n = 100", cases(), "(Bayes error 9.6)")


def _real(options: argparse.Namespace) -> dict[str, Any]:
    found = {}
    for name in options.sets:
        file = np.load(Path(options.data) / f"{name}.npz", allow_pickle=True)
        X, y = file["X"].astype(float), file["y"]
        folds = list(StratifiedKFold(10, shuffle=True, random_state=0).split(X, y))
        cases = (((X[a], y[a]), (X[b], y[b])) for a, b in folds[: options.folds])
        found[name] = _table(f"{name} {X.shape}", cases, r_minus=None)
    return found


PARTS = {"times": _times, "table3": _table_3, "type2": _type_2, "real": _real}
