"""Predictions and selected columns of partitions, computed where these are and when asked for."""

from __future__ import annotations

from typing import Any

import dask.array
import numpy as np
from dask.delayed import delayed
from sklearn.utils.validation import check_is_fitted

from ..arrays.namespace import is_sparse
from .partitions import named, partitions_of


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
            delayed(_called, name=f"gpucenters-{method}")(shared, method, i, part, empty),
            (n, *width),
            dtype=dtype,
            meta=empty,
        )
        for i, (part, n) in enumerate(zip(parts.items, rows, strict=True))
    ]
    return dask.array.concatenate(blocks, allow_unknown_chunksizes=True)


def _called(model: Any, method: str, i: int, X: Any, empty: np.ndarray) -> Any:
    """The method's result, also of a partition without rows, which the methods refuse."""
    if X.shape[0] == 0:
        return X[:, model.support_] if is_sparse(X) and method == "transform" else empty
    try:
        return getattr(model, method)(X)
    except Exception as error:
        raise named(error, i) from error
