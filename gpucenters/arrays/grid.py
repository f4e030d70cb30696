"""How work is cut into parts: partitions of fixed grids, and as much as fits into memory."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Literal

import numpy as np

from .backend import Backend
from .namespace import is_cupy

# Elements in a chunk. On a CPU a few megabytes, so that the cast, the sum and the squares read the
# chunk from the cache; on CUDA enough to hide the overhead of kernel launches.
CPU_CHUNK = 2**17
CUDA_CHUNK = 2**25
UPLOAD_BYTES = 15 * 2**20  # of host data: with room for row pointers, 16 MB
LEAST_CUDA_CHUNK = 2**16  # smaller chunks save no memory that matters
_BYTES_PER_ELEMENT = 48  # workspace for each element of a CUDA chunk

_MOST_ROWS = 2048  # of a dense CPU chunk
_LEAST_ROWS = 64  # of a dense CPU chunk: enough to make merging K rows of moments cheap
_ROWS_PER_CLASS = 4  # of a dense chunk
_LEAST_COLUMNS = 8  # of a dense chunk that is made tall for its classes
_ROW_STRIP = 2**23  # elements in a strip of rows that is read chunk by chunk
_FULL_WIDTH_STRIP = 2**21  # elements in a strip of rows that is copied in its full width


def first_chunk(backend: Backend, budget: int) -> int:
    """Elements of a chunk at the first try: on CUDA, as many as the budget has workspace for."""
    if not is_cupy(backend.xp):
        return CPU_CHUNK
    chunk = CUDA_CHUNK
    while _BYTES_PER_ELEMENT * chunk > budget and chunk > LEAST_CUDA_CHUNK:
        chunk = smaller_chunk(chunk, 1)
    return chunk


def smaller_chunk(chunk: int, halvings: int) -> int:
    """The elements of a CUDA chunk after so many halvings, at least the smallest useful number."""
    return max(chunk >> halvings, min(LEAST_CUDA_CHUNK, CUDA_CHUNK))


def ranges(n: int, step: int) -> Iterator[tuple[int, int]]:
    """Consecutive (start, stop) that cover ``range(n)``."""
    for start in range(0, n, step):
        yield start, min(start + step, n)


def dense_grid(n: int, m: int, size: int, n_classes: int = 1) -> tuple[int, int]:
    """Rows and columns of one chunk, of about ``size`` elements, of a dense n x m array.

    With several classes a chunk has enough rows that merging their sums costs little beside adding.
    """
    # A strip has few rows, so that the pages of its columns stay in the TLB.
    strip = min(_MOST_ROWS, max(_LEAST_ROWS, _ROW_STRIP // m)) * max(1, size // CPU_CHUNK)
    rows = min(n, max(strip, size // m, min(_ROWS_PER_CLASS * n_classes, size // _LEAST_COLUMNS)))
    return rows, max(1, min(m, size // rows))


def full_width_ranges(n: int, m: int, backend: Backend, chunk: int) -> list[tuple[int, int]]:
    """(start, stop) of strips of rows that are worked on in their full width."""
    # A strip has enough rows that adding its m x m products costs little beside making them.
    rows, size = 512, _FULL_WIDTH_STRIP
    if is_cupy(backend.xp):
        rows, size = max(64, 2048 * chunk // CUDA_CHUNK), chunk
    return list(ranges(n, max(rows, size // m)))


def entry_ranges(
    indptr: np.ndarray, start: int, stop: int, size: int
) -> Iterator[tuple[int, int, int, int]]:
    """(start, stop, first, last): stored entries start..stop lie in rows first..last.

    A row longer than a chunk is cut, so that one huge row needs no more memory than many short
    ones.
    """
    for left, right in ranges(stop - start, size):
        left, right = start + left, start + right
        first = _search(indptr, left, "right") - 1
        last = _search(indptr, right, "left")
        yield left, right, first, last


def _search(indptr: np.ndarray, position: int, side: Literal["left", "right"]) -> int:
    # With a number of another type NumPy would convert the whole of indptr.
    return int(np.searchsorted(indptr, indptr.dtype.type(position), side=side))


def row_ranges(indptr: np.ndarray, size: int) -> Iterator[tuple[int, int]]:
    """Consecutive (first, last) over compressed rows, each with about ``size`` entries or rows."""
    n, first = len(indptr) - 1, 0
    while first < n:
        last = _search(indptr, min(int(indptr[first]) + size, int(indptr[-1])), "right") - 1
        last = min(max(last, first + 1), first + size, n)
        yield first, last
        first = last


# Partitions of the stored entries: each has its own accumulator, and these are added in order.
PARTITION_ENTRIES = 2**23  # stored entries in a partition at least
_HALF_ENTRIES = 2**20  # in one of two
_MOST_PARTITIONS = 8


def partitions(count: int, accumulator: int, backend: Backend) -> list[tuple[int, int]]:
    """(start, stop) of each partition of ``count`` stored entries.

    A further partition costs one pass in order over an accumulator of ``accumulator`` numbers; an
    entry costs one random write. The number keeps merging cheaper than adding; it is 1 on CUDA.
    """
    n = 1
    if not is_cupy(backend.xp):
        affordable = 2 * count // max(accumulator, 1)
        n = max(min(2, count // _HALF_ENTRIES), min(_MOST_PARTITIONS, count // PARTITION_ENTRIES))
        n = max(1, min(n, affordable))
        n = 2 ** (n.bit_length() - 1)  # a power of two, shared evenly by two or four threads
    cuts = [count * partition // n for partition in range(n + 1)]
    return list(itertools.pairwise(cuts))
