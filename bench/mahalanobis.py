"""Fits with a full covariance, beside linear discriminant analysis and the bare product."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from gpucenters import MahalanobisCenterClassifier

from .arguments import device_and_rounds
from .shapes import labels, normal, zipf_text
from .timing import alternate, machine, peak_beyond

SHAPES: dict[str, Callable[[], Any]] = {
    "dense, 20,000 x 500": lambda: normal(20_000, 500),
    "dense, 5,000 x 2,000": lambda: normal(5_000, 2_000),
    "text, 200,000 x 2,000 CSR": lambda: zipf_text(200_000, 2_000, 12, 1.07),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the bench can be told."""
    device_and_rounds(parser)


def run(options: argparse.Namespace) -> None:
    """Print a table for each shape."""
    results: dict = {"machine": machine(), "device": options.device, "shapes": {}}
    for name, make in SHAPES.items():
        results["shapes"][name] = _bench(name, make(), options)
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1) + "\n")


def _bench(name: str, X: Any, options: argparse.Namespace) -> dict[str, Any]:
    y = labels(X.shape[0], "int")
    # (The words of each text add up to the same number, so that the plain covariance is singular.)
    sparse = scipy.sparse.issparse(X)
    model = MahalanobisCenterClassifier(device=options.device, shrinkage=0.01 if sparse else None)
    shrunk = MahalanobisCenterClassifier(device=options.device, shrinkage="ledoit-wolf")
    ours: dict[str, Callable[[], Any]] = {
        "fit": lambda: model.fit(X, y),
        "fit, ledoit-wolf": lambda: shrunk.fit(X, y),
    }
    if sparse:
        rows = ours | {"bare (X.T @ X).toarray()": lambda: (X.T @ X).toarray()}
    else:
        wide = X.astype(np.float64)
        rows = ours | {"bare X.T @ X (float64)": lambda: wide.T @ wide}
        for solver in ("lsqr", "eigen"):
            rows[f"LinearDiscriminantAnalysis({solver})"] = lambda solver=solver: (
                LinearDiscriminantAnalysis(solver=solver).fit(X, y)
            )
    found = alternate(rows, options.repeat)
    for row in ours:
        found[row].peak = peak_beyond(rows[row])
    print(f"\n{name}")
    print(f"{'':34}{'median s':>10}{'min s':>9}{'peak MB':>9}{'fit / it':>10}")
    for row, t in found.items():
        peak = "" if t.peak is None else f"{t.peak:.0f}"
        ratio = found["fit"].median / t.median
        print(f"{row:34}{t.median:10.4f}{t.least:9.4f}{peak:>9}{ratio:10.3f}  {t.note}")
    return {r: {"median": t.median, "min": t.least, "peak_mb": t.peak} for r, t in found.items()}
