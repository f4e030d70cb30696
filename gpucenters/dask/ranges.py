"""Ranges of columns of all partitions, brought together and solved one by one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from dask.delayed import delayed
from sklearn.base import clone

from ..arrays.backend import HOST, Backend, backend_of
from ..arrays.label_values import concatenated, exact_values
from ..arrays.namespace import array_namespace, is_sparse, sparse_module
from ..blocks.errors import raise_bad_value
from ..blocks.samples import check_weights
from ..estimators import L1CenterClassifier
from ..solvers.l1 import L1Centers
from .cluster import compute, named, task_name
from .form import Form, checked_partition
from .partitions import Data


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
        with backend_of(X).current():
            _check_finite(X)
            if is_sparse(X):  # most columns of text are in no range
                X = X[:, np.concatenate(ranges)].tocsc()
                ranges = np.split(np.arange(X.shape[1]), np.cumsum([r.size for r in ranges])[:-1])
            return tuple(X[:, columns] for columns in ranges)
    except Exception as error:
        raise named(error, i) from error


def _check_finite(X: Any) -> None:
    """Raise for a value that is not finite: later, partitions cannot be told apart."""
    xp = array_namespace(X)
    values = X.data if is_sparse(X) else X
    if bool(xp.all(xp.isfinite(values))):
        return
    if is_sparse(X):
        entries = X.tocoo()
        at = int(xp.nonzero(~xp.isfinite(entries.data))[0][0])
        row, feature, value = int(entries.row[at]), int(entries.col[at]), entries.data[at]
    else:
        row, feature = (int(x[0]) for x in xp.nonzero(~xp.isfinite(X)))
        value = X[row, feature]
    raise_bad_value(float(value), feature, row)


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
    centers = model.fit(X, y, sample_weight=weight)._centers().to(HOST)
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
