"""Dask collections: clusters, partitions, and the form of X."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from typing import Any, NamedTuple

import dask.array
import distributed
import numpy as np
from dask.delayed import Delayed, delayed
from dask.typing import DaskCollection
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from .. import __version__
from ..arrays.inputs import concatenated, exact_values
from ..arrays.namespace import is_sparse
from ..estimators.validation import check_container

#: How often a task that fails is tried again: a file system or a network may fail once.
RETRIES = 2


# Running tasks on a Dask cluster: progress, retries, and errors that name the partition.


def check_versions(client: Any) -> None:
    """Raise a RuntimeError that names a worker with another version of gpucenters, or none."""
    found = client.get_versions(packages=["gpucenters"])["workers"]
    for worker, versions in found.items():
        version = versions["packages"].get("gpucenters")
        if version != __version__:
            raise RuntimeError(
                f"worker {worker} has gpucenters {version}, this process {__version__}: install "
                "one version everywhere."
            )


def current_client(client: Any) -> Any:
    """The client that is given, or else the current one."""
    if client is None:
        try:
            client = distributed.get_client()
        except ValueError as error:
            raise ValueError(
                "there is no Dask client: start one, as with dask.distributed.Client(), or pass "
                "it as client."
            ) from error
    if client.asynchronous:
        raise TypeError("gpucenters.dask needs a client that is not asynchronous.")
    check_versions(client)
    return client


@contextlib.contextmanager
def out_of_the_pool() -> Iterator[None]:
    """Leave the threads of a worker to the tasks that are waited for, where a task itself waits."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(ValueError):  # no task
            stack.enter_context(distributed.worker_client())
        yield


def task_name(what: str, token: str, number: int) -> str:
    """The key of a task: the dashboard shows ``what``, and errors find the partition."""
    return f"gpucenters-{what}-{token}-{number}"


def compute(client: Any, task: Any, verbose: Any = False) -> Any:
    """The result of a delayed object, or those of a list or dict of them.

    Raises
    ------
    Exception
        That of the task that failed, with the number of its partition.
    """
    future = client.compute(delayed(task), retries=RETRIES)
    if verbose:
        distributed.progress(future, notebook=False)
        print()
    error = future.exception()  # waits for the end
    if error is None:
        return future.result()
    partition = client.run_on_scheduler(_partition_to_blame, key=future.key)
    raise named(error, partition) from error


