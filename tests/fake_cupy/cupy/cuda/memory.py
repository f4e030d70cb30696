from __future__ import annotations

from cupy._fake.memory import TOTAL as _TOTAL
from cupy._fake.memory import OutOfMemoryError
from cupy._fake.memory import pool as _pool

__all__ = ["MemoryPool", "OutOfMemoryError"]


class MemoryPool:
    """Of the current device, as in CuPy: every figure is that of the device in use."""

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        if size is not None and fraction is not None:
            raise ValueError("size and fraction cannot be specified at one time")
        if fraction is not None:
            if not 0 <= fraction <= 1:
                raise ValueError(f"memory limit fraction out of range: {fraction}")
            size = int(fraction * _TOTAL)
        if size is not None and size < 0:
            raise ValueError(f"memory limit size out of range: {size}")
        _pool().limit = size or 0

    def get_limit(self) -> int:
        return _pool().limit

    def used_bytes(self) -> int:
        return _pool().used

    def free_bytes(self) -> int:
        return _pool().cached

    def total_bytes(self) -> int:
        return _pool().used + _pool().cached

    def n_free_blocks(self) -> int:
        return int(_pool().cached > 0)

    def free_all_blocks(self, stream: object = None) -> None:
        _pool().cached = 0


_memory_pool = MemoryPool()
