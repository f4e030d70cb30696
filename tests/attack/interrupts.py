"""Interrupted calls: the model equals the one before or after the call, and the call can follow.

An exception is raised at a random line of the package, or by a timer's signal at a random time.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from strategies import quietly
from test_interrupts import FITS, STREAMS, WIDE, X, _interrupted, _state, y

from gpucenters import L2CenterClassifier

from .report import Report

PROBLEMS, CHUNK = 2_000, 200
CALLS = 10  # interrupted calls of one problem
KINDS = [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array]
MODELS = [*FITS, L2CenterClassifier(k=1, scale="pooled", priors="empirical")]


def _bits(statistics: Any) -> list[Any]:
    found = [np.asarray(a).tobytes() for _, _, a in statistics._arrays()]
    return [*found, list(statistics.class_weight), list(statistics.count)]


@cache
def _case(which: int, action: str, kind: int, wide: bool) -> tuple[Any, Any, Any, Any]:
    """(make an object, call it, its state, data) of one kind of call."""
    model = MODELS[which]
    wide = wide and "Mahalanobis" not in type(model).__name__
    data = KINDS[kind](WIDE if wide else X)
    rows = data.tocsr() if sp.issparse(data) else data
    other = model.statistics(rows[12:], y[12:]) if action in ("merge", "fit_statistics") else None

    def make() -> Any:
        if action == "merge":
            return model.statistics(rows[:12], y[:12])
        if action == "partial_fit":
            return clone(model).partial_fit(rows[:20], y[:20], classes=[0, 1])
        return quietly(clone(model).fit, rows[:16], y[:16])

    def call(one: Any) -> Any:
        if action == "merge":
            return one.merge(other)
        if action == "partial_fit":
            return one.partial_fit(rows[20:], y[20:])
        if action == "fit":
            return one.fit(rows, y + 1)
        if action == "fit_statistics":
            return one.fit_statistics(other)
        if action == "with_k":
            return one.with_k(3).support_
        return [one.predict(rows), one.transform(rows), one.objective_, one.scores_]

    state = _bits if action == "merge" else lambda one: _state(one, data)
    return make, call, state, data


def _signal(call: Callable[[], Any], after: float) -> bool:
    """Run a call that SIGALRM interrupts after some seconds."""

    def handler(*_: Any) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, after)
        quietly(call)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        return True
    finally:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
    return False


@cache
def _facts(*case: Any) -> tuple[list[Any], int, float]:
    """(states before and after the call, its lines, its seconds)."""
    make, call, state, _ = _case(*case)
    states, seconds = [state(make())], []
    for _ in range(3):
        one, begun = make(), perf_counter()
        quietly(call, one)
        seconds.append(perf_counter() - begun)
    states.append(state(one))
    low, high = 0, 64
    while _interrupted(lambda: call(make()), high):
        low, high = high, 2 * high
    while high - low > 8:  # how many lines there are
        middle = (low + high) // 2
        low, high = (middle, high) if _interrupted(lambda: call(make()), middle) else (low, middle)
    return states, high, min(seconds)


def attack(rng: np.random.Generator, report: Report) -> None:
    os.environ["OMP_NUM_THREADS"] = "1"  # a trace is of one thread
    which = int(rng.integers(len(MODELS)))
    actions = ["fit", "predict", "with_k"]
    if MODELS[which] in STREAMS or which == len(MODELS) - 1:
        actions += ["partial_fit", "partial_fit", "merge", "merge", "fit_statistics"]
    action = actions[rng.integers(len(actions))]
    case = (which, action, int(rng.integers(len(KINDS))), bool(rng.random() < 0.3))
    make, call, state, _ = _case(*case)
    states, lines, seconds = _facts(*case)
    one = make()
    if rng.random() < 0.3 and action != "merge":
        quietly(lambda: one.objective_)  # solved already, or not yet
    for _ in range(CALLS):
        if rng.random() < 0.5:
            at = int(rng.integers(1, lines + 1))
            if rng.random() < 0.3:  # near the end, where results are committed
                at = max(1, lines - int(rng.integers(60)))
            how, hit = f"line {at}", _interrupted(lambda one=one: call(one), at)
        else:
            os.environ["OMP_NUM_THREADS"] = str(rng.integers(1, 3))
            after = float(rng.uniform(1e-6, 1.2 * seconds))
            how, hit = f"a signal after {after} s", _signal(lambda one=one: call(one), after)
            os.environ["OMP_NUM_THREADS"] = "1"
        report.count("calls interrupted" if hit else "calls that ended before")
        line = f"# {MODELS[which]!r}.{action}, case {case}, interrupted by {how}"
        try:
            now = state(one)
        except Exception as error:
            report.fail(f"{action}: no state", line, repr(error))
            one = make()
            continue
        if now not in states:
            report.fail(f"{action}: torn", line)
        if now != states[0] or rng.random() < 0.1:
            one = make()
    quietly(call, one)
    if state(one) != states[1]:
        report.fail(f"{action}: the call after an interrupt differs", f"# case {case}")
