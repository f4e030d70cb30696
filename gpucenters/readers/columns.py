"""Which column of a table holds the labels, and which the texts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arrays.label_values import exact_values
from .data import Options
from .errors import ReadError

LONGEST_LABEL = 1000  # characters: NumPy gives all labels the room of the longest

#: Makes the error for a sentence, and the number of the field where it stands.
Error = Callable[[str, int], ReadError]


def find_column(header: list[str], options: Options, role: str, error: Error) -> int | None:
    """The number of the column of labels or of texts, or None where there is none.

    Parameters
    ----------
    header : list of str
        The names of the columns.
    options : Options
    role : {"label", "text"}
    error : callable
    """
    given = getattr(options, role)
    name = role if given is None else given
    if name not in header:
        if given is None:
            return None
        shown = ", ".join(map(repr, header[:20])) + (", ..." if len(header) > 20 else "")
        raise error(f"there is no column {name!r} for {role}=; the columns are {shown}.", 0)
    at = header.index(name)
    if header.count(name) > 1:
        again = header.index(name, at + 1)
        raise error(f"the column {name!r} is there {header.count(name)} times.", again)
    return None if role == "label" and given is None and options.labels is not None else at


def label_fault(label: str) -> str | None:
    """What is wrong with a label, or None."""
    if 0 < len(label) <= LONGEST_LABEL:
        return None
    what = f"has {len(label):,} characters, more than {LONGEST_LABEL:,}" if label else "is empty"
    return f"the label {what}."


def as_labels(
    values: list, what: str, error: Callable[[str], ReadError], start: int = 0
) -> np.ndarray:
    """Numbers or strings that a library has read as labels; None is a missing one.

    Parameters
    ----------
    values : list
    what : str
        What holds them, for errors.
    error : callable
        Makes the error for a sentence.
    start : int
        Rows that came before.
    """
    for number, value in enumerate(values, start + 1):
        fault = "the label is missing." if value is None or value != value else None
        if isinstance(value, str):
            fault = label_fault(value)
        if fault:
            raise error(f"in row {number} of {what} {fault}")
    try:
        labels = np.asarray(exact_values(values, what))
    except ValueError as fault:
        raise error(f"{fault}") from fault
    if labels.ndim != 1 or labels.dtype.kind not in "biufU":
        raise error(f"{what} holds no labels: use numbers or strings, not {labels.dtype}.")
    return labels
