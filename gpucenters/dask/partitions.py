"""X, y and sample weights as lists of delayed objects, one for each partition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import dask
import dask.array
import numpy as np
from dask.delayed import Delayed
from dask.typing import DaskCollection

from ..arrays.label_values import exact_values


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
    if hasattr(x, "to_delayed") and hasattr(x, "npartitions"):  # a DataFrame or Series
        return Partitions(list(x.to_delayed()))
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


def aligned(x: Any, like: Partitions, name: str) -> Partitions:
    """The partitions of y or of weights, one for each of X's; an error says how they differ.

    An array in memory is divided as X is, where X's numbers of rows are known.
    """
    if not isinstance(x, DaskCollection) and hasattr(x, "__array__"):
        if like.rows is None:
            raise ValueError(
                f"{name} is an array in memory, but the numbers of rows of X's partitions are not "
                f"known. Pass {name} in partitions as X, or, for a Dask array, call "
                "X.compute_chunk_sizes() first."
            )
        x = np.asarray(exact_values(x, name))
        if x.shape[:1] != (sum(like.rows),):
            raise ValueError(f"X has {sum(like.rows):,} rows, {name} has shape {x.shape}.")
        x = dask.array.from_array(x, chunks=(tuple(like.rows), *x.shape[1:]))
    found = partitions_of(x, name)
    if len(found) != len(like):
        raise ValueError(
            f"X has {len(like)} partitions, {name} has {len(found)}. Divide both in the same way."
        )
    if found.rows is not None and like.rows is not None:
        for i, (n, n_x) in enumerate(zip(found.rows, like.rows, strict=True)):
            if n != n_x:
                raise ValueError(
                    f"partition {i} has {n_x:,} rows of X, but {n:,} of {name}. Call "
                    f"{name}.rechunk to divide it as X is."
                )
    return found
