"""Collections as lists of delayed objects, one for each partition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import dask.array
from dask.delayed import Delayed


class Partitions(NamedTuple):
    """Delayed objects, or futures, of the partitions of a collection, and their known numbers.

    ``rows`` are the numbers of rows of the partitions, None where they are not known.
    """

    items: list[Any]
    rows: list[int] | None = None

    def __len__(self) -> int:
        return len(self.items)


Data = tuple[Partitions, Partitions, Partitions | None]  # X, y, sample_weight


def partitions_of(x: Any, name: str) -> Partitions:
    """The partitions of a Dask array or DataFrame, or of a list of delayed objects or futures."""
    if isinstance(x, dask.array.Array):
        return _of_array(x, name)
    if is_frame(x):
        return together([x])[0]
    if isinstance(x, Sequence) and x and all(_is_one_partition(item) for item in x):
        return Partitions(list(x))
    raise TypeError(
        f"{name} must be a Dask array or DataFrame, or a list of delayed objects or futures, one "
        f"for each partition; got {type(x).__name__}. "
        + (
            "The estimator's own method takes data in memory."
            if name == "X"
            else "A NumPy array serves where X's numbers of rows are known."
        )
    )


def is_frame(x: Any) -> bool:
    """Whether x is a Dask DataFrame or Series."""
    # A Delayed has any attribute.
    return not isinstance(x, Delayed) and hasattr(x, "simplify") and hasattr(x, "map_partitions")


def together(frames: list[Any]) -> list[Partitions]:
    """The partitions of DataFrames and Series whose rows belong together.

    As arguments of one function they share one graph. Optimised one by one, each would have
    partitions of its own, since Dask reads several files of a narrow one as one partition, and what
    they have in common, as a random choice of rows, would be computed anew for each. Not optimised,
    all columns of the files would be read. ``simplify`` reads those that any of them needs, and
    joins no files as ``optimize`` does. It is not used where it leaves files out, as for a filter:
    partitions are those of the caller's collections.
    """
    joint = frames[0]
    if len(frames) > 1:
        joint = joint.map_partitions(
            _tuple, *frames[1:], meta=(None, object), enforce_metadata=False, align_dataframes=False
        )
    simple = [x.simplify() for x in (joint, *frames)]
    if all(x.npartitions == joint.npartitions for x in simple):
        joint = simple[0]
    parts = joint.to_delayed(optimize_graph=False)
    if len(frames) == 1:
        return [Partitions(parts)]
    return [Partitions([part[i] for part in parts]) for i in range(len(frames))]


def _tuple(*parts: Any) -> tuple[Any, ...]:
    return parts


def _of_array(x: dask.array.Array, name: str) -> Partitions:
    if name == "X" and x.ndim != 2:
        raise ValueError(f"X must have two dimensions, got a Dask array of {x.ndim}.")
    if x.ndim == 2 and x.numblocks[1] > 1:
        x = x.rechunk({1: -1})
    rows = x.chunks[0]
    known = not any(math.isnan(n) for n in rows)
    return Partitions(list(x.to_delayed().ravel()), [int(n) for n in rows] if known else None)


def _is_one_partition(item: Any) -> bool:
    from distributed import Future

    return isinstance(item, Delayed | Future)
