"""The fixed grid of chunks over which sums run.

It depends on the shape of the data and the kind of device alone, so that a result never depends
on the memory budget, on free memory, or on the number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .devices import Place
from .namespace import is_cupy

# Elements a chunk: a few megabytes, so that casting, sums and squares share one read of memory on
# a CPU; a GPU wants launches that are large against their overhead.
_CPU_CHUNK = 2**18
_CUDA_CHUNK = 2**25
_ROWS = 2048  # rows of a dense CPU chunk, enough to make merging K rows of moments cheap


def chunk_size(place: Place) -> int:
    """Elements in one chunk."""
    return _CUDA_CHUNK if is_cupy(place.xp) else _CPU_CHUNK


def ranges(n: int, step: int) -> Iterator[tuple[int, int]]:
    """Consecutive (start, stop) that cover ``range(n)``."""
    for start in range(0, n, step):
        yield start, min(start + step, n)


def dense_grid(n: int, m: int, place: Place) -> tuple[int, int]:
    """Rows and columns of one chunk of a dense n x m array."""
    size = chunk_size(place)
    rows = min(n, _ROWS * (size // _CPU_CHUNK))
    return rows, max(1, min(m, size // rows))


def entry_ranges(indptr: np.ndarray, size: int) -> Iterator[tuple[int, int, int, int]]:
    """(start, stop, first, last): stored entries start..stop lie in rows first..last.

    A row longer than a chunk is cut, so that one huge row needs no more memory than many short
    ones.
    """
    for start, stop in ranges(int(indptr[-1]), size):
        first = int(np.searchsorted(indptr, start, side="right")) - 1
        last = int(np.searchsorted(indptr, stop, side="left"))
        yield start, stop, first, last


def row_ranges(indptr: np.ndarray, size: int) -> Iterator[tuple[int, int]]:
    """Consecutive (first, last) over compressed rows, each with about ``size`` entries or rows."""
    n, first = len(indptr) - 1, 0
    while first < n:
        last = int(np.searchsorted(indptr, indptr[first] + size, side="right")) - 1
        last = min(max(last, first + 1), first + size, n)
        yield first, last
        first = last
