"""Rows of standard input, handed on before it is waited for."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..readers import Data


class _Watched(io.RawIOBase):
    """A raw stream that tells before each read that it may have to wait."""

    def __init__(self, raw: Any, before: Callable[[], None]) -> None:
        self._raw = raw
        self._before = before

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._before()
        return self._raw.readinto(buffer)


@contextmanager
def _watched_stdin(before: Callable[[], None]) -> Iterator[None]:
    stdin = sys.stdin
    raw = getattr(stdin.buffer, "raw", stdin.buffer)
    sys.stdin = io.TextIOWrapper(io.BufferedReader(_Watched(raw, before), 2**16))
    try:
        yield
    finally:
        sys.stdin = stdin


def hand_on(read: Callable[[], Iterator[Data]], handle: Callable[[Data], None], most: int) -> None:
    """Read standard input, and handle what has come before more is waited for.

    Parameters
    ----------
    read : callable
        Gives the rows of standard input one by one.
    handle : callable
        Called with the rows that have come, at least one.
    most : int
        Rows that are handled together at most.
    """
    from ..readers.whole import joined

    held: list[Data] = []

    def flush() -> None:
        if held:
            (data,) = joined(held, "-", float("inf"))
            held.clear()
            handle(data)

    with _watched_stdin(flush):
        for row in read():
            held.append(row)
            if len(held) == most:
                flush()
        flush()
