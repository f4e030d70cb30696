"""l1 centers against exact fractions: medians, gains, rankings, objectives, and predictions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from exact import exact_l1, fractions

from gpucenters import L1CenterClassifier

from .problems import EPS, Problem, again, draw, put, queries
from .ranking import check_ranking
from .report import Report

PROBLEMS = 3000


def attack(rng: np.random.Generator, report: Report) -> None:
    problem = draw(rng, streams=False)
    scale = [None, None, "std", "pooled"][rng.integers(4)]
    model = L1CenterClassifier("all", scale=scale)
    text = again(problem, model)
    s = np.ones(len(problem.y)) if problem.weights is None else problem.weights
    try:
        problem.fitted(model)
    except ValueError as error:
        if "pooled" in str(error) and sum(fractions(s)) - problem.K <= Fraction(1, 10**9):
            report.count("pooled without degrees of freedom")
        else:
            report.fail("error", text, f"# {error}")
        return
    # Whether float64 decides what is half of the weight: equal weights count as 1.
    positive = s[s > 0]
    integers = np.array_equal(s, np.round(s)) and s.sum() < 2**53
    weights = (s > 0) * 1 if np.ptp(positive) == 0 else s
    if not integers and np.ptp(positive) > 0:
        report.count("problems of real weights")
    report.count("problems")
    divisor = None if scale is None else [Fraction(float(v)) for v in model.scale_]
    truth = exact_l1(problem.X, problem.y, problem.X.shape[1], weights, divisor)
    exact = np.ptp(positive) == 0 or integers
    # Elsewhere weights within 1e-12 of one half may count as one half.
    slack = [
        (Fraction(0) if exact else size / 10**10 / d,) * 2
        for size, d in zip(problem.size, truth.divisor, strict=True)
    ]
    check_ranking(model, truth, slack, text, report)
    centers = np.asarray(model.centers_)
    if exact:
        for c, i in np.ndindex(*centers.shape):
            if abs(Fraction(float(centers[c, i])) - truth.free[c][i]) > EPS * abs(truth.free[c][i]):
                wanted = float(truth.free[c][i])
                report.fail("center", text, f"# {c}, {i}: {centers[c, i]!r}, exactly {wanted!r}")
    _check_predictions(rng, problem, model, text, report)


def _check_predictions(
    rng: np.random.Generator,
    problem: Problem,
    model: L1CenterClassifier,
    text: str,
    report: Report,
) -> None:
    """Predictions are those of the nearest center, given the model's centers and scales."""
    k = int(rng.integers(1, problem.X.shape[1] + 1))
    model = model.with_k(k)
    D, Q, form = model.support_.tolist(), queries(rng, problem), problem.forms[0]
    theta = fractions(model.centers_)
    scale = [1] * k if model.scale_ is None else [Fraction(float(model.scale_[i])) for i in D]
    for x, found in zip(fractions(Q[:, D]), model.predict(put(Q, form)).tolist(), strict=True):
        distance = [
            sum(abs(a - t) / d for a, t, d in zip(x, row, scale, strict=True)) for row in theta
        ]
        best = min(range(problem.K), key=lambda c: (distance[c], c))
        report.count("predictions")
        if found == best:
            continue
        numbers = [v for row in [x, *theta] for v in row]
        size = sum((abs(a) + max(abs(row[i]) for row in theta)) / scale[i] for i, a in enumerate(x))
        # Dense: each distance is rounded; sparse: the distance of a row of zeros is corrected.
        own = size if problem.sparse else max(distance[found], distance[best])
        own = own if problem.K > 2 or problem.sparse else 2 * own
        rounding = 4 * (k + 2) * EPS * own
        units = {v.denominator for v in numbers}
        exact = model.scale_ is None and all(u & (u - 1) == 0 for u in units)
        exact = exact and size * max(units) * 2 < 2**53
        gap = distance[found] - distance[best]
        kind = "tie" if gap == 0 else "prediction"
        lines = (
            text,
            f"model.with_k({k}).predict(put(np.array([{Q.tolist()}]), {form!r}))",
            f"# of {list(map(float, x))}: {found}, exactly {best}; gap {float(gap):.3g}",
        )
        if exact:
            report.fail(f"{kind}, exact in float64, {min(problem.K, 3)} classes", *lines)
        elif gap > rounding:
            report.fail(f"{kind}, {min(problem.K, 3)} classes", *lines)
        else:
            report.count(f"{kind} within rounding")
