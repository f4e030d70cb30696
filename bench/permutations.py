"""Gains under permuted labels, beside a loop of refits on each shuffled label vector."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from gpucenters import L1CenterClassifier, L2CenterClassifier, permutation_gains
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


def run(options: argparse.Namespace) -> None:
    """Print seconds of each, and how many times as long the loop takes."""
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
