"""How work is scheduled: how it is cut into parts, and the threads that take these."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from functools import cache
from itertools import chain, islice, pairwise
from typing import Any, Literal, TypeVar

import joblib
import numpy as np

from .backend import Backend
from .namespace import is_cupy, is_numpy

# Elements in a chunk. On a CPU a few megabytes, so that the cast, the sum and the squares read the
# chunk from the cache; on CUDA enough to hide the overhead of kernel launches.
CPU_CHUNK = 2**17
CUDA_CHUNK = 2**25
UPLOAD_BYTES = 15 * 2**20  # of host data: with room for row pointers, 16 MB
LEAST_CUDA_CHUNK = 2**16  # smaller chunks save no memory that matters
_BYTES_PER_ELEMENT = 48  # workspace for each element of a CUDA chunk

_MOST_ROWS = 2048  # of a dense CPU chunk
_LEAST_ROWS = 64  # of a dense CPU chunk: enough to make merging K rows of moments cheap
_ROWS_PER_CLASS = 4  # of a dense chunk
_LEAST_COLUMNS = 8  # of a dense chunk that is made tall for its classes
_ROW_STRIP = 2**23  # elements in a strip of rows that is read chunk by chunk
_FULL_WIDTH_STRIP = 2**21  # elements in a strip of rows that is copied in its full width
Item = TypeVar("Item")
Result = TypeVar("Result")

_this_thread = threading.local()  # .is_worker: whether this thread belongs to a pool of `run`

# glibc gives the pages of freed arrays back to the system, and takes them again for the next
# temporary of a chunk, which costs more than the arithmetic. It keeps up to twice the largest block
# below 32 MB that was ever freed: this one is freed at once, and its pages are never touched.
np.empty(2**24, np.uint8)


# How work is cut into parts, by fixed grids: sums do not depend on the number of threads.


def first_chunk(backend: Backend, budget: int) -> int:
    """Elements of a chunk at the first try: on CUDA, as many as the budget has workspace for."""
    if not is_cupy(backend.xp):
        return CPU_CHUNK
    chunk = CUDA_CHUNK
    while _BYTES_PER_ELEMENT * chunk > budget and chunk > LEAST_CUDA_CHUNK:
        chunk = smaller_chunk(chunk, 1)
    return chunk


def smaller_chunk(chunk: int, halvings: int) -> int:
    """The elements of a CUDA chunk after so many halvings, at least the smallest useful number."""
    return max(chunk >> halvings, min(LEAST_CUDA_CHUNK, CUDA_CHUNK))


def ranges(n: int, step: int) -> Iterator[tuple[int, int]]:
    """Consecutive (start, stop) that cover ``range(n)``."""
    for start in range(0, n, step):
        yield start, min(start + step, n)


def dense_grid(n: int, m: int, size: int, n_classes: int = 1) -> tuple[int, int]:
    """Rows and columns of one chunk, of about ``size`` elements, of a dense n x m array.

    With several classes a chunk has enough rows that merging their sums costs little beside adding.
    """
    # A strip has few rows, so that the pages of its columns stay in the TLB.
    strip = min(_MOST_ROWS, max(_LEAST_ROWS, _ROW_STRIP // m)) * max(1, size // CPU_CHUNK)
    rows = min(n, max(strip, size // m, min(_ROWS_PER_CLASS * n_classes, size // _LEAST_COLUMNS)))
    return rows, max(1, min(m, size // rows))


def full_width_ranges(n: int, m: int, backend: Backend, chunk: int) -> list[tuple[int, int]]:
    """(start, stop) of strips of rows that are worked on in their full width."""
    # A strip has enough rows that adding its m x m products costs little beside making them.
    rows, size = 512, _FULL_WIDTH_STRIP
    if is_cupy(backend.xp):
        rows, size = max(64, 2048 * chunk // CUDA_CHUNK), chunk
    return list(ranges(n, max(rows, size // m)))


def entry_ranges(
    indptr: np.ndarray, start: int, stop: int, size: int
) -> Iterator[tuple[int, int, int, int]]:
    """(start, stop, first, last): stored entries start..stop lie in rows first..last.

    A row longer than a chunk is cut, so that one huge row needs no more memory than many short
    ones.
    """
    for left, right in ranges(stop - start, size):
        left, right = start + left, start + right
        first = _search(indptr, left, "right") - 1
        last = _search(indptr, right, "left")
        yield left, right, first, last


def _search(indptr: np.ndarray, position: int, side: Literal["left", "right"]) -> int:
    # With a number of another type NumPy would convert the whole of indptr.
    return int(np.searchsorted(indptr, indptr.dtype.type(position), side=side))


def row_ranges(indptr: np.ndarray, size: int) -> Iterator[tuple[int, int]]:
    """Consecutive (first, last) over compressed rows, each with about ``size`` entries or rows."""
    n, first = len(indptr) - 1, 0
    while first < n:
        last = _search(indptr, min(int(indptr[first]) + size, int(indptr[-1])), "right") - 1
        last = min(max(last, first + 1), first + size, n)
        yield first, last
        first = last


# Partitions of the stored entries: each has its own accumulator, and these are added in order.
PARTITION_ENTRIES = 2**23  # stored entries in a partition at least
_HALF_ENTRIES = 2**20  # in one of two
_MOST_PARTITIONS = 8


def partitions(count: int, accumulator: int, backend: Backend) -> list[tuple[int, int]]:
    """(start, stop) of each partition of ``count`` stored entries.

    A further partition costs one pass in order over an accumulator of ``accumulator`` numbers; an
    entry costs one random write. The number keeps merging cheaper than adding; it is 1 on CUDA.
    """
    n = 1
    if not is_cupy(backend.xp):
        affordable = 2 * count // max(accumulator, 1)
        n = max(min(2, count // _HALF_ENTRIES), min(_MOST_PARTITIONS, count // PARTITION_ENTRIES))
        n = max(1, min(n, affordable))
        n = 2 ** (n.bit_length() - 1)  # a power of two, shared evenly by two or four threads
    cuts = [count * partition // n for partition in range(n + 1)]
    return list(pairwise(cuts))


# Threads of the host, for work that is cut in a fixed way whatever their number.
#
# NumPy's sorts and elementwise operations and SciPy's sparse routines release the GIL, so threads
# are enough. Pools are closed at the end of each call, so that a fork is safe.


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
    most = os.environ.get("LOKY_MAX_CPU_COUNT")
    cores = _cores(joblib.cpu_count, most, affinity and frozenset(affinity(0)))
    # joblib sets OMP_NUM_THREADS in its worker processes to their share of the cores.
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(cores, int(limit)) if limit.isdigit() and int(limit) else cores)


@cache
def _cores(count: Callable[[], int], _limit: str | None, _affinity: frozenset[int] | None) -> int:
    """Joblib's count, for which it reads files: once for each limit and set of allowed cores."""
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

    def work(item: Item) -> Result:
        before = getattr(_this_thread, "is_worker", False)
        _this_thread.is_worker = True
        try:
            with backend.current():  # NumPy keeps its error state by thread
                return task(item)
        finally:
            _this_thread.is_worker = before

    def start(item: Item) -> Callable[[], Result]:
        """Submit an item; do it in this thread where no other can be started or used any more."""
        once = threading.Lock()
        outcome: list[Any] = []

        def attempt() -> Any:
            # An item may be queued although its submission fails: it is done once all the same.
            if once.acquire(blocking=False):
                try:
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

        try:
            future = workers.submit(attempt)
        except RuntimeError:
            attempt()
            return result
        return lambda: future.result() or result()

    with ThreadPoolExecutor(count) if pool is None else nullcontext(pool) as workers:
        in_flight = [start(item) for item in first]
        in_flight += [start(item) for item in islice(waiting, count - len(first))]
        try:
            while in_flight:
                yield in_flight.pop(0)()
                in_flight += [start(item) for item in islice(waiting, 1)]
        finally:
            if pool is None:
                workers.shutdown(wait=True, cancel_futures=True)
            for result in in_flight if pool else ():  # which write where others may write next
                with suppress(Exception):
                    result()
