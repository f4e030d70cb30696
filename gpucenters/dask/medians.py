"""Exact l1 centers of partitions: counts settle most columns of text, and the others are sorted.

A class has the median zero, and no other, where less than half of its weight is on positive values
and less than half on negative ones. A column where this holds for all classes has no gain. The
values of the other columns are brought together by ranges of columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from dask.delayed import delayed

from ..arrays.backend import HOST
from ..arrays.namespace import array_namespace, is_sparse, sparse_module, to_numpy
from ..estimators import (
    L1CenterClassifier,
    L2CenterClassifier,
    SparseBernoulliNB,
    SparseMultinomialNB,
)
from ..estimators._fitted import Fitted
from ..estimators._statistics import StatisticsClassifier
from ..estimators.validation import validated
from ..solvers.l1 import L1Centers
from .cluster import compute, task_name
from .partitions import Partitions
from .ranges import Solved, solve_ranges
from .sums import FEWEST_LANES, summed

#: The most values of a range of columns: 128 MB of float64, and as much of indices.
RANGE_VALUES = 2**24

Data = tuple[Partitions, Partitions, Partitions | None]


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
    rows: list[int],
    token: str,
) -> L1CenterClassifier:
    """The l1 model of all partitions; ``model`` is fitted and returned."""
    first = next(i for i, n in enumerate(rows) if n)
    name = task_name("gpucenters-read-form", token, first)
    form = delayed(_form)(model, data[0].items[first], dask_key_name=name)
    attributes, sparse = compute(client, form, False)
    m = attributes["n_features_in_"]
    if sparse:
        settled = _settled(client, model, classes, data, sum(rows), token)
    else:
        scale = None if model.scale is None else np.ones(m)
        settled = _Settled(np.zeros(m), scale, np.arange(m), np.full(m, sum(rows)))
    solved = solve_ranges(client, model, data, _ranges(settled), token)
    centers = _assembled(solved, settled, len(classes))
    fitted = Fitted(HOST, centers, {"k": model.k}, selection=centers.select(model.k))
    model._commit(attributes, classes, fitted)
    return model if model.device in (None, "cpu") else model.to(model.device)


def _form(model: L1CenterClassifier, X: Any) -> tuple[dict[str, Any], bool]:
    """What a fit to a partition would set, and whether it is sparse."""
    checked, attributes = validated(model, X)
    return attributes, is_sparse(checked)


def _settled(
    client: Any, model: L1CenterClassifier, classes: np.ndarray, data: Data, n: int, token: str
) -> _Settled:
    sums: dict[str, tuple[StatisticsClassifier, Callable[[Any], Any] | None]] = {
        "magnitude": (SparseMultinomialNB(), _magnitudes),
        "positive": (SparseBernoulliNB(), None),
        "negative": (SparseBernoulliNB(), _negatives),
    }
    if model.scale is not None:
        sums["scale"] = (L2CenterClassifier(scale=model.scale), None)
    tasks = {
        name: summed(kind, classes, data, FEWEST_LANES, f"{name}-{token}", read)
        for name, (kind, read) in sums.items()
    }
    found = compute(client, delayed(tasks), bool(model.verbose))
    magnitude, positive, negative = (to_numpy(found[name].total) for name in list(sums)[:3])
    weight = np.asarray(found["magnitude"].class_weight)[:, None]
    # With room for the rounding of sums of weights.
    zero = (2.000001 * positive < weight) & (2.000001 * negative < weight)
    others = np.flatnonzero(~zero.all(axis=0))
    # Values are brought together at least for one column, whose solution has the weights.
    others = others if others.size else np.arange(1)
    stored = (positive + negative).sum(axis=0)[others] * (n / weight.sum())
    scale = None
    if model.scale is not None:
        scale = to_numpy(sums["scale"][0].fit_statistics(found["scale"]).scale_).copy()
    return _Settled((magnitude / weight).sum(axis=0), scale, others, stored + 1)


def _magnitudes(X: Any) -> Any:
    """The absolute values: X itself, where it has none below zero."""
    return abs(X) if _has_negatives(X) else X


def _negatives(X: Any) -> Any:
    """A matrix that is positive where X is negative."""
    if _has_negatives(X) or not is_sparse(X):
        return -X
    xp = array_namespace(X)
    return sparse_module(xp).csr_matrix(X.shape, dtype=xp.float64)


def _has_negatives(X: Any) -> bool:
    return bool(array_namespace(X).any((X.data if is_sparse(X) else X) < 0))


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
