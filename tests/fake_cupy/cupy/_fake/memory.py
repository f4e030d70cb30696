"""Device memory: a pool per device that knows what is in use, and a limit on it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from cupy._fake import devices, flight

TOTAL = 16 << 30


class OutOfMemoryError(MemoryError):
    def __init__(self, size: int, total: int, limit: int = 0) -> None:
        message = f"Out of memory allocating {size:,} bytes (allocated so far: {total:,} bytes"
        super().__init__(message + (f", limit set to: {limit:,} bytes)." if limit else ")."))


OutOfMemoryError.__module__ = "cupy.cuda.memory"


class LibraryError(RuntimeError):
    """Shown by the name, module and text that the real ones have."""

    def __init__(self, status: int, name: str) -> None:
        super().__init__(name)
        self.status = status


def _error(module: str, kind: str) -> type[LibraryError]:
    return type(kind, (LibraryError,), {"__module__": f"cupy_backends.cuda.{module}"})


# What is allocated outside of the pool, and how its lack of memory shows.
OUTSIDE: dict[str, Callable[[], RuntimeError]] = {
    "cuBLAS": lambda: _error("libs.cublas", "CUBLASError")(3, "CUBLAS_STATUS_ALLOC_FAILED"),
    "cuSOLVER": lambda: _error("libs.cusolver", "CUSOLVERError")(
        1, "CUSOLVER_STATUS_NOT_INITIALIZED"
    ),
    "cuSPARSE": lambda: _error("libs.cusparse", "CuSparseError")(
        11, "CUSPARSE_STATUS_INSUFFICIENT_RESOURCES: insufficient resources"
    ),
    "module": lambda: _error("api.driver", "CUDADriverError")(
        2, "CUDA_ERROR_OUT_OF_MEMORY: out of memory"
    ),
    "stream": lambda: devices.CUDARuntimeError(2, "cudaErrorMemoryAllocation", "out of memory"),
}
HANDLE = 8 << 20


class Pool:
    """`cached`: bytes kept for later arrays. `filled`: bytes of the card that others use.

    `outside`: what of `OUTSIDE` has its memory already.
    """

    def __init__(self) -> None:
        self.limit = 0
        self.used = 0
        self.cached = 0
        self.filled = 0
        self.outside: set[str] = set()
        self.peak = 0
        self._lock = (
            threading.RLock()
        )  # a release may run inside an allocation (garbage collection)

    def take(self, size: int) -> None:
        with self._lock:
            bound = min(self.limit or TOTAL, TOTAL - self.filled - HANDLE * len(self.outside))
            if self.used + size > bound:
                raise OutOfMemoryError(size, self.used, self.limit)
            self.used += size
            # Kept blocks serve first, and are given back where the pool itself needs memory.
            self.cached = min(max(self.cached - size, 0), bound - self.used)
            self.peak = max(self.peak, self.used)

    def release(self, size: int) -> None:
        with self._lock:
            self.used -= size
            self.cached += size

    def free(self) -> int:
        """Bytes of the card that nobody holds."""
        return TOTAL - self.filled - HANDLE * len(self.outside) - self.used - self.cached


class Allocation:
    """Memory that belongs to one array and its views, given back when the last of them goes."""

    __slots__ = ("_pool", "size", "uploads", "uses")

    def __init__(self, nbytes: int, device_id: int) -> None:
        self.size = 0
        self.uploads: dict[str, int] = {}  # stream: the time of its last copy to here
        self.uses: dict[str, int] = {}  # stream: the time of its last work here
        self._pool = pool(device_id)
        rounded = -(-nbytes // 512) * 512  # CuPy hands out whole blocks of 512 bytes
        self._pool.take(rounded)
        self.size = rounded

    def __del__(self) -> None:
        self._pool.release(self.size)


_pools: dict[int, Pool] = {}


def pool(device_id: int | None = None) -> Pool:
    return _pools.setdefault(devices.current() if device_id is None else device_id, Pool())


def take_outside(what: str) -> None:
    """The memory of a handle, a module or a stream, at its first use."""
    here = pool()
    if what not in here.outside:
        if here.free() < HANDLE:
            raise OUTSIDE[what]()
        here.outside.add(what)


def reset() -> None:
    for each in _pools.values():
        each.limit = each.cached = each.filled = 0
        each.outside.clear()
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
