"""Exact l1 centers of partitions: counts settle most columns of text, and the others are sorted.

The values of the columns that are not settled are brought together by ranges of columns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from dask.delayed import Delayed, delayed

from ..arrays.backend import HOST
from ..arrays.namespace import to_numpy
from ..blocks.samples import raise_without_weight
from ..estimators import L1CenterClassifier, L2CenterClassifier
from ..estimators._fitted import Fitted
from ..solvers.l1 import L1Centers
from .cluster import compute
from .counts import class_weights, counted, perhaps_not_zero
from .form import Form, first_form
from .partitions import Data
from .ranges import Solved, solve_ranges
from .sums import FEWEST_LANES, summed

#: The most values of a range of columns: 128 MB of float64, and as much of indices.
RANGE_VALUES = 2**24


class _Settled(NamedTuple):
    """What the columns add that need no values brought together, and which the others are."""

    loss: np.ndarray
    scale: np.ndarray | None
    others: np.ndarray
    values: np.ndarray  # of each of the others, about


def fit_medians(
    client: Any,
    model: L1CenterClassifier,
    classes: np.ndarray,
    data: Data,
    narrow: Data,
    rows: list[int],
    token: str,
) -> L1CenterClassifier:
    """The l1 model of all partitions; ``model`` is fitted and returned.

    ``narrow`` are the data for tasks that read y and weights alone.
    """
    form = compute(client, first_form(data[0], rows, token, model), False)
    weight = class_weights(client, classes, narrow, token)
    raise_without_weight([int(w > 0) for w in weight], classes)
    m = form.attributes["n_features_in_"]
    if form.sparse:
        counts = counted(model, classes, weight, data, form, rows, token)
        settled = _settled(client, model, classes, weight, data, form, counts, token)
    else:
        scale = None if model.scale is None else np.ones(m)
        settled = _Settled(np.zeros(m), scale, np.arange(m), np.full(m, sum(rows)))
    solved = solve_ranges(client, model, data, form, rows, _ranges(settled), token)
    centers = _assembled(solved, settled, len(classes))
    fitted = Fitted(HOST, centers, {"k": model.k}, selection=centers.select(model.k))
    model._commit(form.attributes, classes, fitted)
    return model if model.device in (None, "cpu") else model.to(model.device)


def _settled(
    client: Any,
    model: L1CenterClassifier,
    classes: np.ndarray,
    weight: np.ndarray,
    data: Data,
    form: Form,
    counting: Delayed,
    token: str,
) -> _Settled:
    moments, tasks = L2CenterClassifier(scale=model.scale), {"counts": counting}
    if model.scale is not None:
        tasks["scale"] = summed(moments, classes, data, form, FEWEST_LANES, f"scale-{token}")
    found = compute(client, delayed(tasks), bool(model.verbose))
    counts, scale = found["counts"], None
    if model.scale is not None:
        scale = to_numpy(moments.fit_statistics(found["scale"]).scale_).copy()
    others = perhaps_not_zero(client, counts, classes, weight, data, form, token)
    # Values are brought together at least for one column, whose solution has the weights.
    others = others if others.size else np.arange(1)
    return _Settled(counts.loss, scale, others, counts.stored[others] + 1)


def _ranges(settled: _Settled) -> list[np.ndarray]:
    """The columns in ranges of about `RANGE_VALUES` values."""
    number = np.cumsum(settled.values) // RANGE_VALUES
    return np.split(settled.others, np.flatnonzero(np.diff(number)) + 1)


def _assembled(solved: list[Solved], settled: _Settled, n_classes: int) -> L1Centers:
    """The centers of all columns."""
    m = settled.loss.shape[0]
    free, tied, gain = np.zeros((n_classes, m)), np.zeros(m), np.zeros(m)
    loss, scale = settled.loss.copy(), settled.scale
    loss[settled.others] = 0.0
    for columns, found in solved:
        free[:, columns], tied[columns], gain[columns] = found.free_, found.tied_, found.gain
        if scale is not None:
            scale[columns] = found.scale
    if scale is not None:
        loss /= scale
    total = float(loss.sum()) + sum(found.loss for _, found in solved)
    weight = solved[0].centers.class_weight
    return L1Centers(HOST, weight, gain, total, scale, free, tied)
