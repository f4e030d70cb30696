"""What the standard lacks, for the numpy-and-cupy family.

Every name used on ``xp`` here exists in NumPy and in CuPy, so that the lines which run on CUDA are
lines that the CPU tests have run.
"""

from __future__ import annotations

from .typing import Array, Namespace


def scatter_add(target: Array, index: Array, values: Array, xp: Namespace) -> None:
    """``target[index[j]] += values[j]``, with repeated indices summed, in place."""
    xp.add.at(target, index, values)


def top_k(key: Array, k: int, xp: Namespace) -> Array:
    """Indices of the k largest keys, ascending; among equal keys the lower index is taken.

    The k-th largest value by partition, all above it, then the first of those equal to it: a
    partition alone leaves ties in any order.
    """
    m = key.shape[0]
    if k >= m:
        return xp.arange(m, dtype=xp.int64)
    kth = xp.partition(key, m - k)[m - k]
    above = xp.nonzero(key > kth)[0]
    equal = xp.nonzero(key == kth)[0][: k - above.shape[0]]
    return xp.sort(xp.concat([above, equal]))


def expand(indptr: Array, start: int, stop: int, first: int, last: int, xp: Namespace) -> Array:
    """The row of each stored entry start..stop, when they all lie in rows first..last.

    Marks where rows begin and sums them up; ``repeat`` with an array of counts would bring the
    counts to the host on CUDA.
    """
    marks = xp.zeros(stop - start + 1, dtype=xp.int64)
    begins = indptr[first + 1 : last] - start
    xp.add.at(marks, begins, 1)
    rows = xp.cumsum(marks[:-1])
    rows += first
    return rows


def segment_sort(
    values: Array, segment: Array, xp: Namespace, weights: Array | None = None
) -> tuple[Array, Array | None]:
    """Values sorted within their segments, the segments one after the other (and weights along)."""
    order = xp.lexsort(xp.stack([values, segment.astype(xp.float64)]))
    return values[order], None if weights is None else weights[order]
