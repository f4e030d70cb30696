"""The fixed grid of chunks over which sums run.

It depends on the shape of the data and the kind of device alone, so that a result never depends
on the memory budget, on free memory, or on the number of threads. (But chunks for a GPU are large,
and smaller where they do not fit.)
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import numpy as np

from .devices import Place
from .namespace import is_cupy

# Elements a chunk: a few megabytes, so that casting, sums and squares share one read of memory on
# a CPU; a GPU wants launches that are large against their overhead.
_CPU_CHUNK = 2**17
_CUDA_CHUNK = 2**25
_UPLOAD = 2**23  # of which a part is on its way up while the part before is worked on
_LEAST = 2**16  # below which halving a GPU's chunk saves nothing that matters
_WORKSPACE = 48  # bytes that work on a GPU's chunk takes for each of its elements
_ROWS = 2048  # rows of a dense CPU chunk at most,
_FEW_ROWS = 64  # and at least: enough to make merging K rows of moments cheap
_STRIP = 2**23  # elements in a strip of rows
_CPU_STRIP = 2**21  # the same where it is copied in its full width


def chunk_size(place: Place, *, uploaded: bool = False) -> int:
    """Elements in one chunk; ``uploaded``: of those that go from the host to a device."""
    if not is_cupy(place.xp):
        return _CPU_CHUNK
    size = max(_CUDA_CHUNK >> place.halvings, min(_LEAST, _CUDA_CHUNK))
    return min(size, _UPLOAD) if uploaded else size


def with_smaller_chunks(place: Place, halvings: int = 1) -> Place | None:
    """A place whose chunks are halved some times more; None where that would be of no use."""
    if not is_cupy(place.xp) or chunk_size(place) <= _LEAST:
        return None
    return replace(place, halvings=place.halvings + halvings)


def with_chunks_within(place: Place, budget: int) -> Place:
    """A place whose chunks, with the work on them, take no more bytes than a budget."""
    while _WORKSPACE * chunk_size(place) > budget:
        smaller = with_smaller_chunks(place)
        if smaller is None:
            break
        place = smaller
    return place


def ranges(n: int, step: int) -> Iterator[tuple[int, int]]:
    """Consecutive (start, stop) that cover ``range(n)``."""
    for start in range(0, n, step):
        yield start, min(start + step, n)


def dense_grid(n: int, m: int, size: int) -> tuple[int, int]:
    """Rows and columns of one chunk, of about ``size`` elements, of a dense n x m array."""
    # A strip of rows should stay in a cache of pages while its columns are read in turn.
    strip = min(_ROWS, max(_FEW_ROWS, _STRIP // m)) * max(1, size // _CPU_CHUNK)
    rows = min(n, strip)
    return rows, max(1, min(m, size // rows))


def strip_ranges(n: int, m: int, place: Place) -> list[tuple[int, int]]:
    """(start, stop) of strips of rows that are worked on in their full width."""
    # Adding a strip's products to an m x m matrix should be cheap against making them.
    few, size = 512, _CPU_STRIP
    if is_cupy(place.xp):
        few, size = max(64, 2048 >> place.halvings), chunk_size(place)
    return list(ranges(n, max(few, size // m)))


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
    # A number of another type would make NumPy convert the whole of indptr.
    return int(np.searchsorted(indptr, indptr.dtype.type(position), side=side))


def row_ranges(indptr: np.ndarray, size: int) -> Iterator[tuple[int, int]]:
    """Consecutive (first, last) over compressed rows, each with about ``size`` entries or rows."""
    n, first = len(indptr) - 1, 0
    while first < n:
        last = _search(indptr, min(int(indptr[first]) + size, int(indptr[-1])), "right") - 1
        last = min(max(last, first + 1), first + size, n)
        yield first, last
        first = last


# Lanes: parts of a sparse matrix that are summed apart and then merged in order.
_LANE = 2**23  # stored entries that make an accumulator of their own worth its while
_MOST_LANES = 8


def lanes(count: int, accumulator: int, place: Place) -> list[tuple[int, int]]:
    """(start, stop) of each lane of ``count`` stored entries.

    As many as the stored entries pay for: a lane of its own costs one more pass over an accumulator
    of that many numbers, in order, where each stored entry is a write at random.
    """
    n = 1
    if not is_cupy(place.xp):
        n = max(1, min(_MOST_LANES, count // _LANE, 2 * count // max(accumulator, 1)))
        n = 2 ** (n.bit_length() - 1)  # so that two or four threads share them evenly
    cuts = [count * lane // n for lane in range(n + 1)]
    return list(itertools.pairwise(cuts))
