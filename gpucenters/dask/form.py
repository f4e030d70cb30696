"""What the partitions of X must share: width, names of the features, and sparse or dense."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

from ..arrays.namespace import is_sparse
from ..blocks.objects import as_float64
from ..estimators import L1CenterClassifier
from ..estimators.validation import check_X, validated


class Form(NamedTuple):
    """What a fit to a partition would set on the model, and whether the partition is sparse."""

    attributes: dict[str, Any]
    sparse: bool


def form_of(model: L1CenterClassifier, X: Any) -> Form:
    """That of the first partition with rows."""
    checked, attributes = validated(model, X)
    return Form(attributes, is_sparse(checked))


def checked_partition(model: L1CenterClassifier, X: Any, rows: int, form: Form) -> Any:
    """A partition as an array, CSR or CSC, or None without rows; raises where it differs."""
    require_rows(X, rows)
    if not rows:
        return None
    like = copy.copy(model)
    like.__dict__.update(form.attributes)
    checked = check_X(like, X, reset=False)
    if is_sparse(checked) != form.sparse:
        kinds = ("sparse", "dense") if form.sparse else ("dense", "sparse")
        raise TypeError(f"X is {kinds[1]}, and that of the first partition is {kinds[0]}.")
    if checked.dtype == object:
        return as_float64(checked, 0, range(checked.shape[1]))
    return checked


def require_rows(X: Any, rows: int) -> None:
    """Raise unless X has as many rows as there are labels."""
    if not hasattr(X, "shape"):
        raise TypeError(f"X must be an array, a sparse matrix or a DataFrame, got {type(X)}.")
    if X.shape[0] != rows:
        raise ValueError(f"X has {X.shape[0]:,} rows, but there are {rows:,} labels.")
