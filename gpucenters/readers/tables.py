"""Text with labels, and tables of numbers: fields between tabs or commas, or one text a line.

PyArrow parses blocks of lines of numbers. What it refuses, and what it would read more loosely than
Python's csv, Python reads: so that a fault has its line and column.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from itertools import chain, islice
from typing import Any

import numpy as np

from .data import (
    MISSING,
    NO_FEATURE,
    Columns,
    Data,
    Error,
    Options,
    ReadError,
    choose_columns,
    counted,
    label_fault,
    masked,
    missing_value,
)
from .lines import CsvRows, TabRows, fields_of, text_lines

_SEPARATORS = ";\t|, "
_FIELD = '"(?:[^"]|"")*"'
_QUOTED = re.compile(rf"{_FIELD}([{_SEPARATORS}]){_FIELD}(?:\1{_FIELD})*")
_COUNTED = 10  # rows, of which fewer may be counted by chance
_ROLES = {"label", "text"}
_TRUTH = {"true": 1.0, "false": 0.0}
_BLOCK = 2**23  # characters that are parsed at a time
_OF_COLUMN = 2**12  # of these at least for each column, which costs as much as many values
_SEP_LINE = re.compile("sep=(.)\r?\n")  # by which Excel is told
_COMMA = re.compile(r"[-+]?\d*,\d+(?:[eE][-+]?\d+)?")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}([,.' \u00a0\u202f])\d{3}(?:\1\d{3})*(?:[.,]\d*)?")


def line_batches(path: Any, rows: int, options: Options) -> Iterator[Data]:
    """Batches of a file with one text a line."""
    lines = text_lines(path, options.charset(), options.limit(rows))
    while batch := [line.rstrip("\r\n") for line in islice(lines, rows)]:
        yield Data(batch)


def first_fields(path: Any, options: Options) -> list[str]:
    """The fields of the first line of a table, which may be names of columns."""
    line = next(text_lines(path, options.charset(), math.inf), "")
    return fields_of(line, options.sep or "\t")


def table_batches(path: Any, rows: int, options: Options) -> Iterator[Data]:
    """Batches of a table: texts where it has a column of them, else numbers."""
    lines = text_lines(path, options.charset(), options.limit(rows))
    top, number = next(lines, ""), 1
    if told := _SEP_LINE.fullmatch(top):
        top, number = next(lines, ""), 2
        options = replace(options, sep=options.sep or told[1])
    sep = options.sep or ("\t" if options.format == "tsv" else ",")
    # Without quotes around each field of its first line, quotes mean nothing between tabs.
    fields = top.rstrip("\r\n").split(sep)
    quoted = options.format == "csv" or all(re.fullmatch('".*"', field) for field in fields)
    kind: type[TabRows | CsvRows] = CsvRows if quoted else TabRows
    head = kind(chain([top] if top else [], lines), path, sep, number)
    found = _QUOTED.fullmatch(top.rstrip("\r\n")) if quoted and options.sep is None else None
    if found and found[1] != sep:
        raise _other_separator(found[1], options, head.error)
    first = next(iter(head), None)
    if first is None:
        return
    if sep == options.decimal:
        raise head.error(f"decimal={sep!r} is the separator too: name another, as sep=';'.", 0)
    if is_header(first, options, head.error):
        names, below = first, list(islice(lines, 1))
    else:
        names, below = _numbered(first, options), head.record
    number = head.next_line - len(below) * (below is head.record)
    if below and len(fields_of(below[0], sep)) == len(names) + 1 and "text" not in names:
        names = ["", *names]  # of R, which has no name for the column of row names
    try:
        columns = choose_columns(names, options, head.error)
    except ReadError:
        if _may_be_spaced(first, options):
            raise _other_separator(" ", options, head.error) from None
        raise
    lines = chain(below, lines)
    table = _TextTable(path, sep, columns, options)
    if columns.text is None:
        parts = table.numbers(_Lines(lines), number, rows)
    else:
        parts = table.texts(kind(lines, path, sep, number), rows)
    counts, start, first_value = columns.numbers[:1] == [0] and options.features is None, 0, 0.0
    for part in parts:
        if counts:
            first_value = first_value if start else part.X[0, 0]
            rows_of_part = np.arange(start, start + len(part)) + first_value
            counts = first_value in (0, 1) and np.array_equal(part.X[:, 0], rows_of_part)
        start += len(part)
        yield part
    if counts and start >= _COUNTED:
        what = f"the column {names[0]!r} counts the rows, as an index, and is read as a feature:"
        what += f" say id={names[0]!r} where it names the samples, or drop={names[0]!r}."
        warnings.warn(f"{ReadError(path, what)}", stacklevel=2)


def _numbered(first: list[str], options: Options) -> list[str]:
    """The names of columns that have none."""
    roles = options.format == "tsv" and options.label is None and options.text is None
    if roles and (len(first) == 2 or options.header is None):
        return ["label", "text"]
    return [str(i) for i in range(1, len(first) + 1)]


class _Lines:
    """Lines, also in blocks: an error of theirs waits until those before it are read."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self._error: ReadError | None = None

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if self._error is not None:
            raise self._error
        return next(self._lines)

    def block(self, rows: int, size: int) -> list[str]:
        """The next lines: at most so many, and about so many characters."""
        found, held = [], 0
        try:
            for line in islice(self, rows):
                found.append(line)
                held += len(line)
                if held >= size:
                    break
        except ReadError as error:
            if not found:
                raise
            self._error = error
        return found


