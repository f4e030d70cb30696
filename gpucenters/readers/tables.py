"""Text with labels, and tables of numbers: between tabs, in CSV, or one text a line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

import numpy as np

from .columns import find_column, label_fault
from .data import Data, Options
from .errors import counted
from .lines import text_lines
from .rows import CsvRows, TabRows


def line_batches(path: Any, rows: int, options: Options) -> Iterator[Data]:
    """Batches of a file with one text a line."""
    lines = text_lines(path, options.charset(), options.limit(streamed=rows < sys.maxsize))
    while batch := [line.rstrip("\r\n") for line in islice(lines, rows)]:
        yield Data(batch)


def table_batches(path: Any, rows: int, options: Options) -> Iterator[Data]:
    """Batches of a table: texts where it has a column of them, else numbers."""
    lines = text_lines(path, options.charset(), options.limit(streamed=rows < sys.maxsize))
    table: TabRows | CsvRows
    table = TabRows(lines, path) if options.format == "tsv" else CsvRows(lines, path)
    found = iter(table)
    first = next(found, None)
    if first is None:
        return
    named = options.format == "csv" or options.label is not None or options.text is not None
    if named or "text" in first or "label" in first:
        header = first
    else:
        header, found = ["label", "text"], chain([first], found)
    label, text = (find_column(header, options, role, table.error) for role in ("label", "text"))
    names = None
    if text is None:
        names = np.asarray([name for i, name in enumerate(header) if i != label])
        if not len(names):
            raise table.error("there is no column but that of the labels.")
    while batch := list(islice(_parsed(table, found, header, label, text), rows)):
        X: Any = [x for x, _ in batch]
        y = None if label is None else np.asarray([y for _, y in batch])
        yield Data(np.stack(X) if text is None else X, y, names)


def _parsed(
    table: TabRows | CsvRows, rows: Any, header: list[str], label: int | None, text: int | None
) -> Iterator[tuple[Any, str | None]]:
    """(text or numbers, label) of each row."""
    width = len(header)
    for fields in rows:
        if len(fields) != width:
            what = f"this row has {counted(len(fields), 'field')}, not {width}."
            raise table.error(what, min(len(fields), width))
        y = None if label is None else fields[label]
        if label is not None and y is not None and (fault := label_fault(y)):
            raise table.error(fault, label)
        if text is not None:
            yield fields[text], y
        else:
            yield _numbers(table, header, fields, label), y


def _numbers(
    table: TabRows | CsvRows, header: list[str], fields: list[str], label: int | None
) -> np.ndarray:
    values = [value for i, value in enumerate(fields) if i != label]
    try:
        return np.asarray(values, dtype=np.float64)
    except ValueError:
        pass
    for i, value in enumerate(fields):
        if i != label and not _is_number(value):
            raise table.error(
                f"{value[:50]!r} in the column {header[i]!r} is no number. If the column "
                "holds the labels or texts, name it: label=... or text=...",
                i,
            )
    raise AssertionError("NumPy and Python read numbers alike")


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True
