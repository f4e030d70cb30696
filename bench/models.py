"""Which model for which data: accuracies at several shares of the features, as a Markdown table."""

from __future__ import annotations

import argparse
import gzip
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import StratifiedShuffleSplit

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    ShrunkenCentroidClassifier,
    SparseBernoulliNB,
    SparseGaussianNB,
    SparseMultinomialNB,
    SparsePoissonNB,
    sparsity_path,
)

from .arguments import folder
from .timing import machine

MODELS = {
    "l2": L2CenterClassifier(),
    'l2, `scale="std"`': L2CenterClassifier(scale="std"),
    'l2, `scale="pooled"`': L2CenterClassifier(scale="pooled"),
    'l1, `scale="std"`': L1CenterClassifier(scale="std"),
    "Bernoulli": SparseBernoulliNB(),
    "multinomial": SparseMultinomialNB(),
    "Poisson": SparsePoissonNB(),
    'Poisson, `scale="dispersion"`': SparsePoissonNB(scale="dispersion"),
    "Gaussian": SparseGaussianNB(),
    "Gaussian, `pooling=1`": SparseGaussianNB(pooling=1.0),
    "shrunken centroids": ShrunkenCentroidClassifier(),
}
SHARES = (0.001, 0.01, 0.1, 1.0)


def _texts(*paths: Path) -> tuple[Any, np.ndarray]:
    """Word counts and labels of files of labelled lines."""
    labels, texts = [], []
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as lines:
            next(lines)
            pairs = [line.rstrip("\n").split("\t", 1) for line in lines]
        labels += [int(label) for label, _ in pairs]
        texts += [text for _, text in pairs]
    words = CountVectorizer(token_pattern=r"(?u)\b\w+\b")
    return words.fit_transform(texts), np.asarray(labels)


def _genes(path: Path) -> tuple[np.ndarray, np.ndarray]:
    with np.load(path, allow_pickle=False) as file:
        return file["X"], file["y"]


def data(folder: Path) -> dict[str, tuple[Any, np.ndarray]]:
    """(X, y) of each data set."""
    return {
        "MPQA": _texts(folder / "mpqa.tsv.gz"),
        "R8": _texts(folder / "r8.train.tsv.gz", folder / "r8.test.tsv.gz"),
        "Singh": _genes(folder / "singh.npz"),
        "Chowdary": _genes(folder / "chowdary.npz"),
    }


def accuracies(model: Any, X: Any, y: np.ndarray, splits: int) -> list[float]:
    """Mean accuracies, in percent, with each share of the features; NaN where X is refused."""
    ks = [max(1, int(share * X.shape[1])) for share in SHARES]
    folds = StratifiedShuffleSplit(splits, test_size=0.2, random_state=0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mean = sparsity_path(model, X, y, ks=ks, cv=folds).mean
    except ValueError as error:  # negative values where counts are asked for
        if "Negative values" not in str(error):
            raise
        return [float("nan")] * len(ks)
    return [100 * float(a) for a in np.asarray(mean)]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the bench can be told."""
    parser.add_argument("--splits", type=int, default=5)
    folder(parser)


def run(options: argparse.Namespace) -> None:
    """Print a table, and write the figures where told."""
    sets = data(Path(options.data))
    found = {
        name: {of: accuracies(model, *sets[of], options.splits) for of in sets}
        for name, model in MODELS.items()
    }
    sizes = [f"{name} ({X.shape[0]:,} x {X.shape[1]:,})" for name, (X, _) in sets.items()]
    print("| model | " + " | ".join(sizes) + " |")
    print("| --- |" + " --- |" * len(sets))
    best = {of: np.nanmax([row[of] for row in found.values()], axis=0) for of in sets}
    for name, row in found.items():
        cells = [" / ".join(map(_cell, row[of], best[of])) for of in sets]
        print(f"| {name} | " + " | ".join(cells) + " |")
    if options.json:
        written = {"machine": machine(), "shares": SHARES, "accuracies": found}
        Path(options.json).write_text(json.dumps(written, indent=1) + "\n")


def _cell(value: float, best: float) -> str:
    if np.isnan(value):
        return "-"
    return f"**{value:.1f}**" if value > best - 0.05 else f"{value:.1f}"
