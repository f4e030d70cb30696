from __future__ import annotations

from typing import Any

from cupy._fake import devices as _devices
from cupy._fake import flight as _flight
from cupy._fake.counting import counter as _counter
from cupy._fake.devices import CUDARuntimeError
from cupy._fake.memory import TOTAL as _TOTAL
from cupy._fake.memory import pool as _pool

is_hip = False


def getDeviceCount() -> int:
    return _devices.device_count()


def getDevice() -> int:
    return _devices.current()


def setDevice(device: int) -> None:
    _devices.make_current(device)


def getDeviceProperties(device: int) -> dict[str, Any]:
    if not 0 <= device < _devices.device_count():
        raise CUDARuntimeError(101, "cudaErrorInvalidDevice", "invalid device ordinal")
    return {
        "name": b"Fake CUDA device",
        "totalGlobalMem": _TOTAL,
        "major": 9,
        "minor": 0,
        "multiProcessorCount": 1,
        "warpSize": 32,
    }


def memGetInfo() -> tuple[int, int]:
    return _pool().free(), _TOTAL


def malloc(size: int) -> int:
    """Memory of the device outside of CuPy's pool."""
    if size > _pool().free():
        raise CUDARuntimeError(2, "cudaErrorMemoryAllocation", "out of memory")
    _pool().filled += size
    _held.append(size)
    return len(_held)


def free(ptr: int) -> None:
    _pool().filled -= _held[ptr - 1]


_held: list[int] = []


def runtimeGetVersion() -> int:
    return 13000


def driverGetVersion() -> int:
    return 13000


def deviceSynchronize() -> None:
    _counter.wait("deviceSynchronize")
    _flight.synchronize_all()


def deviceCanAccessPeer(device: int, peer: int) -> int:
    return 0
