from __future__ import annotations

from cupy._fake import ledger as _ledger
from cupy._fake.memory import PinnedBuffer as _PinnedBuffer


class PinnedMemoryPool:
    def malloc(self, size: int) -> _PinnedBuffer:
        # CuPy allocates powers of two.
        _ledger.note("alloc_pinned", launches=0, workspace=1 << max(size - 1, 0).bit_length())
        return _PinnedBuffer(size)

    def n_free_blocks(self) -> int:
        return 0

    def free_all_blocks(self) -> None:
        pass


_pinned_memory_pool = PinnedMemoryPool()


def alloc_pinned_memory(size: int) -> _PinnedBuffer:
    return _pinned_memory_pool.malloc(size)
