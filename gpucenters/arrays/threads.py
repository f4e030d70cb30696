"""Threads of the host, for work that is split in a fixed way whatever their number.

NumPy's sorts and elementwise work and SciPy's sparse routines let other threads run, so threads
are enough. A pool lives as long as one call: nothing is left that a fork could break.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, TypeVar

import joblib
import numpy as np

from .devices import Place
from .namespace import is_numpy

Task = TypeVar("Task")
Result = TypeVar("Result")


def thread_count(place: Place) -> int:
    """How many threads to use: joblib's count of cores, or OMP_NUM_THREADS if that is less.

    One, where joblib runs this in a thread of its own, or away from the host.
    """
    if not is_numpy(place.xp):
        return 1
    backend, _ = joblib.parallel.get_active_backend()
    if getattr(backend, "nesting_level", 0):
        return 1
    cores = joblib.cpu_count()
    # In the worker processes of joblib this is set to their share of the cores.
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(cores, int(limit)) if limit.isdigit() and int(limit) else cores)


class Scratch:
    """Host memory that a thread takes up once and not anew for each task: fresh pages are slow."""

    def __init__(self) -> None:
        self._of_thread = threading.local()

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """An array that is valid until the thread asks for the next one."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        held = getattr(self._of_thread, "held", None)
        if held is None or held.shape[0] < size:
            held = self._of_thread.held = np.empty(size, np.uint8)
        return held[:size].view(dtype).reshape(shape)


def run(
    work: Callable[[Task], Result], tasks: Iterable[Task], place: Place, threads: int | None = None
) -> Iterator[Result]:
    """The results of ``work`` on each task, in the order of the tasks.

    At most ``threads`` tasks are in flight, and one that waits for its turn is not begun.
    """
    threads = thread_count(place) if threads is None else threads
    waiting = iter(tasks)
    if threads < 2:
        yield from map(work, waiting)
        return
    first = list(islice(waiting, 2))
    if len(first) < 2:
        yield from map(work, first)
        return

    def inside(task: Task) -> Result:
        with place.current():  # NumPy keeps its error state by thread
            return work(task)

    with ThreadPoolExecutor(threads) as pool:
        flying = [pool.submit(inside, task) for task in first]
        flying += [pool.submit(inside, task) for task in islice(waiting, threads - len(first))]
        try:
            while flying:
                yield flying.pop(0).result()
                flying += [pool.submit(inside, task) for task in islice(waiting, 1)]
        finally:
            for future in flying:
                future.cancel()
