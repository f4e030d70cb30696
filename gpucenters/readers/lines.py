"""The lines of a file, plain or gzip: streamed, so that no size that a file claims is allocated."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from .errors import ReadError

LONGEST = 2**26  # bytes of a line
_OBJECTS = 200  # bytes that Python's objects of a line take beside its characters, about
_GZIP = b"\x1f\x8b"
_BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"


def raw_lines(path: Any, limit: float) -> Iterator[bytes]:
    """The lines of a file with their ends, which are line feeds.

    Parameters
    ----------
    path : str or path-like
        "-" is standard input.
    limit : float
        The number of bytes that the lines may take, decompressed and as Python's objects.
    """
    number = size = 0
    with ExitStack() as stack:
        file: Any = sys.stdin.buffer if path == "-" else stack.enter_context(open(path, "rb"))
        if file.peek(2)[:2] == _GZIP:
            file = io.BufferedReader(stack.enter_context(gzip.GzipFile(fileobj=file)), 2**20)
        try:
            while line := file.readline(LONGEST + 1):
                number, size = number + 1, size + len(line) + _OBJECTS
                if len(line) > LONGEST:
                    raise ReadError(
                        path, f"the line has more than {LONGEST:,} bytes.", number, LONGEST
                    )
                if size > limit:
                    raise too_large(path, limit, number, 1)
                yield line
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            why = f"the gzip data are damaged or cut off from here on: {error}."
            raise ReadError(path, why, number + 1, 1) from error


def too_large(path: Any, limit: float, line: int | None = None, column: int | None = None) -> Any:
    """The error for a file that holds more than may be held."""
    why = f"there are more than {limit:,} bytes to hold: read in batches, or raise max_bytes."
    return ReadError(path, why, line, column)


def text_lines(path: Any, encoding: str, limit: float) -> Iterator[str]:
    """The lines of a text with their ends, without a byte order mark."""
    try:
        is_ascii = "\t\r\n".encode(encoding) == b"\t\r\n"
    except LookupError:
        is_ascii = False
    if not is_ascii:
        raise ValueError(f"encoding={encoding!r} is none that Python knows and that holds ASCII.")
    for number, line in enumerate(raw_lines(path, limit), 1):
        try:
            text = line.decode(encoding)
        except UnicodeDecodeError as error:
            byte = error.start
            why = f"byte {byte + 1} of the line, {line[byte]:#04x}, is not {encoding}. Name another"
            why += " encoding (such as encoding='latin-1'), or convert the file."
            raise ReadError(path, why, number, byte + 1) from error
        yield text.removeprefix(_BOM) if number == 1 else text
