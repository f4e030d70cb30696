"""The container of model files: a JSON document and arrays, behind a header with a checksum.

The arrays are in NumPy's .npy format, one after the other, since it states type and shape in front
of the data, streams to and from the disk, compresses nothing and needs no further package.

=======  ============================================================================
bytes    content
=======  ============================================================================
0-7      the magic number
8-11     the version of the format, little-endian
12-19    the length of the file in bytes, little-endian
20-51    SHA-256 of all bytes before and after these
52-      the document, JSON in ASCII, as an array of uint8; then its arrays
=======  ============================================================================

The first 52 bytes mean the same in every version. The document is an object of named sections, and
of "arrays", the number of arrays that follow it, and "versions", of the packages that wrote it.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import math
import os
import secrets
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, BinaryIO

import numpy as np
from sklearn import __version__ as sklearn_version

from ..arrays.namespace import to_numpy

#: Errors of writing, which name no file.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
MAGIC = b"\x89GPUC\r\n\x1a"  # a byte above 127 and line ends show what a transfer as text changes
VERSION = 1
KINDS = "biufUSMm"  # of the types of arrays: all that hold neither objects nor fields
_FRONT = struct.Struct("<8sIQ")
_START = _FRONT.size + hashlib.sha256().digest_size
_NPY = (1, 0)
_CHUNK = 2**20


def write(target: Any, document: dict[str, Any], arrays: Sequence[Any]) -> None:
    """Write a document and its arrays, all or nothing.

    Parameters
    ----------
    target : str, path-like or binary file
    document : dict
        Named sections of JSON.
    arrays : sequence of arrays of any library
        Of types in `KINDS`.
    """
    if hasattr(target, "write"):
        with tempfile.TemporaryFile() as whole:
            _write(whole, document, arrays)
            whole.seek(0)
            shutil.copyfileobj(whole, target)
        return
    with beside(target) as file:
        _write(file, document, arrays)


def _write(file: Any, document: dict[str, Any], arrays: Sequence[Any]) -> None:
    own = import_module("gpucenters").__version__
    versions = {"gpucenters": own, "numpy": np.__version__, "scikit-learn": sklearn_version}
    text = json.dumps(document | {"arrays": len(arrays), "versions": versions}).encode("ascii")
    file.write(bytes(_START))
    for array in [np.frombuffer(text, np.uint8), *arrays]:
        np.lib.format.write_array(file, to_numpy(array), version=_NPY, allow_pickle=False)
    front = _FRONT.pack(MAGIC, VERSION, file.seek(0, os.SEEK_END))
    digest = _checksum(front, file)
    file.seek(0)
    file.write(front + digest)


def _checksum(front: bytes, file: Any) -> bytes:
    """SHA-256 of the file but for its place."""
    found = hashlib.sha256(front)
    file.seek(_START)
    while chunk := file.read(_CHUNK):
        found.update(chunk)
    return found.digest()


def read(source: Any, make: Callable[[dict[str, Any], list[np.ndarray]], Any]) -> Any:
    """What ``make`` makes of the document and the arrays of a file.

    Parameters
    ----------
    source : str, path-like or binary file
    make : callable
        What it raises for a document that is not right becomes a ValueError.

    Raises
    ------
    ValueError
        For a file that is truncated, altered, of a newer version, or none of ours.
    """
    if hasattr(source, "read"):
        return _read(io.BytesIO(source.read()), "the file", make)
    path = os.fspath(source)
    with open(path, "rb") as file:
        seekable = file if file.seekable() else io.BytesIO(file.read())
        return _read(seekable, repr(path), make)


def _read(file: BinaryIO, name: str, make: Callable[..., Any]) -> Any:
    _check(file, name)
    by = ""
    try:
        document, arrays = _content(file)
        versions = document.pop("versions", {})
        by = f" (Written with {', '.join(f'{p} {v}' for p, v in versions.items())}.)"
        return make(document, arrays)
    except (MemoryError, OSError):
        raise
    except Exception as error:  # of what the checksum fits, but nobody has saved
        raise ValueError(f"{name} does not hold a model: {error}{by}") from error


def _check(file: BinaryIO, name: str) -> None:
    """Raise unless the file is whole, unaltered and of a known version."""
    length = file.seek(0, os.SEEK_END)
    file.seek(0)
    start = file.read(_START)
    if start[: len(MAGIC)] != MAGIC[: len(start)]:
        raise ValueError(f"{name} is not a model file of gpucenters.")
    if length < _START:
        raise ValueError(f"{name} is truncated: it ends in its header.")
    front, digest = start[: _FRONT.size], start[_FRONT.size :]
    _, version, stated = _FRONT.unpack(front)
    if length < stated:
        raise ValueError(f"{name} is truncated: it has {length:,} of {stated:,} bytes.")
    if length > stated or digest != _checksum(front, file):
        raise ValueError(f"{name} was altered after it was written: its checksum does not fit.")
    if version != VERSION:
        raise ValueError(
            f"{name} is of version {version} of the format, and this gpucenters reads version "
            f"{VERSION}: a newer gpucenters is needed."
        )


def _content(file: BinaryIO) -> tuple[dict[str, Any], list[np.ndarray]]:
    """The document and its arrays."""
    length = file.seek(0, os.SEEK_END)
    file.seek(_START)
    document = json.loads(_array(file, length).tobytes(), object_pairs_hook=_unique)
    arrays = [_array(file, length) for _ in range(document.pop("arrays"))]
    if file.tell() != length:
        raise ValueError("there are bytes after the last array.")
    return document, arrays


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of JSON with these keys, of which parsers would read one of two that are equal."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key of its document is there twice.")
    return found


def _array(file: BinaryIO, length: int) -> np.ndarray:
    """The array at this place of a file of that length, which bounds what is allocated."""
    start = file.tell()
    if np.lib.format.read_magic(file) != _NPY:
        raise ValueError(f"the array at byte {start} is not of version 1.0 of the .npy format.")
    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    size = math.prod(shape) * dtype.itemsize
    if dtype.kind not in KINDS or not dtype.itemsize or min(shape, default=0) < 0:
        raise ValueError(f"the array at byte {start} is of {dtype} and shape {shape}.")
    if size > length - file.tell():
        raise ValueError(f"the array at byte {start} is of {size:,} bytes, more than there are.")
    file.seek(start)
    return np.lib.format.read_array(file, allow_pickle=False)


@contextmanager
def beside(path: Any) -> Iterator[BinaryIO]:
    """A new binary file that takes its place when the block ends, and is gone where it fails.

    Parameters
    ----------
    path : str or path-like
        A file that is there is replaced, and keeps its mode; of a link, the file that it names.

    Raises
    ------
    ValueError
        Where the path is that of something else, as of a folder or a device.
    """
    place = os.path.realpath(os.fspath(path))
    if os.path.exists(place) and not os.path.isfile(place):
        raise ValueError(f"{place!r} is not a regular file: give a new name, or an open file.")
    part = os.path.join(os.path.dirname(place), f".{secrets.token_hex(8)}.part")
    try:
        with open(part, "x+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(place):
            shutil.copymode(place, part)
        os.replace(part, place)
    except BaseException as error:
        if os.path.exists(part):
            os.unlink(part)
        if isinstance(error, OSError) and (error.filename == part or error.errno in _FULL):
            error.filename = os.fspath(path)
        raise
