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
from ..statistics.base import Statistics
from .partitions import Form, has_rows, of_partition, task_name

#: Fewest and most lanes, and the bytes that the sums of all lanes may take where there are more.
FEWEST_LANES, MOST_LANES, LANE_BYTES = 8, 64, 2**30


def n_lanes(n_partitions: int, sums_bytes: int) -> int:
    """The number of lanes: a function of the data alone, so that the bits are too."""
    lanes = LANE_BYTES // max(sums_bytes, 1)
    return max(1, min(n_partitions, max(FEWEST_LANES, min(MOST_LANES, lanes))))


def folded(
    step: Callable[..., Any],
    start: Any,
    data: list[tuple[Any, Any, Any]],
    shared: tuple[Any, ...],
    merge: Callable[[list[Any]], Any],
    lanes: int,
    what: str,
    token: str,
) -> Delayed:
    """What the partitions add to each other, as a delayed object.

    Parameters
    ----------
    step : callable
        ``step(i, so_far, X, y, sample_weight, *shared)`` is a new object: that of a lane with
        partition i added.
    start : object
        What each lane begins with.
    data : list of (X, y, sample_weight)
    shared : tuple
    merge : callable
        The object of one or two lanes.
    lanes : int
    what, token : str
        What the tasks do, for the dashboard, and what makes their names unique.
    """
    n, ends = len(data), dict[int, Delayed]()
    for i, item in enumerate(data):
        lane, name = i * lanes // n, task_name(what, token, i)
        ends[lane] = delayed(step)(i, ends.get(lane, start), *item, *shared, dask_key_name=name)
    level, merging = list(ends.values()), 0
    while len(level) > 1 or not merging:
        level = [
            delayed(merge)(
                level[j : j + 2],
                dask_key_name=f"gpucenters-merge-{merging}-{j}-{what}-{token}",
            )
            for j in range(0, len(level), 2)
        ]
        merging += 1
    return level[0]


def summed(
    model: StatisticsClassifier,
    classes: np.ndarray,
    data: list[tuple[Any, Any, Any]],
    form: Any,
    lanes: int,
    token: str,
) -> Delayed:
    """The statistics of all partitions that a model needs, as a delayed object."""
    return folded(_add, model, data, (form, classes), _merge, lanes, "add-partition", token)


@of_partition
def _add(i: int, model: Any, X: Any, y: Any, weight: Any, form: Form, classes: Any) -> Any:
    """A copy of the model with a partition added."""
    if not has_rows(X, y.shape[0], form):
        return model
    return _copied(model, X).partial_fit(X, y, classes=classes, sample_weight=weight)


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
