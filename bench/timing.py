"""Timing in one process, alternating, and memory in a fork."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import platform
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Timing:
    """Seconds of one row, a round each, and the memory it took at most beyond what was there."""

    seconds: list[float] = field(default_factory=list)
    peak: float | None = None
    note: str = ""

    @property
    def median(self) -> float:
        return float(np.median(self.seconds)) if self.seconds else float("nan")

    @property
    def least(self) -> float:
        return min(self.seconds, default=float("nan"))


def alternate(
    rows: dict[str, Callable[[], Any]], repeat: int, slow: float = 60.0
) -> dict[str, Timing]:
    """Time each row once a round, ``repeat`` rounds after one to warm up.

    A row that takes longer than ``slow`` seconds is timed once. One that fails says why.
    """
    found = {name: Timing() for name in rows}
    for number in range(repeat + 1):
        for name, work in rows.items():
            timing = found[name]
            if timing.note or (timing.seconds and timing.seconds[-1] > slow):
                continue
            gc.collect()
            start = time.perf_counter()
            try:
                work()
            except Exception as error:
                timing.note = f"{type(error).__name__}: {str(error)[:60]}"
                continue
            took = time.perf_counter() - start
            # The warm-up counts only where it is all there will be.
            if number or took > slow:
                timing.seconds.append(took)
    return found


def resident() -> int | None:
    """Bytes of memory that this process has now, where the system says so."""
    if sys.platform != "linux":
        return None
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def peak_beyond(work: Callable[[], Any]) -> float | None:
    """Megabytes that ``work`` takes at most beyond what the process has, seen in a fork."""
    if sys.platform != "linux":
        return None
    receiver, sender = multiprocessing.Pipe(duplex=False)

    def measured() -> None:
        before = resident() or 0
        work()
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        sender.send((most - before) / 1e6)

    # What earlier rows freed must not serve this one unseen.
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    process = multiprocessing.get_context("fork").Process(target=measured)
    process.start()
    sender.close()
    try:
        result: float | None = receiver.recv()
    except EOFError:
        result = None
    process.join()
    return result


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    import scipy
    import sklearn

    import gpucenters

    name = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as lines:
            names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
        name = names[0] if names else name
    versions = {m.__name__: m.__version__ for m in (np, scipy, sklearn, gpucenters)}
    return {
        "cpu": name,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": versions,
        "devices": [str(d) for d in gpucenters.devices()],
        "date": time.strftime("%Y-%m-%d"),
    }
