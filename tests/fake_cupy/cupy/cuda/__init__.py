from __future__ import annotations

from cupy._fake.devices import available as _available
from cupy.cuda import device, memory, pinned_memory, runtime, stream
from cupy.cuda.device import Device, get_device_id
from cupy.cuda.memory import MemoryPool
from cupy.cuda.pinned_memory import PinnedMemoryPool, alloc_pinned_memory
from cupy.cuda.stream import Event, ExternalStream, Stream, get_current_stream, get_elapsed_time


def is_available() -> bool:
    return _available()


__all__ = [
    "Device",
    "Event",
    "ExternalStream",
    "MemoryPool",
    "PinnedMemoryPool",
    "Stream",
    "alloc_pinned_memory",
    "device",
    "get_current_stream",
    "get_device_id",
    "get_elapsed_time",
    "is_available",
    "memory",
    "pinned_memory",
    "runtime",
    "stream",
]
