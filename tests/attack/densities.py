"""Poisson, Gaussian and shrunken centers against 50 digits and all supports."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from exact_densities import exact_gaussian, exact_poisson, exact_shrunken

from gpucenters import ShrunkenCentroidClassifier, SparseGaussianNB, SparsePoissonNB

from .problems import FORMS, Problem, again
from .report import Report

PROBLEMS = 3000


def draw(rng: np.random.Generator, *, counts: bool) -> Problem:
    """Small integers of 2 to 4 classes, with equal features, null features and offsets."""
    K, m = int(rng.integers(2, 5)), int(rng.integers(2, 7))
    n = int(rng.integers(2 * K + 1, 16))
    y = np.concatenate([np.repeat(np.arange(K), 2), rng.integers(0, K, n - 2 * K)])
    X = rng.integers(-2, 3, (n, m)).astype(np.float64)
    if counts:
        X = rng.poisson(rng.choice([0.5, 2.0, 30.0]), (n, m)).astype(np.float64)
    if rng.random() < 0.3:
        X[:, -1] = X[:, 0]
    if rng.random() < 0.3:
        X[:, 1] = 0 if counts else 3
    elif rng.random() < 0.3:  # the same in each class
        X[:, 1] = np.concatenate([np.tile([0, 1], K), np.full(n - 2 * K, 0.5)]) * 2
    weights = rng.integers(1, 4, n).astype(np.float64) if rng.random() < 0.5 else None
    how = str(rng.choice(["fit", "partial_fit", "merge"]))
    if not counts and how == "fit":  # (means of parts are rounded before they are merged)
        X = X + rng.choice([0, 1e8, 2.0**27])
    cuts = [0, n] if how == "fit" else [0, *sorted({int(rng.integers(1, n)) for _ in "ab"}), n]
    return Problem(X, y, weights, how, cuts, [str(rng.choice(FORMS)) for _ in cuts[1:]])


def attack(rng: np.random.Generator, report: Report) -> None:
    kind = str(rng.choice(["poisson", "gaussian", "shrunken"]))
    problem = draw(rng, counts=kind == "poisson")
    if kind == "shrunken":
        _shrunken(rng, problem, report)
        return
    X, y, s = problem.X, problem.y, problem.weights
    if kind == "poisson":
        alpha, scale = float(rng.choice([1.0, 0.5, 2.0])), rng.choice([None, "dispersion"])
        exposure = str(rng.choice(["total", "unit"]))
        e = X.sum(axis=1) if exposure == "total" else np.ones(len(y))
        truth = exact_poisson(X, y, e, Fraction(alpha), s, dispersion=scale is not None)
        exposure = exposure if exposure == "total" else None
        model = SparsePoissonNB(alpha=alpha, exposure=exposure, scale=scale)
    else:
        pooling, ddof = float(rng.choice([0, 0.25, 0.5, 1])), int(rng.integers(2))
        truth = exact_gaussian(X, y, Fraction(pooling), Fraction(1, 64), ddof, s)
        model = SparseGaussianNB(pooling=pooling, var_smoothing=1 / 64, ddof=ddof)
    text = again(problem, model)
    problem.fitted(model)
    report.count(f"{kind} problems")
    found = model.scores_.tolist()
    for i, (a, b) in enumerate(zip(found, truth.gain, strict=True)):
        if abs(a - b) > b * Fraction(1, 10**9) + Fraction(1, 10**13) or (b == 0 and a != 0):
            report.fail(f"{kind}: gain", text, f"# feature {i}: {a!r}, exactly {float(b)!r}")
    for k, support in truth.supports.items():
        report.count("supports")
        short, close = model.with_k(k), sorted(map(float, truth.gain), reverse=True)
        if tuple(short.support_.tolist()) != support:
            near = k < len(close) and close[k - 1] - close[k] < 1e-11 * close[k]
            if near:
                report.count("supports at the edge of the ranking key")
            else:
                line = f"# {short.support_.tolist()}, exactly {support}"
                report.fail(f"{kind}: support", text, f"model.with_k({k})", line)
        value = float(truth.loss + sum(g for i, g in enumerate(truth.gain) if i not in support))
        if abs(short.objective_ - value) > 1e-9 * (1 + abs(value)):
            report.fail(f"{kind}: objective", text, f"# {short.objective_!r}, exactly {value!r}")


def _shrunken(rng: np.random.Generator, problem: Problem, report: Report) -> None:
    X, y, s = problem.X, problem.y, problem.weights
    model = ShrunkenCentroidClassifier()
    text = again(problem, model)
    problem.fitted(model)
    report.count("shrunken problems")
    size = float(np.abs(X).max())
    for k in range(1, X.shape[1] + 1):
        last = k == X.shape[1]
        truth = exact_shrunken(X, y, None if last else k, weights=s)
        short = model.with_k("all" if last else k)
        report.count("supports")
        if tuple(short.support_.tolist()) != truth.support:
            line = f"# {short.support_.tolist()}, exactly {truth.support}"
            report.fail("shrunken: support", text, f"model.with_k({k})", line)
            continue
        centroids = np.array(truth.centroids, dtype=float)[:, list(truth.support)]
        if not np.allclose(short.centers_, centroids, rtol=0, atol=1e-9 + 1e-15 * size):
            report.fail(
                "shrunken: centroids", text, f"model.with_k({k}).centers_", f"# {centroids}"
            )
