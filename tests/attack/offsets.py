"""Scores of Gaussian naive Bayes at offsets, dense and sparse, against 50 digits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from exact_densities import exact_gaussian_scores

from gpucenters import SparseGaussianNB
from gpucenters.estimators.path_predictions import predict_path

from .problems import FORMS, Problem, again, put
from .report import Report

PROBLEMS = 3000


def draw(rng: np.random.Generator) -> Problem:
    """Values on a grid, so that class sums are exact, with means up to 1e12 steps from zero."""
    K, m = int(rng.integers(2, 5)), int(rng.integers(1, 5))
    n = int(rng.integers(2 * K + 1, 16))
    y = rng.permutation(np.concatenate([np.repeat(np.arange(K), 2), rng.integers(0, K, n - 2 * K)]))
    X = rng.integers(-3, 4, (n, m)).astype(np.float64)
    for i in range(m):
        kind = rng.choice(["few", "offset", "class", "negative"], p=[0.3, 0.4, 0.2, 0.1])
        offset = np.round(10.0 ** rng.uniform(0, 12)) * (-1 if kind == "negative" else 1)
        if kind == "few":
            X[:, i] *= rng.random(n) < 0.4
        else:
            X[:, i] += rng.integers(0, 4, K)[y] + offset
        if kind == "class":  # the others are at zero
            X[:, i] = np.where(y == rng.integers(K), X[:, i], X[:, i] - offset)
        if kind == "offset" and rng.random() < 0.3:  # some values are missing
            X[:, i] *= rng.random(n) < 0.9
    if not np.ptp(X, axis=0).any():
        return draw(rng)
    X = X * 2.0 ** rng.integers(-20, 21, m)
    return Problem(X, y, None, "fit", [0, n], [str(rng.choice(FORMS))])


def attack(rng: np.random.Generator, report: Report) -> None:
    problem = draw(rng)
    pooling = float(rng.choice([0, 0.25, 1]))
    model = SparseGaussianNB(pooling=pooling, var_smoothing=2.0**-20)
    text = again(problem, model)
    problem.fitted(model)
    X, m = problem.X, problem.X.shape[1]
    near = X[rng.integers(len(X), size=3)] + X.std(axis=0) * rng.integers(-2, 3, (3, m))
    rows = np.concatenate([X[:4], near, X[rng.integers(len(X), size=2)] * (rng.random(m) < 0.5)])
    truth, bounds = exact_gaussian_scores(X, problem.y, rows, Fraction(pooling), Fraction(1, 2**20))
    for form in ("C", "csr_array", "csc_matrix"):
        report.count(f"rows, {form}", len(rows))
        asked = put(rows, form)
        joint, codes = model.predict_joint_log_proba(asked), model.predict(asked)
        scores = model.decision_function(asked)
        line = f"model.decision_function(put(np.array({rows.tolist()}), {form!r}))"
        for j, (exact, bound) in enumerate(zip(truth, bounds, strict=True)):
            gaps = [float(a - exact[0]) for a in exact]
            both = [a + b for a, b in zip(bound, [bound[0]] * len(bound), strict=True)]
            found = [0.0, scores[j]] if problem.K == 2 else (scores[j] - scores[j][0]).tolist()
            if any(abs(a - b) > e for a, b, e in zip(found, gaps, both, strict=True)):
                report.fail(f"scores, {form}", text, line, f"# row {j}: {found}, exactly {gaps}")
            if np.any(abs(joint[j] - np.array(exact, float)) > bound):
                report.fail(f"joint, {form}", text, line, f"# row {j}: {joint[j]}")
            best = max(range(problem.K), key=lambda c: (exact[c], -c))
            if exact[best] - exact[codes[j]] > bound[best] + bound[codes[j]]:
                report.fail(f"predictions, {form}", text, line, f"# row {j}: not {best}")
        ks = list(range(1, m + 1))
        path = predict_path(model, asked, ks, decision=True)
        for k, codes, values in zip(ks, path.codes, path.decision, strict=True):
            short = model.with_k(k)
            report.count("k of paths")
            if not np.array_equal(short.predict(asked), codes):
                report.fail(f"path, {form}", text, line, f"# k={k}")
            there = short.decision_function(asked).reshape(values.shape)
            if not np.allclose(there, values, rtol=1e-9, atol=1e-9):
                report.fail(f"scores of a path, {form}", text, line, f"# k={k}")
