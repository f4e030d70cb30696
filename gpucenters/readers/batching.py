"""The steps behind a reader: labels of another file, missing values, and batches as one."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse

from ..arrays.inputs import concatenated, is_on_disk
from .arrays import check_labels, mapped
from .data import Data, Options, ReadError, counted, label_fault, missing_value, without_point
from .lines import text_lines, too_large


def joined(parts: Iterable[Data], path: Any, limit: float) -> list[Data]:
    """Some parts as one, of so many bytes at most; nothing where there are none."""
    held: list[Data] = []
    size = 0
    for part in parts:
        held.append(part)
        size += _bytes(part)
        if size > limit:
            raise too_large(path, limit)
    if not held:
        return []
    labels = [part.y for part in held if part.y is not None]
    y = without_point(concatenated(labels)) if labels else None
    if len(held) == 1:
        return [replace(held[0], y=y)]
    ids = None if held[0].ids is None else [id for part in held for id in part.ids or ()]
    return [Data(_stacked([part.X for part in held]), y, held[0].feature_names, ids)]


def _bytes(data: Data) -> int:
    X = data.X
    if data.is_text:
        size = sum(map(len, X))
    elif scipy.sparse.issparse(X):
        size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    else:
        size = 0 if is_on_disk(X) or isinstance(X, np.memmap) else X.nbytes
    return size if data.y is None else size + data.y.nbytes


def _stacked(parts: list[Any]) -> Any:
    if isinstance(parts[0], list):
        return [text for part in parts for text in part]
    if scipy.sparse.issparse(parts[0]):
        return scipy.sparse.vstack(parts, format="csr")
    return np.concatenate(parts)


def with_labels(batches: Iterator[Data], path: Any, options: Options) -> Iterator[Data]:
    """The batches with the labels beside them."""
    labels, start = read_labels(options.labels, options), 0
    held = counted(len(labels), "label")
    for batch in batches:
        stop = start + len(batch)
        if stop > len(labels):
            break
        yield replace(batch, y=labels[start:stop])
        start = stop
    else:
        if start == len(labels):
            return
        rows = counted(start, "row")
        raise ReadError(options.labels, f"has {held} for {rows} of {path}.")
    raise ReadError(options.labels, f"has {held}, and {path} has more rows.")


def read_labels(path: Any, options: Options) -> np.ndarray:
    """The labels of a .npy file, or of a text with one a line."""
    if str(path).endswith(".npy"):
        labels = mapped(path)
        check_labels(path, labels)
        return np.array(labels)
    found: list[str] = []
    for line in text_lines(path, options.charset(), options.limit()):
        label = line.rstrip("\r\n")
        if fault := label_fault(label):
            raise ReadError(path, fault, len(found) + 1, 1)
        found.append(label)
    if not found:
        raise ReadError(path, "there is no label.", 1, 1)
    return without_point(np.asarray(found))


def without_missing(batches: Iterator[Data], path: Any, options: Options) -> Iterator[Data]:
    """The batches without what is missing, as ``options.missing`` says; raises for infinities.

    NaN stands for a missing number, None for a missing text; missing labels are masked.
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
            yield batch.rows(np.flatnonzero(kept))
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
        first = int(options.format == "svmlight" and not options.zero_based)
        name = f"{column + first}" if names is None else repr(str(names[column]))
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
