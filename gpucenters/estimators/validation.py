"""Validation of X at the entry of each method, and the backend where its work is done."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from ..arrays.backend import HOST, Backend, backend_of
from ..arrays.budget import resolve_budget
from ..arrays.devices import resolve_backend
from ..arrays.inputs import check_input
from ..arrays.namespace import array_namespace, is_numpy, is_sparse, to_numpy
from ..arrays.on_disk import is_on_disk
from ..arrays.typing import Array, SparseMatrix
from ..blocks.validation import check_dense, checked_on_disk, checked_sparse


def check_X(estimator: Any, X: Any, *, reset: bool, in_parts: bool = False) -> Array | SparseMatrix:
    """X as an array or a CSR/CSC matrix in its own library and type; names and width checked.

    Finiteness is not checked here: it shows in the sums and scores, which read X anyway. Where it
    is read ``in_parts`` alone, X may be on disk, and stays there.
    """
    checked = check_container(X, estimator, in_parts=in_parts)
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    return checked


def check_container(X: Any, estimator: Any, *, in_parts: bool = False) -> Array | SparseMatrix:
    """X as an array or a CSR/CSC matrix, for an estimator or a function of that name."""
    name = estimator if isinstance(estimator, str) else type(estimator).__name__
    if in_parts and is_on_disk(X):
        return checked_on_disk(X, name, resolve_budget(estimator.memory_budget, HOST))
    check_input(X, "X", name)
    with backend_of(X).current():
        if is_sparse(X):
            return checked_sparse(X)
        if not is_numpy(array_namespace(X)):
            check_dense(X)
            return X
    checked = check_array(
        X,
        accept_sparse=("csr", "csc"),  # a data frame may have sparse columns
        dtype=None,
        ensure_all_finite=False,
        estimator=estimator,
        input_name="X",
    )
    if is_sparse(checked):
        return checked_sparse(checked)
    check_dense(checked)
    return checked


def validated(
    estimator: Any, X: Any, *, in_parts: bool = False
) -> tuple[Array | SparseMatrix, dict[str, Any]]:
    """X as `check_X` returns it, and the attributes that a fit to it sets (names and width).

    The estimator is not changed: a fit sets all its attributes in one assignment at its end.
    """
    other = object.__new__(type(estimator))
    other.__dict__.update(estimator.__dict__)
    checked = check_X(other, X, reset=True, in_parts=in_parts)
    names = ("n_features_in_", "feature_names_in_")
    return checked, {name: vars(other)[name] for name in names if name in vars(other)}


def check_backend(estimator: Any, X: Any, method: str, name: str | None = None) -> None:
    """Raise unless X lives where the model does, or the model was told to move the work.

    The error names the model, or what holds it.
    """
    there = estimator._fitted.backend
    if estimator.device is None:
        name = name or type(estimator).__name__
        require_backend(X, there, name, method, "Move X, or move the model with to(device).")


def require_backend(X: Any, there: Backend, name: str, method: str, advice: str) -> None:
    """Raise, with the advice, unless X lives where the model of that name does."""
    here = backend_of(X)
    if here != there:
        raise ValueError(
            f"Inputs passed to {name}.{method}() must use the same namespace and the same device "
            f"as those passed to fit(): the model lives in {there}, X in {here}. {advice}"
        )


def work_backend(estimator: Any, X: Any) -> Backend:
    """Where the estimator's ``device`` parameter puts the work on X."""
    return resolve_backend(estimator.device, X)


def snapshot(parameter: Any) -> Any:
    """A parameter as it is now: the user may go on with their array."""
    if parameter is None or isinstance(parameter, str):
        return parameter
    return np.array(to_numpy(parameter))


def output_backend(X: Any) -> Backend:
    """Where outputs for X belong: beside X."""
    backend = backend_of(X)
    return HOST if is_numpy(backend.xp) else backend
