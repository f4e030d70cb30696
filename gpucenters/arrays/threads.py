"""Threads of the host, for work that is cut in a fixed way whatever their number.

NumPy's sorts and elementwise operations and SciPy's sparse routines release the GIL, so threads are
enough. Pools are closed at the end of each call, so that a fork is safe.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from functools import cache
from itertools import chain, islice
from typing import Any, TypeVar

import joblib
import numpy as np

from .backend import Backend
from .namespace import is_numpy

Item = TypeVar("Item")
Result = TypeVar("Result")

_this_thread = threading.local()  # .is_worker: whether this thread belongs to a pool of `run`

# glibc gives the pages of freed arrays back to the system, and takes them again for the next
# temporary of a chunk, which costs more than the arithmetic. It keeps up to twice the largest block
# below 32 MB that was ever freed: this one is freed at once, and its pages are never touched.
np.empty(2**24, np.uint8)


def thread_count(backend: Backend) -> int:
    """How many threads to use: joblib's count of cores, or OMP_NUM_THREADS if that is less.

    One where joblib already runs this in a thread of its own, and one away from the host.
    """
    if not is_numpy(backend.xp):
        return 1
    joblib_backend, _ = joblib.parallel.get_active_backend()
    if getattr(joblib_backend, "nesting_level", 0):
        return 1
    affinity = getattr(os, "sched_getaffinity", None)  # Linux has it
    cores = _cores(joblib.cpu_count, affinity and frozenset(affinity(0)))
    # joblib sets OMP_NUM_THREADS in its worker processes to their share of the cores.
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(cores, int(limit)) if limit.isdigit() and int(limit) else cores)


@cache
def _cores(count: Callable[[], int], _affinity: frozenset[int] | None) -> int:
    """The count, for which joblib reads files, once for each set of cores that are allowed."""
    return count()


class Scratch:
    """Host memory that each thread allocates once and reuses: first use of a page is slow."""

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
    task: Callable[[Item], Result],
    items: Iterable[Item],
    backend: Backend,
    threads: int | None = None,
    pool: ThreadPoolExecutor | None = None,
) -> Iterator[Result]:
    """The results of ``task`` on each item, in the order of the items.

    At most ``threads`` items are in flight; the next one starts when the first of them is taken.
    Where there are no more items than threads, the last one is done in the thread of the caller.
    Inside a task of another `run` the items run one after the other in that task's thread: a
    second level of threads would compete for the same cores, and could deadlock. Many short runs
    can share a ``pool``, which stays open.
    """
    waiting = iter(items)
    alone = (threads or 2) < 2 or getattr(_this_thread, "is_worker", False)
    first = [] if alone else list(islice(waiting, 2))
    # (joblib reads files to count the cores.)
    if len(first) < 2 or (count := threads or thread_count(backend)) < 2:
        yield from map(task, chain(first, waiting))
        return
    first += islice(waiting, count - 1)

    def work(item: Item) -> Result:
        before = getattr(_this_thread, "is_worker", False)
        _this_thread.is_worker = True
        try:
            with backend.current():  # NumPy keeps its error state by thread
                return task(item)
        finally:
            _this_thread.is_worker = before

    def start(item: Item, here: bool = False) -> Callable[[], Result]:
        """Submit an item; do it in this thread where no other can be started or used any more."""
        once = threading.Lock()
        outcome: list[Any] = []

        def attempt() -> Any:
            # An item may be queued although its submission fails: it is done once all the same.
            try:
                if once.acquire(blocking=False):
                    outcome.append((work(item), None))
            except BaseException as error:
                outcome.append((None, error))

        def result() -> Result:
            while not outcome:  # in another thread
                time.sleep(0.001)
            found, error = outcome.pop()
            try:
                if error is not None:
                    raise error
                return found
            finally:
                del error  # which holds this frame, and so would keep itself alive

        if not here:
            with suppress(RuntimeError):
                future = workers.submit(attempt)
                return lambda: future.result() or result()
        attempt()
        return result

    with ThreadPoolExecutor(count) if pool is None else nullcontext(pool) as workers:
        in_flight = [start(item) for item in first[:-1]]
        try:
            if len(first) > count:
                waiting = chain(first[-1:], waiting)
            else:  # this thread takes one of few items: another takes long to start
                in_flight.append(start(first[-1], here=True))
            while in_flight:
                yield in_flight.pop(0)()
                in_flight += [start(item) for item in islice(waiting, 1)]
        finally:
            if pool is None:
                workers.shutdown(wait=True, cancel_futures=True)
            for result in in_flight if pool else ():  # which write where others may write next
                with suppress(Exception):
                    result()
