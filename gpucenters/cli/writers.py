"""Files that commands write: predictions and columns of data."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse

from ..files.container import beside
from .output import safe

#: The ends of the names that `write_columns` knows.
COLUMN_FORMATS = ("npz", "npy", "csv", "tsv")


@contextmanager
def opened(output: str) -> Iterator[BinaryIO]:
    """The binary file of an output, whole or not at all; "-" is stdout."""
    if output == "-":
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        with beside(output) as file:
            yield file


class Rows:
    """Rows of text: CSV where the output is named so, else fields between tabs.

    Between tabs control characters are escaped; CSV has its quotes.

    Parameters
    ----------
    file : binary file
    output : str
        The name of the output.
    """

    def __init__(self, file: BinaryIO, output: str) -> None:
        self._file = file
        self._csv = output.endswith(".csv")

    def write(self, row: list[Any]) -> None:
        """Write one row."""
        if self._csv:
            line = io.StringIO()
            csv.writer(line, lineterminator="\n").writerow(row)
            self._file.write(line.getvalue().encode(errors="backslashreplace"))
        else:
            self._file.write(("\t".join(map(safe, row)) + "\n").encode())


def write_columns(output: str, X: Any, y: Any, names: list[str]) -> None:
    """Write the columns of a selection.

    Parameters
    ----------
    output : str
        Named .npz (X, y and feature_names; of sparse columns also what SciPy's ``load_npz`` reads),
        .npy (dense columns alone) or .csv, .tsv (dense columns with their names and labels).
    X : ndarray or CSR matrix of shape (n_samples, k)
    y : ndarray of shape (n_samples,), or None
    names : list of str
    """
    kind = output.rpartition(".")[2]
    is_sparse = scipy.sparse.issparse(X)
    if is_sparse and kind != "npz":
        raise ValueError(f"{output!r} is no name for sparse columns: use .npz.")
    with opened(output) as file:
        if kind == "npz":
            arrays = {"feature_names": np.asarray(names, dtype=str)}
            arrays |= {} if y is None else {"y": y}
            if is_sparse:
                X = X.tocsr()
                parts = {name: getattr(X, name) for name in ("data", "indices", "indptr")}
                arrays |= parts | {"shape": np.asarray(X.shape), "format": np.asarray(b"csr")}
            else:
                arrays["X"] = X
            np.savez_compressed(file, allow_pickle=False, **arrays)
        elif kind == "npy":
            np.save(file, X, allow_pickle=False)
        else:
            rows = Rows(file, output)
            rows.write([*([] if y is None else ["label"]), *names])
            for number, row in enumerate(X.tolist()):
                rows.write([*([] if y is None else [y[number]]), *row])
