"""X, y and sample weights with the rows of one partition together."""

from __future__ import annotations

from typing import Any

import dask.array
import numpy as np
from dask.delayed import delayed
from dask.typing import DaskCollection

from ..arrays.label_values import concatenated, exact_values
from .cluster import compute
from .partitions import Data, Partitions, is_frame, partitions_of, together


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
