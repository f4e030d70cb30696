"""The checks that l2, l1 and Bernoulli share: gains, ranking and the objective for every k."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from .report import Report

KEY = Fraction(1, 2**38)  # the ranking key has 40 significant bits
CLOSE = Fraction(1, 10**9)


def check_ranking(
    model: Any, truth: Any, slack: list[tuple[Fraction, Fraction]], text: str, report: Report
) -> None:
    """Compare a model with k="all" with the exact gains, rankings and objectives.

    ``slack`` has, for each feature, what rounding of the data's sums may change of its gain and of
    its part of the loss; 0 where sums are exact.
    """
    gain, m = truth.gain, len(truth.gain)
    classes = min(len(truth.free), 3)
    loss = truth.objective  # of all features free
    found = [Fraction(float(g)) for g in model.scores_]
    for i in range(m):
        if abs(found[i] - gain[i]) > gain[i] * KEY + slack[i][0]:
            want = f"# feature {i}: {float(found[i])!r}, exactly {float(gain[i])!r}"
            report.fail(f"gain, {classes} classes", text, "model.scores_", want)
    order = model.ranking_.tolist()
    shown = (text, "model.ranking_", f"# gains {[float(g) for g in gain]}")
    for place, a in enumerate(order):
        for b in order[place + 1 :]:
            if gain[a] == gain[b] and a > b:
                if slack[a][0] or slack[b][0]:
                    report.count("ties of rounded gains")
                else:
                    report.fail(f"tie of gains, {classes} classes", *shown)
            elif gain[b] - gain[a] > gain[b] * KEY + slack[a][0] + slack[b][0]:
                report.fail(f"ranking, {classes} classes", *shown)
    for k in range(1, m + 1):
        short = model.with_k(k)
        if short.support_.tolist() != sorted(order[:k]):
            report.fail("support is not the head of the ranking", text, f"model.with_k({k})")
        rest = [i for i in range(m) if i not in order[:k]]
        value = loss + sum(gain[i] for i in rest)
        allowed = value * CLOSE + sum(s[1] for s in slack) + sum(slack[i][0] for i in rest)
        if abs(Fraction(float(short.objective_)) - value) > allowed:
            line = f"# {short.objective_!r}, exactly {float(value)!r}"
            report.fail("objective", text, f"model.with_k({k}).objective_", line)
