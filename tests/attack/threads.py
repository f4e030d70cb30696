"""Fits and predictions in many threads, in forked processes and under loky: the bits of one."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from joblib.externals.loky import get_reusable_executor
from sklearn.base import clone
from strategies import quietly

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    SparseBernoulliNB,
    SparseMultinomialNB,
)

from .report import Report

PROBLEMS, CHUNK, LIMIT = 30, 1, 700  # a fresh process each: its first fit makes the pools
MODELS = [
    L2CenterClassifier(20),
    L2CenterClassifier(20, scale="std"),
    L1CenterClassifier(20),
    SparseBernoulliNB(20),
    SparseMultinomialNB(20),
    MahalanobisCenterClassifier(20, shrinkage=0.3),
]
THREADS = 8


def _fit(model: Any, X: Any, y: np.ndarray) -> list[bytes]:
    model = quietly(clone(model).fit, X, y)
    found = [model.scores_, model.predict(X), model.centers_, model.decision_function(X[:50])]
    return [np.asarray(part).tobytes() for part in found]


def _ask(model: Any, X: Any, turn: int) -> list[bytes]:
    """What a model says, asked in another order by each thread."""
    asks: list[Callable[[], Any]] = [
        lambda: model.predict(X),
        lambda: model.support_,
        lambda: model.scores_,
        lambda: model.with_k(7).predict(X),
        lambda: model.centers_,
        lambda: np.float64(model.objective_),
        lambda: model.decision_function(X),
    ]
    order = [(turn + i) % len(asks) for i in range(len(asks))]
    found = {i: np.asarray(asks[i]()).tobytes() for i in order}
    return [found[i] for i in range(len(asks))]


def _in_child(task: Callable[[], bool], seconds: int = 60) -> str:
    """Run a task in a forked process: "right", "wrong", "raised" or "no end"."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)
        try:
            os._exit(0 if task() else 2)
        except BaseException:
            os._exit(3)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return "no end" if os.WTERMSIG(status) == signal.SIGALRM else "crashed"
    return {0: "right", 2: "wrong"}.get(os.WEXITSTATUS(status), "raised")


def attack(rng: np.random.Generator, report: Report) -> None:
    os.environ["OMP_NUM_THREADS"] = str(rng.integers(2, 5))
    n, m = 1500, 120
    X = rng.poisson(1.0, (n, m)) * (rng.random((n, m)) < 0.3) * 1.0
    y = rng.integers(0, 3, n)
    X[y == 1, :5] += 1
    X = [np.asarray, sp.csr_array, sp.csc_array][rng.integers(3)](X)
    model = MODELS[rng.integers(len(MODELS))]
    way = ["shared", "fits", "fork", "loky", "fork in the first fit"][rng.integers(5)]
    text = f"# {model!r}, {way}, {type(X).__name__}"
    report.count(way)
    if way == "fork in the first fit":
        _fork_early(rng, model, X, y, text, report)
        return
    expected = _fit(model, X, y)
    if way == "shared":
        both = [clone(model), clone(model)]
        for one in both:  # not solved yet, where the model can be fitted so
            if isinstance(model, L1CenterClassifier):
                quietly(one.fit, X, y)
            else:
                one.partial_fit(X, y, classes=[0, 1, 2])
        alone, start = _ask(both[0], X, 0), threading.Barrier(THREADS)

        def ask(turn: int) -> list[bytes]:
            start.wait(timeout=60)
            return _ask(both[1], X, turn)

        with ThreadPoolExecutor(THREADS) as pool:
            if any(found != alone for found in pool.map(ask, range(THREADS))):
                report.fail("threads that share a model differ", text)
    elif way == "fits":
        with ThreadPoolExecutor(THREADS) as pool:
            tasks = [pool.submit(_fit, model, X, y) for _ in range(2 * THREADS)]
            if any(task.result() != expected for task in tasks):
                report.fail("fits in threads differ", text)
    elif way == "fork":
        stop = threading.Event()

        def loop() -> None:
            while not stop.is_set():
                _fit(model, X, y)

        threads = [threading.Thread(target=loop) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(10):
            found = _in_child(lambda: _fit(model, X, y) == expected)
            if found != "right":
                report.fail(f"fork while threads fit: {found}", text)
        stop.set()
        for thread in threads:
            thread.join()
    else:
        tasks = [joblib.delayed(_fit)(model, X, y) for _ in range(4)]
        if any(found != expected for found in joblib.Parallel(2, backend="loky")(tasks)):
            report.fail("fits under loky differ", text)
        get_reusable_executor().shutdown(wait=True)


def _fork_early(
    rng: np.random.Generator, model: Any, X: Any, y: np.ndarray, text: str, report: Report
) -> None:
    """A fork while another thread's first fit imports and makes what is made once."""
    found: list[list[bytes]] = []
    first = threading.Thread(target=lambda: found.append(_fit(model, X, y)))
    first.start()
    time.sleep(float(rng.uniform(0, 0.03)))
    children: list[list[bytes]] = []

    def task() -> bool:
        children.append(_fit(model, X, y))
        return children[0] == _fit(model, X, y)

    outcome = _in_child(task)
    first.join()
    if outcome != "right" or found != [_fit(model, X, y)]:
        report.fail(f"fork during the first fit: {outcome}", text)
