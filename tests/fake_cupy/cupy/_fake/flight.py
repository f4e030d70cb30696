"""Work and copies that a stream, or the host, has not waited for.

Nothing runs beside anything here. Written down in `faults` is what would be a race on a device:

- page-locked memory that goes, or is copied again, while a copy from it may be on the way;
- work on memory whose upload it has not waited for;
- an upload to memory that work uses which it has not waited for.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cupy._fake.memory import Allocation

faults: list[str] = []

_clock = itertools.count()
_recorded: dict[Any, tuple[str, int]] = {}  # event: stream and time
_waits: dict[str, list[tuple[int, str, int]]] = {}  # stream: (time, stream and time waited for)
_done: dict[str, int] = {}  # stream: all work up to this time is known to be over


_start = -1  # all before this time is over


def reset() -> None:
    global _start
    for each in (_recorded, _waits, _done, faults):
        each.clear()
    _start = next(_clock)


def use(allocation: Allocation, stream: str) -> None:
    """Work on memory is put on a stream."""
    for upload in allocation.uploads.items():
        if not precedes(upload, stream):
            faults.append(f"work on {stream} does not wait for an upload on {upload[0]}")
    allocation.uses[stream] = next(_clock)


def overwrite(allocation: Allocation, stream: str) -> tuple[str, int]:
    """A copy to memory is put on a stream."""
    for work in allocation.uses.items():
        if not precedes(work, stream):
            faults.append(f"an upload on {stream} does not wait for work on {work[0]}")
    allocation.uploads[stream] = next(_clock)
    return stream, allocation.uploads[stream]


def precedes(work: tuple[str, int], stream: str) -> bool:
    """Whether work is over before what is put on a stream now."""
    name, time = work
    if name == stream or is_over(work):
        return True
    waited = {stream: next(_clock)}  # other stream: all work up to this time
    streams = [stream]
    for waiting in streams:  # grows
        for at, other, upto in _waits.get(waiting, ()):
            if at <= waited[waiting] and upto > waited.get(other, -1):
                waited[other] = upto
                streams.append(other)
    return waited.get(name, -1) >= time


def is_over(copy: tuple[str, int]) -> bool:
    return _done.get(copy[0], _start) >= copy[1]


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
