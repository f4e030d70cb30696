"""Scores of 40 numbers of features on 5 folds of MPQA, beside a grid search with the same folds."""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    SparseBernoulliNB,
    SparseMultinomialNB,
    sparsity_path,
)

from .arguments import folder, rounds
from .shapes import SHAPES, labels
from .timing import alternate, machine, peak_beyond

MODELS = {
    "l2": L2CenterClassifier(),
    "l2, scaled": L2CenterClassifier(scale="std"),
    "l1": L1CenterClassifier(),
    "Bernoulli": SparseBernoulliNB(),
    "multinomial": SparseMultinomialNB(),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the bench can be told."""
    folder(parser)
    parser.add_argument("--tweets", action="store_true", help="1.6 million tweets too")
    parser.add_argument("--png", help="draw a picture into this file (needs matplotlib)")
    rounds(parser, 3)


def run(options: argparse.Namespace) -> None:
    """Print a table, and write figures and draw pictures where told."""
    X, y, words = mpqa(Path(options.data))
    if options.png:
        _draw(X, y, words, Path(options.data), options.png)
    results = {"machine": machine(), "rows": compare(X, y, options.repeat)}
    if options.tweets:
        results["tweets"] = tweets(options.repeat)
        print(f"{'40 ks of tweets, 20% test':28}{'path s':>10}{'fit s':>10}{'path / both':>13}")
        for name, row in results["tweets"].items():
            print(
                f"{name:28}{row['path']:10.4f}{row['fit, predict']:10.4f}{row['ratio']:13.4f}"
                f"{row['peak_mb']:10.0f} MB"
            )
    print(f"{'40 ks x 5 folds of MPQA':28}{'path s':>10}{'grid s':>10}{'path / grid':>13}")
    for name, row in results["rows"].items():
        print(f"{name:28}{row['path']:10.4f}{row['grid']:10.4f}{row['ratio']:13.4f}")
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1) + "\n")


def mpqa(folder: Path) -> tuple[Any, np.ndarray, np.ndarray]:
    """Word counts, labels and words."""
    with gzip.open(folder / "mpqa.tsv.gz", "rt", encoding="utf-8", newline="\n") as lines:
        next(lines)
        pairs = [line.rstrip("\n").split("\t", 1) for line in lines]
    labels, texts = zip(*pairs, strict=True)
    words = CountVectorizer(token_pattern=r"(?u)\b\w+\b").fit(texts)
    names = np.asarray(["negative", "positive"])
    return words.transform(texts), names[np.asarray(labels, int)], words.get_feature_names_out()


def compare(X: Any, y: np.ndarray, repeat: int) -> dict[str, dict[str, float]]:
    """Median seconds of the path and of the grid search of each model, and their ratio."""
    ks, folds, found = _ks(X.shape[1]), StratifiedKFold(5), {}
    for name, model in MODELS.items():
        rows: dict[str, Callable[[], Any]] = {
            "path": lambda model=model: sparsity_path(model, X, y, ks=ks, cv=folds),
            "grid": lambda model=model: GridSearchCV(model, {"k": ks}, cv=folds, refit=False).fit(
                X, y
            ),
        }
        seconds = {row: timing.median for row, timing in alternate(rows, repeat).items()}
        found[name] = seconds | {"ratio": seconds["path"] / seconds["grid"]}
    return found


def tweets(repeat: int) -> dict[str, dict[str, float | None]]:
    """The path on a fifth of 1.6 million tweets, beside one fit and prediction of the same."""
    X = SHAPES["twitter-count"].make()
    y, cut = labels(X.shape[0], "int"), X.shape[0] * 4 // 5
    train, test, found = (X[:cut], y[:cut]), (X[cut:], y[cut:]), {}
    for name, model in MODELS.items():
        rows: dict[str, Callable[[], Any]] = {
            "path": lambda model=model: sparsity_path(
                model, *train, ks=_ks(X.shape[1]), X_test=test[0], y_test=test[1]
            ),
            "fit, predict": lambda model=model: model.fit(*train).predict(test[0]),
        }
        seconds = {row: timing.least for row, timing in alternate(rows, repeat).items()}
        ratio = seconds["path"] / seconds["fit, predict"]
        found[name] = seconds | {"ratio": ratio, "peak_mb": peak_beyond(rows["path"])}
    return found


def _ks(m: int) -> list[int]:
    """40 numbers of features, up to m."""
    return np.unique(np.geomspace(1, m, 44).round().astype(int)).tolist()[-40:]


def _draw(X: Any, y: np.ndarray, words: np.ndarray, folder: Path, path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    from gpucenters import plot_centers

    figure, grid = pyplot.subplots(2, 3, figsize=(15, 9.5), layout="constrained")
    axes, below = grid
    for name in ("l2, scaled", "Bernoulli", "multinomial"):
        sparsity_path(MODELS[name], X, y).plot(axes[0], name=name)
    axes[0].set_title("MPQA, 10,606 phrases: 5 folds")
    with np.load(folder / "singh.npz", allow_pickle=False) as file:
        genes, tissue, probes = file["X"], file["classes"][file["y"]], file["feature_names"]
    for name, model in (
        ("l2, scaled", L2CenterClassifier(scale="std")),
        ("l1, scaled", L1CenterClassifier(scale="std")),
    ):
        found = sparsity_path(
            model, genes, tissue, n_splits=50, random_state=0, scoring="balanced_accuracy"
        )
        found.plot(axes[1], name=name)
    axes[1].set_title("Singh, 102 samples: 50 random splits")
    model = MODELS["l2, scaled"]
    plot_centers(model.fit(X, y), feature_names=words, ax=axes[2])
    axes[2].set_title("MPQA, l2 scaled: class centers of words")
    splits = sparsity_path(model, X, y, n_splits=50, random_state=0)
    splits.plot_selection_frequency(feature_names=words, ax=below[0])
    below[0].set_title("MPQA, l2 scaled: words in 50 random splits")
    found.plot_selection_frequency(feature_names=probes, ax=below[1])
    below[1].set_title("Singh, l1 scaled: probes in 50 random splits")
    l1 = L1CenterClassifier(scale="std").fit(genes, tissue)
    plot_centers(l1, feature_names=probes, ax=below[2])
    below[2].set_title("Singh, l1 scaled: class centers of probes")
    figure.savefig(path, dpi=150)
