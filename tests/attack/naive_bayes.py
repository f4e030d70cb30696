"""Naive Bayes against 50 digits and all supports, and against scikit-learn's with all features."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
from exact import fractions
from exact_bayes import DIGITS, exact_bernoulli, exact_multinomial, log, sums, times
from sklearn.naive_bayes import BernoulliNB, MultinomialNB

from gpucenters import SparseBernoulliNB, SparseMultinomialNB

from .problems import EPS, Problem, again, draw, put
from .ranking import check_ranking
from .report import Report

PROBLEMS = 800
ALPHAS = [1.0, 1.0, 0.1, 0.5, 10.0, 1e-5, 1e-10, 0.0, 1e6]


def attack(rng: np.random.Generator, report: Report) -> None:
    problem = draw(rng, most=7)
    X = np.abs(problem.X.astype(np.float64))
    m = X.shape[1]
    kind = rng.choice(["drawn", "counts", "rare", "bits", "one"])
    if kind != "drawn":
        X = rng.poisson(0.3 if kind == "rare" else 2, X.shape).astype(np.float64)
        X = np.minimum(X, 1) if kind == "bits" else X
        if kind == "one":  # one feature a row
            X = np.eye(m)[rng.integers(0, m, len(X))]
        X *= 10.0 ** rng.choice([0, 0, 0, 0, -30, 30, 5])
    problem.X = X
    alpha = float(rng.choice(ALPHAS))
    priors = {"fit_prior": bool(rng.random() < 0.5)}
    if rng.random() < 0.3:
        priors["class_prior"] = rng.dirichlet(np.ones(problem.K) * 3).tolist()
    if rng.random() < 0.5:
        _multinomial(problem, alpha, priors, report)
    else:
        _bernoulli(problem, alpha, priors, report)


def _log_prior(problem: Problem, priors: dict) -> list[Decimal]:
    if "class_prior" in priors:
        return [Decimal(p).ln() for p in priors["class_prior"]]
    weight = sums(problem.X, problem.y, problem.weights)[0]
    return [log(w / sum(weight)) if priors["fit_prior"] else Decimal(0) for w in weight]


def _compare(model: object, peer: object, problem: Problem, text: str, report: Report) -> None:
    """Log probabilities with all features, where those of scikit-learn are accurate."""
    if peer.alpha < 0.1:
        return
    peer.fit(problem.X, problem.y, sample_weight=problem.weights)
    ours = model.predict_log_proba(put(problem.X, problem.forms[0]))
    theirs = peer.predict_log_proba(problem.X)
    joint = np.abs(peer.predict_joint_log_proba(problem.X)).max()
    size = max(1, joint, problem.X.sum(axis=1).max() * isinstance(peer, MultinomialNB))
    if not np.allclose(ours, theirs, rtol=1e-7, atol=max(1e-8, 1e-13 * size)):
        report.fail(f"{type(peer).__name__} differs", text, f"# by {np.abs(ours - theirs).max()}")


def _check_rows(
    model: object,
    scores: list[list[Decimal]],
    sizes: list[Decimal],
    problem: Problem,
    text: str,
    report: Report,
) -> None:
    """Predictions of rows with these exact scores, which are sums of terms of these sizes."""
    found = model.predict(put(problem.X, problem.forms[0])).tolist()
    for row, (score, size) in enumerate(zip(scores, sizes, strict=True)):
        best = max(range(problem.K), key=lambda c: (score[c], -c))
        report.count("predictions")
        gap = score[best] - score[found[row]]
        if found[row] == best or gap <= size * Decimal("1e-13"):
            continue
        line = f"# row {row}: {found[row]}, exactly {best}; gap {float(gap)} of {float(size)}"
        report.fail(f"{type(model).__name__}: prediction", text, f"model.with_k({model.k!r})", line)


def _bernoulli(problem: Problem, alpha: float, priors: dict, report: Report) -> None:
    model = SparseBernoulliNB("all", alpha=alpha, **priors)
    text = again(problem, model)
    problem.fitted(model)
    report.count("Bernoulli problems")
    bits, m = (problem.X > 0).astype(int), problem.X.shape[1]
    smooth = Fraction(max(alpha, 1e-10))
    truth = exact_bernoulli(bits, problem.y, m, smooth, problem.weights)
    weight, total = sums(bits, problem.y, problem.weights)
    s = fractions(np.ones(len(bits)) if problem.weights is None else problem.weights)
    whole = all(v.denominator == 1 for v in s)
    # Sums of real weights, and sums with alpha, are rounded.
    size = sum(weight) + len(weight) * 2 * smooth
    slack = []
    for i, g in enumerate(truth.gain):
        root = Fraction(float(max(g, 0) * size) ** 0.5)
        q = (sum(t[i] for t in total) + len(weight) * smooth) / size
        u = len(s) * EPS / min(q, 1 - q) * (0 if whole and alpha == 1 else 1)
        slack.append((4 * u * root + 4 * u * u * size, size / 10**12))
    loss = -Fraction(next(iter(truth.digits.values())))
    free = [[None] * m for _ in weight]
    check_ranking(
        model, SimpleNamespace(gain=truth.gain, free=free, objective=loss), slack, text, report
    )
    _compare(model, BernoulliNB(alpha=max(alpha, 1e-10), **priors), problem, text, report)
    with localcontext() as context:
        context.prec = DIGITS
        k = int(m // 2) or 1
        model, K = model.with_k(k), problem.K
        D = model.support_.tolist()
        theta = [
            [
                [
                    log((total[c][i] + smooth) / (weight[c] + 2 * smooth)),
                    log((weight[c] - total[c][i] + smooth) / (weight[c] + 2 * smooth)),
                ]
                for i in D
            ]
            for c in range(K)
        ]
        prior = _log_prior(problem, priors)
        scores = [
            [prior[c] + sum(theta[c][a][1 - row[i]] for a, i in enumerate(D)) for c in range(K)]
            for row in bits.tolist()
        ]
        sizes = [sum(abs(t) for c in theta for pair in c for t in pair) + 1] * len(scores)
        _check_rows(model, scores, sizes, problem, text, report)


def _multinomial(problem: Problem, alpha: float, priors: dict, report: Report) -> None:
    model = SparseMultinomialNB("all", alpha=alpha, **priors)
    text = again(problem, model)
    problem.fitted(model)
    m, K, smooth = problem.X.shape[1], problem.K, Fraction(max(alpha, 1e-10))
    report.count("multinomial problems")
    _compare(model, MultinomialNB(alpha=max(alpha, 1e-10), **priors), problem, text, report)
    total = sums(problem.X, problem.y, problem.weights)[1]
    f = [[t + smooth for t in row] for row in total]
    g = [sum(row[i] for row in f) for i in range(m)]
    with localcontext() as context:
        context.prec = DIGITS
        plain = sum(times(v, log(v / sum(g))) for v in g)  # the likelihood without free features
        likelihood, psi = {}, {}
        for k in range(1, m + 1):
            short = model.with_k(k)
            report.count("multinomial supports")
            every = exact_multinomial(problem.X, problem.y, k, smooth, problem.weights).digits
            best, own = max(every.values()), every[tuple(short.support_.tolist())]
            gap, name = Decimal(short.gap_), f"model.with_k({k})"
            # Gains are at most this; their rounding is relative, and that of the sums quadratic.
            gain, mass = max(best - plain, Decimal(0)), times(sum(g), Decimal(1))
            close = (
                gain * Decimal("1e-10")
                + (gain * mass).sqrt() * Decimal("1e-15")
                + mass * Decimal("1e-28")
            )
            likelihood[k], psi[k] = best, own + gap
            if not gap >= 0:
                report.fail("negative gap", text, name, f"# {gap}")
            if best - own > gap + close:
                report.fail("gap claims too much", text, name, f"# lost {best - own}, gap {gap}")
            if best - own > close:
                report.count("supports that are not the best, by a positive gap")
            bounds = Decimal(float(short.lower_bound_)), Decimal(float(short.upper_bound_))
            rounding = abs(own) * Decimal("1e-12") + close + mass * Decimal("1e-14")
            if abs(bounds[0] - own) > rounding or abs(bounds[1] - own - gap) > rounding:
                report.fail("bounds", text, name, f"# {bounds}, exactly {own}, {own + gap}")
            if abs(Decimal(float(short.objective_)) + own) > rounding:
                report.fail("objective", text, name, f"# {short.objective_}, exactly {-own}")
            # The sharper form of Theorem 3.
            loose = k > K - 1 and psi[k - K + 1] > best + close
            if loose and gain < mass * Decimal("1e-12"):
                report.count("bounds above Theorem 3, of next to no gain")
            elif loose:
                line = f"# {psi[k - K + 1] - plain} above {gain}"
                report.fail("upper bound above that of Theorem 3", text, name, line)
            if k == (m + 1) // 2:
                _multinomial_rows(short, problem, f, g, priors, text, report)


def _multinomial_rows(
    model: SparseMultinomialNB,
    problem: Problem,
    f: list,
    g: list,
    priors: dict,
    text: str,
    report: Report,
) -> None:
    D = model.support_.tolist()
    B = [sum(row[i] for i in D) for row in f]
    theta = [[log(sum(B) * row[i] / (b * g[i])) for i in D] for row, b in zip(f, B, strict=True)]
    prior = _log_prior(problem, priors)
    rows = fractions(problem.X)
    scores = [
        [
            p + sum(times(x[i], t) for i, t in zip(D, row, strict=True))
            for p, row in zip(prior, theta, strict=True)
        ]
        for x in rows
    ]
    # The terms of the scores: for two classes the common part is left out.
    own = (
        theta
        if problem.K == 2
        else [[log(g[i] / sum(g)) + t for i, t in zip(D, row, strict=True)] for row in theta]
    )
    sizes = [
        1
        + max(sum(times(x[i], 1 + abs(t)) for i, t in zip(D, row, strict=True)) for row in own)
        * (len(D) > 1 or problem.K > 2)
        for x in rows
    ]
    _check_rows(model, scores, sizes, problem, text, report)
