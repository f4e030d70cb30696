"""What a reader returns, how it is told to read, and the error for a file that cannot be read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays.backend import HOST
from ..arrays.budget import resolve_budget


def counted(number: int, what: str) -> str:
    """A number of things: "1 row", "1,000 rows"."""
    return f"{number:,} {what}{'s' * (number != 1)}"


class ReadError(ValueError):
    """A file that does not hold what its format says, with the place.

    Parameters
    ----------
    path : str or path-like
        "-" is shown as standard input.
    what : str
        A sentence.
    line, column : int, optional
        From 1. Columns count characters; bytes where the line is not text.

    Examples
    --------
    >>> from gpucenters.readers import ReadError
    >>> print(ReadError("reviews.tsv", "there is no tab.", 7, 12))
    reviews.tsv, line 7, column 12: there is no tab.
    """

    def __init__(
        self, path: Any, what: str, line: int | None = None, column: int | None = None
    ) -> None:
        super().__init__(path, what, line, column)
        self.path, self.what, self.line, self.column = path, what, line, column

    def __str__(self) -> str:
        """The file, the place in it, and what is wrong there."""
        place = "standard input" if self.path == "-" else str(self.path)
        if self.line is not None:
            place += f", line {self.line}"
        if self.column is not None:
            place += f", column {self.column}"
        return f"{place}: {self.what}"


@dataclass(frozen=True, eq=False)
class Data:
    """Samples of a file.

    Attributes
    ----------
    X : ndarray or CSR of shape (n_samples, n_features), or list of n_samples str
        On disk where it is too large to hold and a file of HDF5 has it.
    y : ndarray of shape (n_samples,), or None
        Labels, where the file has them: str from text, numbers or str from arrays.
    feature_names : ndarray of str of shape (n_features,), or None
    ids : list of n_samples str, or None
        The names of the samples, where they were asked for.
    """

    X: Any
    y: np.ndarray | None = None
    feature_names: np.ndarray | None = None
    ids: list[str] | None = None

    @property
    def is_text(self) -> bool:
        """Whether the samples are raw text."""
        return isinstance(self.X, list)

    def __len__(self) -> int:
        """The number of samples."""
        return len(self.X) if self.is_text else self.X.shape[0]


#: The words for a missing cell, as of pandas.
MISSING = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)


@dataclass(frozen=True)
class Options:
    """The options of `read`."""

    format: str | None = None
    labels: Any = None
    label: str | None = None
    text: str | None = None
    id: str | None = None
    drop: Sequence[str] = ()
    features: Sequence[str] | None = None
    sep: str | None = None
    decimal: str = "."
    header: bool | None = None
    na: Sequence[str] | None = None
    missing: str = "error"
    unlabelled: bool = False
    encoding: str | None = None
    n_features: int | None = None
    zero_based: bool = False
    layer: str | None = None
    raw: bool = False
    max_bytes: int | None = None

    @property
    def masks_labels(self) -> bool:
        """Whether labels may be missing."""
        return self.unlabelled or self.missing == "drop"

    def charset(self, default: str = "utf-8") -> str:
        """The encoding of text."""
        return default if self.encoding is None else self.encoding

    def limit(self, *, streamed: bool = False) -> float:
        """The number of bytes that may be held; a stream holds none."""
        if streamed:
            return math.inf
        return 2 * resolve_budget(None, HOST) if self.max_bytes is None else self.max_bytes
