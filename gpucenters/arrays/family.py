"""What the standard lacks, for the numpy-and-cupy family.

Every name used on ``xp`` here exists in NumPy and in CuPy, so that the lines which run on CUDA are
lines that the CPU tests have run. Where NumPy has a way that CuPy lacks and that is much faster, it
stands beside the common line.
"""

from __future__ import annotations

import numpy as np

from .namespace import is_numpy
from .typing import Array, Namespace

try:
    # y += A @ x in place, in C and without the GIL: nothing public does that.
    from scipy.sparse._sparsetools import csc_matvec
except ImportError:  # not promised by SciPy: then half as fast
    csc_matvec = None


def scatter_add(target: Array, index: Array, values: Array, xp: Namespace) -> None:
    """``target[index[j]] += values[j]``, with repeated indices summed, in place and in order.

    Parameters
    ----------
    target : array of shape (m,), float64 or int64, contiguous
    index : array of int32 or int64 of shape (n,)
        Not checked: whoever made it knows that it lies in 0..m-1.
    values : array of shape (n,), of the target's type, or a number
    """
    if csc_matvec is not None and is_numpy(xp) and getattr(values, "dtype", None) == target.dtype:
        # A matrix of one column whose entries are the values, times the number one.
        ends = np.asarray([0, index.shape[0]], dtype=index.dtype)
        one = np.ones(1, dtype=target.dtype)
        csc_matvec(target.shape[0], 1, ends, index, values, one, target)
        return
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


def spread(per_row: Array, offsets: Array, count: int, xp: Namespace) -> Array:
    """Each row's value once for each entry of the row.

    Parameters
    ----------
    per_row : array of shape (r,)
    offsets : array of int64 of shape (r + 1,)
        Where the entries of the rows begin, from 0 to ``count``.
    count : int
        The number of entries.
    """
    if is_numpy(xp):
        return np.repeat(per_row, offsets[1:] - offsets[:-1])
    # CuPy's repeat would bring the counts to the host: mark where rows begin, and sum up.
    marks = xp.zeros(count + 1, dtype=xp.int64)
    xp.add.at(marks, offsets[1:-1], 1)
    return xp.take(per_row, xp.cumsum(marks[:-1]))


def sums_by_class(
    values: Array, codes: Array, offsets: Array, n_classes: int, xp: Namespace
) -> Array:
    """Sums of the entries of all rows of each class, of shape (n_classes,); ``codes`` by row."""
    if is_numpy(xp):
        filled = offsets[1:] > offsets[:-1]  # reduceat knows no empty rows
        if not filled.any():
            return np.zeros(n_classes)
        rows = np.add.reduceat(values, offsets[:-1][filled])
        return np.bincount(codes[filled], weights=rows, minlength=n_classes)
    code = spread(codes, offsets, values.shape[0], xp)
    return xp.bincount(code, weights=values, minlength=n_classes)


def segment_sort(
    values: Array, segment: Array, xp: Namespace, weights: Array | None = None
) -> tuple[Array, Array | None]:
    """Values sorted within their segments, the segments one after the other (and weights along)."""
    order = xp.lexsort(xp.stack([values, segment.astype(xp.float64)]))
    return values[order], None if weights is None else weights[order]
