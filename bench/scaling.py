"""How time grows with rows, with width at fixed stored values, and with the number of classes."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    SparseBernoulliNB,
    SparseMultinomialNB,
)

from .arguments import device_and_rounds
from .shapes import labels, normal, sparse_counts, zipf_text
from .timing import alternate, machine

CLASSES = (2, 10, 100, 1000)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the bench can be told."""
    parser.add_argument("--sizes", type=int, default=5, help="at least two")
    device_and_rounds(parser)


def run(options: argparse.Namespace) -> None:
    """Print seconds for doubling sizes, and the slope of log time against log size."""
    results: dict = {"machine": machine(), "device": options.device}
    steps = 2 ** np.arange(options.sizes)
    for axis, sizes in (
        ("rows", [(100_000 * int(s), 273_779) for s in steps]),
        ("width", [(400_000, 250_000 * int(s)) for s in steps]),
    ):
        print(f"\ndoubling {axis}")
        print(f"{'n':>10}{'m':>12}{'l2 fit s':>10}{'l1 fit s':>10}")
        seconds = []
        for n, m in sizes:
            X, y = zipf_text(n, m, 12, 1.07), labels(n, "int")
            found = alternate(
                {
                    "l2": lambda X=X, y=y: L2CenterClassifier(device=options.device).fit(X, y),
                    "l1": lambda X=X, y=y: L1CenterClassifier(device=options.device).fit(X, y),
                },
                options.repeat,
            )
            seconds.append([found["l2"].median, found["l1"].median])
            print(f"{n:>10,}{m:>12,}{seconds[-1][0]:10.4f}{seconds[-1][1]:10.4f}")
        slopes = np.polyfit(np.log2(steps), np.log2(seconds), 1)[0]
        print(f"slope: l2 {slopes[0]:.2f}, l1 {slopes[1]:.2f} (1 is linear)")
        results[axis] = {"sizes": sizes, "seconds": seconds, "slopes": slopes.tolist()}
    results["classes"] = _classes(options)
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1) + "\n")


def _classes(options: argparse.Namespace) -> dict:
    """Print seconds for each number of classes, at fixed data, and the slope of the last step."""
    n, device = 20_000, {"device": options.device}
    dense, counts = normal(n, 1000), sparse_counts(n, 2000, 40)
    models = {
        "l2": (L2CenterClassifier(**device), dense),
        "l1": (L1CenterClassifier(**device), dense),
        "l2 CSR": (L2CenterClassifier(**device), counts),
        "bernoulli": (SparseBernoulliNB(k=50, **device), counts),
        "multinomial": (SparseMultinomialNB(k=50, **device), counts),
    }
    print(f"\nclasses, {n:,} x 1,000 dense and x 2,000 CSR\n{'':>10}", end="")
    print("".join(f"{f'{name} s':>15}" for name in models))
    seconds = []
    for k in CLASSES:
        y = labels(n, "int", k)
        rows = {name: lambda m=m, X=X, y=y: m.fit(X, y) for name, (m, X) in models.items()}
        seconds.append([t.median for t in alternate(rows, options.repeat).values()])
        print(f"{k:>10,}" + "".join(f"{s:15.4f}" for s in seconds[-1]))
    slopes = np.log10(np.divide(seconds[-1], seconds[-2]))
    print(f"{'slope':>10}" + "".join(f"{s:15.2f}" for s in slopes), "(100 to 1,000; 1 is linear)")
    return {
        "classes": CLASSES,
        "models": list(models),
        "seconds": seconds,
        "slopes": slopes.tolist(),
    }
