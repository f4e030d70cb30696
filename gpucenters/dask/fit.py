"""Fitting where the partitions are."""

from __future__ import annotations

import uuid
from typing import Any, TypeVar

import numpy as np
from dask.delayed import delayed
from sklearn.base import clone

from ..arrays.inputs import concatenated
from ..estimators.base import CenterClassifier
from ..estimators.centers import L1CenterClassifier
from ..estimators.fitted import check_parameters
from ..estimators.from_statistics import StatisticsClassifier
from ..estimators.validation import balanced, encode, host_labels
from .medians import class_weights, fit_medians
from .partitions import (
    Partitions,
    aligned,
    compute,
    current_client,
    first_form,
    named,
    out_of_the_pool,
    task_name,
)
from .sums import n_lanes, summed

Model = TypeVar("Model", bound=CenterClassifier)


def fit(estimator: Model, X: Any, y: Any, sample_weight: Any = None, client: Any = None) -> Model:
    """Fit a model to data in partitions on a Dask cluster.

    Where statistics determine the model, each partition is added to the statistics of its lane
    where it is, lanes merge, and the caller solves once. With exact sums, as those of integers are,
    the model has the bits that the estimator's own ``fit`` gives; otherwise it is equal up to
    rounding, and has the same bits for any number of workers. For l1 centers, columns whose medians
    all are zero are settled by counts; the values of the others are brought together by ranges of
    columns, each solved on one worker. ``objective_`` of l1 is equal up to rounding.
    ``gpucenters/dask/README.md`` has the memory and the network traffic as formulas.

    Parameters
    ----------
    estimator : estimator of gpucenters
        Stays as it is. ``verbose=True`` shows Dask's progress bar.
    X : Dask array or DataFrame, or list of delayed objects or futures
        Of shape (n_samples, n_features), divided along the rows. Partitions are NumPy or CuPy
        arrays, CSR or CSC of SciPy or cupyx, or DataFrames. Numbers of rows need not be known.
    y : Dask array or Series, list of delayed objects or futures, or array
        Labels of shape (n_samples,), divided as X is. An array in memory is divided where X's
        numbers of rows are known. Columns of one DataFrame, as of ``read_parquet``, are read
        together, without its other columns. Where X or y are ``values`` of such columns, and have
        other partitions, y is divided as X is, for which X is read once more.
    sample_weight : as y, optional
        A partition may have one number for all its rows.
    client : dask.distributed.Client, optional
        By default the current one. In a task, that of its worker: the fit then leaves the worker's
        threads to the tasks that it waits for.

    Returns
    -------
    estimator
        A fitted clone, in this process.

    Raises
    ------
    TypeError, ValueError
        As the estimator's ``fit``, with the number of the partition; for y or weights that are
        divided otherwise than X; for an estimator that is no model of this library.
    RuntimeError
        For a partition that still fails after some trials, and for workers with another version.

    Examples
    --------
    >>> import dask.array as da
    >>> from dask.distributed import Client
    >>> from sklearn.datasets import load_iris
    >>> from gpucenters import L2CenterClassifier
    >>> from gpucenters.dask import fit
    >>> X, y = load_iris(return_X_y=True)
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     model = fit(L2CenterClassifier(k=2, scale="std"), da.from_array(X, chunks=(50, 4)), y)
    >>> model.support_
    array([2, 3])
    """
    if not isinstance(estimator, StatisticsClassifier | L1CenterClassifier):
        raise TypeError(
            "gpucenters.dask.fit() takes the models that statistics determine, and "
            f"L1CenterClassifier; got {type(estimator).__name__}."
        )
    check_parameters(estimator)
    with out_of_the_pool():
        return _fitted(clone(estimator), X, y, sample_weight, current_client(client))


def _fitted(model: Any, X: Any, y: Any, sample_weight: Any, client: Any) -> Any:
    data, narrow = aligned(client, X, y, sample_weight)
    token = uuid.uuid4().hex
    classes, rows = _labels(client, *narrow[:2], token)
    if len(classes) < 2:
        raise ValueError(
            f"{type(model).__name__} needs samples of at least two classes; y holds "
            f"{len(classes)} class: {classes.tolist()}."
        )
    if isinstance(model, L1CenterClassifier):
        return fit_medians(client, model, classes, data, narrow, rows, token)
    given = model.class_weight
    if isinstance(given, str):  # as numbers, which partitions do not know
        factors = balanced(class_weights(client, classes, narrow, token))
        model.class_weight = dict(zip(classes.tolist(), factors.tolist(), strict=True))
    form, lanes = first_form(data[0], rows, token), n_lanes(len(rows), _sums_bytes(X, len(classes)))
    task = summed(model, classes, data, form, lanes, token)
    model.fit_statistics(compute(client, task, bool(model.verbose)))
    model.class_weight = given
    return model


def _labels(client: Any, X: Partitions, y: Partitions, token: str) -> tuple[np.ndarray, list[int]]:
    """The distinct labels, and the number of rows of each partition: one pass over y."""
    found = compute(
        client,
        delayed(
            [
                delayed(_distinct)(
                    i, labels, dask_key_name=task_name("gpucenters-read-labels", token, i)
                )
                for i, labels in enumerate(y.items)
            ]
        ),
        verbose=False,
    )
    rows = [n for _, n in found]
    for i, (n, n_x) in enumerate(zip(rows, X.rows or rows, strict=True)):
        if n != n_x:
            raise ValueError(f"partition {i} has {n_x:,} rows of X, but {n:,} of y.")
    if not sum(rows):
        raise ValueError("no partition holds a row.")
    first = next(i for i, n in enumerate(rows) if n)
    for i, (labels, n) in enumerate(found):
        if n and (labels.dtype.kind in "OUST") != (found[first][0].dtype.kind in "OUST"):
            raise TypeError(
                f"the labels of partition {i} are {labels.dtype}, those of partition {first} "
                f"{found[first][0].dtype}: use strings in all, or numbers in all."
            )
    return encode(concatenated([labels for labels, n in found if n]))[0], rows


def _distinct(i: int, y: Any) -> tuple[np.ndarray, int]:
    try:
        if not hasattr(y, "shape"):
            raise TypeError(f"y must be an array or a Series, got {type(y)}.")
        labels = host_labels(y, "gpucenters.dask.fit", y.shape[0])
        return encode(labels)[0] if labels.size else labels, labels.size
    except Exception as error:
        raise named(error, i) from error


def _sums_bytes(X: Any, n_classes: int) -> int:
    """What the sums of one lane take, where the number of columns is known."""
    shape = getattr(X, "shape", (0, 0))
    m = shape[1] if len(shape) == 2 and isinstance(shape[1], int) else 0
    # Unknown: as if they were wide.
    return 8 * n_classes * m if m else 2**62
