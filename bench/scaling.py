"""How time grows with rows at a fixed width, and with width at fixed stored values."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from gpucenters import L1CenterClassifier, L2CenterClassifier

from .arguments import device_and_rounds
from .shapes import labels, zipf_text
from .timing import alternate, machine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the bench can be told."""
    parser.add_argument("--sizes", type=int, default=5)
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
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1) + "\n")
