"""Device memory: a pool per device that knows what is in use, and a limit on it."""

from __future__ import annotations

import threading

from cupy._fake import devices, flight

TOTAL = 16 << 30


class OutOfMemoryError(MemoryError):
    def __init__(self, size: int, total: int, limit: int = 0) -> None:
        message = f"Out of memory allocating {size:,} bytes (allocated so far: {total:,} bytes"
        super().__init__(message + (f", limit set to: {limit:,} bytes)." if limit else ")."))


OutOfMemoryError.__module__ = "cupy.cuda.memory"


class Pool:
    def __init__(self) -> None:
        self.limit = 0
        self.used = 0
        self.peak = 0
        self._lock = (
            threading.RLock()
        )  # a release may run inside an allocation (garbage collection)

    def take(self, size: int) -> None:
        with self._lock:
            bound = self.limit or TOTAL
            if self.used + size > bound:
                raise OutOfMemoryError(size, self.used, self.limit)
            self.used += size
            self.peak = max(self.peak, self.used)

    def release(self, size: int) -> None:
        with self._lock:
            self.used -= size


class Allocation:
    """Memory that belongs to one array and its views, given back when the last of them goes."""

    __slots__ = ("_pool", "size")

    def __init__(self, nbytes: int, device_id: int) -> None:
        self.size = 0
        self._pool = pool(device_id)
        rounded = -(-nbytes // 512) * 512  # CuPy hands out whole blocks of 512 bytes
        self._pool.take(rounded)
        self.size = rounded

    def __del__(self) -> None:
        self._pool.release(self.size)


_pools: dict[int, Pool] = {}


def pool(device_id: int | None = None) -> Pool:
    return _pools.setdefault(devices.current() if device_id is None else device_id, Pool())


def reset() -> None:
    for each in _pools.values():
        each.limit = 0
        each.peak = each.used


class PinnedBuffer(bytearray):
    """Host memory that counts as page-locked: arrays over it are known by their base."""

    copies: list[tuple[str, int]]

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.copies = []

    def __del__(self) -> None:
        if not all(map(flight.is_over, self.copies)):
            flight.faults.append(f"{len(self):,} page-locked bytes went while being copied")


def pinned_buffer(array: object) -> PinnedBuffer | None:
    """The page-locked memory that an array lies in, if it does."""
    while array is not None and not isinstance(array, PinnedBuffer):
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)
    return array
