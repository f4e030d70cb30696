"""Fits and predictions beside their peers, on one shape at a time."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    ShrunkenCentroidClassifier,
    SparseBernoulliNB,
    SparseGaussianNB,
    SparseMultinomialNB,
    SparsePoissonNB,
)

from . import peers
from .arguments import device_and_rounds
from .shapes import FIT_SHAPES, labels
from .timing import Timing, alternate, machine, peak_beyond


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the bench can be told."""
    parser.add_argument("shapes", nargs="+", choices=[*FIT_SHAPES, "all"])
    parser.add_argument("--labels", choices=["int", "str", "object"], default="int")
    parser.add_argument(
        "--skip", nargs="*", default=[], help="rows to leave out, by part of a name"
    )
    device_and_rounds(parser)


def run(options: argparse.Namespace) -> None:
    """Bench the shapes that were asked for and print a table each."""
    names = list(FIT_SHAPES) if "all" in options.shapes else options.shapes
    results = {"machine": machine(), "device": options.device, "labels": options.labels}
    results["shapes"] = {name: _bench(name, options) for name in names}
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1) + "\n")


def _bench(name: str, options: argparse.Namespace) -> dict[str, Any]:
    shape = FIT_SHAPES[name]
    X = shape.make()
    n, m = X.shape
    codes = None if shape.codes is None else shape.codes()
    y = labels(n, options.labels, shape.classes, codes=codes)
    stored = getattr(X, "nnz", n * m)
    k = max(1, m // 1000)
    device = {"device": options.device}
    order = ""
    if hasattr(X, "nnz"):
        order = ", rows sorted" if X.has_sorted_indices else ", rows not sorted"
    print(f"\n{name}: {shape.about}; {stored:,} stored values{order}, {options.labels} labels")
    l2 = L2CenterClassifier(**device).fit(X, y)
    l1 = L1CenterClassifier(k=1, **device).fit(X, y)
    ours = {
        "l2 fit": lambda: L2CenterClassifier(**device).fit(X, y),
        f"l2 fit, k={k}": lambda: L2CenterClassifier(k=k, **device).fit(X, y),
        'l2 fit, scale="std"': lambda: L2CenterClassifier(scale="std", **device).fit(X, y),
        "l1 fit": lambda: L1CenterClassifier(**device).fit(X, y),
        "gaussian fit": lambda: SparseGaussianNB(**device).fit(X, y),
        "shrunken fit": lambda: ShrunkenCentroidClassifier(**device).fit(X, y),
        "l2 predict": lambda: l2.predict(X),
        "l1 predict, k=1": lambda: l1.predict(X),
    }
    if hasattr(X, "nnz"):
        ours |= {
            f"multinomial fit, k={k}": lambda: SparseMultinomialNB(k=k, **device).fit(X, y),
            f"bernoulli fit, k={k}": lambda: SparseBernoulliNB(k=k, **device).fit(X, y),
            "poisson fit": lambda: SparsePoissonNB(**device).fit(X, y),
            'poisson fit, scale="dispersion"': lambda: SparsePoissonNB(
                scale="dispersion", **device
            ).fit(X, y),
        }
    elif shape.classes <= 100:
        every = L1CenterClassifier(**device).fit(X, y)
        ours["l1 predict"] = lambda: every.predict(X)
    rival: list[Any] = []
    rows = ours | peers.bare_calls(X, y) | peers.peers(X, y, k) | peers.authors(X, y, k, rival)
    rows = {r: w for r, w in rows.items() if not any(part in r for part in options.skip)}
    found = alternate(rows, options.repeat)
    for row in ours:
        if row in found:
            found[row].peak = peak_beyond(rows[row])
    _print(found)
    if rival:
        _compare(X, y, k, rival[0])
    if n * m > 5e8 and hasattr(X, "nnz"):
        print("(NearestCentroid makes dense n x m arrays in fit: too much memory for this shape.)")
    return {
        row: {"median": t.median, "min": t.least, "peak_mb": t.peak, "note": t.note}
        for row, t in found.items()
    }


def _compare(X: Any, y: np.ndarray, k: int, rival: Any) -> None:
    """Print whether our k features are as good as the authors', on the same class sums."""
    model = SparseMultinomialNB(k=k, alpha=0.0).fit(X, y)
    theirs = np.flatnonzero(rival.mask_)
    values = peers.multinomial_values(X, y, [model.support_, theirs])
    verdict = "at least as good as" if values[0] >= values[1] * (1 - 1e-12) else "WORSE than"
    print(
        f"multinomial, k={k}, no smoothing: the log-likelihood gained, {values[0]:.9g} (gap "
        f"{model.gap_:.2g}), is {verdict} the authors', {values[1]:.9g}"
    )


def _print(found: dict[str, Timing]) -> None:
    bases = [r for r in found if r in ("l2 fit", "l1 fit") or r.startswith("multinomial fit")]
    print(
        f"{'':38}{'median s':>10}{'min s':>9}{'peak MB':>9}"
        + "".join(f"{f'{b.split(chr(44))[0]} / it':>21}" for b in bases)
    )
    for name, t in found.items():
        peak = "" if t.peak is None else f"{t.peak:.0f}"
        ratios = "".join(f"{found[b].median / t.median:21.3f}" for b in bases)
        print(f"{name:38}{t.median:10.4f}{t.least:9.4f}{peak:>9}{ratios}  {t.note}")
