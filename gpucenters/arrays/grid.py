"""How work is cut into parts: partitions of fixed grids, and as much as fits into memory."""

from __future__ import annotations

import itertools
import numbers
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np

from . import cuda
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
_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
_DEFAULT_DIVISOR = 4  # the default budget is a quarter of the free memory
_ROOT = Path("/")
_NO_LIMIT = 2**62  # from which on version 1 of control groups means none
_IF_UNKNOWN = 2**30  # bytes that count as free where the system does not say what is free


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


# The memory budget: workspace beyond inputs and model, a share of what memory is free.


def resolve_budget(budget: int | str | None, backend: Backend) -> int:
    """Workspace in bytes.

    Parameters
    ----------
    budget : int, str or None
        Bytes, or a size such as "500MB", "2GB", "1.5GiB"; None is a quarter of what is free.
    backend : Backend

    Raises
    ------
    ValueError
        If it is no positive size.
    """
    if budget is None:
        return max(_free(backend) // _DEFAULT_DIVISOR, 1)
    size: float = 0
    if isinstance(budget, numbers.Real) and not isinstance(budget, bool):
        size = int(budget) if budget % 1 == 0 else 0  # 2e9 is a whole number
    elif isinstance(budget, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", budget)
        if match and match.group(2).lower() in _UNITS:
            size = float(match.group(1)) * _UNITS[match.group(2).lower()]
    if not 1 <= size < 2**63:
        raise ValueError(
            f"memory_budget={budget!r} is not a size: use a positive number of bytes, a string "
            "such as '500MB' or '2GB', or None."
        )
    return int(size)


def _free(backend: Backend) -> int:
    return cuda.free_memory(backend.device) if is_cupy(backend.xp) else free_memory()


def free_memory() -> int:
    """Free bytes of the machine, or fewer where a control group (a container) has a limit."""
    return max(0, min([_of_system(), *(_of_group(*names) for names in _groups(_ROOT))]))


def _of_system() -> int:
    for line in _lines(_ROOT / "proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return _IF_UNKNOWN


@cache
def _groups(root: Path) -> list[tuple[Path, Path, Path, str]]:
    """(limit, usage, statistics, prefix of their names) of the groups around the process.

    They are those that have a limit when it is first asked for.
    """
    return [
        (group / limit, group / usage, group / "memory.stat", prefix)
        for group, limit, usage, prefix in _all_groups(root)
        if _limit(group / limit) < _NO_LIMIT
    ]


def _all_groups(root: Path) -> Iterator[tuple[Path, str, str, str]]:
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):  # version 1
            group = root / "sys/fs/cgroup/memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_")
        elif not controllers:  # version 2
            group, names = root / "sys/fs/cgroup", ("memory.max", "memory.current", "")
        else:
            continue
        # In a container, the path may be that outside, and what is mounted the group itself.
        for part in ("", *path.strip("/").split("/")):
            group /= part
            yield group, *names


def _of_group(limit: Path, usage: Path, statistics: Path, prefix: str) -> int:
    """What a limit leaves; pages of files make room for others."""
    left = _limit(limit) - sum(map(int, _lines(usage)))
    sizes = dict(line.split() for line in _lines(statistics))
    return left + sum(int(sizes.get(f"{prefix}{k}_file", 0)) for k in ("active", "inactive"))


def _limit(file: Path) -> int:
    found = [int(line) for line in _lines(file) if line.isdecimal()]  # no number: "max"
    return min([*found, _NO_LIMIT])


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []
