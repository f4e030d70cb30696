"""The order in which work was put on streams, and which stream is current in this thread."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from cupy._fake import flight


class Action(NamedTuple):
    """`what` (upload, download, record, wait, synchronize), on which stream, and about what."""

    what: str
    stream: str
    about: Any = None


actions: list[Action] = []


class _State(threading.local):
    def __init__(self) -> None:
        self.stack: list[Any] = []


_state = _State()


def current() -> Any:
    """The stream in use, None for the default one."""
    return _state.stack[-1] if _state.stack else None


def push(stream: Any) -> None:
    _state.stack.append(stream)


def pop() -> None:
    _state.stack.pop()


def use(stream: Any) -> None:
    """`Stream.use()`: like `push`, but without a block that ends it."""
    _state.stack[:] = [stream]


def name(stream: Any = None) -> str:
    """The name of a stream; None is the current one."""
    stream = stream if stream is not None else current()
    return "null" if stream is None else str(stream)


def note(what: str, about: Any = None, stream: Any = None) -> None:
    actions.append(Action(what, name(stream), about))


def reset() -> None:
    flight.reset()
    actions.clear()
    _state.stack.clear()
