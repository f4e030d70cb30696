"""Functions of arrays that the array API standard lacks: each with all its ways.

Every name used on ``xp`` for both NumPy and CuPy exists in both, so that the tests on the CPU cover
the code that runs on CUDA. Faster ways that only NumPy has are separate branches.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

from . import kernels, sparsetools
from .backend import HOST, Backend
from .backend import backend_of as backend_of
from .namespace import array_namespace as array_namespace
from .namespace import is_cupy, is_numpy, is_numpy_or_cupy, to_numpy
from .schedule import CUDA_CHUNK, ranges, row_ranges, run
from .typing import Array, Namespace, SparseMatrix
from .typing import NumPyOrCuPy as SharedArray

EPS = 2.0**-52  # the distance from 1 to the next number of float64
UNIT_ROUNDOFF = 2.0**-53  # the largest relative error of one float64 operation
EXACT_INTEGERS = 2.0**53  # integers below it are exact in float64


def to_float(x: Array) -> float:
    """A number from an array of no dimension. On a device this waits for it."""
    return float(x)


def to_floats(x: Array) -> list[float]:
    """The numbers of a small array of one dimension, in one read: on a device each read waits."""
    return to_numpy(x).tolist()


#: ``to_host(x)``: an array of any library, or host values, on the host. For small problems, whose
#: steps would each wait for a device.
to_host: Callable[[Any], Any] = to_numpy


def writable(x: Array) -> Array:
    """``x``, or a copy of it where it is a read-only array of NumPy, as of a memory map."""
    if is_numpy(array_namespace(x)) and not to_numpy(x).flags.writeable:
        return to_numpy(x).copy()
    return x


def top_k(key: Array, k: int, near: Array | None = None) -> Array:
    """Indices of the k largest of ``key`` (no NaN), ascending; ties go to the lower index.

    Parameters
    ----------
    key : array of shape (m,)
    k : int, at most m
    near : array of no dimension, optional
        A guess at the k-th largest, which saves time on the host where it is a good one.

    Returns
    -------
    array of int64 of shape (k,)
    """
    xp = array_namespace(key)
    if not is_numpy_or_cupy(xp):
        return xp.sort(xp.argsort(-key, stable=True)[:k])
    if near is not None and is_numpy(xp):
        return _top_k_near(key, k, to_float(near))
    return _top_k(key, k, xp)


def _top_k(key: SharedArray, k: int, xp: Namespace) -> SharedArray:
    """`top_k` of NumPy and CuPy: the keys above the k-th largest, then the first equal to it.

    A partition alone leaves ties in any order.
    """
    m = key.shape[0]
    if k >= m:
        return xp.arange(m, dtype=xp.int64)
    kth = above = None
    if is_numpy(xp) and m >= _SAMPLED_FROM:
        kth = _bound(key, k)
        above = _where(lambda part: part > kth, key)
        if k <= above.shape[0] <= m // 2:
            return above[_top_k(key[above], k, xp)]
    if above is None or not above.shape[0] < k <= np.count_nonzero(key >= kth):
        # (The kernel of CuPy's partition does not synchronise its threads, and is no faster.)
        ordered = np.partition(key, m - k) if is_numpy(xp) else xp.sort(key, stable=False)
        kth = ordered[m - k]
        above = xp.nonzero(key > kth)[0]
    equal = xp.nonzero(key == kth)[0][: k - above.shape[0]]
    return xp.sort(xp.concat([above, equal]), stable=True)  # NumPy merges two sorted parts


def _top_k_near(key: SharedArray, k: int, near: float) -> SharedArray:
    """`_top_k`, where keys about the k-th largest are told apart by a guess at it: most often few.

    A comparison of all keys takes a small part of the time of a partition.
    """
    above = key > near + _NEAR * abs(near)
    count = int(np.count_nonzero(above))
    band = np.flatnonzero((key >= near - _NEAR * abs(near)) & ~above)
    if not count < k < count + band.shape[0]:
        return _top_k(key, k, np)
    above[band[_top_k(key[band], k - count, np)]] = True
    return np.flatnonzero(above)


_NEAR = 0.02  # of the guess, to either side

_SAMPLED_FROM = 2**15  # keys from which on a sample saves time
_CHUNK = 2**20  # keys that a thread compares
_SAMPLE_STEP = 16  # one key in so many is in the sample


def _bound(key: np.ndarray, k: int) -> np.floating:
    """A value that most likely at least k keys, and few more, reach, estimated from a sample.

    A partition of all keys reads them many times, on one thread, and takes thirty times as long
    where most are equal, as counts of rare words are; sorting does not.
    """
    sample = np.sort(key[::_SAMPLE_STEP])
    share = k / _SAMPLE_STEP
    rank = min(int(share + 4 * share**0.5) + 8, sample.shape[0])
    return sample[sample.shape[0] - rank]


def _where(holds: Callable[[np.ndarray], np.ndarray], key: np.ndarray) -> np.ndarray:
    """The indices, ascending, of all keys for which ``holds`` is true; on all threads."""

    def find(cut: tuple[int, int]) -> np.ndarray:
        return np.flatnonzero(holds(key[cut[0] : cut[1]])) + cut[0]

    return np.concatenate(list(run(find, ranges(key.shape[0], _CHUNK), HOST)))


def index_mask(index: Array, size: int) -> Array:
    """A mask of shape (size,): True at ``index``, which holds different numbers 0..size-1."""
    xp = array_namespace(index)
    if is_numpy_or_cupy(xp):
        mask = xp.zeros(size, dtype=xp.bool)
        mask[index] = True
        return mask
    order = xp.sort(index)
    every = xp.arange(size, dtype=index.dtype, device=order.device)
    # The standard has no scattered assignment.
    return xp.searchsorted(order, every, side="right") > xp.searchsorted(order, every, side="left")


def running_max(x: Array) -> Array:
    """The largest of the first rows of ``x``, for each number of rows: of the shape of ``x``."""
    xp = array_namespace(x)
    if is_numpy(xp):
        if x.shape[1] < _LONG_ROW:
            return np.maximum.accumulate(to_numpy(x), axis=0)
        out = to_numpy(x).copy()
        for above, row in itertools.pairwise(out):  # several times as fast on long rows
            np.maximum(above, row, out=row)
        return out
    step = 1
    while step < x.shape[0]:
        x = xp.concat([x[:step, ...], xp.maximum(x[step:, ...], x[:-step, ...])])
        step *= 2
    return x


_LONG_ROW = 64


def row_sums(x: Array) -> Array:
    """The sum of each row: (K,) from (K, m). Of long rows on CUDA, the sum of those of their parts.

    CuPy sums a row by one thread block, so that few long rows leave most of a card idle.
    """
    xp, (k, m) = array_namespace(x), x.shape
    if not is_cupy(xp) or m <= _PART_OF_ROW:
        return xp.sum(x, axis=1)
    even = m - m % _PART_OF_ROW
    parts = xp.sum(xp.reshape(x[:, :even], (k, -1, _PART_OF_ROW)), axis=2)
    return xp.sum(parts, axis=1) + xp.sum(x[:, even:], axis=1)


_PART_OF_ROW = 2**12  # elements that one block sums


def squared_row_norms(x: Array) -> Array:
    """The sum of the squares of each row: (n,)."""
    xp = array_namespace(x)
    if is_numpy(xp):
        host = to_numpy(x)
        return np.einsum("ij,ij->i", host, host)
    return xp.sum(x * x, axis=1)


def clip_negative(x: Array) -> Array:
    """``x`` with zero for negative values; NaN stays (``clip`` synchronises on CUDA)."""
    return array_namespace(x).maximum(x, 0.0)


def scaled_differences(total: Array, share: Array, unit: Array) -> Array:
    """The rows of a (K, d) array, times ``unit`` and over ``share`` of each, less the first one.

    ``(w_0 u_c t_c - w_c u_0 t_0) / (w_0 w_c)`` for c > 0: (K - 1, d). On CUDA by one kernel, to the
    same bits.
    """
    if is_cupy(array_namespace(total)):
        return kernels.scaled_differences(total, share, unit)
    w, s = share[:, None], total * unit[:, None]
    return (w[:1, :] * s[1:, :] - w[1:, :] * s[:1, :]) / (w[:1, :] * w[1:, :])


def round_to_40_bits(x: Array) -> Array:
    """``x``, not negative, rounded to 40 significant bits, by one kernel on CUDA.

    ``c = x * (2**13 + 1); c - (c - x)`` (Veltkamp's splitting), as three separate operations, since
    a fused kernel may contract them.
    """
    xp = array_namespace(x)
    if is_cupy(xp):
        return kernels.round_to_40_bits(x)
    if bool(xp.all(x < _SCALED_FROM)):
        c = x * _SPLITTER
        return c - (c - x)
    # The largest numbers are scaled by a power of two, so that nothing overflows.
    one = xp.ones_like(x)
    unit = xp.where(x >= _SCALED_FROM, one * 2.0**60, one)
    x = x / unit
    c = x * _SPLITTER
    d = c - x
    return xp.minimum(c - d, _LARGEST_FLOAT / unit) * unit


_SPLITTER = 2.0**13 + 1  # leaves 40 of 53 significant bits
_SCALED_FROM = 2.0**1000  # above it the product with the splitter could overflow
_LARGEST_FLOAT = 2.0**1023 * (2 - 2.0**-52)


def chi2_tail(x: Array, degrees: float | np.ndarray) -> np.ndarray:
    """The probability that a chi-squared variable is above each x: on the host."""
    return np.asarray(scipy.special.chdtrc(degrees, to_numpy(x)))


def f_tail(x: Array, numerator: float | np.ndarray, denominator: float) -> np.ndarray:
    """The probability that a variable of the F distribution is above each x: on the host."""
    return np.asarray(scipy.special.fdtrc(numerator, denominator, to_numpy(x)))


# For blocks and reductions, where arrays are of NumPy or CuPy alone.

_WIDE = 8  # indices for each entry, from which on a sort takes less time than a table
_MOST_TABLES = 8
_LOOK_UPS = 2**21  # entries that a thread looks up in one go: fewer take less than its start
_SORTED = 2**20  # entries that a thread of the host sorts in one go


def add_at(target: SharedArray, index: SharedArray, values: SharedArray) -> None:
    """``target[index[j]] += values[j]``, with repeated indices summed, in place and in order.

    Parameters
    ----------
    target : array of shape (m,), float64 or int64, contiguous
    index : array of int32 or int64 of shape (n,)
        Not checked: whoever made it knows that it lies in 0..m-1.
    values : array of shape (n,), of the target's type
    """
    xp = array_namespace(target)
    if is_numpy(xp) and sparsetools.AVAILABLE:
        sparsetools.add_at(target, index, values)
        return
    xp.add.at(target, index, values)


def stores_twice(indices: SharedArray, indptr: SharedArray, size: int, backend: Backend) -> bool:
    """Whether a row of a CSR matrix (a column of CSC) stores an index more than once.

    Rows may have any order. Compiled loops look each entry up in a table; elsewhere entries are
    sorted.

    Parameters
    ----------
    indices : array of integers of shape (e,), or one on disk
    indptr : array of integers of shape (r + 1,), of the type of ``indices``
    size : int
        All indices are below it.
    backend : Backend
        That of the indices.
    """
    xp, starts = backend.xp, to_numpy(indptr)
    stored = int(starts[-1])
    by_table = is_numpy(xp) and sparsetools.AVAILABLE and size <= _WIDE * stored
    step = CUDA_CHUNK if backend.sync_is_expensive else _SORTED
    if by_table:  # which takes no more memory than a few numbers for each entry of its rows
        step = max(_LOOK_UPS, size, stored // _MOST_TABLES)

    def any_twice(rows: tuple[int, int]) -> bool:
        first, last = rows
        left, right = int(starts[first]), int(starts[last])
        part, offsets = indices[left:right], indptr[first : last + 1] - indptr[first]
        if by_table:
            return sparsetools.count_distinct(offsets, part, size) < right - left
        row = repeat_per_row(xp.arange(last - first), offsets, right - left, part)
        pairs = xp.sort(row * size + part)
        return bool(xp.any(pairs[1:] == pairs[:-1]))

    return any(run(any_twice, row_ranges(starts, step), backend))


def repeat_per_row(
    per_row: SharedArray, offsets: SharedArray, count: int, indices: SharedArray | None = None
) -> SharedArray:
    """Each row's value once for each entry of the row.

    Parameters
    ----------
    per_row : array of shape (r,)
    offsets : array of integers of shape (r + 1,)
        Where the entries of the rows begin, from 0 to ``count``.
    count : int
        The number of entries.
    indices : array of shape (count,), of the type of ``offsets``, optional
        The entries' columns, if there are any at hand.
    """
    xp = array_namespace(per_row)
    if is_numpy(xp):
        if not sparsetools.AVAILABLE:
            return np.repeat(per_row, offsets[1:] - offsets[:-1])
        if indices is None or indices.dtype != offsets.dtype:
            indices = np.zeros(count, offsets.dtype)
        out = np.empty(count, dtype=per_row.dtype)
        sparsetools.repeat_per_row(per_row, offsets, indices, out)
        return out
    # CuPy's repeat would copy the counts to the host: mark where rows begin, and sum up.
    marks = xp.zeros(count + 1, dtype=xp.int64)
    xp.add.at(marks, offsets[1:-1], 1)
    return xp.take(per_row, xp.cumsum(marks[:-1]))


def to_dense(matrix: SparseMatrix) -> SharedArray:
    """A CSR matrix, in which each entry is stored once, as an array of shape (n, d)."""
    xp = array_namespace(matrix)
    if is_numpy(xp):
        return np.ascontiguousarray(matrix.toarray())
    # (That of cupyx sorts pairs of row and column.)
    n, d = matrix.shape
    row = repeat_per_row(xp.arange(n), matrix.indptr, matrix.indices.shape[0])
    out = xp.zeros(n * d, dtype=matrix.dtype)
    out[row * d + matrix.indices] = matrix.data
    return xp.reshape(out, (n, d))
