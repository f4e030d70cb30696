"""Which columns of sparse partitions can have a median other than zero, and the loss of the others.

A class has the median zero, and no other, where less than half of its weight is stored. A column
where this holds for all classes has no gain. Nearly all columns of text are such, and one count of
their entries shows it. Where it leaves many entries in question, a count by class leaves fewer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from dask.delayed import Delayed, delayed

from ..arrays.backend import HOST
from ..arrays.context import Context, run_with_oom_retry
from ..arrays.namespace import array_namespace, to_numpy
from ..blocks.compressed import Compressed
from ..blocks.errors import raise_overflow
from ..blocks.samples import make_samples
from ..blocks.sparse_sums import absolute_sums, stored_per_column
from ..estimators import L1CenterClassifier, SparseBernoulliNB
from ..estimators.labels import encode_against, host_labels
from ..estimators.validation import work_backend
from .cluster import compute, named, task_name
from .form import Form, checked_partition
from .partitions import Data
from .sums import FEWEST_LANES, folded, rows_of, summed

CALLER = "gpucenters.dask.fit"


class Counts(NamedTuple):
    """Of each column: how many entries are stored, and the l1 loss of centers at zero."""

    stored: np.ndarray
    loss: np.ndarray


def class_weights(client: Any, classes: np.ndarray, data: Data, token: str) -> np.ndarray:
    """W_c over all partitions: (K,)."""
    parts = [
        delayed(_class_weight)(
            i, y, weight, classes, dask_key_name=task_name("gpucenters-weigh-classes", token, i)
        )
        for i, (_, y, weight) in enumerate(rows_of(data))
    ]
    return np.sum(compute(client, delayed(parts), False), axis=0)


def _class_weight(i: int, y: Any, weight: Any, classes: np.ndarray) -> np.ndarray:
    try:
        codes = encode_against(host_labels(y, CALLER, y.shape[0]), classes)
        k = len(classes)
        samples = make_samples(codes, y.shape[0], HOST, n_classes=k, sample_weight=weight)
        return np.asarray(samples.class_weight)
    except Exception as error:
        raise named(error, i) from error


def counted(
    model: L1CenterClassifier,
    classes: np.ndarray,
    weight: np.ndarray,
    data: Data,
    form: Form,
    rows: list[int],
    token: str,
) -> Delayed:
    """The `Counts` of all partitions; ``weight`` are W_c."""
    items = [
        (*item, n, form, model, classes, weight)
        for item, n in zip(rows_of(data), rows, strict=True)
    ]
    return folded(_count, None, items, _merge, FEWEST_LANES, "count-entries", token)


def _count(
    so_far: Counts | None,
    i: int,
    X: Any,
    y: Any,
    sample_weight: Any,
    rows: int,
    form: Form,
    model: L1CenterClassifier,
    classes: np.ndarray,
    weight: np.ndarray,
) -> Counts | None:
    try:
        checked = checked_partition(model, X, rows, form)
        if checked is None:
            return so_far
        codes = encode_against(host_labels(y, CALLER, checked.shape[0]), classes)

        def count(ctx: Context) -> Counts:
            block, samples = model._enter(checked, codes, classes, sample_weight, ctx)
            assert isinstance(block, Compressed)
            share = 1.0 / weight[samples.codes]
            if samples.sample_weight is not None:
                share = share * samples.sample_weight
            loss = to_numpy(absolute_sums(block, share, ctx))
            if not np.all(np.isfinite(loss)):
                block.check_finite(False, ctx)
                raise_overflow(int(np.flatnonzero(~np.isfinite(loss))[0]))
            return Counts(to_numpy(stored_per_column(block, ctx)), loss)

        backend = work_backend(model, checked)
        return _merge([so_far, run_with_oom_retry(count, backend, model.memory_budget)])
    except Exception as error:
        raise named(error, i) from error


def _merge(parts: list[Counts | None]) -> Counts | None:
    found = [part for part in parts if part is not None]
    if len(found) < 2:
        return found[0] if found else None
    first, second = found
    return Counts(first.stored + second.stored, first.loss + second.loss)


def perhaps_not_zero(
    client: Any,
    counts: Counts,
    classes: np.ndarray,
    weight: np.ndarray,
    data: Data,
    form: Form,
    token: str,
) -> np.ndarray:
    """The columns that may have a median other than zero in some class, ascending."""
    stored = counts.stored
    enough = stored > 0 if data[2] is not None else 2 * stored >= weight.min()
    in_question, size = stored[enough].sum(), len(classes) * stored.size
    if size <= stored.sum() <= 8 * in_question:
        model, name = SparseBernoulliNB(), f"class-{token}"
        task = summed(model, classes, data, form, FEWEST_LANES, name, _ones)
        held = to_numpy(compute(client, task, False).total)
        # With room for the rounding of sums of weights.
        enough = np.any(2.000001 * held >= weight[:, None], axis=0)
    return np.flatnonzero(enough)


def _ones(X: Any) -> Any:
    """X with ones for its entries: floats, since many duplicates of small integers wrap to 0."""
    xp = array_namespace(X)
    ones = xp.ones_like(X.data, dtype=xp.float32)
    return type(X)((ones, X.indices, X.indptr), shape=X.shape)
