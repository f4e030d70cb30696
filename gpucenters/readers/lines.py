"""Files as lines, and rows of columns."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import lzma
import sys
import zipfile
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

from .data import ReadError

LONGEST = 2**26  # bytes of a line
_OBJECTS = 200  # bytes that Python's objects of a line take beside its characters, about
#: What the names of compressed files end with.
COMPRESSED = (".gz", ".bz2", ".xz", ".zip")
_KINDS = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bz2",
    b"\xfd7zXZ\0": "xz",
    b"PK\x03\x04": "zip",
}
_BZ2_BLOCK = b"1AY&SY"  # from the fifth byte on: a text may begin with BZh
_DAMAGED = (
    *(gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile),
    *(NotImplementedError, RuntimeError),  # methods and passwords of zip
)
_MARKS = {  # those of UTF-32 first, since one of UTF-16 begins another
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_WHY = {
    "unexpected end of data": "the quote that opens here is not closed.",
    "field larger": f"a field of this row has more than {LONGEST:,} characters.",
    "new-line character": "a carriage return stands in a field without quotes.",
    "expected after": "a quoted field goes on after its closing quote.",
}


def raw_lines(path: Any, limit: float, encoding: str = "utf-8") -> Iterator[bytes]:
    """The lines of a file with their ends, which are line feeds.

    A text in an encoding that does not hold ASCII, as its byte order mark or ``encoding`` says,
    comes in UTF-8 behind a byte order mark. The limit is that of the bytes that the lines may take,
    decompressed and as Python's objects.
    """
    number = size = 0
    kind = ""
    with ExitStack() as stack:
        file: Any = sys.stdin.buffer if path == "-" else stack.enter_context(open(path, "rb"))
        try:
            kind = _compression(file.peek(10))
            if kind:
                file = stack.enter_context(_decompressed(path, file, kind))
            head = file.peek(4)[:4]
            recoded = next((name for mark, name in _MARKS.items() if head.startswith(mark)), None)
            if recoded is None and not _holds_ascii(encoding):
                recoded = encoding
            if recoded is not None:
                file = io.BufferedReader(_Utf8(file, recoded), 2**20)
            elif len(head) > 1 and head[:2].count(0) == 1:
                order = "be" if head[0] == 0 else "le"
                what = "this is UTF-16 without a byte order mark, as it seems: name the encoding,"
                raise ReadError(path, f"{what} encoding='utf-16-{order}'.", 1, 1)
            while line := file.readline(LONGEST + 1):
                number, size = number + 1, size + len(line) + _OBJECTS
                if len(line) > LONGEST:
                    raise ReadError(
                        path, f"the line has more than {LONGEST:,} bytes.", number, LONGEST
                    )
                if size > limit:
                    raise too_large(path, limit, number, 1)
                yield line
        except _DAMAGED as error:
            why = f"the {kind} data are damaged or cut off from here on: {error}."
            raise ReadError(path, why, number + 1, 1) from error
        except OSError as error:
            if kind != "bz2" or error.errno is not None:
                raise
            raise ReadError(path, f"the bz2 data are damaged: {error}.", number + 1, 1) from error
        except UnicodeDecodeError as error:
            why = f"from here on the file is not {error.encoding}: {error.reason}."
            raise ReadError(path, why, number + 1, 1) from error


def _compression(head: bytes) -> str:
    """How a file that begins so is compressed, or nothing."""
    kind = next((name for magic, name in _KINDS.items() if head.startswith(magic)), "")
    return "" if kind == "bz2" and head[4:10] != _BZ2_BLOCK else kind


def _decompressed(path: Any, file: Any, kind: str) -> io.BufferedReader:
    if kind == "zip":
        if not file.seekable():
            raise ReadError(path, "zip needs a file, which can be read at any place.")
        archive = zipfile.ZipFile(file)
        names = [each.filename for each in archive.infolist() if not each.is_dir()]
        names = [name for name in names if not name.startswith("__MACOSX/")]
        if len(names) != 1:
            raise ReadError(path, f"the archive holds {len(names)} files, and must hold one.")
        opened: Any = archive.open(names[0])
    elif kind == "gzip":
        opened = gzip.GzipFile(fileobj=file)
    else:
        opened = {"bz2": bz2.BZ2File, "xz": lzma.LZMAFile}[kind](file)
    return io.BufferedReader(opened, 2**20)


class _Utf8(io.RawIOBase):
    """A text of another encoding in UTF-8, with a byte order mark."""

    def __init__(self, file: Any, encoding: str) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._ready = codecs.BOM_UTF8

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = b" "
        while not self._ready and chunk:
            chunk = self._file.read(2**16)
            self._ready = self._decoder.decode(chunk, not chunk).encode()
        taken, self._ready = self._ready[: len(buffer)], self._ready[len(buffer) :]
        buffer[: len(taken)] = taken
        return len(taken)


def _holds_ascii(encoding: str) -> bool:
    try:
        return "\t\r\n".encode(encoding) == b"\t\r\n"
    except LookupError:
        raise ValueError(f"encoding={encoding!r} is none that Python knows.") from None


def too_large(path: Any, limit: float, line: int | None = None, column: int | None = None) -> Any:
    """The error for a file that holds more than may be held."""
    why = f"there are more than {limit:,} bytes to hold: read in batches, or raise max_bytes."
    return ReadError(path, why, line, column)


def text_lines(path: Any, encoding: str, limit: float) -> Iterator[str]:
    """The lines of a text with their ends, without a byte order mark, which is believed."""
    for number, line in enumerate(raw_lines(path, limit, encoding), 1):
        if number == 1 and line.startswith(codecs.BOM_UTF8):
            line, encoding = line[len(codecs.BOM_UTF8) :], "utf-8"
        try:
            yield line.decode(encoding)
        except UnicodeDecodeError as error:
            byte = error.start
            why = f"byte {byte + 1} of the line, {line[byte]:#04x}, is not {encoding}. Name another"
            why += " encoding (such as encoding='latin-1'), or convert the file."
            raise ReadError(path, why, number, byte + 1) from error


# The rows of a table of text: fields between tabs without quotes, or CSV.


class _Rows:
    """Rows of fields; the path and the number of the first line are for errors."""

    def __init__(self, lines: Iterator[str], path: Any, sep: str, first: int = 1) -> None:
        self.path = path
        self.sep = sep
        self.record: list[str] = []  # the lines of the row that came last
        self._lines = lines
        self._first = first  # of these

    @property
    def next_line(self) -> int:
        """The number of the line behind the row that came last."""
        return self._first + len(self.record)


class TabRows(_Rows):
    """Rows of fields between tabs; the line is the row, and quotes mean nothing."""

    def __iter__(self) -> Iterator[list[str]]:
        for line in self._lines:
            self._first += len(self.record)
            self.record = [line]
            yield self._fields()

    def _fields(self) -> list[str]:
        return "".join(self.record).rstrip("\r\n").split(self.sep)

    def error(self, what: str, field: int = 0) -> ReadError:
        """The error for a field of the row that came last."""
        fields = self._fields()
        before = fields[:field]
        column = min(sum(map(len, before)) + len(before), len(self.sep.join(fields))) + 1
        return ReadError(self.path, what, self._first, column)


class CsvRows(_Rows):
    """Rows of CSV by Python's reader, which says no place: one is searched for when needed."""

    def _feed(self) -> Iterator[str]:
        for line in self._lines:
            self.record.append(line)
            yield line

    def __iter__(self) -> Iterator[list[str]]:
        csv.field_size_limit(max(csv.field_size_limit(), LONGEST))  # Python's 131,072 are few
        rows = csv.reader(self._feed(), delimiter=self.sep, strict=True)
        while True:
            self._first += len(self.record)
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
        return ReadError(self.path, what, self._first + before.count("\n"), column)

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
