"""Files that are there whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

#: Errors of writing, which name no file.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


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
