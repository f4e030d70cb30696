"""Sums over the stored entries of a sparse matrix, in partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import cast

import numpy as np

from ..arrays import kernels, numpy_cupy, sparsetools
from ..arrays.context import Context
from ..arrays.grid import partitions, ranges, row_ranges
from ..arrays.namespace import is_cupy
from ..arrays.typing import NumPyOrCuPy as Array
from . import sparse_host
from .accumulators import RawSums
from .compressed import INT32, Compressed
from .samples import Samples

_UNUSED_SUMS = 1024  # for entries that a device cannot drop without waiting
_MERGE_SLICE = 2**22  # elements that one thread adds in one go
_SORTED_ENTRIES = 2**20  # of the rows that are put in the order of their classes at a time
_SORTED_BYTES = 16  # that each of them takes
_CACHED_SUMS, _CACHED_CLASS = 2**19, 2**17  # sums of all classes, and of one, that a cache holds

Partition = tuple[int, int]


def add_class_sums(matrix: Compressed, samples: Samples, into: RawSums, ctx: Context) -> None:
    """Add sums of each class and feature, in place: see `Block.add_sums`.

    The entries are cut into partitions, by their number alone. The first one adds to the given
    accumulators, each other one to its own, merged in order: the same bits whether they run one
    after the other or side by side. On CUDA a kernel adds all entries to the same accumulators.
    """
    xp = matrix.backend.xp
    if is_cupy(xp):
        _add_on_device(matrix, samples, into, ctx)
        return
    k, m = into.total.shape
    cuts = partitions(matrix.nnz, k * m, matrix.backend)
    size = sum(8 * a.size for a in into if a is not None) if len(cuts) > 1 else 1
    width = max(1, min(ctx.threads, 1 + ctx.budget // size))

    def add_partition(job: tuple[Partition, RawSums]) -> RawSums:
        cut, sums = job
        for part, entries, some in _by_class(matrix, cut, samples, into, ctx):
            _add_entries(part, entries, some, sums, ctx)
        return sums

    def jobs() -> Iterator[tuple[Partition, RawSums]]:
        for number, cut in enumerate(cuts):
            yield cut, into.zeros_like() if number else into

    coming = ctx.progress(jobs(), len(cuts), "entries added")
    while wave := list(islice(coming, width)):
        for sums in ctx.map(add_partition, wave, width):
            for target, part in zip(into, sums, strict=True):
                if target is not None and part is not target:
                    _merge(target, part, ctx)


def _by_class(
    matrix: Compressed, cut: Partition, samples: Samples, into: RawSums, ctx: Context
) -> Iterator[tuple[Compressed, Partition, Samples]]:
    """A partition in parts, with rows in the order of their classes where that saves time.

    Sums of many classes do not stay in a cache, unless rows of a class follow each other. Those of
    one class stay in their order, and so the bits of its sums.
    """
    k, m = into.total.shape
    sums = m * sum(a is not None for a in (into.total, into.square, into.nonzero))
    size = min(_SORTED_ENTRIES, ctx.budget // (_SORTED_BYTES * max(1, ctx.threads)))
    helps = sums <= _CACHED_CLASS and k * sums > _CACHED_SUMS and size >= ctx.chunk
    # (A sum of squares over all features is added row by row: a row that is cut has two parts.)
    if not matrix.has_compiled_loops or not helps or into.sum_of_squares is not None:
        yield matrix, cut, samples
        return
    indptr = matrix.host_indptr
    first = int(np.searchsorted(indptr, indptr.dtype.type(cut[0])))
    last = max(first, int(np.searchsorted(indptr, indptr.dtype.type(cut[1]), side="right")) - 1)
    left, right = (min(int(indptr[row]), cut[1]) for row in (first, last))
    if cut[0] < left:  # the end of a row
        yield matrix, (cut[0], left), samples
    for a, b in row_ranges(indptr[first : last + 1], size):
        part, some = _sorted_rows(matrix, samples, first + a, first + b)
        yield part, (0, part.nnz), some
    if right < cut[1]:
        yield matrix, (right, cut[1]), samples


def _sorted_rows(
    matrix: Compressed, samples: Samples, first: int, last: int
) -> tuple[Compressed, Samples]:
    """Some rows of a host matrix in the order of their classes, and their samples."""
    starts, kind = matrix.host_indptr[first : last + 1], matrix.host_indptr.dtype
    left, right = int(starts[0]), int(starts[-1])
    order = np.argsort(samples.codes[first:last], kind="stable")
    offsets = np.concatenate([np.zeros(1, kind), np.cumsum(np.diff(starts)[order], dtype=kind)])
    indices, values = matrix.indices[left:right], matrix.data[left:right]
    taken = np.empty_like(indices), np.empty_like(values)
    sparsetools.take_rows(order.astype(kind), starts - kind.type(left), indices, values, taken)
    shape = last - first, matrix.shape[1]
    part = replace(matrix, indices=taken[0], data=taken[1], indptr=offsets, shape=shape)
    return part, samples.take(order + first)


def _add_on_device(matrix: Compressed, samples: Samples, into: RawSums, ctx: Context) -> None:
    """Add all entries by a kernel: it makes no keys, and nothing waits for the device."""
    xp, backend = matrix.backend.xp, matrix.backend
    total, square, sum_of_squares, nonzero = into
    codes = xp.astype(samples.backend_codes, xp.int32)
    # All threads add to the few sums over all features, so each class has many slots.
    slots = None if sum_of_squares is None else backend.zeros((samples.n_classes, kernels.SLOTS))
    # Entries as they are need no memory, however many: one launch.
    at_once = matrix.resident and matrix.reader is None
    steps = 1 if at_once else -(-matrix.nnz // matrix.chunk_size(ctx))
    runs = [matrix.all_entries()] if at_once else matrix.entries(ctx)
    for e in ctx.progress(runs, steps, "entries added"):
        values = e.values
        if values.dtype not in (xp.float32, xp.float64, xp.bool):
            values = xp.astype(values, xp.float64)
        kernels.add_class_sums(
            *(values, e.minor, e.offsets, e.first, e.by_row, codes),
            *(samples.backend_weights, samples.backend_square_factors, total, square, slots),
        )
        if nonzero is not None:
            kernels.add_class_sums(
                *(e.values != 0, e.minor, e.offsets, e.first, e.by_row, codes),
                *(samples.backend_weights, None, nonzero, None, None),
            )
    if sum_of_squares is not None:
        sum_of_squares += xp.sum(slots, axis=1)


def _add_entries(
    matrix: Compressed, cut: Partition, samples: Samples, into: RawSums, ctx: Context
) -> None:
    xp = matrix.backend.xp
    k, m = into.total.shape
    kind = xp.int32 if k * m < INT32 else xp.int64
    codes: Array = samples.backend_codes
    weights: Array | None = samples.backend_weights
    factors: Array | None = samples.backend_square_factors
    runs = matrix.entries(ctx, *cut)
    flat = (None if a is None else xp.reshape(a, (-1,)) for a in into)
    total, square, sum_of_squares, nonzero = cast(
        "tuple[Array, Array | None, Array | None, Array | None]", tuple(flat)
    )
    if matrix.has_compiled_loops:
        sums = total, square, sum_of_squares, nonzero
        sparse_host.add_class_sums(runs, ctx.chunk, kind, m, codes, weights, factors, *sums)
        return
    base = xp.astype(codes, kind) * m
    for entries in runs:
        key = entries.of_row(base) + xp.astype(entries.columns(), base.dtype, copy=False)
        x = xp.astype(entries.values, xp.float64, copy=False)
        sx = x if weights is None else x * entries.of_row(weights)
        numpy_cupy.scatter_add(total, key, sx, xp)
        if nonzero is not None:
            ones = xp.astype(x != 0, xp.float64)
            ones = ones if weights is None else ones * entries.of_row(weights)
            numpy_cupy.scatter_add(nonzero, key, ones, xp)
        if square is None and sum_of_squares is None:
            continue
        sx = sx * x
        if square is not None:
            squares = sx if factors is None else sx * entries.of_row(factors)
            numpy_cupy.scatter_add(square, key, squares, xp)
        if sum_of_squares is not None:
            code = xp.astype(entries.of_row(codes), xp.int64)
            sum_of_squares += xp.bincount(code, weights=sx, minlength=samples.n_classes)


def absolute_sums(matrix: Compressed, per_sample: np.ndarray, ctx: Context) -> Array:
    """Sums of a number for each sample times abs(x), over each column: (m,)."""
    backend, xp = matrix.backend, matrix.backend.xp
    factor: Array = backend.asarray(per_sample)

    def add_partition(cut: Partition) -> Array:
        sums: Array = backend.zeros(matrix.shape[1])
        if matrix.has_compiled_loops:
            sparse_host.add_absolute_sums(matrix.entries(ctx, *cut), ctx.chunk, factor, sums)
            return sums
        for entries in matrix.entries(ctx, *cut):
            terms = xp.abs(xp.astype(entries.values, xp.float64)) * entries.of_row(factor)
            numpy_cupy.scatter_add(sums, entries.columns(), terms, xp)
        return sums

    return _sum_partitions(add_partition, matrix, ctx)


def stored_per_column(matrix: Compressed, ctx: Context) -> Array:
    """How many entries each column stores: int64, shape (m,)."""
    backend, xp = matrix.backend, matrix.backend.xp
    if not matrix.by_row:
        indptr = xp.astype(backend.move(matrix.indptr), xp.int64)
        return indptr[1:] - indptr[:-1]

    def count_partition(cut: Partition) -> Array:
        counts = backend.zeros(matrix.shape[1], xp.int64)
        ones = xp.ones(min(ctx.chunk, cut[1] - cut[0]), dtype=xp.int64)
        for entries in matrix.entries(ctx, *cut):
            numpy_cupy.scatter_add(counts, entries.minor, ones[: entries.minor.shape[0]], xp)
        return counts

    return _sum_partitions(count_partition, matrix, ctx)


def _sum_partitions(add: Callable[[Partition], Array], matrix: Compressed, ctx: Context) -> Array:
    parts = ctx.map(add, partitions(matrix.nnz, matrix.shape[1], matrix.backend))
    sums = next(parts)
    for part in parts:
        _merge(sums, part, ctx)
    return sums


def _merge(target: Array, part: Array, ctx: Context) -> None:
    """``target += part``, by slices on all threads."""
    target, part = (ctx.backend.xp.reshape(a, (-1,)) for a in (target, part))

    def add(cut: tuple[int, int]) -> None:
        target[cut[0] : cut[1]] += part[cut[0] : cut[1]]

    for _ in ctx.map(add, ranges(target.shape[0], _MERGE_SLICE)):
        pass


def centred_moments(
    matrix: Compressed, columns: Array, samples: Samples, ctx: Context
) -> tuple[Array, Array]:
    """Sums, and sums of squares about the mean, of each class in some columns: two (K, d) arrays.

    Two passes over the stored entries. Implicit zeros exist in a column of a class only if fewer
    rows of positive weight are stored than exist: a count, which is exact.
    """
    xp, backend = matrix.backend.xp, matrix.backend
    k, d = samples.n_classes, int(columns.shape[0])
    size, table = k * d, matrix.position_table(columns)
    # Dropping the entries of all other columns needs their number, for which a device would wait.
    # There they are added to unused sums, many of them, to avoid contention of atomic additions.
    spare = _UNUSED_SUMS if backend.sync_is_expensive else 0
    total, held, square, error = (backend.zeros(size + spare) for _ in range(4))
    stored = backend.zeros(size + spare, xp.int64)

    def parts() -> Iterator[tuple[Array, Array, Array]]:
        weights = samples.backend_weights
        for entries in matrix.entries(ctx):
            position, code = entries.of_column(table), entries.of_row(samples.backend_codes)
            x, s = entries.values, None if weights is None else entries.of_row(weights)
            if not spare:
                keep = xp.nonzero(position >= 0)[0]
                position, code, x = (xp.take(part, keep) for part in (position, code, x))
                s = None if s is None else xp.take(s, keep)
            key = xp.astype(code, xp.int64) * d + position
            if spare:
                behind = size + xp.arange(key.shape[0], dtype=xp.int64) % spare
                key = xp.where(position >= 0, key, behind)
            x = xp.astype(x, xp.float64)
            yield key, x, xp.ones_like(x) if s is None else s

    for key, x, s in parts():
        numpy_cupy.scatter_add(total, key, s * x, xp)
        numpy_cupy.scatter_add(held, key, s, xp)
        numpy_cupy.scatter_add(stored, key, xp.astype(s > 0, xp.int64), xp)
    weight = xp.repeat(backend.asarray([w or 1.0 for w in samples.class_weight]), d)
    rows = xp.repeat(backend.asarray(samples.count, dtype=xp.int64), d)
    zeros = weight - held[:size]
    zeros = xp.where((stored[:size] < rows) & (zeros > 0), zeros, xp.zeros_like(zeros))
    mean = total[:size] / weight
    around = xp.concat([mean, backend.zeros(spare)])
    for key, x, s in parts():
        residual = x - xp.take(around, key)
        numpy_cupy.scatter_add(error, key, s * residual, xp)
        numpy_cupy.scatter_add(square, key, s * residual * residual, xp)
    error = error[:size] - zeros * mean
    square = square[:size] + zeros * mean * mean - error * (error / weight)
    square = xp.where(square < 0, xp.zeros_like(square), square)
    return xp.reshape(total[:size], (k, d)), xp.reshape(square, (k, d))