class _TextTable:
    """What the rows of a table hold, where its columns are known."""

    def __init__(self, path: Any, sep: str, columns: Columns, options: Options) -> None:
        self.path = path
        self.sep = sep
        self.columns = columns
        self.options = options
        default = MISSING if columns.text is None else [""]
        self.na = default if options.na is None else options.na

    def texts(self, table: TabRows | CsvRows, rows: int) -> Iterator[Data]:
        """Texts, so many at a time."""
        found = iter(table)
        while batch := [self._sample(table, fields) for fields in islice(found, rows)]:
            yield self._data(*map(list, zip(*batch, strict=True)))

    def _data(self, X: Any, labels: list[str | None], ids: list[str]) -> Data:
        """Some rows; labels that are None are missing."""
        y = None
        if self.columns.label is not None:
            missing = np.asarray([label is None for label in labels])
            y = masked(np.asarray([label for label in labels if label is not None]), missing)
        return Data(X, y, self.columns.feature_names, None if self.columns.id is None else ids)

    def _sample(
        self, table: TabRows | CsvRows, fields: list[str]
    ) -> tuple[str | None, str | None, str]:
        """(text or None where it is missing, label, name) of a row."""
        label, id = self._label_and_id(table, fields)
        at, options = self.columns.text, self.options
        assert at is not None
        if options.na is None or fields[at] not in options.na:
            return fields[at], label, id
        if options.missing != "drop":
            raise table.error(missing_value("the text"), at)
        return None, label, id

    def _label_and_id(self, table: TabRows | CsvRows, fields: list[str]) -> tuple[str | None, str]:
        """(label, name) of a row of the right width; the label is None where it is missing."""
        columns, width = self.columns, len(self.columns.names)
        if len(fields) != width:
            what = f"this row has {counted(len(fields), 'field')}, not {width}."
            raise table.error(what, min(len(fields), width))
        label = None
        if columns.label is not None:
            label = fields[columns.label]
            fault = label_fault(label)
            if label in self.na:
                fault = fault or (
                    f"the label {label!r} stands for a missing one: missing='drop' leaves such "
                    "rows out, and na='' reads it as it is."
                )
                label, fault = None, None if self.options.masks_labels else fault
            if fault:
                raise table.error(fault, columns.label)
        return label, "" if columns.id is None else fields[columns.id]

    def numbers(self, lines: _Lines, number: int, rows: int) -> Iterator[Data]:
        """Numbers, of so many lines at most at a time; the first has this number."""
        by_arrow = find_spec("pyarrow") is not None
        size = max(_BLOCK, _OF_COLUMN * len(self.columns.names))
        while block := lines.block(rows, size):
            found = self._by_arrow("".join(block)) if by_arrow else None
            after = number + len(block)
            if found is None:
                table = CsvRows(chain(block, lines), self.path, self.sep, number)
                found = self._by_python(table, after)
                after = table.next_line
            number = after
            if len(found):
                yield found

    def _by_arrow(self, block: str) -> Data | None:
        """The rows of a block; None where it has a fault, or has to be read more carefully."""
        import pyarrow as pa
        from pyarrow import csv

        columns, options = self.columns, self.options
        raw = block.encode(errors="surrogatepass")  # which PyArrow refuses
        if raw.count(b"\r") != raw.count(b"\r\n") or not _has_plain_quotes(raw, ord(self.sep)):
            return None
        types = dict.fromkeys(map(str, columns.numbers), pa.float64())
        types |= {str(i): pa.string() for i in (columns.label, columns.id) if i is not None}
        try:
            table = csv.read_csv(
                io.BytesIO(raw),
                csv.ReadOptions(
                    use_threads=False,
                    block_size=len(raw) + 1,
                    column_names=[str(i) for i in range(len(columns.names))],
                ),
                csv.ParseOptions(delimiter=self.sep, newlines_in_values=True),
                csv.ConvertOptions(
                    column_types=types,
                    include_columns=[*types],
                    null_values=self.na,
                    strings_can_be_null=True,
                    decimal_point=options.decimal,
                ),
            )
        except pa.ArrowInvalid:
            return None
        X = np.empty((table.num_rows, len(columns.numbers)))
        for j, i in enumerate(columns.numbers):
            X[:, j] = table.column(str(i)).to_numpy()
        labels, ids = (
            [] if i is None else table.column(str(i)).to_pylist()
            for i in (columns.label, columns.id)
        )
        mask = options.masks_labels
        faults = any(not mask if x is None else label_fault(x) for x in {*labels})
        holds = np.isfinite(X) if options.missing == "error" else ~np.isinf(X)
        is_whole = not faults and None not in ids and holds.all()
        return self._data(X, labels, ids) if is_whole else None

    def _by_python(self, table: CsvRows, after: int) -> Data:
        """The rows up to a line; a fault is raised with its place."""
        X, labels, ids = [], [], []
        for fields in table:
            label, id = self._label_and_id(table, fields)
            X.append(self._values(table, fields))
            labels.append(label)
            ids.append(id)
            if table.next_line >= after:
                break
        return self._data(np.asarray(X), labels, ids)

    def _values(self, table: CsvRows, fields: list[str]) -> np.ndarray:
        """The numbers of a row."""
        row, decimal = np.empty(len(self.columns.numbers)), self.options.decimal
        for j, i in enumerate(self.columns.numbers):
            value, name = fields[i].strip(), self.columns.names[i]
            number = np.nan if value in self.na else as_number(value, decimal)
            if number is None:
                what = f"{value[:50]!r} in the column {name!r} is no number."
                raise table.error(f"{what} {_advice(value, self.sep, decimal, len(fields))}", i)
            if number in (np.inf, -np.inf):
                raise table.error(f"{value!r} in the column {name!r} is not finite.", i)
            if number != number and self.options.missing == "error":
                raise table.error(missing_value(f"the value in the column {name!r}"), i)
            row[j] = number
        return row


