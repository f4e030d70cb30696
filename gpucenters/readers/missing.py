"""Rows of tables with missing values: an error, left out, or kept."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse

from ..arrays.on_disk import is_on_disk
from .columns import missing_value
from .data import Data, Options
from .errors import ReadError, counted


def settled(batches: Iterator[Data], path: Any, options: Options) -> Iterator[Data]:
    """The batches without what is missing, as ``options.missing`` says; raises for infinities.

    Parameters
    ----------
    batches : iterator of Data
        NaN stands for a missing number, None for a missing text; missing labels are masked.
    path : str or path-like
        For errors.
    options : Options
    """
    start = left_out = 0
    for batch in batches:
        kept = np.ones(len(batch), bool)
        if batch.y is not None and not options.unlabelled:
            kept = ~np.ma.getmaskarray(batch.y)
        if batch.is_text:
            kept &= np.asarray([text is not None for text in batch.X])
        elif not is_on_disk(batch.X):
            kept &= _numbers(batch, start, path, options)
        elif not kept.all():
            raise ReadError(path, "X stays on disk, so that no rows without labels can go.")
        start, left_out = start + len(batch), left_out + len(batch) - int(kept.sum())
        if kept.all():
            yield batch
        elif kept.any():
            yield _rows(batch, kept)
    if left_out:
        what = f"{counted(left_out, 'row')} of {start:,} with missing values left out."
        warnings.warn(f"{ReadError(path, what)}", stacklevel=2)


def _numbers(batch: Data, start: int, path: Any, options: Options) -> np.ndarray:
    """Which rows have all of their numbers, or may lack some."""
    X = batch.X
    values = X.data if scipy.sparse.issparse(X) else X
    wrong = ~np.isfinite(values) if options.missing == "error" else np.isinf(values)
    if wrong.any():
        at = np.unravel_index(int(wrong.argmax()), wrong.shape)
        row, column = at if X is values else _entry(X, int(at[0]))
        names = batch.feature_names
        name = f"{column + 1}" if names is None else repr(str(names[column]))
        place, value = f"row {start + row + 1} of the column {name}", values[at]
        if value == value:
            raise ReadError(path, f"{place} is {value}, and not finite.")
        raise ReadError(path, missing_value(place))
    if options.missing == "keep":
        return np.ones(len(batch), dtype=bool)
    missing = np.isnan(values)
    if values is X:
        return ~missing.any(axis=1)
    there = np.ones(len(batch), dtype=bool)
    there[[_entry(X, at)[0] for at in np.flatnonzero(missing).tolist()]] = False
    return there


def _entry(X: Any, at: int) -> tuple[int, int]:
    """(row, column) of a stored value of CSR."""
    return int(np.searchsorted(X.indptr, at, side="right")) - 1, int(X.indices[at])


def _rows(batch: Data, kept: np.ndarray) -> Data:
    index = np.flatnonzero(kept)
    y = None if batch.y is None else batch.y[index]
    return replace(
        batch,
        X=[batch.X[i] for i in index] if batch.is_text else batch.X[index],
        y=y if y is None or np.ma.is_masked(y) else np.ma.getdata(y),
        ids=None if batch.ids is None else [batch.ids[i] for i in index],
    )
