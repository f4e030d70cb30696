"""Gains under permuted labels, beside a loop of refits on each shuffled label vector.

With ``--levels``, how often p-values and selections err where no feature differs between classes.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

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
from gpucenters.solvers import ranking_key

from .arguments import device_and_rounds
from .shapes import labels, normal
from .timing import alternate, machine

MODELS = {
    "l2": L2CenterClassifier(),
    "l2 scale=std": L2CenterClassifier(scale="std"),
    "l2 scale=pooled": L2CenterClassifier(scale="pooled"),
    "l1": L1CenterClassifier(),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the bench can be told."""
    parser.add_argument("--permutations", type=int, default=1000)
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=["l2"])
    device_and_rounds(parser)
    parser.add_argument(
        "--levels", type=int, metavar="RUNS", help="run so many null data sets of each scenario"
    )


def run(options: argparse.Namespace) -> None:
    """Print seconds of each, and how many times as long the loop takes; or the levels."""
    if options.levels:
        found = levels(options.levels)
        if options.json:
            Path(options.json).write_text(json.dumps(found, indent=1) + "\n")
        return
    X, y, name = data()
    print(f"{name}: {X.shape[0]:,} x {X.shape[1]:,}, {options.permutations:,} permutations")
    print(f"{'':18}{'permuted s':>12}{'refits s':>12}{'ratio':>8}")
    results: dict[str, Any] = {"machine": machine(), "data": name, "models": {}}
    for label in options.models:
        model = clone(MODELS[label]).set_params(device=options.device)
        rows: dict[str, Callable[[], Any]] = {
            "permuted": lambda model=model: permutation_gains(
                model, X, y, options.permutations, random_state=0
            ),
            "refits": lambda model=model: refits(model, X, y, options.permutations),
        }
        found = alternate(rows, options.repeat, slow=5.0)
        ours, loop = (found[row].least for row in rows)
        print(f"{label:18}{ours:12.3f}{loop:12.3f}{loop / ours:8.1f}")
        results["models"][label] = {"permuted": ours, "refits": loop, "ratio": loop / ours}
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1) + "\n")


def data() -> tuple[np.ndarray, np.ndarray, str]:
    """The prostate data of Singh et al. where they are, else random numbers of that size."""
    folder = Path(os.environ.get("GPUCENTERS_DATA", "../shared/data"))
    if (folder / "singh.npz").exists():
        with np.load(folder / "singh.npz") as held:
            return held["X"], held["y"], "Singh"
    X = normal(102, 12_600)
    return X, labels(len(X), "int"), "random"


def refits(model: Any, X: np.ndarray, y: np.ndarray, count: int) -> np.ndarray:
    """How often the gains of refits reach the observed ones: the loop that is saved."""
    rng, model = np.random.default_rng(0), clone(model)
    observed = ranking_key(model.fit(X, y).scores_)
    reached = np.zeros(X.shape[1], dtype=np.int64)
    for _ in range(count):
        reached += ranking_key(model.fit(X, rng.permutation(y)).scores_) >= observed
    return reached


COUNTS = (5, 10, 19, 200)  # permutations
ALPHA = 0.05

Null = tuple[np.ndarray, np.ndarray, dict[str, Any]]


def levels(runs: int) -> dict[str, Any]:
    """Print how often null data of each scenario give p <= 0.05, and some selection at 0.05.

    Of one feature, of any by the family-wise p-values, and of any by `k_at`.
    """
    print(f"{runs} null data sets each: shares at a level of {ALPHA} for {COUNTS} permutations")
    print(f"{'':28}{'p-values':^24}{'family-wise':^24}{'k_at':^24}{'k_at, bh':^24}")
    results: dict[str, Any] = {}
    for name, (model, make) in SCENARIOS.items():
        shares = np.array([_errors(model, make, count, runs) for count in COUNTS]).T
        cells = (" ".join(f"{share:5.3f}" for share in row) for row in shares)
        print(f"{name:28}" + "".join(f"{cell:^24}" for cell in cells))
        kinds = ("pvalues", "pvalues_fwer", "k_at", "k_at, bh")
        results[name] = {kind: row.tolist() for kind, row in zip(kinds, shares, strict=True)}
    return {"runs": runs, "permutations": COUNTS, "scenarios": results}