def _has_plain_quotes(raw: bytes, sep: int) -> bool:
    """Whether quotes stand around whole fields, and inside of these in pairs."""
    if b'"' not in raw:
        return True
    content = np.frombuffer(b"\n" + raw + b"\n", np.uint8)
    at = np.flatnonzero(content == ord('"'))
    before, after = content[at[::2] - 1], content[at[1::2] + 1]
    opening, closing = [sep, *b'\n"'], [sep, *b'\r\n"']
    return len(before) == len(after) and bool(
        np.isin(before, opening).all() and np.isin(after, closing).all()
    )


def _advice(value: str, sep: str, decimal: str, width: int) -> str:
    """What to do about a cell that holds no number, in a row of so many."""
    found = []
    if width == 1 and _has_numbers_between_spaces(value):
        found.append("Where a space separates the fields, say sep=' '.")
    if by := _THOUSANDS.fullmatch(value):
        found.append(f"Where {by[1]!r} separates thousands, write the numbers without it.")
    if decimal == "." and _COMMA.fullmatch(value):
        so = "write a point" if sep == "," else "say decimal=','"
        found.append(f"Where the comma is a decimal point, {so}.")
    return " ".join(found) or NO_FEATURE


def _has_numbers_between_spaces(line: str) -> bool:
    """Whether half or more of the fields between spaces are numbers, or index:value of svmlight."""
    fields = line.split(" ")
    numbers = [field for field in fields if as_number(field.rpartition(":")[2]) is not None]
    return len(fields) > 1 and 2 * len(numbers) >= len(fields)


