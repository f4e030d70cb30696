"""What one more batch costs a stream, against the width of X: it should not grow with it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import scipy.sparse
from sklearn.naive_bayes import MultinomialNB

from gpucenters import L2CenterClassifier

from .arguments import device_and_rounds
from .shapes import labels
from .timing import alternate, machine

ROWS, PER_ROW = 1_000, 20
WIDTHS = (1_200_000, 12_000_000, 48_000_000)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the bench can be told."""
    device_and_rounds(parser)


def run(options: argparse.Namespace) -> None:
    """Print the seconds that ``partial_fit`` takes for a batch of 1,000 rows at three widths."""
    results: dict = {"machine": machine(), "device": options.device, "widths": {}}
    y = labels(ROWS, "int")
    print(f"a batch of {ROWS:,} rows with {PER_ROW} stored values each, after the first one")
    print(f"{'m':>12}{'ours: median s':>16}{'min s':>9}{'MultinomialNB: median s':>25}{'min s':>9}")
    for m in WIDTHS:
        batches = [_batch(m, seed) for seed in range(4)]
        model = L2CenterClassifier(device=options.device)
        peer = MultinomialNB()
        for each in (model, peer):
            each.partial_fit(batches[0], y, classes=[0, 1])
        rows = {
            "ours": lambda: [model.partial_fit(X, y) for X in batches],  # noqa: B023
            "MultinomialNB": lambda: [peer.partial_fit(X, y) for X in batches],  # noqa: B023
        }
        found = alternate(rows, options.repeat, slow=20.0)
        each = {
            name: {"median": t.median / len(batches), "min": t.least / len(batches)}
            for name, t in found.items()
        }
        ours, theirs = each["ours"], each["MultinomialNB"]
        print(
            f"{m:>12,}{ours['median']:>16.4f}{ours['min']:>9.4f}"
            f"{theirs['median']:>25.4f}{theirs['min']:>9.4f}"
        )
        results["widths"][m] = each
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1) + "\n")


def _batch(m: int, seed: int) -> scipy.sparse.csr_matrix:
    rng = np.random.default_rng(seed)
    indices = rng.integers(0, m, ROWS * PER_ROW, dtype=np.int32)
    indptr = np.arange(0, indices.size + 1, PER_ROW, dtype=np.int32)
    X = scipy.sparse.csr_matrix((np.ones(indices.size, np.float32), indices, indptr), (ROWS, m))
    X.sum_duplicates()
    return X
