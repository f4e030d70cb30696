"""The order in which the rows of many classes lie side by side, to be sorted class by class."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .backend import Backend
from .cached import cached_property
from .typing import Array

_FEW_CLASSES = 8  # that are each a group: the values of one fit better into the cache


class Group(NamedTuple):
    """Classes with equally many rows, which lie side by side.

    Attributes
    ----------
    classes : array of int64 of shape (g,)
    start, stop : int
        Where their rows lie.
    """

    classes: Array
    start: int
    stop: int


@dataclass(frozen=True)
class ClassLists:
    """The rows of K classes, those of classes of equal size side by side.

    So one call sorts the lists of all classes of one size.

    Attributes
    ----------
    backend : Backend
    rows : list of K arrays of integers
        The rows of each class, on the host.
    """

    backend: Backend
    rows: list[np.ndarray]

    @cached_property
    def counts(self) -> np.ndarray:
        """The number of rows of each class: (K,), on the host."""
        return np.asarray([len(r) for r in self.rows], dtype=np.int64)

    @cached_property
    def _classes(self) -> np.ndarray:
        """The classes in the order in which they lie."""
        return np.argsort(self.counts, kind="stable")

    @cached_property
    def offsets(self) -> np.ndarray:
        """Where the rows of each class begin: (K,), on the host."""
        ends = np.cumsum(self.counts[self._classes])
        found = np.empty_like(ends)
        found[self._classes] = ends - self.counts[self._classes]
        return found

    @property
    def size(self) -> int:
        """The number of rows of all classes."""
        return int(self.counts.sum())

    @cached_property
    def order(self) -> Array:
        """The rows as they lie: (n,)."""
        return self.backend.asarray(np.concatenate([self.rows[c] for c in self._classes]))

    @cached_property
    def codes(self) -> Array:
        """The class of each row as they lie: (n,)."""
        return self.backend.asarray(np.repeat(self._classes, self.counts[self._classes]))

    @cached_property
    def place(self) -> Array:
        """The number of the list, among those in their order, of each row as they lie: (n,)."""
        lists = np.arange(len(self.rows), dtype=np.int32)
        return self.backend.asarray(np.repeat(lists, self.counts[self._classes]))

    @cached_property
    def groups(self) -> list[Group]:
        """The classes of each size; where there are few, each class."""
        sizes = self.counts[self._classes]
        first = np.unique(sizes, return_index=True)[1]
        if len(self.rows) <= _FEW_CLASSES:
            first = np.arange(len(self.rows))
        bounds, found, start = [*first.tolist(), len(self.rows)], [], 0
        for left, right in itertools.pairwise(bounds):
            classes = self._classes[left:right]
            stop = start + int(sizes[left]) * len(classes)
            found.append(Group(self.backend.asarray(classes), start, stop))
            start = stop
        return found