def _named(options: Options) -> set[str | None]:
    """The names of columns that are asked for."""
    return {options.label, options.text, options.id, *options.drop, *(options.features or ())}


def _is_one_column(first: list[str], options: Options) -> bool:
    """Whether a first row without a separator is no column that is asked for."""
    return options.sep is None and len(first) == 1 and first[0] not in _named(options)


def _may_be_spaced(first: list[str], options: Options) -> bool:
    """Whether spaces may separate the fields of a first row that is not right as it is."""
    return (
        _is_one_column(first, options)
        and " " in first[0]
        and (options.header is not False or _has_numbers_between_spaces(first[0]))
    )


def is_header(first: list[str], options: Options, error: Error) -> bool:
    """Whether the first row, of these fields, holds the names of the columns."""
    given = _named(options)
    roles, bare = _ROLES & set(first), options.format == "tsv" and given == {None}
    if _is_one_column(first, options):
        # A space may be one of a name, or of a text.
        other = next((c for c in _SEPARATORS if c in first[0] and c != " "), None)
        if other is not None:
            raise _other_separator(other, options, error)
    if options.header is not None:
        return options.header
    if bare and len(first) == 2 and len(roles) == 1:
        shown = " and ".join(map(repr, first))
        raise error(
            f"this line holds {shown[:100]}: say header=True where these are names of columns, "
            "and header=False where they are a label and a text.",
            0,
        )
    if roles or any(name in given and as_number(name) is None for name in first):
        return True
    if bare and len(first) <= 2:
        return False
    names = [name for name in first if name.strip()]
    numbers = [name for name in names if as_number(name, options.decimal) is not None]
    if len(numbers) + 1 >= len(names) and numbers and not _counts(numbers):
        if _may_be_spaced(first, options):
            raise _other_separator(" ", options, error)
        raise error(
            f"this line holds numbers, as {numbers[0][:50]!r}, where the names of the columns are "
            "expected. Where it is a sample, say header=False: the columns are named 1, 2, and so "
            "on. Where it holds names, say header=True.",
            first.index(numbers[0]),
        )
    return True


def _counts(names: list[str]) -> bool:
    """Whether names count from 0 or 1, as those of tables that had none."""
    return len(names) > 2 and any(
        names == [str(i) for i in range(start, start + len(names))] for start in (0, 1)
    )


def _other_separator(other: str, options: Options, error: Error) -> ReadError:
    """The error for fields that are separated by something else."""
    expected = "tab" if options.format == "tsv" else "comma"
    what = f"there is no {expected} in this line, but {other!r}: name the separator,"
    return error(f"{what} sep={other!r}.", 0)


def as_number(value: str, decimal: str = ".") -> float | None:
    """The number that a cell holds, or None."""
    value = value.strip()
    if decimal != ".":
        if "." in value:  # of thousands, it may be
            return None
        value = value.replace(decimal, ".")
    try:
        return None if "_" in value else float(value)
    except ValueError:
        return _TRUTH.get(value.lower())
