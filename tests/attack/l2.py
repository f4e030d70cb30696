"""l2 centers against exact fractions: gains, rankings, objectives for all k, and predictions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from exact import Exact, exact_l2, fractions, variance

from gpucenters import L2CenterClassifier

from .problems import EPS, Problem, again, draw, put, queries
from .ranking import check_ranking
from .report import Report

PROBLEMS = 4000


def attack(rng: np.random.Generator, report: Report) -> None:
    problem = draw(rng)
    scale = [None, None, "std", "pooled"][rng.integers(4)]
    given = (rng.dirichlet(np.ones(problem.K)) * 0.9 + 0.1 / problem.K).tolist()
    priors = ["uniform", "uniform", "empirical", given][rng.integers(4)]
    model = L2CenterClassifier("all", scale=scale, priors=priors)
    text = again(problem, model)
    try:
        problem.fitted(model)
        model.objective_  # noqa: B018
    except (ValueError, AttributeError) as error:
        weight = len(problem.y) if problem.weights is None else sum(fractions(problem.weights))
        if "pooled" in str(error) and weight - problem.K <= Fraction(1, 10**9):
            report.count("pooled without degrees of freedom")
        else:
            report.fail("error", text, f"# {error}")
        return
    report.count("problems")
    squares = None
    if scale:
        squares = [Fraction(float(v)) ** 2 for v in model.scale_]
        _check_scale(problem, model, squares, text, report)
    truth = exact_l2(problem.X, problem.y, problem.X.shape[1], problem.weights, squares)
    slack = _slack(problem, truth)
    check_ranking(model, truth, slack, text, report)
    _check_predictions(rng, problem, model, truth, text, report)


def _slack(problem: Problem, truth: Exact) -> list[tuple[Fraction, Fraction]]:
    """What rounded means may change of each gain and of each term of the loss."""
    K, n = problem.K, len(problem.y)
    spread, found = Fraction(math.sqrt(truth.objective)), []
    for size, gain, d in zip(problem.size, truth.gain, truth.divisor, strict=True):
        error = 8 * n * EPS * size
        root = Fraction(math.sqrt(gain * d)) + error
        change = Fraction(0) if problem.whole else 2 * K * error * (root + error) / d
        found.append((change, error * error * n / d + error * spread / Fraction(math.sqrt(d))))
    return found


def _check_scale(
    problem: Problem, model: L2CenterClassifier, found: list, text: str, report: Report
) -> None:
    """The exact variance, but where it is of the size of rounding."""
    scale = model.scale
    wanted = variance(problem.X, problem.y, problem.weights, scale)
    gains = np.asarray(model.scores_)
    for i, (v, size) in enumerate(zip(wanted, problem.size, strict=True)):
        if (
            v == 1
            and scale == "std"
            and np.ptp(problem.X[:, i]) == 0
            and gains[i] > 1e-9 * max(gains)
        ):
            report.fail("gain of a constant feature under a scale", text, f"# feature {i}")
        rounding = len(problem.y) * EPS * size * Fraction(math.sqrt(v))
        if abs(found[i] - v) <= v / 10**9 + rounding:
            continue
        s = np.ones(1) if problem.weights is None else problem.weights[problem.weights > 0]
        if v == 1 or v <= (100 * len(problem.y) * EPS * size) ** 2:
            report.count("scales of constant features")
        elif s.max() > 1e6 * s.min():
            report.count("scales of weights that differ by more than 1e6")
        else:
            report.fail(f"scale {scale}", text, f"# feature {i}: {float(found[i])}, {float(v)}")


def _check_predictions(
    rng: np.random.Generator,
    problem: Problem,
    model: L2CenterClassifier,
    truth: Exact,
    text: str,
    report: Report,
) -> None:
    k = int(rng.integers(1, problem.X.shape[1] + 1))
    model = model.with_k(k)
    D, K = model.support_.tolist(), problem.K
    Q, form = queries(rng, problem), problem.forms[0]
    prior = None if model.priors == "uniform" else model.priors
    if prior == "empirical":
        prior = np.bincount(problem.y, problem.weights)
        prior = prior / prior.sum()
    logs = [Fraction(0)] * K if prior is None else [Fraction(2 * math.log(p)) for p in prior]
    predicted = model.predict(put(Q, form))
    for x, found in zip(fractions(Q), predicted.tolist(), strict=True):
        terms = [[(x[i] - row[i]) ** 2 / truth.divisor[i] for i in D] for row in truth.free]
        score = [log - sum(t) for t, log in zip(terms, logs, strict=True)]
        best = max(range(K), key=lambda c: (score[c], -c))
        report.count("predictions")
        if found == best:
            continue
        # What float64 may do to the difference of the two scores, evaluated on its own.
        pair = (truth.free[found], truth.free[best])
        a, b = pair
        n = len(problem.y)
        size = [abs(x[i]) if problem.sparse else abs(x[i] - (a[i] + b[i]) / 2) for i in D]
        parts = [2 * abs(a[i] - b[i]) * u / truth.divisor[i] for i, u in zip(D, size, strict=True)]
        rounding = 8 * EPS * (sum(parts) + 2 * max(map(abs, logs)))
        for i in D:
            for row in pair:
                u = EPS * abs(row[i]) if problem.whole else 4 * n * EPS * problem.size[i]
                rounding += (2 * abs(x[i] - row[i]) + u) * u / truth.divisor[i]
        gap = score[best] - score[found]
        exact = prior is None and model.scale is None and _representable(problem, truth, x, D)
        kind = "tie" if gap == 0 else "prediction"
        apart = sum((a[i] - b[i]) ** 2 / truth.divisor[i] for i in D)
        far = "far class" if max(logs) - min(score) > 10**6 * apart else "near classes"
        lines = (
            text,
            f"model.with_k({k}).predict(put(np.array([{list(map(float, x))}]), {form!r}))",
            f"# {found}, exactly {best}; gap {float(gap):.3g} of {float(abs(score[best])):.3g}",
        )
        if exact:
            report.fail(f"{kind}, exact in float64, {min(K, 3)} classes", *lines)
        elif gap > rounding:
            report.fail(f"{kind}, {far}, {min(K, 3)} classes", *lines)
        else:
            report.count(f"{kind} within rounding")


def _representable(problem: Problem, truth: Exact, x: list, D: list) -> bool:
    """Whether float64 holds all means, and the sums of the difference of any two scores."""
    units = {row[i].denominator for row in [*truth.free, x] for i in D}
    if any(u & (u - 1) for u in units):
        return False
    unit = max(units)
    if any(abs(row[i]) * unit >= 2**53 for row in [*truth.free, x] for i in D):
        return False
    for a in truth.free:
        for b in truth.free:
            parts = [
                2
                * abs(a[i] - b[i])
                * (
                    abs(x[i]) + abs(a[i] + b[i]) / 2
                    if problem.sparse
                    else abs(x[i] - (a[i] + b[i]) / 2)
                )
                for i in D
            ]
            if sum(parts) * unit * unit * 2 >= 2**53:
                return False
    return problem.whole
