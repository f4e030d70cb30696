"""Streams and events: nothing runs beside anything here, but the order is written down."""

from __future__ import annotations

import itertools
from typing import Any

from cupy._fake import flight as _flight
from cupy._fake import streams as _streams
from cupy._fake.counting import counter as _counter
from cupy._fake.memory import take_outside as _take_outside

_numbers = itertools.count(1)


class Event:
    def __init__(
        self, block: bool = False, disable_timing: bool = False, interprocess: bool = False
    ) -> None:
        self._number = next(_numbers)

    def __str__(self) -> str:
        return f"event {self._number}"

    @property
    def done(self) -> bool:
        return True

    def record(self, stream: Stream | None = None) -> None:
        _streams.note("record", self, stream)
        _flight.record(self, _streams.name(stream))

    def synchronize(self) -> None:
        _counter.wait("Event.synchronize")
        _streams.note("synchronize", self)
        _flight.synchronize_event(self)


class _BaseStream:
    def __init__(self, ptr: int) -> None:
        self.ptr = ptr

    def __str__(self) -> str:
        return f"stream {self.ptr}" if self.ptr else "null"

    def __hash__(self) -> int:
        return self.ptr

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _BaseStream) and self.ptr == other.ptr

    def __enter__(self) -> Any:
        _streams.push(self)
        return self

    def __exit__(self, *args: object) -> None:
        _streams.pop()

    def use(self) -> Any:
        _streams.use(self)
        return self

    @property
    def done(self) -> bool:
        return True

    def synchronize(self) -> None:
        _counter.wait("Stream.synchronize")
        _streams.note("synchronize", None, self)
        _flight.synchronize(self)

    def record(self, event: Event | None = None) -> Event:
        event = Event() if event is None else event
        event.record(self)  # type: ignore[arg-type]
        return event

    def wait_event(self, event: Event) -> None:
        _streams.note("wait", event, self)
        _flight.wait(event, self)

    def launch_host_func(self, callback: Any, arg: Any) -> None:
        callback(arg)


class Stream(_BaseStream):
    null: Stream

    def __init__(
        self,
        null: bool = False,
        non_blocking: bool = False,
        ptds: bool = False,
        priority: int | None = None,
    ) -> None:
        if not null:
            _take_outside("stream")
        super().__init__(0 if null else next(_numbers))
        self.is_non_blocking = non_blocking
        self.priority = priority or 0


class ExternalStream(_BaseStream):
    def __init__(self, ptr: int, device_id: int = -1) -> None:
        super().__init__(ptr)


Stream.null = Stream(null=True)


def get_current_stream(device_id: int = -1) -> Any:
    return _streams.current() or Stream.null


def get_elapsed_time(start_event: Event, end_event: Event) -> float:
    return 0.0
