"""Exact l1 centers of partitions: counts settle most columns of text, and the others are sorted.

The values of the columns that are not settled are brought together by ranges of columns.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from dask.delayed import delayed
from sklearn.base import clone

from ..arrays.backend import HOST, Backend, backend_of, resolve_backend
from ..arrays.context import Context, run_with_oom_retry
from ..arrays.namespace import is_sparse, sparse_module, to_numpy
from ..blocks.convert import as_block
from ..blocks.samples import Samples, check_weights, make_samples, raise_without_weight
from ..blocks.sparse import SparseBlock
from ..blocks.validation import as_float64, raise_overflow
from ..estimators.centers import L1CenterClassifier, L2CenterClassifier
from ..estimators.fitted import Fitted, FittedModel, commit
from ..estimators.validation import check_container, encode_against, host_labels
from ..reductions.medians import absolute_sums, stored_by_class, stored_per_column
from ..reductions.sparse_sorting import perhaps_not_zero
from ..solvers.l1 import L1Centers
from .partitions import Form, compute, each, first_form, has_rows, of_partition
from .sums import FEWEST_LANES, folded, summed

#: The most values of a range of columns: 128 MB of float64, and as much of indices.
RANGE_VALUES = 2**24

Count = Callable[[SparseBlock, Samples, Context], tuple[np.ndarray, ...]]


def fit_medians(
    client: Any,
    model: L1CenterClassifier,
    classes: np.ndarray,
    weight: np.ndarray,
    rows: list[int],
    data: list[tuple[Any, Any, Any]],
    token: str,
) -> L1CenterClassifier:
    """The l1 model of all partitions; ``model`` is fitted and returned.

    ``weight`` are W_c, and ``rows`` the numbers of rows of the partitions.
    """
    raise_without_weight([int(w > 0) for w in weight], classes)
    form = compute(client, first_form([X for X, *_ in data], rows, token, model))
    m = form.attributes["n_features_in_"]
    loss, scale = np.zeros(m), None if model.scale is None else np.ones(m)
    columns, values = np.arange(m), np.full(m, sum(rows))
    shared = form, model, classes
    if form.sparse:

        def count(what: Count, name: str) -> Any:
            arguments = *shared, what
            return folded(_count, None, data, arguments, _merge, FEWEST_LANES, name, token)

        tasks = {"counts": count(partial(_stored_and_loss, weight=weight), "count-entries")}
        moments = L2CenterClassifier(scale=model.scale)
        if scale is not None:
            tasks["moments"] = summed(moments, classes, data, form, FEWEST_LANES, token)
        found = compute(client, tasks, model.verbose)
        stored, loss = found["counts"]
        if scale is not None:
            scale = to_numpy(moments.fit_statistics(found["moments"]).scale_).copy()
        enough: Any = perhaps_not_zero(
            stored,
            int(stored.sum()),
            weight.tolist(),
            lambda: compute(client, count(_by_class, "count-by-class"))[0],
            weighted=any(w is not None for *_, w in data),
        )
        # Values are brought together at least for one column, whose solution has the weights.
        columns = np.flatnonzero(enough) if np.any(enough) else np.arange(1)
        values = stored[columns] + 1
    number = np.cumsum(values) // RANGE_VALUES
    ranges = np.split(columns, np.flatnonzero(np.diff(number)) + 1)
    arguments = *shared, ranges
    cuts = each(_cut, [(*d, *arguments) for d in data], "cut-columns", token, nout=len(ranges))
    # Each range finds its own columns, of all features: k, "all" here, is for all ranges together.
    local = clone(model).set_params(k="all", verbose=False)
    solving = [
        delayed(_solve)(
            local, [cut[r] for cut in cuts], dask_key_name=f"gpucenters-solve-columns-{r}-{token}"
        )
        for r in range(len(ranges))
    ]
    solved = compute(client, solving, model.verbose)
    centers = _assembled(ranges, solved, loss, scale)
    fitted = Fitted(HOST, centers, {"k": model.k}, selection=centers.select(model.k))
    commit(model, form.attributes, classes, fitted)
    return model if model.device in (None, "cpu") else model.to(model.device)


def _checked(
    X: Any, y: Any, form: Form, model: L1CenterClassifier, classes: np.ndarray
) -> tuple[Any, np.ndarray] | None:
    """A partition as an array, CSR or CSC, and its codes; None without rows."""
    if not has_rows(X, y.shape[0], form):
        return None
    checked = check_container(X, model)
    if is_sparse(checked) != form.sparse:
        kinds = ("sparse", "dense") if form.sparse else ("dense", "sparse")
        raise TypeError(f"X is {kinds[1]}, and that of partition {form.partition} is {kinds[0]}.")
    if checked.dtype == object:
        checked = as_float64(checked, 0, range(checked.shape[1]))
    return checked, encode_against(host_labels(y, "gpucenters.dask.fit", len(y)), classes)


# Which columns of sparse partitions can have a median other than zero, and the loss of the others.


@of_partition
def _count(
    i: int,
    so_far: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    form: Form,
    model: L1CenterClassifier,
    classes: np.ndarray,
    count: Count,
) -> Any:
    """The counts of a lane with those of a partition added."""
    checked = _checked(X, y, form, model, classes)
    if checked is None:
        return so_far
    X, codes = checked

    def work(ctx: Context) -> tuple[np.ndarray, ...]:
        block, (n, k) = as_block(X, ctx.backend, checked=True), (len(codes), len(classes))
        assert isinstance(block, SparseBlock)
        samples = make_samples(codes, n, ctx.backend, n_classes=k, sample_weight=sample_weight)
        return count(block, samples, ctx)

    found = run_with_oom_retry(work, resolve_backend(model.device, X), model.memory_budget)
    return _merge([so_far, found])


def _stored_and_loss(
    block: SparseBlock, samples: Samples, ctx: Context, *, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Of each column: how many entries are stored, and the l1 loss of centers at zero."""
    loss = to_numpy(absolute_sums(block, samples.shares(weight), ctx))
    if not np.all(np.isfinite(loss)):
        block.check_finite(False, ctx)
        raise_overflow(np.isfinite(loss))
    return to_numpy(stored_per_column(block, ctx)), loss


