"""Statistics of all partitions: added along a few lanes, which are merged by a tree.

The partitions of a lane are added in their order, each to a copy of the sums before it. So a task
that is run anew adds nothing twice; the result has the same bits for any number of workers and any
order of completion; and memory is bounded by lanes, not by partitions. Of sums and partition,
the scheduler moves to the other whichever is smaller.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from dask.delayed import Delayed, delayed

from ..arrays.backend import backend_of
from ..estimators.fitted import FittedModel
from ..estimators.from_statistics import StatisticsClassifier
from ..estimators.validation import check_container
from ..statistics.base import Statistics
from .partitions import Data, Form, named, require_form, require_rows, task_name

#: Fewest and most lanes, and the bytes that the sums of all lanes may take where there are more.
FEWEST_LANES, MOST_LANES, LANE_BYTES = 8, 64, 2**30


def n_lanes(n_partitions: int, sums_bytes: int) -> int:
    """The number of lanes: a function of the data alone, so that the bits are too."""
    lanes = LANE_BYTES // max(sums_bytes, 1)
    return max(1, min(n_partitions, max(FEWEST_LANES, min(MOST_LANES, lanes))))


def folded(
    step: Callable[..., Any],
    start: Any,
    items: list[tuple[Any, ...]],
    merge: Callable[[list[Any]], Any],
    lanes: int,
    what: str,
    token: str,
) -> Delayed:
    """What the partitions add to each other, as a delayed object.

    Parameters
    ----------
    step : callable
        ``step(so_far, i, *item)`` is a new object: that of a lane with partition i added.
    start : object
        What each lane begins with.
    items : list of tuples
        The arguments of each partition.
    merge : callable
        The object of one or two lanes.
    lanes : int
    what, token : str
        What the tasks do, for the dashboard, and what makes their names unique.
    """
    n, ends = len(items), dict[int, Delayed]()
    for i, item in enumerate(items):
        lane = i * lanes // n
        name = task_name(f"gpucenters-{what}", token, i)
        ends[lane] = delayed(step)(ends.get(lane, start), i, *item, dask_key_name=name)
    level, merging = list(ends.values()), 0
    while len(level) > 1 or not merging:
        level = [
            delayed(merge)(
                level[j : j + 2],
                dask_key_name=task_name(f"gpucenters-merge-{merging}", f"{j}-{token}"),
            )
            for j in range(0, len(level), 2)
        ]
        merging += 1
    return level[0]


def summed(
    model: StatisticsClassifier,
    classes: np.ndarray,
    data: Data,
    form: Any,
    lanes: int,
    token: str,
    read: Callable[[Any], Any] | None = None,
) -> Delayed:
    """The statistics of all partitions that a model needs, as a delayed object.

    Parameters
    ----------
    model : StatisticsClassifier
        Not fitted.
    classes : array of shape (K,)
        All labels.
    data : (X, y, sample_weight)
    form : Form or Delayed
        Of the first partition with rows.
    lanes : int
    token : str
    read : callable, optional
        What is done with each X first.
    """
    items = [(*item, form, classes, read) for item in rows_of(data)]
    return folded(_add, model, items, _merge, lanes, "add-partition", token)


def rows_of(data: Data) -> list[tuple[Any, Any, Any]]:
    """(X, y, sample_weight) of each partition; None without weights."""
    X, y, weight = data
    weights = [None] * len(X) if weight is None else weight.items
    return list(zip(X.items, y.items, weights, strict=True))


def _add(
    model: Any, i: int, X: Any, y: Any, weight: Any, form: Form, classes: Any, read: Any
) -> Any:
    """A copy of the model with a partition added."""
    try:
        require_rows(X, y.shape[0])
        if X.shape[0] == 0:
            return model
        require_form(X, form)
        if read is not None:
            X = check_container(X, "gpucenters.dask.fit")
            with backend_of(X).current():
                X = read(X)
        return _copied(model, X).partial_fit(X, y, classes=classes, sample_weight=weight)
    except Exception as error:
        raise named(error, i) from error


def _copied(model: Any, X: Any) -> Any:
    """A copy with sums on the device of X: the partitions of a lane may lie on several."""
    here = backend_of(X)
    if not hasattr(model, "classes_") or model.device is not None:
        return copy.copy(model)
    fitted = FittedModel(model)
    with here.current():
        sums = fitted.state.share().moved(here)
    return fitted.copy(backend=here, statistics=sums)


def _merge(parts: list[Any]) -> Statistics | None:
    """The statistics of models or of merged lanes; None where there is no sample."""
    found = [s for s in map(_statistics, parts) if s is not None]
    if not found:
        return None
    return found[0] if len(found) == 1 else found[0].copy().merge(found[1])


def _statistics(part: Any) -> Statistics | None:
    if part is None or isinstance(part, Statistics):
        return part
    if not hasattr(part, "classes_"):  # all its partitions are empty
        return None
    statistics = copy.copy(FittedModel(part).state.share())
    statistics.classes = part.classes_
    statistics.feature_names = getattr(part, "feature_names_in_", None)
    return statistics