def _errors(model: Any, make: Callable[[Any], Null], count: int, runs: int) -> np.ndarray:
    found = []
    for seed in range(runs):
        X, y, more = make(np.random.default_rng(seed))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of too few permutations
            one = permutation_gains(model, X, y, count, random_state=seed, **more)
            chosen = [one.k_at(ALPHA, method) > 0 for method in ("permutation", "bh")]
        errs = bool(np.any(one.pvalues_fwer <= ALPHA))
        found.append([np.mean(one.pvalues <= ALPHA), errs, *chosen])
    return np.mean(found, axis=0)


def _independent(rng: np.random.Generator) -> Null:
    return rng.normal(size=(30, 40)), rng.permutation(np.arange(30) % 2), {}


def _correlated(rng: np.random.Generator) -> Null:
    X, y, _ = _independent(rng)
    return X + 2 * rng.normal(size=(30, 1)), y, {}


def _unbalanced(rng: np.random.Generator) -> Null:
    X = rng.lognormal(0, 1.5, (30, 40))
    return X, rng.permutation(np.repeat([0, 1, 2], [4, 8, 18])), {}


def _counts(rng: np.random.Generator) -> Null:
    X = rng.poisson(rng.gamma(0.5, 2, 40), (30, 40)).astype(float)
    X[:, 0] += 1  # no empty row
    return X, rng.permutation(np.arange(30) % 2), {}


def _offset(rng: np.random.Generator) -> Null:
    X, y, _ = _independent(rng)
    return np.round(X + 1e6, 1), y, {}


def _batches(rng: np.random.Generator) -> Null:
    """Batches with effects of their own, and unequal shares of the classes."""
    batch = np.repeat([0, 1, 2], 10)
    y = (rng.random(30) < np.array([0.3, 0.5, 0.7])[batch]).astype(int)
    y[::10], y[1::10] = 0, 1
    return rng.normal(size=(30, 40)) + rng.normal(size=(3, 40))[batch], y, {"groups": batch}


def _donors(rng: np.random.Generator) -> Null:
    """Donors of unequal sizes with effects of their own, and one label each."""
    donor = np.repeat(np.arange(10), rng.integers(1, 6, 10))
    X = rng.normal(size=(len(donor), 40)) + rng.normal(size=(10, 40))[donor]
    y = rng.permutation(np.arange(10) % 2)[donor]
    return X, y, {"groups": donor, "permute": "groups"}


SCENARIOS: dict[str, tuple[Any, Callable[[Any], Null]]] = {
    "l2, independent": (L2CenterClassifier(scale="std"), _independent),
    "l2, correlated": (L2CenterClassifier(scale="std"), _correlated),
    "l2, unbalanced": (L2CenterClassifier(scale="std"), _unbalanced),
    "l2, offset": (L2CenterClassifier(scale="std"), _offset),
    "l2, batches": (L2CenterClassifier(scale="std"), _batches),
    "l2, donors": (L2CenterClassifier(scale="std"), _donors),
    "l2 pooled, independent": (L2CenterClassifier(scale="pooled"), _independent),
    "l2 pooled, donors": (L2CenterClassifier(scale="pooled"), _donors),
    "l1, independent": (L1CenterClassifier(scale="std"), _independent),
    "l1, unbalanced": (L1CenterClassifier(scale="std"), _unbalanced),
    "l1 pooled, batches": (L1CenterClassifier(scale="pooled"), _batches),
    "Bernoulli, counts": (SparseBernoulliNB(), _counts),
    "multinomial, counts": (SparseMultinomialNB(), _counts),
    "Poisson, counts": (SparsePoissonNB(), _counts),
    "Poisson dispersion, counts": (SparsePoissonNB(exposure=None, scale="dispersion"), _counts),
    "Gaussian, independent": (SparseGaussianNB(), _independent),
    "Gaussian, unbalanced": (SparseGaussianNB(), _unbalanced),
    "shrunken, correlated": (ShrunkenCentroidClassifier(offset=1.0), _correlated),
}
