"""A file that is read in parts, as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse

from ..arrays.label_values import concatenated
from ..arrays.on_disk import is_on_disk
from .data import Data
from .lines import too_large


def joined(parts: Iterable[Data], path: Any, limit: float) -> Iterator[Data]:
    """Some parts as one.

    Parameters
    ----------
    parts : iterable of Data
    path : str or path-like
        For errors.
    limit : float
        The number of bytes that may be held.

    Yields
    ------
    Data
        All of them; nothing where there are none.
    """
    held: list[Data] = []
    size = 0
    for part in parts:
        held.append(part)
        size += _bytes(part)
        if size > limit:
            raise too_large(path, limit)
    if len(held) < 2:
        yield from held
        return
    labels = [part.y for part in held if part.y is not None]
    y = concatenated(labels) if labels else None
    ids = None if held[0].ids is None else [id for part in held for id in part.ids or ()]
    yield Data(_stacked([part.X for part in held]), y, held[0].feature_names, ids)


def _bytes(data: Data) -> int:
    X = data.X
    if data.is_text:
        size = sum(map(len, X))
    elif scipy.sparse.issparse(X):
        size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    else:
        size = 0 if is_on_disk(X) else X.nbytes
    return size if data.y is None else size + data.y.nbytes


def _stacked(parts: list[Any]) -> Any:
    if isinstance(parts[0], list):
        return [text for part in parts for text in part]
    if scipy.sparse.issparse(parts[0]):
        return scipy.sparse.vstack(parts, format="csr")
    return np.concatenate(parts)
