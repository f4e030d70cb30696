"""Files that commands read and write: whether they can, and rows, columns and pictures in them."""

from __future__ import annotations

import csv
import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import typer

from .output import safe

#: The ends of the names that `write_columns` knows.
COLUMN_FORMATS = ("npz", "npy", "csv", "tsv")


def check_files(outputs: list[str | None], inputs: list[str | None]) -> None:
    """Raise for a file that a command cannot write or read, before the work that leads to it.

    An output is a new name, or a regular file, in a folder that exists; "-" is stdout. It replaces
    neither an input nor another output.
    """
    for number, output in enumerate(outputs):
        if output is not None and output != "-":
            _check_output(output, [*inputs, *outputs[:number]])
    for path in inputs:
        if path is not None and path != "-":
            os.stat(path)
            if not os.access(path, os.R_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


def _check_output(output: str, others: list[str | None]) -> None:
    folder = os.path.dirname(output)
    if folder and not os.path.isdir(folder):
        raise typer.BadParameter(f"the folder {folder!r} of the output does not exist.")
    for other in others:
        if other and other != "-" and _overwrites(output, other):
            raise typer.BadParameter(
                f"the output {output!r} would replace {other!r}, or lie in it."
            )
    if os.path.exists(output) and not os.path.isfile(output):
        raise typer.BadParameter(
            f"the output {output!r} is there, and is not a regular file: give another name."
        )
    if not os.access(folder or ".", os.W_OK):
        raise typer.BadParameter(f"no file can be written in the folder {folder or '.'!r}.")


def _overwrites(output: str, other: str) -> bool:
    """Whether two paths are one file, by any links, or the other a folder around the output."""
    if os.path.exists(output) and os.path.exists(other) and os.path.samefile(output, other):
        return True
    return Path(output).resolve().is_relative_to(Path(other).resolve())


@contextmanager
def opened(output: str) -> Iterator[BinaryIO]:
    """The binary file of an output, whole or not at all; "-" is stdout."""
    from ..files.container import beside

    if output == "-":
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        with beside(output) as file:
            yield file


class RowWriter:
    """Rows of text: CSV where the output is named so, else fields between tabs.

    Between tabs control characters are escaped; CSV has its quotes.
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
    import numpy as np
    import scipy.sparse

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
            rows = RowWriter(file, output)
            rows.write([*([] if y is None else ["label"]), *names])
            for number, row in enumerate(X.tolist()):
                rows.write([*([] if y is None else [y[number]]), *row])


class Picture:
    """A picture to draw; raises before the work where it cannot be drawn."""

    def __init__(self, name: str) -> None:
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise typer.BadParameter(
                "--plot needs matplotlib: pip install 'gpucenters[plot]'."
            ) from None
        self.figure = Figure(dpi=150, layout="constrained")
        self._name, self._kind = name, name.rpartition(".")[2].lower()
        if self._kind not in self.figure.canvas.get_supported_filetypes():
            raise typer.BadParameter(f"{name!r} is no name of a picture: use .png, .svg or .pdf.")

    def write(self) -> None:
        """Write it, whole or not at all."""
        with opened(self._name) as file:
            self.figure.savefig(file, format=self._kind)
