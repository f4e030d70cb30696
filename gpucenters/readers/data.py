"""What a file holds: X, labels and names; columns of tables."""

from __future__ import annotations

import math
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays.backend import HOST
from ..arrays.context import resolve_budget
from ..arrays.inputs import exact_values

#: The sentence for a label that is not there.
MISSING_LABEL = "the label is missing: missing='drop' leaves such rows out."
#: What to do about a column that holds no numbers.
NO_FEATURE = "If the column is no feature, say what it is: label=..., text=..., id=... or drop=..."
LONGEST_LABEL = 1000  # characters: NumPy gives all labels the room of the longest
_WHOLE = re.compile(r"(-?(?:0|[1-9]\d*))(?:\.0+)?")  # with ".0" as pandas writes them beside NaN
_NAMELESS = re.compile(r"\s*|Unnamed: \d+")  # the second as pandas names what has no name


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


#: Makes the error for a sentence, and the number of the field where it stands.
Error = Callable[[str, int], ReadError]


@contextmanager
def errors_of(path: Any, kind: str) -> Iterator[None]:
    """The errors of a library as those of a file that is not of its kind.

    A file that cannot be opened has the system's own error.
    """
    with open(path, "rb"):
        pass
    try:
        yield
    except (ReadError, MemoryError):
        raise
    except Exception as error:
        raise ReadError(path, f"is no {kind}: {' '.join(str(error).split())}") from error


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

    def rows(self, index: np.ndarray) -> Data:
        """Some of the samples."""
        y = None if self.y is None else self.y[index]
        return Data(
            [self.X[i] for i in index] if self.is_text else self.X[index],
            y if y is None or np.ma.is_masked(y) else np.ma.getdata(y),
            self.feature_names,
            None if self.ids is None else [self.ids[i] for i in index],
        )


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

    def limit(self, rows: int = sys.maxsize) -> float:
        """The number of bytes that may be held of a file; none of one that comes in batches."""
        if rows < sys.maxsize:
            return math.inf
        return 2 * resolve_budget(None, HOST) if self.max_bytes is None else self.max_bytes


# Which column of a table holds the labels, which the texts, and which are features.


@dataclass(frozen=True)
class Columns:
    """The columns of a table, by their numbers.

    Attributes
    ----------
    names : list of str
    label, text, id : int or None
    numbers : list of int
        The features; none where there are texts.
    """

    names: list[str]
    label: int | None
    text: int | None
    id: int | None
    numbers: list[int]

    @property
    def feature_names(self) -> np.ndarray | None:
        """The names of the features; None where there are texts."""
        return np.asarray([self.names[i] for i in self.numbers]) if self.numbers else None


def choose_columns(
    names: list[str], options: Options, error: Error, index: Collection[str] = ()
) -> Columns:
    """The columns of a table with these names.

    A column without a name is none of the features, nor is one that is known as an index: pandas
    writes both.
    """
    label, text = (find_column(names, options, role, error) for role in ("label", "text"))
    id = None if options.id is None else find_column(names, options, "id", error)
    for name in options.drop:
        if name not in names:
            raise error(f"there is no column {name!r} for drop=; {_shown(names)}.", 0)
    if text is not None:
        return Columns(names, label, text, id, [])
    left_out = {label, id} | {i for i, name in enumerate(names) if name in {*index, *options.drop}}
    numbers = [i for i in range(len(names)) if i not in left_out]
    if options.features is not None:
        wanted = set(options.features)
        numbers = [i for i in numbers if names[i] in wanted]
        if not numbers:
            what = f"there is no column {options.features[0]!r}, which the model takes"
            raise error(f"{what}; {_shown(names)}.", 0)
    else:
        for i in [i for i in numbers if _NAMELESS.fullmatch(names[i])]:
            numbers.remove(i)
            what = "has no name, as an index that pandas or R writes, and is no feature."
            warnings.warn(f"{error(f'column {i + 1} {what}', i)}", stacklevel=2)
        if not numbers:
            raise error("there is no column but that of the labels.", 0)
    found: set[str] = set()
    for i in numbers:
        if (name := names[i]) in found:
            what = f"the column {name!r} is there {names.count(name)} times: rename all but one,"
            raise error(f"{what} or leave all out, drop={name!r}.", i)
        found.add(name)
    return Columns(names, label, None, id, numbers)


def find_column(names: list[str], options: Options, role: str, error: Error) -> int | None:
    """The number of the column of a role (label, text or id), or None where there is none."""
    given = getattr(options, role)
    name = role if given is None else given
    if name not in names or (given is None and name in options.drop):
        if given is None:
            return None
        raise error(f"there is no column {name!r} for {role}=; {_shown(names)}.", 0)
    at = names.index(name)
    if names.count(name) > 1:
        again = names.index(name, at + 1)
        raise error(f"the column {name!r} is there {names.count(name)} times.", again)
    return None if role == "label" and given is None and options.labels is not None else at


def _shown(names: list[str]) -> str:
    return "the columns are " + ", ".join(map(repr, names[:20])) + ", ..." * (len(names) > 20)


def missing_value(what: str) -> str:
    """The sentence for a cell without a number, which is described."""
    return f"{what} is missing: missing= says what becomes of such rows."


def label_fault(label: str) -> str | None:
    """What is wrong with a label, or None."""
    if 0 < len(label) <= LONGEST_LABEL and "\0" not in label:
        return None
    if "\0" in label:
        return "the label holds a NUL character, which NumPy takes for the end of a string."
    if not label:
        return "the label is empty: missing='drop' leaves such rows of a table out."
    return f"the label has {len(label):,} characters, more than {LONGEST_LABEL:,}."


def as_labels(
    values: list, path: Any, what: str, start: int = 0, *, mask: bool = False
) -> np.ndarray:
    """Numbers or strings that a library has read as labels; None or NaN is a missing one.

    They come from what is named, after so many rows. Missing ones are masked, where they may be.
    """
    missing = [value is None or value != value or value == "" for value in values]
    for number, (value, absent) in enumerate(zip(values, missing, strict=True), start + 1):
        fault = label_fault(value) if isinstance(value, str) else MISSING_LABEL if absent else None
        if fault and not (absent and mask):
            raise ReadError(path, f"in row {number} of {what} {fault}")
    try:
        labels = np.asarray(
            exact_values([v for v, m in zip(values, missing, strict=True) if not m], what)
        )
    except ValueError as fault:
        raise ReadError(path, f"{fault}") from fault
    if labels.ndim != 1 or labels.dtype.kind not in "biufU":
        found = f"use numbers or strings, not {labels.dtype}."
        raise ReadError(path, f"{what} holds no labels: {found}")
    return masked(labels, np.asarray(missing))


def whole_number(label: str) -> str | None:
    """A label that is a whole number without its ".0", as of "1.0"; None for all others."""
    found = _WHOLE.fullmatch(label)
    return found and found[1]


def without_point(labels: np.ndarray) -> np.ndarray:
    """Labels as strings that are all whole numbers without ".0", so that "1" is "1.0"; else as is.

    They are all of a file: "1.0" may be a version beside "1.1".
    """
    if labels.dtype.kind != "U":
        return labels
    values, at = np.unique(labels, return_inverse=True)
    found = [whole_number(value) for value in values.tolist()]
    return labels if None in found else np.asarray(found)[at]


def masked(labels: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Labels of the rows that are not missing, as those of all rows."""
    if not missing.any():
        return labels
    found = np.zeros(len(missing), labels.dtype)
    found[~missing] = labels
    return np.ma.MaskedArray(found, missing)
