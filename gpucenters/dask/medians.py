"""Exact l1 centers of partitions: counts settle most columns of text, and the others are sorted.

The values of the columns that are not settled are brought together by ranges of columns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from dask.delayed import Delayed, delayed
from sklearn.base import clone

from ..arrays.backend import HOST, Backend, backend_of
from ..arrays.context import Context, run_with_oom_retry
from ..arrays.inputs import concatenated, exact_values
from ..arrays.namespace import array_namespace, is_sparse, sparse_module, to_numpy
from ..blocks.convert import as_block
from ..blocks.samples import check_weights, make_samples, raise_without_weight
from ..blocks.sparse import SparseBlock
from ..blocks.validation import raise_overflow
from ..estimators.centers import L1CenterClassifier, L2CenterClassifier
from ..estimators.fitted import Fitted, FittedModel, commit
from ..estimators.naive_bayes import SparseBernoulliNB
from ..estimators.validation import encode_against, host_labels, work_backend
from ..reductions.medians import absolute_sums, stored_per_column
from ..reductions.sparse_sorting import enough_stored, perhaps_half, worth_a_count_by_class
from ..solvers.l1 import L1Centers
from .partitions import Data, Form, checked_partition, compute, first_form, named, task_name
from .sums import FEWEST_LANES, folded, rows_of, summed

CALLER = "gpucenters.dask.fit"
#: The most values of a range of columns: 128 MB of float64, and as much of indices.
RANGE_VALUES = 2**24


# Which columns of sparse partitions can have a median other than zero, and the loss of the
# others.
#
# A class has the median zero, and no other, where less than half of its weight is stored. A
# column where this holds for all classes has no gain. Nearly all columns of text are such, and
# one count of their entries shows it. Where it leaves many entries in question, a count by class
# leaves fewer.


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
            block, (n, k) = as_block(checked, ctx.backend, checked=True), (len(codes), len(classes))
            assert isinstance(block, SparseBlock)
            samples = make_samples(codes, n, ctx.backend, n_classes=k, sample_weight=sample_weight)
            loss = to_numpy(absolute_sums(block, samples.shares(weight), ctx))
            if not np.all(np.isfinite(loss)):
                block.check_finite(False, ctx)
                raise_overflow(np.isfinite(loss))
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
    enough = enough_stored(stored, float(weight.min()), weighted=data[2] is not None)
    if worth_a_count_by_class(stored, enough, int(stored.sum()), len(classes)):
        model, name = SparseBernoulliNB(), f"class-{token}"
        task = summed(model, classes, data, form, FEWEST_LANES, name, _ones)
        held = to_numpy(compute(client, task, False).total)
        enough = perhaps_half(held, weight)
    return np.flatnonzero(to_numpy(enough))


def _ones(X: Any) -> Any:
    """X with ones for its entries: floats, since many duplicates of small integers wrap to 0."""
    xp = array_namespace(X)
    ones = xp.ones_like(X.data, dtype=xp.float32)
    return type(X)((ones, X.indices, X.indptr), shape=X.shape)


# Ranges of columns of all partitions, brought together and solved one by one.


class Solved(NamedTuple):
    """The solution of some columns, on the host."""

    columns: np.ndarray
    centers: L1Centers


def solve_ranges(
    client: Any,
    model: L1CenterClassifier,
    data: Data,
    form: Form,
    rows: list[int],
    ranges: list[np.ndarray],
    token: str,
) -> list[Solved]:
    """The l1 centers of each range of columns, from the rows of all partitions."""
    X, y, weight = data
    cuts = [
        delayed(_cut, nout=len(ranges))(
            i,
            part,
            n,
            form,
            model,
            ranges,
            dask_key_name=task_name("gpucenters-cut-columns", token, i),
        )
        for i, (part, n) in enumerate(zip(X.items, rows, strict=True))
    ]
    name = task_name("gpucenters-join-labels", token)
    whole = [delayed(_joined)(y.items, dask_key_name=name)]
    if weight is not None:
        name = task_name("gpucenters-join-weights", token)
        whole.append(delayed(_joined_weights)(weight.items, rows, dask_key_name=name))
    # Each range finds its own columns, of all features: k, "all" here, is for all ranges together.
    local = clone(model).set_params(k="all", verbose=False)
    tasks = [
        delayed(_solve)(
            local,
            columns,
            [cut[r] for cut in cuts],
            *whole,
            dask_key_name=task_name("gpucenters-solve-columns", f"{r}-{token}"),
        )
        for r, columns in enumerate(ranges)
    ]
    return compute(client, delayed(list)(tasks), bool(model.verbose))


def _cut(
    i: int,
    X: Any,
    rows: int,
    form: Form,
    model: L1CenterClassifier,
    ranges: list[np.ndarray],
) -> tuple[Any, ...]:
    """The columns of each range; None of a partition without rows."""
    try:
        X = checked_partition(model, X, rows, form)
        if X is None:
            return (None,) * len(ranges)
        here = backend_of(X)
        with here.current():
            # Later, partitions cannot be told apart.
            as_block(X, here, checked=True).check_finite(False, Context.of(here))
            if is_sparse(X):  # most columns of text are in no range
                X = X[:, np.concatenate(ranges)].tocsc()
                ranges = np.split(np.arange(X.shape[1]), np.cumsum([r.size for r in ranges])[:-1])
            return tuple(X[:, columns] for columns in ranges)
    except Exception as error:
        raise named(error, i) from error


def _joined(parts: list[Any]) -> Any:
    held = [part for part in parts if part.shape[0]]
    return concatenated([np.asarray(exact_values(part, "y")).reshape(-1) for part in held])


def _joined_weights(parts: list[Any], rows: list[int]) -> np.ndarray:
    """The weights of all rows; those of a partition may be one number, or None for 1."""
    weights = [check_weights(part, n) for part, n in zip(parts, rows, strict=True)]
    return np.concatenate(
        [np.ones(n) if w is None else w for w, n in zip(weights, rows, strict=True)]
    )


def _solve(
    model: L1CenterClassifier, columns: np.ndarray, pieces: list[Any], y: Any, weight: Any = None
) -> Solved:
    pieces = [piece for piece in pieces if piece is not None]
    here = backend_of(pieces[0])
    with here.current():
        pieces = [_moved(piece, here) for piece in pieces]
        if is_sparse(pieces[0]):
            X = sparse_module(here.xp).vstack(pieces, format="csc")
        else:
            X = here.xp.concat(pieces, axis=0)
    centers = FittedModel(model.fit(X, y, sample_weight=weight)).centers.to(HOST)
    assert isinstance(centers, L1Centers)
    return Solved(columns, centers)


def _moved(piece: Any, here: Backend) -> Any:
    """A piece beside the others: partitions may lie on several devices."""
    if backend_of(piece) == here:
        return piece
    if not is_sparse(piece):
        return here.move(piece)
    parts = tuple(here.move(x) for x in (piece.data, piece.indices, piece.indptr))
    return sparse_module(here.xp).csc_matrix(parts, shape=piece.shape)


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
    commit(model, form.attributes, classes, fitted)
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
