"""Collections as lists of delayed objects, and X, y and weights with their rows together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import dask.array
import numpy as np
from dask.delayed import Delayed, delayed
from dask.typing import DaskCollection

from ..arrays.label_values import concatenated, exact_values
from .cluster import compute


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


# X, y and sample weights with the rows of one partition together.


def aligned(client: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Data, Data]:
    """The partitions of X, y and sample weights; an error says how they differ.

    An array in memory is divided as X is, where X's numbers of rows are known.

    Returns
    -------
    data : Data
        For tasks that read X beside the others.
    labels : Data
        For tasks that read y and weights alone: from files they read no column of X.
    """
    parts = partitions_of(X, "X")
    others = {"y": y} if sample_weight is None else {"y": y, "sample_weight": sample_weight}
    frames, found = [X, *others.values()], []
    for name, x in others.items():
        like = _divided(x, parts, name)
        if len(like) != len(parts):
            if not (_of_unknown_rows(X) or _of_unknown_rows(x)):
                raise ValueError(
                    f"X has {len(parts)} partitions, {name} has {len(like)}. Divide both in the "
                    "same way."
                )
            parts = _counted(client, parts)
            like = _divided_anew(_counted(client, like), parts, name)
        found.append(like)
    labels = parts, found[0], found[1] if sample_weight is not None else None
    if not all(is_frame(x) for x in frames):
        return labels, labels
    found = together(frames)
    return (found[0], found[1], found[2] if sample_weight is not None else None), labels


def _divided(x: Any, like: Partitions, name: str) -> Partitions:
    """The partitions of y or of weights."""
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
    if found.rows is not None and like.rows is not None and len(found) == len(like):
        for i, (n, n_x) in enumerate(zip(found.rows, like.rows, strict=True)):
            if n != n_x:
                raise ValueError(
                    f"partition {i} has {n_x:,} rows of X, but {n:,} of {name}. Call "
                    f"{name}.rechunk to divide it as X is."
                )
    return found


# The ``values`` of a DataFrame that is read from files have as many blocks as Dask finds right for
# the number of its columns. Their rows have one order all the same.


def _of_unknown_rows(x: Any) -> bool:
    return isinstance(x, dask.array.Array) and bool(np.isnan(x.chunks[0]).any())


def _counted(client: Any, parts: Partitions) -> Partitions:
    """Partitions whose numbers of rows are known: these are read once where they are not."""
    if parts.rows is not None:
        return parts
    rows = compute(client, delayed([delayed(np.shape)(part) for part in parts.items]), False)
    return Partitions(parts.items, [n for n, *_ in rows])


def _divided_anew(x: Partitions, like: Partitions, name: str) -> Partitions:
    """The rows of x in partitions of as many rows as those of X."""
    assert x.rows is not None
    assert like.rows is not None
    if sum(x.rows) != sum(like.rows):
        raise ValueError(f"X has {sum(like.rows):,} rows, {name} has {sum(x.rows):,}.")
    ends, stops = np.cumsum(x.rows), np.cumsum(like.rows)
    items = []
    for stop, n in zip(stops.tolist(), like.rows, strict=True):
        last = int(np.searchsorted(ends, stop))
        first = min(int(np.searchsorted(ends, stop - n, side="right")), last)
        skipped = stop - n - (int(ends[first]) - x.rows[first])
        items.append(delayed(_rows_of)(x.items[first : last + 1], skipped, n))
    return Partitions(items, like.rows)


def _rows_of(parts: list[Any], start: int, n: int) -> np.ndarray:
    values = [np.asarray(exact_values(part, "y")) for part in parts]
    return concatenated(values)[start : start + n]
