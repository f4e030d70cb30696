"""The lines of a file, plain or compressed: streamed, so that no claimed size is allocated."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import sys
import zipfile
import zlib
from collections.abc import Iterator
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


def raw_lines(path: Any, limit: float, encoding: str = "utf-8") -> Iterator[bytes]:
    """The lines of a file with their ends, which are line feeds.

    A text in an encoding that does not hold ASCII, as its byte order mark or ``encoding`` says,
    comes in UTF-8 behind a byte order mark.

    Parameters
    ----------
    path : str or path-like
        "-" is standard input.
    limit : float
        The number of bytes that the lines may take, decompressed and as Python's objects.
    encoding : str
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
