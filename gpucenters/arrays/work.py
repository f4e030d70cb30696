"""How work on blocks may be done: the memory it may take, and whether it shows its progress."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from tqdm import tqdm

from .budget import resolve_budget
from .devices import Place
from .ordering import SortedColumns

Item = TypeVar("Item")


@dataclass(frozen=True)
class Work:
    """The terms of some work.

    Attributes
    ----------
    budget : int
        Bytes of workspace, beyond inputs and model.
    verbose : bool
        Whether to show progress.
    """

    budget: int
    verbose: bool = False

    @classmethod
    def of(cls, memory_budget: int | str | None, place: Place, verbose: bool = False) -> Work:
        """The terms that a user's parameters make."""
        return cls(resolve_budget(memory_budget, place), verbose)

    def progress(self, items: Iterable[Item], total: int, what: str) -> Iterator[Item]:
        """The items, with a progress bar where it is wanted."""
        if not self.verbose or total < 2:
            return iter(items)
        return iter(tqdm(items, total=total, desc=what, leave=False))

    def shared_by(self, threads: int) -> Work:
        """The terms for each of some threads."""
        return Work(max(1, self.budget // threads), self.verbose)


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
