"""How work on blocks may be done: the memory it may take, and whether it shows its progress."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from tqdm import tqdm

from .budget import resolve_budget
from .devices import Place
from .errors import TooLargeError
from .grid import with_chunks_within, with_smaller_chunks
from .ordering import SortedColumns

_HALVINGS = 3  # of chunks and budget after a try that ran out of memory

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Work:
    """The terms of some work.

    Attributes
    ----------
    budget : int
        Bytes of workspace, beyond inputs and model.
    verbose : bool
        Whether to show progress.
    limit : int
        What the user allows: the budget is less in a try after one that ran out of memory.
    """

    budget: int
    verbose: bool = False
    limit: int = 0

    @classmethod
    def of(cls, memory_budget: int | str | None, place: Place, verbose: bool = False) -> Work:
        """The terms that a user's parameters make."""
        budget = resolve_budget(memory_budget, place)
        return cls(budget, verbose, budget)

    def progress(self, items: Iterable[Item], total: int, what: str) -> Iterator[Item]:
        """The items, with a progress bar where it is wanted."""
        if not self.verbose or total < 2:
            return iter(items)
        return iter(tqdm(items, total=total, desc=what, leave=False))

    def shared_by(self, threads: int) -> Work:
        """The terms for each of some threads."""
        return replace(self, budget=max(1, self.budget // threads))


def carry_out(
    task: Callable[[Place, Work], Result],
    place: Place,
    memory_budget: int | str | None,
    *,
    verbose: bool = False,
) -> Result:
    """``task(place, work)`` on the device of ``place``, in chunks that fit into memory.

    On a GPU the chunks are made smaller where the budget is small. Where memory runs out all the
    same, the task is done anew with an eighth of both: whatever it was that needed the memory, and
    so that nothing is added twice.

    Parameters
    ----------
    task : callable
        It makes its blocks at the place it is given, and keeps nothing when it raises.
    place : Place
    memory_budget : int, str or None
        See `resolve_budget`.
    verbose : bool
    """
    work = Work.of(memory_budget, place, verbose)
    # (From full chunks on, whatever an earlier task had to be content with.)
    place = with_chunks_within(replace(place, halvings=0), work.budget)
    with place.current():
        while True:
            try:
                return task(place, work)
            except TooLargeError:
                raise
            except MemoryError:
                smaller = with_smaller_chunks(place, _HALVINGS)
                if smaller is None:
                    raise
            # (Only here is the error gone, and all that it held.)
            place, work = smaller, replace(work, budget=max(1, work.budget >> _HALVINGS))


@dataclass(frozen=True)
class SortingPlan:
    """How the columns of a block are to be sorted.

    Attributes
    ----------
    ranges : list of (left, right)
        Ranges of columns, to be sorted side by side.
    sort : callable
        ``sort(left, right)`` gives the columns of X that are not settled beforehand, as a slice or
        an array of numbers, and these sorted; or None.
    """

    ranges: list[tuple[int, int]]
    sort: Callable[[int, int], tuple[Any, SortedColumns] | None]
