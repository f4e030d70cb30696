"""Which devices there are, and which one is current in this thread."""

from __future__ import annotations

import os
import threading


class CUDARuntimeError(RuntimeError):
    """Shown by the name and module that the real one has."""

    def __init__(self, status: int, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.status = status


CUDARuntimeError.__module__ = "cupy_backends.cuda.api.runtime"


class _State(threading.local):
    def __init__(self) -> None:
        self.current = 0
        self.stack: list[int] = []


_state = _State()
_count = int(os.environ.get("FAKE_CUPY_DEVICES", "1"))


def set_device_count(count: int) -> None:
    """Pretend that there are so many devices (0: a machine with CuPy but without a GPU)."""
    global _count
    _count = count


def device_count() -> int:
    if _count == 0:
        raise CUDARuntimeError(100, "cudaErrorNoDevice", "no CUDA-capable device is detected")
    return _count


def available() -> bool:
    return _count > 0


def current() -> int:
    device_count()
    return _state.current


def make_current(device_id: int) -> None:
    if not 0 <= device_id < device_count():
        raise CUDARuntimeError(101, "cudaErrorInvalidDevice", "invalid device ordinal")
    _state.current = device_id


def push(device_id: int) -> None:
    previous = _state.current
    make_current(device_id)
    _state.stack.append(previous)


def pop() -> None:
    _state.current = _state.stack.pop()


def require_current(device_id: int) -> None:
    """Refuse what a kernel refuses: an array of a device that is not the current one.

    That is CuPy between two devices without peer access, the strictest of its manners.
    """
    if device_id != current():
        raise ValueError(
            f"The device where the array resides ({device_id}) is different from the current "
            f"device ({current()}). Peer access is unavailable between these devices."
        )


def reset() -> None:
    global _count
    _count = int(os.environ.get("FAKE_CUPY_DEVICES", "1"))
    _state.current = 0
    _state.stack.clear()
