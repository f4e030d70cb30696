"""A Dask cluster whose workers are killed at random times, while all models are fitted.

Whatever is computed anew, nothing may be lost and nothing be added twice: the model has the bits of
the local fit.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import dask
import numpy as np
import scipy.sparse as sp
from distributed import Client, LocalCluster
from sklearn.base import clone

import gpucenters.dask
from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    ShrunkenCentroidClassifier,
    SparseBernoulliNB,
    SparseGaussianNB,
    SparseMultinomialNB,
    SparsePoissonNB,
)

from .report import Report

PROBLEMS, CHUNK, LIMIT = 5, 1, 600
MODELS = [
    L2CenterClassifier(k=5),
    L2CenterClassifier(k=5, scale="std"),
    MahalanobisCenterClassifier(k=5),
    SparseBernoulliNB(k=5),
    SparseMultinomialNB(k=5),
    SparsePoissonNB(k=5),
    SparseGaussianNB(k=5),
    ShrunkenCentroidClassifier(k=5),
    L1CenterClassifier(k=5),
]
# Of moments that are centred where they are made: equal up to rounding.
CENTRED = (MahalanobisCenterClassifier, SparseGaussianNB, ShrunkenCentroidClassifier)
KILLS = 3


def _load(folder: str, i: int) -> Any:
    """A partition from a file, which takes some time to read."""
    time.sleep(0.02)
    return sp.csr_array(sp.load_npz(f"{folder}/{i}.npz"))


def attack(rng: np.random.Generator, report: Report) -> None:
    """A fit of every model while workers die."""
    n, m, parts = int(rng.integers(200, 2_000)), int(rng.integers(10, 60)), int(rng.integers(5, 60))
    y = rng.integers(0, int(rng.integers(2, 5)), n)
    y[: y.max() + 1] = np.arange(y.max() + 1)
    X = sp.csr_array(rng.poisson(0.3 + (y[:, None] == np.arange(m) % 5), (n, m)))
    weight = rng.integers(0, 4, n) + (np.arange(n) < 10)
    edges = np.sort(np.append(rng.integers(0, n + 1, parts - 1), [0, n]))
    spans = list(itertools.pairwise(edges))
    with tempfile.TemporaryDirectory() as folder, _cluster() as client:
        for i, (a, b) in enumerate(spans):
            sp.save_npz(Path(folder) / f"{i}.npz", X[a:b])
        files = [dask.delayed(_load)(folder, i) for i in range(parts)]
        labels = [dask.delayed(y[a:b]) for a, b in spans]
        weights = [dask.delayed(weight[a:b]) for a, b in spans]
        for model in MODELS:
            done = threading.Event()
            times = np.sort(rng.uniform(0, 2.0, KILLS))
            killer = threading.Thread(target=_kill, args=(client, times, rng.integers(2**31), done))
            killer.start()
            try:
                found = gpucenters.dask.fit(model, files, labels, weights, client=client)
            finally:
                done.set()
                killer.join()
            report.count(type(model).__name__)
            local = clone(model).fit(X, y, sample_weight=weight)
            exact = getattr(model, "scale", None) is None and not isinstance(model, CENTRED)
            same = np.array_equal if exact else np.allclose
            if not same(found.scores_, local.scores_):
                report.fail("wrong scores", f"{model}: {found.scores_} {local.scores_}")


@contextlib.contextmanager
def _cluster() -> Any:
    # Each death counts against the task that ran, however innocent it is.
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 100}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as cluster,
        Client(cluster) as client,
    ):
        # A worker that dies while it starts is not started again by its nanny.
        cluster.adapt(minimum=2, maximum=2, interval="200ms")
        yield client


def _kill(client: Any, times: np.ndarray, seed: int, done: threading.Event) -> None:
    """Kill a worker at each of some times, until the fit is done."""
    rng, begun = np.random.default_rng(seed), time.monotonic()
    for at in times:
        if done.wait(max(0.0, begun + at - time.monotonic())):
            return
        with contextlib.suppress(Exception):
            workers = client.cluster.workers
            worker = workers[list(workers)[int(rng.integers(len(workers)))]]
            os.kill(worker.pid, signal.SIGKILL)
