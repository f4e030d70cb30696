"""The rows of a table of text: fields between tabs without quotes, or CSV."""

from __future__ import annotations

import csv
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Any

from .data import ReadError
from .lines import LONGEST

_WHY = {
    "unexpected end of data": "the quote that opens here is not closed.",
    "field larger": f"a field of this row has more than {LONGEST:,} characters.",
    "new-line character": "a carriage return stands in a field without quotes.",
    "expected after": "a quoted field goes on after its closing quote.",
}


class TabRows:
    """Rows of fields between tabs; the line is the row, and quotes mean nothing.

    Parameters
    ----------
    lines : iterator of str
    path : str or path-like
        For errors.
    sep : str
        What separates fields.
    first : int
        The number of the first line.
    """

    def __init__(self, lines: Iterator[str], path: Any, sep: str = "\t", first: int = 1) -> None:
        self.path = path
        self._lines = lines
        self._sep = sep
        self.record: list[str] = []  # the line of the row that came last
        self.next_line = first
        self._fields: list[str] = []

    def __iter__(self) -> Iterator[list[str]]:
        for line in self._lines:
            self.next_line += 1
            self.record = [line]
            self._fields = line.rstrip("\r\n").split(self._sep)
            yield self._fields

    def error(self, what: str, field: int = 0) -> ReadError:
        """The error for a field of the row that came last."""
        before = self._fields[:field]
        column = min(sum(map(len, before)) + len(before), len(self._sep.join(self._fields))) + 1
        return ReadError(self.path, what, max(self.next_line - 1, 1), column)


class CsvRows:
    """Rows of CSV by Python's reader, which says no place: it is searched for when one is needed.

    Parameters
    ----------
    lines : iterator of str
    path : str or path-like
        For errors.
    sep : str
        What separates fields.
    first : int
        The number of the first line.
    """

    def __init__(self, lines: Iterator[str], path: Any, sep: str = ",", first: int = 1) -> None:
        self.path = path
        self._lines = lines
        self.sep = sep
        self.record: list[str] = []  # the lines of the row that came last
        self._next_line = first

    @property
    def next_line(self) -> int:
        """The number of the line behind the row that came last."""
        return self._next_line + len(self.record)

    def _feed(self) -> Iterator[str]:
        for line in self._lines:
            self.record.append(line)
            yield line

    def __iter__(self) -> Iterator[list[str]]:
        csv.field_size_limit(max(csv.field_size_limit(), LONGEST))  # Python's 131,072 are few
        rows = csv.reader(self._feed(), delimiter=self.sep, strict=True)
        while True:
            self._next_line += len(self.record)
            self.record.clear()
            try:
                row = next(rows, None)
            except csv.Error as error:
                raise self._syntax_error(str(error)) from error
            if row is None:
                return
            if row:  # an empty line is no row
                yield row

    def error(self, what: str, field: int = 0) -> ReadError:
        """The error for a field of the row that came last."""
        end = len("".join(self.record).rstrip("\r\n"))
        start = self._shortest(lambda part: len(fields_of(part, self.sep)) > field) if field else 0
        return self._error(what, min(start, end))

    def _syntax_error(self, message: str) -> ReadError:
        what = next((why for part, why in _WHY.items() if part in message), f"{message}.")
        if "unexpected end" in message:
            record = "".join(self.record)
            field = fields_of(record, self.sep)[-1]
            return self._error(what, len(record) - len(field) - field.count('"') - 1)
        if "field larger" in message:
            return self._error(what, 0)
        return self._error(what, self._shortest(lambda part: message in self._fault(part)) - 1)

    def _shortest(self, holds: Callable[[str], bool]) -> int:
        """The length of the shortest start of the row for which something holds, or all of it."""
        record = "".join(self.record)
        return bisect_left(range(len(record) + 1), True, key=lambda end: holds(record[:end]))

    def _error(self, what: str, at: int) -> ReadError:
        before = "".join(self.record)[:at]
        column = len(before) - (before.rfind("\n") + 1) + 1
        return ReadError(self.path, what, self._next_line + before.count("\n"), column)

    def _fault(self, record: str) -> str:
        """What the reader says of the start of a row."""
        try:
            next(csv.reader([record], delimiter=self.sep, strict=True), None)
        except csv.Error as error:
            return str(error)
        return ""


def fields_of(record: str, sep: str) -> list[str]:
    """The fields of the start of a row of CSV; none where they cannot be told."""
    try:
        return next(csv.reader([record], delimiter=sep), [])
    except csv.Error:
        return []
