"""Binary decompositions of many classes, beside one joint fit and scikit-learn's wrappers."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sklearn import multiclass as peers

from gpucenters import L2CenterClassifier, SparseMultinomialNB
from gpucenters.multiclass import (
    NestedDichotomiesClassifier,
    OneVsOneClassifier,
    OneVsRestClassifier,
    OutputCodeClassifier,
)

from .arguments import device_and_rounds
from .shapes import SHAPES, labels, sparse_counts
from .timing import alternate, machine, peak_beyond

CLASSES = 20
DATA: dict[str, tuple[str, Callable[[], Any]]] = {
    "twitter-count": (SHAPES["twitter-count"].about, SHAPES["twitter-count"].make),
    "20-newsgroups": (
        "18,846 documents x 273,779 words, 150 words each",
        lambda: sparse_counts(18_846, 273_779, 150),
    ),
}
MODELS = {
    "l2": L2CenterClassifier(1000),
    "l2 scale=std": L2CenterClassifier(1000, scale="std"),
    "multinomial": SparseMultinomialNB(),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the bench can be told."""
    parser.add_argument("--data", nargs="+", choices=list(DATA), default=["20-newsgroups"])
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=["l2"])
    parser.add_argument("--skip", nargs="*", default=[], help="rows to leave out, by their name")
    device_and_rounds(parser)


def run(options: argparse.Namespace) -> None:
    """Print seconds of each, and in times of one joint fit."""
    results: dict[str, Any] = {"machine": machine(), "device": options.device, "data": {}}
    for name in options.data:
        about, make = DATA[name]
        X = make()
        y = labels(X.shape[0], "int", CLASSES)
        print(f"\n{about}, {CLASSES} classes")
        results["data"][name] = {model: _bench(model, X, y, options) for model in options.models}
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1) + "\n")


def _bench(name: str, X: Any, y: Any, options: argparse.Namespace) -> dict[str, Any]:
    model = MODELS[name].set_params(device=options.device)
    ours = {
        "joint": model,
        "OneVsRest": OneVsRestClassifier(model),
        "OutputCode": OutputCodeClassifier(model, random_state=0),
        "NestedDichotomies": NestedDichotomiesClassifier(model, random_state=0),
        "OneVsOne": OneVsOneClassifier(model),
    }
    theirs = {
        "sklearn OneVsRest": peers.OneVsRestClassifier(model),
        "sklearn OutputCode": peers.OutputCodeClassifier(model, random_state=0),
    }
    chosen = {n: m for n, m in (ours | theirs).items() if n not in options.skip}
    rows = {f"{n} fit": lambda m=m: m.fit(X, y) for n, m in chosen.items()}
    # (Each was fitted in the round before it predicts.)
    rows |= {f"{n} predict": lambda m=m: m.predict(X) for n, m in chosen.items()}
    found = alternate(rows, options.repeat, slow=20.0)
    for row in rows:
        if row.endswith("fit") and not row.startswith("sklearn"):
            found[row].peak = peak_beyond(rows[row])
    print(f"{name:28}{'median s':>10}{'min s':>9}{'peak MB':>9}{'/ joint':>9}")
    for row, t in found.items():
        peak = "" if t.peak is None else f"{t.peak:.0f}"
        ratio = t.least / found[f"joint {row.split()[-1]}"].least
        print(f"{row:28}{t.median:10.3f}{t.least:9.3f}{peak:>9}{ratio:9.2f}  {t.note}")
    return {r: {"median": t.median, "min": t.least, "peak_mb": t.peak} for r, t in found.items()}
