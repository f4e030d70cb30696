"""Svmlight and libsvm files: scikit-learn reads them, and what it refuses is located here."""

from __future__ import annotations

import codecs
import io
import math
import re
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.datasets import load_svmlight_file

from .data import Data, Options, ReadError, counted
from .lines import raw_lines

_BLOCK = 2**16  # lines at a time
_TOKEN = re.compile(rb"\S+")
_LARGEST = 2**31 - 1  # of an index, for scikit-learn


def svmlight_batches(path: Any, rows: int, options: Options) -> Iterator[Data]:
    """Batches of a file; all have as many columns as the file, or as ``n_features`` says."""
    n_features = options.n_features
    if rows < sys.maxsize:
        if n_features is None:
            if path == "-":
                raise ReadError(path, "batches need n_features=, since it is read once.")
            n_features = max((X.shape[1] for X, _ in _blocks(path, _BLOCK, options)), default=0)
        for X, y in _blocks(path, rows, options):
            yield Data(_of_width(X, n_features), _whole(y))
        return
    found = list(_blocks(path, _BLOCK, options, options.limit()))
    if found:
        n_features = n_features or max(X.shape[1] for X, _ in found)
        X = scipy.sparse.vstack([_of_width(X, n_features) for X, _ in found], format="csr")
        yield Data(X, _whole(np.concatenate([y for _, y in found])))


def _of_width(X: Any, n_features: int) -> Any:
    return scipy.sparse.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features))


def _whole(y: np.ndarray) -> np.ndarray:
    """Labels as integers, where all are."""
    return y.astype(np.int64) if np.all(y == np.rint(y)) else y


def _blocks(
    path: Any, rows: int, options: Options, limit: float = math.inf
) -> Iterator[tuple[Any, np.ndarray]]:
    """(CSR, labels) of so many lines at a time that hold a row."""
    lines = enumerate(raw_lines(path, limit), 1)
    marked = ((n, line.removeprefix(codecs.BOM_UTF8) if n == 1 else line) for n, line in lines)
    held = ((number, line) for number, line in marked if line.split(b"#", 1)[0].strip())
    while block := list(islice(held, rows)):
        try:
            X, y = load_svmlight_file(
                io.BytesIO(b"".join(line for _, line in block)),
                n_features=options.n_features,
                zero_based=options.zero_based,
            )
        except (ValueError, OverflowError) as error:
            raise _located(path, block, options) or ReadError(
                path, f"{error}", block[0][0], 1
            ) from error
        if not np.all(np.isfinite(y)):
            raise _located(path, block, options) or AssertionError("a label is not finite")
        if np.any(large := np.abs(y) >= 2**53):
            what = "the label is 2**53 or more, where last digits are lost: use other labels."
            raise ReadError(path, what, block[int(large.argmax())][0], 1)
        yield X, y


def _located(path: Any, block: list[tuple[int, bytes]], options: Options) -> ReadError | None:
    """The first fault of some lines, or None where none is found."""
    for number, line in block:
        last = -1
        for at, token in enumerate(_TOKEN.finditer(line.split(b"#", 1)[0])):
            what, last = _fault(token.group(), at, last, options)
            if what:
                return ReadError(path, what, number, token.start() + 1)
    return None


def _fault(token: bytes, at: int, last: int, options: Options) -> tuple[str, int]:
    """(what is wrong with a token, or nothing; its index), after the last index."""
    shown = repr(token[:50])[1:]
    if at == 0:
        return ("" if _number(token) else f"the label {shown} is no finite number."), last
    index, colon, value = token.partition(b":")
    if not colon:
        return f"{shown} is no index:value.", last
    if at == 1 and index.startswith(b"qid"):
        return "", last
    try:
        number = int(index)
    except ValueError:
        return f"the index of {shown} is no whole number.", last
    first = 0 if options.zero_based else 1
    if number < first:
        why = "" if options.zero_based else " Where the first column is 0, say zero_based=True."
        return f"the index of {shown} is less than {first}.{why}", last
    if number > _LARGEST:
        return f"the index of {shown} is more than {_LARGEST:,}.", last
    if number <= last:
        return f"the index of {shown} is not larger than the one before it.", last
    if options.n_features is not None and number - first >= options.n_features:
        return f"the index of {shown} is beyond the {counted(options.n_features, 'feature')}.", last
    if not _number(value, finite=False):
        return f"the value of {shown} is no number.", last
    return "", number


def _number(token: bytes, *, finite: bool = True) -> bool:
    try:
        return math.isfinite(float(token)) or not finite
    except ValueError:
        return False
