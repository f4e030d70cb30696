"""A fit on a local Dask cluster beside the local fit: time, memory and network of its workers.

Memory is what a worker has at most beyond what it has before, as Linux counts it.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import json
from pathlib import Path
from typing import Any

import dask
import distributed
import numpy as np
import scipy.sparse
from dask.distributed import Client, LocalCluster

import gpucenters.dask
from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    SparseBernoulliNB,
    SparseMultinomialNB,
)

from .arguments import rounds
from .shapes import labels, zipf_text
from .timing import alternate, machine

WIDTH, PER_ROW = 273_779, 12
MODELS = {
    "l2": L2CenterClassifier(k=1_000),
    "l2 with scale": L2CenterClassifier(k=1_000, scale="std"),
    "bernoulli": SparseBernoulliNB(k=1_000),
    "multinomial": SparseMultinomialNB(k=1_000),
    "l1": L1CenterClassifier(k=1_000),
}
#: Freed memory stays with a worker for its next task.
MALLOC = {"MALLOC_TRIM_THRESHOLD_": 2**27, "MALLOC_MMAP_THRESHOLD_": 2**25}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the bench can be told."""
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--partitions", type=int, default=16)
    parser.add_argument("--rows", type=int, default=1_600_000, help="of each partition")
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=["l2"])
    parser.add_argument("--gpus", action="store_true", help="a worker for each GPU (dask-cuda)")
    rounds(parser, 3)


def run(options: argparse.Namespace) -> None:
    """Print the seconds of both fits, and what each worker took for it."""
    parts = [_part(i, options.rows) for i in range(options.partitions)]
    X = scipy.sparse.vstack(parts, format="csr")
    y = labels(X.shape[0], "int")
    edges = np.arange(options.partitions + 1) * options.rows
    print(
        f"{X.shape[0]:,} x {X.shape[1]:,} CSR, {X.nnz:,} stored values in {options.partitions} "
        f"partitions; {options.workers} workers of one thread, beside a local fit with as many "
        "threads"
    )
    results: dict[str, Any] = {
        "machine": machine() | {"dask": dask.__version__},
        "shape": X.shape,
        "stored": X.nnz,
        "partitions": options.partitions,
        "workers": options.workers,
        "models": {},
    }
    with _cluster(options) as cluster, Client(cluster) as client:
        futures = client.scatter(parts)
        if options.gpus:
            futures = client.map(_on_device, futures)
        names = client.scatter([y[a:b] for a, b in itertools.pairwise(edges)])
        distributed.wait(futures)
        del parts
        print(
            f"{'model':<16}{'local s':>9}{'cluster s':>11}{'ratio':>7}{'worker MB':>11}"
            f"{'net MB':>8}"
        )
        for name in options.models:
            model = MODELS[name]
            before = client.run(_begin)
            rows = {
                "local": lambda: model.fit(X, y),  # noqa: B023
                "cluster": lambda: gpucenters.dask.fit(model, futures, names, client=client),  # noqa: B023
            }
            found = alternate(rows, options.repeat)
            after = client.run(_used)
            local, far = found["local"].median, found["cluster"].median
            grown = max(after[w][0] - before[w][0] for w in after)
            sent = sum(after[w][1] - before[w][1] for w in after) / (options.repeat + 1)
            print(
                f"{name:<16}{local:>9.2f}{far:>11.2f}{far / local:>7.2f}{grown:>11.0f}{sent:>8.0f}"
            )
            results["models"][name] = {
                "local": found["local"].seconds,
                "cluster": found["cluster"].seconds,
                "worker_megabytes": grown,
                "network_megabytes": sent,
            }
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1) + "\n")


def _cluster(options: argparse.Namespace) -> Any:
    if options.gpus:
        from dask_cuda import LocalCUDACluster

        return LocalCUDACluster(dashboard_address=":0")
    # See gpucenters/dask/README.md, "Time".
    dask.config.set({f"distributed.nanny.pre-spawn-environ.{n}": v for n, v in MALLOC.items()})
    return LocalCluster(
        n_workers=options.workers, threads_per_worker=1, dashboard_address=":0", memory_limit=0
    )


def _part(i: int, rows: int) -> Any:
    return zipf_text(rows, WIDTH, PER_ROW, 1.07, seed=i)


def _on_device(part: Any) -> Any:
    import cupyx.scipy.sparse

    return cupyx.scipy.sparse.csr_matrix(part)


def _begin(dask_worker: Any) -> tuple[float, float]:
    """As `_used`; the most is counted anew from here, with the partitions that lie there."""
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return _used(dask_worker)


def _used(dask_worker: Any) -> tuple[float, float]:
    """(the most memory that this worker has had, what it has sent), in megabytes."""
    lines = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    most = int(lines["VmHWM"].split()[0]) * 1024
    return most / 1e6, dask_worker.transfer_outgoing_bytes_total / 1e6