def of_partition(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a partition, whose number comes first: its errors name the partition."""

    @wraps(function)
    def task(i: int, *arguments: Any) -> Any:
        try:
            return function(i, *arguments)
        except Exception as error:
            raise named(error, i) from error

    return task


def each(
    function: Callable[..., Any],
    items: Iterable[tuple[Any, ...]],
    what: str,
    token: str,
    **options: Any,
) -> list[Any]:
    """A task ``function(i, *item)`` for each partition; ``options`` are those of `delayed`."""
    task = delayed(function, **options)
    return [task(i, *item, dask_key_name=task_name(what, token, i)) for i, item in enumerate(items)]


def named(error: BaseException, partition: int | None) -> BaseException:
    """The error with the number of the partition in its message."""
    if partition is None or str(error).startswith("partition "):
        return error
    for kind in (ValueError, TypeError, MemoryError):
        if isinstance(error, kind):
            return kind(f"partition {partition}: {error}")
    return RuntimeError(f"partition {partition}: {type(error).__name__}: {error}")


def _partition_to_blame(dask_scheduler: Any, key: str) -> int | None:
    """The partition of the task that made another one fail.

    It runs on the scheduler. The task that failed is ours, and its key ends with the partition; or
    the caller's, and then the first of ours that depends on it tells.
    """
    task = dask_scheduler.tasks.get(key)
    blamed = task and task.exception_blame
    waiting, seen = [blamed] if blamed else [], set()
    while waiting:
        task = waiting.pop(0)
        found = re.fullmatch(r"gpucenters-.*-(\d+)", str(task.key))
        if found:
            return int(found[1])
        seen.add(task.key)
        waiting += [t for t in task.dependents if t.key not in seen]
    return None


class Partitions(NamedTuple):
    """Delayed objects, or futures, of the partitions of a collection, and their known numbers.

    ``rows`` are the numbers of rows of the partitions, None where they are not known.
    """

    items: list[Any]
    rows: list[int] | None = None

    def __len__(self) -> int:
        return len(self.items)


def partitions_of(x: Any, name: str) -> Partitions:
    """The partitions of a Dask array or DataFrame, or of a list of delayed objects or futures."""
    if isinstance(x, dask.array.Array):
        return _of_array(x, name)
    if is_frame(x):
        return together([x])[0]
    if (
        isinstance(x, Sequence)
        and x
        and all(isinstance(item, Delayed | distributed.Future) for item in x)
    ):
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


# X, y and sample weights with the rows of one partition together.


class Aligned(NamedTuple):
    """X, y and weights in the same partitions.

    Attributes
    ----------
    data : list of (X, y, sample_weight)
        Of each partition; None without weights.
    labels : list of (y, sample_weight)
        For tasks that read these alone: from files they read no column of X.
    rows : list of int, or None
        The numbers of rows of X, where they are known.
    """

    data: list[tuple[Any, Any, Any]]
    labels: list[tuple[Any, Any]]
    rows: list[int] | None


def aligned(client: Any, X: Any, y: Any, sample_weight: Any) -> Aligned:
    """The partitions of X, y and sample weights; an error says how they differ.

    An array in memory is divided as X is, where X's numbers of rows are known.
    """
    parts = partitions_of(X, "X")
    others = {"y": y} if sample_weight is None else {"y": y, "sample_weight": sample_weight}
    found = []
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
    frames = [X, *others.values()]
    joint = together(frames) if all(map(is_frame, frames)) else [parts, *found]
    none = [[None] * len(parts)] * (sample_weight is None)
    data, labels = ([p.items for p in some] + none for some in (joint, found))
    return Aligned([*zip(*data, strict=True)], [*zip(*labels, strict=True)], parts.rows)


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
    rows = compute(client, [delayed(np.shape)(part) for part in parts.items])
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


# What the partitions of X must share: width, names of the features, and for l1 sparse or dense.


class Form(NamedTuple):
    """Of a partition: the attributes that a fit to it sets, and, for l1, whether it is sparse."""

    partition: int
    attributes: dict[str, Any]
    sparse: bool | None


def first_form(parts: list[Any], rows: list[int], token: str, caller: Any = None) -> Delayed:
    """The `Form` of the first partition with rows; for l1, the ``caller``, whether it is sparse."""
    first = next(i for i, n in enumerate(rows) if n)
    name = task_name("read-form", token, first)
    return delayed(_form_of)(first, parts[first], rows[first], caller, dask_key_name=name)


@of_partition
def _form_of(i: int, X: Any, rows: int, caller: Any) -> Form:
    require_rows(X, rows)
    sparse = None if caller is None else is_sparse(check_container(X, caller))
    return Form(i, _attributes(X), sparse)


def _attributes(X: Any) -> dict[str, Any]:
    """The number of features and, of a DataFrame, their names."""
    if len(X.shape) != 2:
        raise ValueError(f"X must have two dimensions, got an array of shape {X.shape}.")
    fitted = BaseEstimator()
    validate_data(fitted, X, reset=True, skip_check_array=True)
    return vars(fitted)


def has_rows(X: Any, rows: int, form: Form) -> bool:
    """Whether a partition has rows; raises unless it has the features of the first one."""
    require_rows(X, rows)
    if not rows:
        return False
    here, there = _attributes(X), form.attributes
    n, m = here["n_features_in_"], there["n_features_in_"]
    if n != m:
        raise ValueError(f"X has {n:,} features, but that of partition {form.partition} has {m:,}.")
    if "feature_names_in_" in here and "feature_names_in_" in there:
        pairs = zip(here["feature_names_in_"], there["feature_names_in_"], strict=True)
        for feature, (name, first) in enumerate(pairs):
            if name != first:
                raise ValueError(
                    f"the feature names of X differ from those of partition {form.partition}: "
                    f"feature {feature} is {name!r}, there {first!r}. Select the same columns of "
                    "every partition, in one order."
                )
    return True


def require_rows(X: Any, rows: int) -> None:
    """Raise unless X has as many rows as there are labels."""
    if not hasattr(X, "shape"):
        raise TypeError(f"X must be an array, a sparse matrix or a DataFrame, got {type(X)}.")
    if X.shape[0] != rows:
        raise ValueError(f"X has {X.shape[0]:,} rows, but there are {rows:,} labels.")
