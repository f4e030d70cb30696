"""Fitting, predicting and selecting columns where the partitions are."""

from __future__ import annotations

import uuid
from typing import Any, TypeVar

import dask.array
import numpy as np
from dask.delayed import delayed
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..arrays.backend import HOST
from ..arrays.inputs import concatenated
from ..arrays.namespace import is_sparse
from ..blocks.samples import make_samples
from ..estimators.base import CenterClassifier
from ..estimators.centers import L1CenterClassifier
from ..estimators.fitted import check_parameters
from ..estimators.from_statistics import StatisticsClassifier
from ..estimators.validation import (
    balanced,
    encode,
    encode_against,
    host_labels,
    raise_for_one_class,
)
from .medians import fit_medians
from .partitions import (
    aligned,
    compute,
    current_client,
    each,
    first_form,
    of_partition,
    out_of_the_pool,
    partitions_of,
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
    data, labels, known = aligned(client, X, y, sample_weight)
    token, given = uuid.uuid4().hex, model.class_weight
    medians = isinstance(model, L1CenterClassifier)
    if not (medians or isinstance(given, str)):
        labels = [(y, None) for y, _ in labels]
    classes, rows, weight = _classes(
        compute(client, each(_labels, labels, "read-labels", token)), known
    )
    raise_for_one_class(type(model).__name__, classes)
    if medians:
        return fit_medians(client, model, classes, weight, rows, data, token)
    if isinstance(given, str):  # as numbers, which partitions do not know
        factors = balanced(weight)
        model.class_weight = dict(zip(classes.tolist(), factors.tolist(), strict=True))
    form = first_form([X for X, *_ in data], rows, token)
    lanes = n_lanes(len(rows), _sums_bytes(X, len(classes)))
    task = summed(model, classes, data, form, lanes, token)
    model.fit_statistics(compute(client, task, model.verbose))
    model.class_weight = given
    return model


@of_partition
def _labels(i: int, y: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray, int]:
    """The distinct labels of a partition, their weights, and its number of rows."""
    if not hasattr(y, "shape"):
        raise TypeError(f"y must be an array or a Series, got {type(y)}.")
    labels = host_labels(y, "gpucenters.dask.fit", y.shape[0])
    if not labels.size:
        return labels, np.zeros(0), 0
    found, codes = encode(labels)
    k, n = len(found), labels.size
    samples = make_samples(codes, n, HOST, n_classes=k, sample_weight=sample_weight)
    return found, np.asarray(samples.class_weight), n


def _classes(
    parts: list[tuple[np.ndarray, np.ndarray, int]], known: list[int] | None
) -> tuple[np.ndarray, list[int], np.ndarray]:
    """The classes, the number of rows of each partition, and W_c."""
    rows = [n for *_, n in parts]
    for i, (n, n_x) in enumerate(zip(rows, known or rows, strict=True)):
        if n != n_x:
            raise ValueError(f"partition {i} has {n_x:,} rows of X, but {n:,} of y.")
    if not sum(rows):
        raise ValueError("no partition holds a row.")
    first = next(i for i, n in enumerate(rows) if n)
    kind = parts[first][0].dtype
    for i, (labels, _, n) in enumerate(parts):
        if n and (labels.dtype.kind in "OUST") != (kind.kind in "OUST"):
            raise TypeError(
                f"the labels of partition {i} are {labels.dtype}, those of partition {first} "
                f"{kind}: use strings in all, or numbers in all."
            )
    classes = encode(concatenated([labels for labels, _, n in parts if n]))[0]
    weight = np.zeros(len(classes))
    for labels, of_labels, n in parts:
        if n:
            weight[encode_against(labels, classes)] += of_labels
    return classes, rows, weight


def _sums_bytes(X: Any, n_classes: int) -> int:
    """What the sums of one lane take, where the number of columns is known."""
    shape = getattr(X, "shape", (0, 0))
    m = shape[1] if len(shape) == 2 and isinstance(shape[1], int) else 0
    # Unknown: as if they were wide.
    return 8 * n_classes * m if m else 2**62


def predict(model: Any, X: Any) -> dask.array.Array:
    """The class labels of data in partitions: lazily, one task for each partition.

    Parameters
    ----------
    model : fitted estimator of gpucenters
        It is sent to each worker once.
    X : Dask array or DataFrame, or list of delayed objects or futures
        Of shape (n_samples, n_features), divided along the rows.

    Returns
    -------
    dask.array.Array of shape (n_samples,)
        Its blocks are in the library, and on the device, of those of X.

    Raises
    ------
    NotFittedError
        At once, for a model that is not fitted.
    TypeError, ValueError
        When computed, as the model's ``predict``, with the number of the partition.
    """
    check_is_fitted(model)
    return _mapped(model, "predict", X, model.classes_.dtype)


def predict_proba(model: Any, X: Any) -> dask.array.Array:
    """The class probabilities of data in partitions; see `predict`.

    Parameters
    ----------
    model : fitted estimator of gpucenters
    X : Dask array or DataFrame, or list of delayed objects or futures

    Returns
    -------
    dask.array.Array of shape (n_samples, n_classes), float64
    """
    check_is_fitted(model)
    return _mapped(model, "predict_proba", X, np.float64, len(model.classes_))


def decision_function(model: Any, X: Any) -> dask.array.Array:
    """The decision values of data in partitions; see `predict`.

    Parameters
    ----------
    model : fitted estimator of gpucenters
    X : Dask array or DataFrame, or list of delayed objects or futures

    Returns
    -------
    dask.array.Array of shape (n_samples,) for two classes, else (n_samples, n_classes), float64
    """
    check_is_fitted(model)
    k = len(model.classes_)
    return _mapped(model, "decision_function", X, np.float64, *([k] if k > 2 else []))


def transform(model: Any, X: Any) -> dask.array.Array:
    """The selected columns of data in partitions; see `predict`.

    Parameters
    ----------
    model : fitted estimator of gpucenters
    X : Dask array or DataFrame, or list of delayed objects or futures

    Returns
    -------
    dask.array.Array of shape (n_samples, k)
        Blocks of sparse X are sparse. The type is that of X; of a list it is not known beforehand,
        and stated as float64.
    """
    check_is_fitted(model)
    return _mapped(model, "transform", X, getattr(X, "dtype", np.float64), len(model.support_))


def _mapped(model: Any, method: str, X: Any, dtype: Any, *width: int) -> dask.array.Array:
    parts = partitions_of(X, "X")
    # One task holds the model, on which those of the partitions depend.
    shared = delayed(model, pure=True)
    rows: list[Any] = list(parts.rows) if parts.rows is not None else [np.nan for _ in parts.items]
    empty = np.empty((0, *width), dtype)
    blocks = [
        dask.array.from_delayed(
            delayed(_called, name=f"gpucenters-{method}")(i, part, shared, method, empty),
            (n, *width),
            dtype=dtype,
            meta=empty,
        )
        for i, (part, n) in enumerate(zip(parts.items, rows, strict=True))
    ]
    return dask.array.concatenate(blocks, allow_unknown_chunksizes=True)


@of_partition
def _called(i: int, X: Any, model: Any, method: str, empty: np.ndarray) -> Any:
    """The method's result, also of a partition without rows, which the methods refuse."""
    if X.shape[0] == 0:
        return X[:, model.support_] if is_sparse(X) and method == "transform" else empty
    return getattr(model, method)(X)