def _by_class(block: SparseBlock, samples: Samples, ctx: Context) -> tuple[np.ndarray]:
    """The weight of the samples of each class that store an entry of each column."""
    return (to_numpy(stored_by_class(block, samples, ctx)),)


def _merge(parts: list[Any]) -> Any:
    """The sums of counts; None where no partition has rows."""
    found = [part for part in parts if part is not None]
    return tuple(map(sum, zip(*found, strict=True))) if found else None


# Ranges of columns of all partitions, brought together and solved one by one.


@of_partition
def _cut(
    i: int,
    X: Any,
    y: Any,
    sample_weight: Any,
    form: Form,
    model: L1CenterClassifier,
    classes: np.ndarray,
    ranges: list[np.ndarray],
) -> list[tuple[Any, np.ndarray, np.ndarray | None] | None]:
    """(columns of X, codes, weights) for each range; None of a partition without rows."""
    checked = _checked(X, y, form, model, classes)
    if checked is None:
        return [None] * len(ranges)
    X, codes = checked
    codes = codes.astype(np.min_scalar_type(len(classes)))
    weight = check_weights(sample_weight, len(codes))
    here = backend_of(X)
    with here.current():
        if is_sparse(X):  # most columns of text are in no range
            X = X[:, np.concatenate(ranges)].tocsc()
            ranges = np.split(np.arange(X.shape[1]), np.cumsum([r.size for r in ranges])[:-1])
        else:  # later, partitions cannot be told apart; entries of sparse ones are counted before
            as_block(X, here, checked=True).check_finite(False, Context.of(here))
        return [(X[:, columns], codes, weight) for columns in ranges]


def _solve(model: L1CenterClassifier, pieces: list[Any]) -> L1Centers:
    """The l1 centers of a range of columns, on the host."""
    held, codes, weights = zip(*(piece for piece in pieces if piece is not None), strict=True)
    here = backend_of(held[0])
    with here.current():
        parts = [_moved(part, here) for part in held]
        if is_sparse(parts[0]):
            X = sparse_module(here.xp).vstack(parts, format="csc")
        else:
            X = here.xp.concat(parts, axis=0)
    weight = None
    if any(w is not None for w in weights):
        pairs = zip(codes, weights, strict=True)
        weight = np.concatenate([np.ones(len(y)) if w is None else w for y, w in pairs])
    found = FittedModel(model.fit(X, np.concatenate(codes), weight)).centers.to(HOST)
    assert isinstance(found, L1Centers)
    return found


def _moved(part: Any, here: Backend) -> Any:
    """A part beside the others: partitions may lie on several devices."""
    if backend_of(part) == here:
        return part
    if not is_sparse(part):
        return here.move(part)
    arrays = tuple(here.move(x) for x in (part.data, part.indices, part.indptr))
    return sparse_module(here.xp).csc_matrix(arrays, shape=part.shape)


def _assembled(
    ranges: list[np.ndarray], solved: list[L1Centers], loss: np.ndarray, scale: np.ndarray | None
) -> L1Centers:
    """The centers of all columns; ``loss`` and ``scale`` are those of the settled ones."""
    m, weight = len(loss), solved[0].class_weight
    free, tied, gain = np.zeros((len(weight), m)), np.zeros(m), np.zeros(m)
    for columns, found in zip(ranges, solved, strict=True):
        free[:, columns], tied[columns], gain[columns] = found.free_, found.tied_, found.gain
        loss[columns] = 0.0
        if scale is not None:
            scale[columns] = found.scale
    if scale is not None:
        loss = loss / scale
    total = float(loss.sum()) + sum(found.loss for found in solved)
    return L1Centers(HOST, weight, gain, total, scale, free, tied)
