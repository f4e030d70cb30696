"""Sums of each class and feature: weighted sums of x, of x^2, and of what is not zero."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from ..arrays import kernels, sparsetools
from ..arrays.context import Context
from ..arrays.functions import add_at, squared_row_norms
from ..arrays.namespace import array_namespace, is_cupy
from ..arrays.schedule import partitions, ranges, row_ranges
from ..arrays.typing import Array, Namespace
from ..arrays.typing import NumPyOrCuPy as SparseArray
from ..blocks import Block
from ..blocks.dense import DenseBlock, RowStrip, map_strips
from ..blocks.samples import Samples
from ..blocks.sparse import INT32, SparseBlock

_MERGE_SLICE = 2**22  # elements that one thread adds in one go
_SORTED_ENTRIES = 2**20  # of the rows that are put in the order of their classes at a time
_SORTED_BYTES = 16  # workspace for each of them
_CACHED_SUMS, _CACHED_CLASS = 2**19, 2**17  # sums of all classes, and of one, that a cache holds

Partition = tuple[int, int]


class RawSums(NamedTuple):
    """Sums of K classes that add up.

    Attributes
    ----------
    total : array of shape (K, m), float64
        Weighted sums of x.
    square : array of shape (K, m), float64, or None
        Weighted sums of x^2; of x^2 divided by the exposure, where samples have one.
    sum_of_squares : array of shape (K,), float64, or None
        Weighted sums of x^2 over all features.
    nonzero : array of shape (K, m), float64, or None
        Weighted numbers of values other than zero.
    """

    total: Array
    square: Array | None = None
    sum_of_squares: Array | None = None
    nonzero: Array | None = None

    def zeros_like(self) -> RawSums:
        """Sums of no samples, of the same shapes."""
        xp = array_namespace(self.total)
        others = (None if a is None else xp.zeros_like(a) for a in self[1:])
        return RawSums(xp.zeros_like(self.total), *others)


def add_class_sums(block: Block, samples: Samples, into: RawSums, ctx: Context) -> None:
    """Add weighted sums of x, and of x^2 and of values other than zero where these are kept.

    In place. Squares of each feature are divided by the exposure of the row. Sums run over a fixed
    grid in a fixed order, so that on the host their bits depend on the shape of X alone. On CUDA
    the sums of sparse data are atomic, and only exact sums have fixed bits.
    """
    if isinstance(block, DenseBlock):
        _add_dense(block, samples, into, ctx)
    elif is_cupy(block.backend.xp):
        _add_on_device(block, samples, into, ctx)
    else:
        _add_in_partitions(block, samples, into, ctx)


# --- dense -----------------------------------------------------------------------------------


def _add_dense(block: DenseBlock, samples: Samples, into: RawSums, ctx: Context) -> None:
    total, square, sum_of_squares, nonzero = into
    factors = samples.backend_square_factors

    def sums_of(strip: RowStrip, columns: slice) -> RawSums:
        x, rows = strip.read(columns), strip.samples
        first, second, summed = rows.class_sums(x), None, None
        if sum_of_squares is not None:
            norms = squared_row_norms(x)
            summed = rows.class_sums(norms[:, None])[:, 0]
        if square is not None:
            of_rows = None if factors is None else factors[strip.rows]
            second = rows.class_sums(x * x if of_rows is None else x * x * of_rows[:, None])
        return RawSums(first, second, summed, None if nonzero is None else count_nonzero(x, rows))

    of_columns: dict[int, Array | None] = {}

    def put(strip: RowStrip, columns: slice, part: RawSums) -> None:
        total[:, columns] += part.total
        if square is not None:
            square[:, columns] += part.square
        if nonzero is not None:
            nonzero[:, columns] += part.nonzero
        of_columns[columns.start] = part.sum_of_squares

    for strip in map_strips(block.row_strips(samples, ctx), sums_of, put, ctx):
        if sum_of_squares is not None:
            for columns in strip.columns:
                sum_of_squares[...] += of_columns[columns.start]


def count_nonzero(x: Array, samples: Samples) -> Array:
    """The weighted number of values other than zero of each class: (K, b)."""
    xp = samples.backend.xp
    return samples.class_sums(xp.astype(x != 0, xp.float64))


# --- stored entries --------------------------------------------------------------------------


def _add_in_partitions(matrix: SparseBlock, samples: Samples, into: RawSums, ctx: Context) -> None:
    """Add the entries in partitions, which depend on their number alone.

    The first one adds to the given accumulators, each other one to its own, merged in order: the
    same bits whether they run one after the other or side by side.
    """
    k, m = into.total.shape
    cuts = partitions(matrix.nnz, k * m, matrix.backend)
    size = sum(8 * a.size for a in into if a is not None) if len(cuts) > 1 else 1
    width = max(1, min(ctx.threads, 1 + ctx.budget // size))
    add = _add_by_loops if matrix.has_compiled_loops else _add_by_array_functions

    def add_partition(job: tuple[Partition, RawSums]) -> RawSums:
        cut, sums = job
        for part, entries, some in _sorted_by_class(matrix, cut, samples, into, ctx):
            add(part, entries, some, sums, ctx)
        return sums

    jobs = ((cut, into.zeros_like() if number else into) for number, cut in enumerate(cuts))
    coming = ctx.progress(jobs, len(cuts), "entries added")
    while wave := list(islice(coming, width)):
        for sums in ctx.map(add_partition, wave, width):
            if sums is into:
                continue
            for target, part in zip(into, sums, strict=True):
                if target is not None and part is not None:
                    _merge(target, part, ctx)


def _sorted_by_class(
    matrix: SparseBlock, cut: Partition, samples: Samples, into: RawSums, ctx: Context
) -> Iterator[tuple[SparseBlock, Partition, Samples]]:
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
    matrix: SparseBlock, samples: Samples, first: int, last: int
) -> tuple[SparseBlock, Samples]:
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


def _add_by_array_functions(
    matrix: SparseBlock, cut: Partition, samples: Samples, into: RawSums, ctx: Context
) -> None:
    xp = matrix.backend.xp
    total, square, sum_of_squares, nonzero = _flat(into, xp)
    codes: SparseArray = samples.backend_codes
    weights: SparseArray | None = samples.backend_weights
    factors: SparseArray | None = samples.backend_square_factors
    base = xp.astype(codes, _key_type(into)) * into.total.shape[1]
    for entries in matrix.entries(ctx, *cut):
        key = entries.of_row(base) + xp.astype(entries.columns(), base.dtype, copy=False)
        x = xp.astype(entries.values, xp.float64, copy=False)
        sx = x if weights is None else x * entries.of_row(weights)
        add_at(total, key, sx)
        if nonzero is not None:
            ones = xp.astype(x != 0, xp.float64)
            ones = ones if weights is None else ones * entries.of_row(weights)
            add_at(nonzero, key, ones)
        if square is None and sum_of_squares is None:
            continue
        sx = sx * x
        if square is not None:
            squares = sx if factors is None else sx * entries.of_row(factors)
            add_at(square, key, squares)
        if sum_of_squares is not None:
            code = xp.astype(entries.of_row(codes), xp.int64)
            sum_of_squares += xp.bincount(code, weights=sx, minlength=samples.n_classes)


def _add_by_loops(
    matrix: SparseBlock, cut: Partition, samples: Samples, into: RawSums, ctx: Context
) -> None:
    """Add entries of a CSR matrix in NumPy arrays by compiled loops, in memory that is reused."""
    total, square, sum_of_squares, nonzero = _flat(into, matrix.backend.xp)
    codes, weights, square_factors = samples.codes, samples.sample_weight, samples.square_factors
    kind, m = _key_type(into), into.total.shape[1]
    keys, numbers = np.empty(ctx.chunk, kind), np.empty(ctx.chunk)
    positions = np.arange(ctx.chunk, dtype=matrix.indices.dtype)
    for e in matrix.entries(ctx, *cut):
        count, rows, span = e.minor.shape[0], e.last - e.first, slice(e.first, e.last)
        key, x = e.minor, numbers[:count]
        if samples.n_classes > 1:
            key = keys[:count]
            sparsetools.repeat_per_row(codes[span].astype(kind) * kind(m), e.offsets, e.minor, key)
            np.add(key, e.minor, out=key, casting="unsafe")
        if weights is None and e.values.dtype == np.float64:
            x = e.values
        else:
            x[:] = e.values
        if weights is not None:
            sparsetools.scale_rows(e.offsets, e.minor, x, weights[span])
        sparsetools.add_at(total, key, x)
        if nonzero is not None:
            ones = (e.values != 0).astype(np.float64)
            if weights is not None:
                sparsetools.scale_rows(e.offsets, e.minor, ones, weights[span])
            sparsetools.add_at(nonzero, key, ones)
        if sum_of_squares is not None:
            values = x if weights is None else e.values.astype(np.float64)
            by_row = np.zeros(rows)
            sparsetools.row_dots(e.offsets, positions[:count], x, values, by_row)
            sparsetools.add_at(sum_of_squares, codes[span].astype(e.minor.dtype), by_row)
        if square is not None:
            squares = numbers[:count]
            np.multiply(x, x if weights is None else e.values, out=squares, casting="unsafe")
            if square_factors is not None:
                sparsetools.scale_rows(e.offsets, e.minor, squares, square_factors[span])
            sparsetools.add_at(square, key, squares)


def _key_type(into: RawSums) -> type[np.signedinteger]:
    """The type that holds every position in the sums."""
    return np.int32 if into.total.size < INT32 else np.int64


def _flat(into: RawSums, xp: Namespace) -> list[Any]:
    return [None if a is None else xp.reshape(a, (-1,)) for a in into]


def _add_on_device(matrix: SparseBlock, samples: Samples, into: RawSums, ctx: Context) -> None:
    """Add all entries by a kernel: it makes no keys, and nothing waits for the device."""
    xp, backend = matrix.backend.xp, matrix.backend
    total, square, sum_of_squares, nonzero = into
    codes = xp.astype(samples.backend_codes, xp.int32)
    # All threads add to the few sums over all features, so each class has many slots.
    slots = None if sum_of_squares is None else backend.zeros((samples.n_classes, kernels.SLOTS))
    # Entries as they are need no memory, however many: one launch.
    at_once = matrix.resident and matrix.transform is None
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


def _merge(target: Array, part: Array, ctx: Context) -> None:
    """``target += part``, by slices on all threads."""
    target, part = (ctx.backend.xp.reshape(a, (-1,)) for a in (target, part))

    def add(cut: tuple[int, int]) -> None:
        target[cut[0] : cut[1]] += part[cut[0] : cut[1]]

    for _ in ctx.map(add, ranges(target.shape[0], _MERGE_SLICE)):
        pass
