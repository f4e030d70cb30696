"""Some rows of a dense block, read slice of columns by slice of columns, class by class."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..arrays.backend import Backend
from ..arrays.typing import Array


@dataclass(frozen=True)
class RowChunk:
    """Consecutive rows of a dense block.

    Attributes
    ----------
    backend : Backend
    read : callable
        ``read(start, stop)`` gives the rows in a range of columns.
    columns : list of slices
        The grid: they can be read side by side.
    parts : list of (c, members, s, weight)
        For each class among the rows: its row numbers, their weights as a column (None counts each
        once), and the sum of these.
    """

    backend: Backend
    read: Callable[[int, int], Array]
    columns: list[slice]
    parts: list[tuple[int, Array, Array | None, float]]

    def by_class(self, columns: slice) -> Iterator[tuple[int, Array, Array | None, float]]:
        """(c, x, s, weight) of each class: x its values in these columns, (r, b), float64."""
        xp = self.backend.xp
        chunk = self.read(columns.start, columns.stop)
        for c, members, s, weight in self.parts:
            yield c, xp.astype(xp.take(chunk, members, axis=0), xp.float64), s, weight
