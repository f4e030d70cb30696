"""What the partitions of X must share: width, names of the features, and for l1 sparse or dense."""

from __future__ import annotations

from typing import Any, NamedTuple

from dask.delayed import Delayed, delayed
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from ..arrays.namespace import is_sparse
from ..blocks.errors import as_float64
from ..estimators.centers import L1CenterClassifier
from ..estimators.validation import check_container
from .cluster import named, task_name
from .partitions import Partitions


class Form(NamedTuple):
    """Of a partition: the attributes that a fit to it sets, and, for l1, whether it is sparse."""

    partition: int
    attributes: dict[str, Any]
    sparse: bool | None


def first_form(
    X: Partitions, rows: list[int], token: str, model: L1CenterClassifier | None = None
) -> Delayed:
    """The `Form` of the first partition with rows; of an l1 ``model``, whether it is sparse too."""
    first = next(i for i, n in enumerate(rows) if n)
    name = task_name("gpucenters-read-form", token, first)
    return delayed(_form_of)(first, X.items[first], rows[first], model, dask_key_name=name)


def _form_of(i: int, X: Any, rows: int, model: L1CenterClassifier | None) -> Form:
    try:
        require_rows(X, rows)
        sparse = None if model is None else is_sparse(check_container(X, model))
        return Form(i, _attributes(X), sparse)
    except Exception as error:
        raise named(error, i) from error


def _attributes(X: Any) -> dict[str, Any]:
    """The number of features and, of a DataFrame, their names."""
    if len(X.shape) != 2:
        raise ValueError(f"X must have two dimensions, got an array of shape {X.shape}.")
    fitted = BaseEstimator()
    validate_data(fitted, X, reset=True, skip_check_array=True)
    return vars(fitted)


def require_form(X: Any, form: Form) -> None:
    """Raise unless X has the features of the first partition, in their order."""
    here, there = _attributes(X), form.attributes
    n, m = here["n_features_in_"], there["n_features_in_"]
    if n != m:
        raise ValueError(f"X has {n:,} features, but that of partition {form.partition} has {m:,}.")
    if "feature_names_in_" in here and "feature_names_in_" in there:
        pairs = zip(here["feature_names_in_"], there["feature_names_in_"], strict=True)
        for feature, (name, first) in enumerate(pairs):
            if name != first:
                raise ValueError(
                    f"the feature names of X differ from those of partition {form.partition}: "
                    f"feature {feature} is {name!r}, there {first!r}. Select the same columns of "
                    "every partition, in one order."
                )


def checked_partition(model: L1CenterClassifier, X: Any, rows: int, form: Form) -> Any:
    """A partition as an array, CSR or CSC, or None without rows; raises where it differs."""
    require_rows(X, rows)
    if not rows:
        return None
    require_form(X, form)
    checked = check_container(X, model)
    if is_sparse(checked) != form.sparse:
        kinds = ("sparse", "dense") if form.sparse else ("dense", "sparse")
        raise TypeError(f"X is {kinds[1]}, and that of partition {form.partition} is {kinds[0]}.")
    if checked.dtype == object:
        return as_float64(checked, 0, range(checked.shape[1]))
    return checked


def require_rows(X: Any, rows: int) -> None:
    """Raise unless X has as many rows as there are labels."""
    if not hasattr(X, "shape"):
        raise TypeError(f"X must be an array, a sparse matrix or a DataFrame, got {type(X)}.")
    if X.shape[0] != rows:
        raise ValueError(f"X has {X.shape[0]:,} rows, but there are {rows:,} labels.")
