"""The execution context: backend, memory budget, chunk size, threads and progress of one call."""

from __future__ import annotations

import numbers
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TypeVar

from tqdm import tqdm

from . import cuda, schedule
from .backend import Backend
from .namespace import is_cupy
from .schedule import ranges, run, thread_count
from .typing import Array

_RETRY_HALVINGS = 3  # of chunk and budget after a try that ran out of memory
_WORTH_THREADS = 2**22  # values below which starting a pool costs more than it saves
_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
_DEFAULT_DIVISOR = 4  # the default budget is a quarter of the free memory
_ROOT = Path("/")
_NO_LIMIT = 2**62  # from which on version 1 of control groups means none
_IF_UNKNOWN = 2**30  # bytes that count as free where the system does not say what is free

Item = TypeVar("Item")
Result = TypeVar("Result")


class TooLargeError(MemoryError):
    """The result, or one row or column, does not fit into memory, so smaller chunks do not help."""


@dataclass(frozen=True)
class Context:
    """How the work of one call is done. Passed down by argument; never stored or pickled.

    Attributes
    ----------
    backend : Backend
        Where the work is done.
    budget : int
        Bytes of workspace, beyond inputs and model.
    limit : int
        Bytes that the user allows. ``budget`` is less in a try after one that ran out of memory.
    chunk : int
        Elements in one chunk.
    threads : int
    verbose : bool
        Whether to show progress.
    """

    backend: Backend
    budget: int
    limit: int
    chunk: int
    threads: int
    verbose: bool = False

    @classmethod
    def of(
        cls, backend: Backend, memory_budget: int | str | None = None, verbose: bool = False
    ) -> Context:
        """The context that a user's parameters make."""
        budget = resolve_budget(memory_budget, backend)
        chunk = schedule.first_chunk(backend, budget)
        return cls(backend, budget, budget, chunk, thread_count(backend), verbose)

    def smaller(self) -> Context | None:
        """With an eighth of the chunk and of the budget; None where that would not help."""
        if not is_cupy(self.backend.xp) or self.chunk <= schedule.LEAST_CUDA_CHUNK:
            return None
        chunk = schedule.smaller_chunk(self.chunk, _RETRY_HALVINGS)
        return replace(self, chunk=chunk, budget=max(1, self.budget >> _RETRY_HALVINGS))

    def shared_by_threads(self, values: int) -> Context:
        """The context of each thread of those that work on so many values, one thread for few."""
        threads = self.threads if values >= _WORTH_THREADS else 1
        return replace(self, threads=threads, budget=max(1, self.budget // threads))

    def chunk_size(self, uploaded: int = 0) -> int:
        """Elements in one chunk; ``uploaded``: bytes of each that go from the host to a device."""
        return (
            min(self.chunk, max(1, schedule.UPLOAD_BYTES // uploaded)) if uploaded else self.chunk
        )

    def progress(self, items: Iterable[Item], total: int, label: str) -> Iterator[Item]:
        """The items, with a progress bar if ``verbose``."""
        if not self.verbose or total < 2:
            return iter(items)
        return iter(tqdm(items, total=total, desc=label, leave=False))

    def map(
        self, task: Callable[[Item], Result], items: Iterable[Item], threads: int | None = None
    ) -> Iterator[Result]:
        """The results of ``task`` on each item, in order, on the threads of this context."""
        return run(task, items, self.backend, self.threads if threads is None else threads)

    def map_columns(
        self, task: Callable[[slice], Result], n_columns: int, rows: int = 1
    ) -> list[Result]:
        """The results of ``task`` on slices of columns, for elementwise work.

        The bounds of the slices are not fixed: reductions need `sum_columns`. ``rows`` is the
        number of rows that the task reads.
        """
        step = max(1, self.chunk // rows)
        return list(self.map(task, (slice(*cut) for cut in ranges(n_columns, step))))

    def sum_columns(self, task: Callable[[slice], Array], n_columns: int, rows: int = 1) -> Array:
        """The sum of the arrays that ``task`` gives for slices of columns, on the fixed grid.

        ``rows`` is the number of rows that the task reads: part of the shape, so of the grid.
        """
        xp = self.backend.xp
        cuts = (slice(*cut) for cut in ranges(n_columns, max(1, self.chunk // rows)))
        return xp.sum(xp.stack(list(self.map(task, cuts))), axis=0)

    def map_halving(
        self,
        task: Callable[[int, int], Result],
        cuts: list[tuple[int, int]],
        *,
        label: str,
        too_large: str,
    ) -> Iterator[Result]:
        """The results of ``task(start, stop)`` on each range, in order.

        A range for which memory runs out is done in halves; ``too_large`` is the message of the
        MemoryError for a range of one.
        """

        def in_parts(cut: tuple[int, int]) -> list[Result]:
            # A stack: a recursive closure is a reference cycle, which keeps arrays alive.
            results, waiting = [], [cut]
            while waiting:
                start, stop = waiting.pop()
                try:
                    with self.backend.current():
                        results.append(task(start, stop))
                    continue
                except MemoryError as error:
                    if stop - start == 1:
                        raise MemoryError(too_large) from error
                # Outside of ``except``, so that no traceback holds the arrays of the first try.
                self.backend.free_blocks()
                middle = (start + stop) // 2
                waiting += [(middle, stop), (start, middle)]
            return results

        for results in self.progress(self.map(in_parts, cuts), len(cuts), label):
            yield from results


def run_with_oom_retry(
    task: Callable[[Context], Result],
    backend: Backend,
    memory_budget: int | str | None,
    *,
    verbose: bool = False,
) -> Result:
    """``task(context)`` on the device of ``backend``, in chunks that fit into memory.

    On CUDA a small budget makes chunks small. Where memory runs out all the same, the whole task
    runs again with an eighth of both, so that no loop needs a handler of its own and nothing is
    added twice.

    Parameters
    ----------
    task : callable
        It keeps nothing when it raises.
    backend : Backend
    memory_budget : int, str or None
        See `resolve_budget`.
    verbose : bool
    """
    context = Context.of(backend, memory_budget, verbose)
    while True:
        try:
            with backend.current():
                return task(context)
        except TooLargeError:
            raise
        except MemoryError:
            smaller = context.smaller()
            if smaller is None:
                raise
        # Outside of ``except``, so that no traceback holds the arrays of the first try.
        context = smaller
        backend.free_blocks()


# The memory budget: workspace beyond inputs and model, a share of what memory is free.


def resolve_budget(budget: int | str | None, backend: Backend) -> int:
    """Workspace in bytes.

    Parameters
    ----------
    budget : int, str or None
        Bytes, or a size such as "500MB", "2GB", "1.5GiB"; None is a quarter of what is free.
    backend : Backend

    Raises
    ------
    ValueError
        If it is no positive size.
    """
    if budget is None:
        return max(_free(backend) // _DEFAULT_DIVISOR, 1)
    size: float = 0
    if isinstance(budget, numbers.Real) and not isinstance(budget, bool):
        size = int(budget) if budget % 1 == 0 else 0  # 2e9 is a whole number
    elif isinstance(budget, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", budget)
        if match and match.group(2).lower() in _UNITS:
            size = float(match.group(1)) * _UNITS[match.group(2).lower()]
    if not 1 <= size < 2**63:
        raise ValueError(
            f"memory_budget={budget!r} is not a size: use a positive number of bytes, a string "
            "such as '500MB' or '2GB', or None."
        )
    return int(size)


def _free(backend: Backend) -> int:
    return cuda.free_memory(backend.device) if is_cupy(backend.xp) else free_memory()


def free_memory() -> int:
    """Free bytes of the machine, or fewer where a control group (a container) has a limit."""
    return max(0, min([_of_system(), *(_of_group(*names) for names in _groups(_ROOT))]))


def _of_system() -> int:
    for line in _lines(_ROOT / "proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return _IF_UNKNOWN


@cache
def _groups(root: Path) -> list[tuple[Path, Path, Path, str]]:
    """(limit, usage, statistics, prefix of their names) of the groups around the process.

    They are those that have a limit when it is first asked for.
    """
    return [
        (group / limit, group / usage, group / "memory.stat", prefix)
        for group, limit, usage, prefix in _all_groups(root)
        if _limit(group / limit) < _NO_LIMIT
    ]


def _all_groups(root: Path) -> Iterator[tuple[Path, str, str, str]]:
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):  # version 1
            group = root / "sys/fs/cgroup/memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_")
        elif not controllers:  # version 2
            group, names = root / "sys/fs/cgroup", ("memory.max", "memory.current", "")
        else:
            continue
        # In a container, the path may be that outside, and what is mounted the group itself.
        for part in ("", *path.strip("/").split("/")):
            group /= part
            yield group, *names


def _of_group(limit: Path, usage: Path, statistics: Path, prefix: str) -> int:
    """What a limit leaves; pages of files make room for others."""
    left = _limit(limit) - sum(map(int, _lines(usage)))
    sizes = dict(line.split() for line in _lines(statistics))
    return left + sum(int(sizes.get(f"{prefix}{k}_file", 0)) for k in ("active", "inactive"))


def _limit(file: Path) -> int:
    found = [int(line) for line in _lines(file) if line.isdecimal()]  # no number: "max"
    return min([*found, _NO_LIMIT])


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []
