"""Mahalanobis centers against 60 digits, and scikit-learn's linear discriminant analysis.

The covariance is exact, its inverse root is found by Newton's iteration in 60 digits. Rounding of
float64 is amplified by the condition of the covariance: no more than that is allowed here.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np
from exact import fractions
from exact_bayes import times
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from gpucenters import MahalanobisCenterClassifier

from .problems import Problem, again, draw, put, queries
from .report import Report

PROBLEMS = 1500
EPS = 2.0**-52
DIGITS = 60


def _product(A: list, B: list) -> list:
    return [
        [sum(a * b for a, b in zip(row, col, strict=True)) for col in zip(*B, strict=True)]
        for row in A
    ]


def _inverse(A: list) -> list:
    """Gauss-Jordan elimination with pivots."""
    m = len(A)
    rows = [list(row) + [Decimal(i == j) for j in range(m)] for i, row in enumerate(A)]
    for i in range(m):
        pivot = max(range(i, m), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [v / rows[i][i] for v in rows[i]]
        for j in range(m):
            if j != i:
                rows[j] = [a - rows[j][i] * b for a, b in zip(rows[j], rows[i], strict=True)]
    return [row[m:] for row in rows]


def _inverse_root(S: list) -> list:
    """The symmetric root of the inverse, by the iteration of Denman and Beavers."""
    m = len(S)
    size = sum(S[i][i] for i in range(m)) / m
    Y = [[v / size for v in row] for row in S]
    Z = [[Decimal(i == j) for j in range(m)] for i in range(m)]
    for _ in range(200):
        new = [
            [(a + b) / 2 for a, b in zip(r, t, strict=True)]
            for r, t in zip(Y, _inverse(Z), strict=True)
        ]
        Z = [
            [(a + b) / 2 for a, b in zip(r, t, strict=True)]
            for r, t in zip(Z, _inverse(Y), strict=True)
        ]
        change = max(
            abs(a - b) for r, t in zip(Y, new, strict=True) for a, b in zip(r, t, strict=True)
        )
        Y = new
        if change < Decimal(10) ** (12 - DIGITS):
            break
    return [[v / size.sqrt() for v in row] for row in Z]


def _moments(problem: Problem) -> tuple[list, list, list]:
    """(weights, means, scatter within the classes) as fractions."""
    X, K, m = fractions(problem.X), problem.K, problem.X.shape[1]
    s = [Fraction(1)] * len(X) if problem.weights is None else fractions(problem.weights)
    y = problem.y.tolist()
    weight = [sum(v for v, label in zip(s, y, strict=True) if label == c) for c in range(K)]
    mean = [[Fraction(0)] * m for _ in range(K)]
    for row, c, v in zip(X, y, s, strict=True):
        mean[c] = [a + v * x / weight[c] for a, x in zip(mean[c], row, strict=True)]
    R = [[Fraction(0)] * m for _ in range(m)]
    for row, c, v in zip(X, y, s, strict=True):
        d = [x - a for x, a in zip(row, mean[c], strict=True)]
        R = [[R[i][j] + v * d[i] * d[j] for j in range(m)] for i in range(m)]
    return weight, mean, R


def _covariance(problem: Problem, model: MahalanobisCenterClassifier, moments: tuple) -> list:
    weight, mean, R = moments
    W, m = sum(weight), len(R)
    divisor = W - problem.K if model.shrinkage != "ledoit-wolf" else W
    if isinstance(model.covariance, str) and model.covariance == "total":
        grand = [
            sum(w * a for w, a in zip(weight, col, strict=True)) / W
            for col in zip(*mean, strict=True)
        ]
        divisor = W - 1
        for w, row in zip(weight, mean, strict=True):
            d = [a - g for a, g in zip(row, grand, strict=True)]
            R = [[R[i][j] + w * d[i] * d[j] for j in range(m)] for i in range(m)]
    S = [[v / divisor for v in row] for row in R]
    if not isinstance(model.covariance, str):
        S = fractions(model.covariance)
    amount = Fraction(float(model.shrinkage_))
    ridge = amount * sum(S[i][i] for i in range(m)) / m
    return [[(1 - amount) * S[i][j] + (ridge if i == j else 0) for j in range(m)] for i in range(m)]


def attack(rng: np.random.Generator, report: Report) -> None:
    problem = draw(rng, most=5)
    m = problem.X.shape[1]
    covariance = ["pooled", "pooled", "total", None][rng.integers(4)]
    shrinkage = [None, float(rng.random()), "ledoit-wolf"][rng.integers(3)]
    covariance = "pooled" if shrinkage == "ledoit-wolf" else covariance
    if covariance is None:
        B = rng.standard_normal((m, m + 2))
        covariance = (B @ B.T).tolist()
    priors = ["uniform", "empirical"][rng.integers(2)]
    model = MahalanobisCenterClassifier(
        "all", covariance=covariance, shrinkage=shrinkage, priors=priors
    )
    text = again(problem, model)
    moments = _moments(problem)
    weight, mean, R = moments
    spread = [float(R[i][i] / sum(weight)) ** 0.5 for i in range(m)]
    largest = np.abs(problem.X.astype(np.float64)).max(axis=0)
    # What residuals lose in digits: the largest value against the spread within the classes.
    digits = max(a / b if b else 1e300 for a, b in zip(largest, spread, strict=True))
    try:
        problem.fitted(model)
        model.objective_  # noqa: B018
    except ValueError as error:
        S = np.array([[float(v) for v in row] for row in R])
        values = np.linalg.eigvalsh(S)
        few = sum(weight) - problem.K <= 0
        near = values[0] <= 1e4 * m * EPS * values[-1] or digits > 1e6
        if few or ("singular" in str(error) and near):
            report.count("singular")
        elif "fourth powers" in str(error) and not 1e-50 < max(spread) < 1e50:
            report.count("fourth powers outside of float64")
        else:
            report.fail("error", text, f"# {error}")
        return
    with localcontext() as context:
        context.prec = DIGITS
        S = [[times(v, Decimal(1)) for v in row] for row in _covariance(problem, model, moments)]
        values = np.linalg.eigvalsh(np.array(S, dtype=float))
        condition = max(values[-1] / max(values[0], 1e-300), 1)
        close = 16 * EPS * (digits + m) * condition
        if close > 1e-2:
            report.count("too ill-conditioned to compare")
            return
        report.count("problems")
        found = np.asarray(model.covariance_)
        if not np.allclose(found, np.array(S, float), rtol=0, atol=close * values[-1]):
            report.fail("covariance", text, f"# {found.tolist()}")
        root = _inverse_root(S)
        means = [[times(v, Decimal(1)) for v in row] for row in mean]
        tied = [sum(col) / problem.K for col in zip(*means, strict=True)]
        away = [[a - t for a, t in zip(row, tied, strict=True)] for row in means]
        deviation = _product(away, root)
        gain = [float(sum(v * v for v in col)) for col in zip(*deviation, strict=True)]
        scores = np.asarray(model.scores_)
        slack = close * (sum(gain) + sum(gain) ** 0.5 + close)
        if not np.allclose(scores, gain, rtol=0, atol=slack):
            report.fail("gains", text, f"# {scores.tolist()}, exactly {gain}")
        order = model.ranking_.tolist()
        for a, b in pairwise(order):
            if gain[b] > gain[a] + 2 * slack:
                report.fail("ranking", text, f"# gains {gain}")
        inverse = _product(root, root)
        B = _mean_scatter(problem, moments)
        loss = float(
            sum(inverse[i][j] * times(B[i][j], Decimal(1)) for i in range(m) for j in range(m))
        )
        for k in range(1, m + 1):
            value = loss + sum(gain[i] for i in order[k:])
            short = model.with_k(k)
            if abs(short.objective_ - value) > 4 * close * (loss + sum(gain)) + 1e-10 * value:
                report.fail("objective", text, f"# k={k}: {short.objective_}, exactly {value}")
        _check_predictions(rng, problem, model, root, deviation, tied, weight, close, text, report)
    _compare(problem, moments, condition, digits, text, report)


def _mean_scatter(problem: Problem, moments: tuple) -> list:
    """The sum of the scatter of each class divided by its weight."""
    weight, mean, R = moments
    m = len(R)
    B = [[Fraction(0)] * m for _ in range(m)]
    s = [Fraction(1)] * len(problem.y) if problem.weights is None else fractions(problem.weights)
    for row, c, v in zip(fractions(problem.X), problem.y.tolist(), s, strict=True):
        d = [x - a for x, a in zip(row, mean[c], strict=True)]
        B = [[B[i][j] + v / weight[c] * d[i] * d[j] for j in range(m)] for i in range(m)]
    return B


def _check_predictions(
    rng: np.random.Generator,
    problem: Problem,
    model: MahalanobisCenterClassifier,
    root: list,
    deviation: list,
    tied: list,
    weight: list,
    close: float,
    text: str,
    report: Report,
) -> None:
    k = int(rng.integers(1, len(root) + 1))
    model = model.with_k(k)
    D, Q = model.support_.tolist(), queries(rng, problem)
    logs = [Decimal(0)] * problem.K
    if model.priors == "empirical":
        logs = [2 * (times(w, Decimal(1)) / times(sum(weight), Decimal(1))).ln() for w in weight]
    predicted = model.predict(put(Q, problem.forms[0])).tolist()
    for row, found in zip(fractions(Q), predicted, strict=True):
        x = [times(v, Decimal(1)) - t for v, t in zip(row, tied, strict=True)]
        z = _product([x], root)[0]
        score = [
            p - sum((z[i] - d[i]) ** 2 for i in D) for p, d in zip(logs, deviation, strict=True)
        ]
        best = max(range(problem.K), key=lambda c: (score[c], -c))
        report.count("predictions")
        # Twice the differences of the two centers, times the distance of x from their midpoint.
        a, b = deviation[found], deviation[best]
        size = sum(abs(a[i] - b[i]) for i in range(len(z))) * sum(
            abs(z[i] - (a[i] + b[i]) / 2) + abs(a[i] - b[i]) for i in range(len(z))
        )
        gap = float(score[best] - score[found])
        if found != best and gap > 2 * close * (float(size) + 1):
            far = float(-min(score)) > 1e6 * (float(size) + 1)
            kind = "far class" if far else "near classes"
            line = f"# k={k}, {[float(v) for v in row]}: {found}, exactly {best}; gap {gap:.3g}"
            report.fail(f"prediction, {kind}, {min(problem.K, 3)} classes", text, line)


def _compare(
    problem: Problem, moments: tuple, condition: float, digits: float, text: str, report: Report
) -> None:
    """Probabilities of scikit-learn, whose covariance is divided by the number of samples."""
    weight, _, R = moments
    if problem.weights is not None or digits > 1e5:
        return
    S = np.array([[float(v / sum(weight)) for v in row] for row in R])
    if np.linalg.cond(S) > 1e5:
        return
    report.count("compared with scikit-learn")
    X = problem.X.astype(np.float64)
    peer = LinearDiscriminantAnalysis(solver="lsqr").fit(X, problem.y)
    ours = MahalanobisCenterClassifier(covariance=S, priors="empirical").fit(X, problem.y)
    theirs, found = peer.predict_log_proba(X), ours.predict_log_proba(X)
    size = max(1, np.abs(theirs).max())
    if not np.allclose(np.exp(found), np.exp(theirs), rtol=0, atol=1e-9 * digits * size):
        report.fail("scikit-learn's probabilities differ", text)
