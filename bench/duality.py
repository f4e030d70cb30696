"""Bounds of sparse multinomial naive Bayes against k: Figure 1 of *Naive Feature Selection*.

Class sums are uniform at random. psi(k) is the bound from above; by Theorem 3 of the paper the
optimum is at least psi(k - 4), and by its sharper form psi(k - 1). Values are log-likelihoods
beyond that of no feature free, as shares of that of all features free.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from gpucenters.solvers import multinomial_nb

_ROWS = 12  # lines of a printed table
_POINTS = 120  # values of k at most
_ROUNDING = 1e-13  # a gap that is no more is none


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the bench can be told."""
    parser.add_argument("--sizes", type=int, nargs="+", default=[30, 3000], help="features")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--png", help="draw a picture into this file (needs matplotlib)")


def run(options: argparse.Namespace) -> None:
    """Print, and draw or write where told, the bounds and the value that was reached."""
    found = {m: bounds(m, options.seed) for m in options.sizes}
    for m, curves in found.items():
        _print(m, curves)
    if options.png:
        from matplotlib.figure import Figure

        figure = Figure(layout="constrained")
        draw({f"m = {m}": curves for m, curves in found.items()}, figure)
        figure.savefig(options.png, dpi=150)
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=1) + "\n")


def bounds(m: int, seed: int = 0) -> dict[str, list[float]]:
    """psi(k), psi(k - 1), psi(k - 4) and the value reached, for some k up to m."""
    sums = np.random.default_rng(seed).random((2, m))
    centers = multinomial_nb(sums, [0, 1], alpha=0.0)
    ks = np.unique(np.linspace(1, m, min(m, _POINTS)).astype(int)).tolist()
    wanted = sorted({k - lag for k in ks for lag in (0, 1, 4) if k > lag})
    chosen = {k: centers.select(k) for k in wanted}
    every = centers.select(m).value
    psi = {k: (c.value + c.gap) / every for k, c in chosen.items()} | {0: 0.0}
    return {
        "k": ks,
        "psi(k)": [psi[k] for k in ks],
        "reached": [chosen[k].value / every for k in ks],
        "psi(k-1)": [psi[k - 1] for k in ks],
        "psi(k-4)": [psi[max(k - 4, 0)] for k in ks],
    }


def _print(m: int, curves: dict[str, list[float]]) -> None:
    names = [name for name in curves if name != "k"]
    print(f"\nclass sums uniform at random, {m} features")
    print(f"{'k':>6}" + "".join(f"{name:>12}" for name in names) + f"{'gap':>12}")
    points = len(curves["k"])
    for row in np.unique(np.linspace(0, points - 1, min(points, _ROWS)).astype(int)):
        values = [curves[name][row] for name in names]
        gap = values[0] - values[1]
        print(f"{curves['k'][row]:>6}" + "".join(f"{v:12.6f}" for v in values) + f"{gap:12.2e}")
    gaps = np.subtract(curves["psi(k)"], curves["reached"])
    print(
        f"mean gap {gaps.mean():.2e}, largest {gaps.max():.2e}; {np.mean(gaps == 0):.0%} are zero"
    )


def draw(found: dict[str, dict[str, list[float]]], figure: Any) -> None:
    """The bounds, and below them the gap with what the theorem allows."""
    figure.set_size_inches(5.5 * len(found), 7)
    styles = {"psi(k)": "C0-", "reached": "k.", "psi(k-1)": "C1--", "psi(k-4)": "C2:"}
    panels = figure.subplots(2, len(found), squeeze=False)
    for (above, below), (title, curves) in zip(panels.T, found.items(), strict=True):
        for name, style in styles.items():
            above.plot(curves["k"], curves[name], style, label=name, markersize=3)
            if name != "psi(k)":
                gap = np.subtract(curves["psi(k)"], curves[name])
                label = "gap: psi(k) - reached" if name == "reached" else f"psi(k) - {name}"
                shown = np.where(gap > _ROUNDING, gap, np.nan)
                below.plot(curves["k"], shown, style, label=label)
        zero = np.mean(np.subtract(curves["psi(k)"], curves["reached"]) <= _ROUNDING)
        above.set(ylabel="log-likelihood, share of all features", title=title)
        below.set(yscale="log", xlabel="k", ylabel="gap, share of all features")
        below.set_title(f"the gap is 0 at {zero:.0%} of the k, which are not drawn", fontsize=9)
        above.legend()
        below.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=3, fontsize=9)
        for axis in (above, below):
            axis.grid(alpha=0.3)
