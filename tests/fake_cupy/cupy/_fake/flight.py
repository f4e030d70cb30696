"""Copies from page-locked memory that the host has not waited for.

CuPy's pool hands page-locked memory on as soon as its last array goes, though a device may still be
reading it. Here that is written down in `faults`.
"""

from __future__ import annotations

import itertools
from typing import Any

faults: list[str] = []

_clock = itertools.count()
_recorded: dict[Any, tuple[str, int]] = {}  # event: stream and time
_waits: dict[str, list[tuple[int, str, int]]] = {}  # stream: (time, stream and time waited for)
_done: dict[str, int] = {}  # stream: all work up to this time is known to be over


def reset() -> None:
    for each in (faults, _recorded, _waits, _done):
        each.clear()


def start(stream: Any) -> tuple[str, int]:
    """A copy that was put on a stream now."""
    return str(stream), next(_clock)


def is_over(copy: tuple[str, int]) -> bool:
    return _done.get(copy[0], -1) >= copy[1]


def record(event: Any, stream: Any) -> None:
    _recorded[str(event)] = str(stream), next(_clock)


def wait(event: Any, stream: Any) -> None:
    if str(event) in _recorded:
        _waits.setdefault(str(stream), []).append((next(_clock), *_recorded[str(event)]))


def synchronize_event(event: Any) -> None:
    if str(event) in _recorded:
        _finish(*_recorded[str(event)])


def synchronize(stream: Any) -> None:
    _finish(str(stream), next(_clock))


def synchronize_all() -> None:
    for stream in {s for s, _ in _recorded.values()} | set(_waits) | set(_done):
        synchronize(stream)


def _finish(stream: str, time: int) -> None:
    if _done.get(stream, -1) >= time:
        return
    _done[stream] = time
    waits = _waits.pop(stream, [])
    _waits[stream] = [w for w in waits if w[0] > time]
    for at, other, upto in waits:
        if at <= time:
            _finish(other, upto)
