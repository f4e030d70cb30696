"""The execution context: backend, memory budget, chunk size, threads and progress of one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from tqdm import tqdm

from . import grid
from .backend import Backend
from .grid import ranges, resolve_budget
from .namespace import is_cupy
from .threads import run, thread_count
from .typing import Array

_RETRY_HALVINGS = 3  # of chunk and budget after a try that ran out of memory
_WORTH_THREADS = 2**22  # values below which starting a pool costs more than it saves

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
        chunk = grid.first_chunk(backend, budget)
        return cls(backend, budget, budget, chunk, thread_count(backend), verbose)

    def smaller(self) -> Context | None:
        """With an eighth of the chunk and of the budget; None where that would not help."""
        if not is_cupy(self.backend.xp) or self.chunk <= grid.LEAST_CUDA_CHUNK:
            return None
        chunk = grid.smaller_chunk(self.chunk, _RETRY_HALVINGS)
        return replace(self, chunk=chunk, budget=max(1, self.budget >> _RETRY_HALVINGS))

    def shared_by_threads(self, values: int) -> Context:
        """The context of each thread of those that work on so many values, one thread for few."""
        threads = self.threads if values >= _WORTH_THREADS else 1
        return replace(self, threads=threads, budget=max(1, self.budget // threads))

    def chunk_size(self, uploaded: int = 0) -> int:
        """Elements in one chunk; ``uploaded``: bytes of each that go from the host to a device."""
        return min(self.chunk, max(1, grid.UPLOAD_BYTES // uploaded)) if uploaded else self.chunk

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
