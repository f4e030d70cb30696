"""The columns of a block whose medians are not known by counting, sorted within each class."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from ..arrays import sparsetools
from ..arrays.backend import backend_of
from ..arrays.context import Context
from ..arrays.functions import add_at
from ..arrays.grid import partitions, ranges, row_ranges
from ..arrays.namespace import to_numpy
from ..arrays.sorting import ClassLists
from ..arrays.threads import Scratch
from ..arrays.typing import Array
from ..arrays.typing import NumPyOrCuPy as SparseArray
from ..blocks import Block
from ..blocks.dense import DenseBlock
from ..blocks.samples import Samples
from ..blocks.sparse import SparseBlock
from .class_sums import Partition, RawSums, add_class_sums, merge
from .dense_sorting import sort_columns
from .sorted_columns import SortedColumns
from .sparse_sorting import enough_stored, perhaps_half, sort_segments, worth_a_count_by_class

_LEAST_SORT_COLUMNS = 64  # with fewer columns in a range the steps of the search are too small
_SORT_ENTRIES = 2**20  # entries in one range of columns: enough for each step of the search
_SORT_BYTES = 96  # workspace for each of them

Result = TypeVar("Result")


def zero_center_loss(block: Block, samples: Samples, ctx: Context) -> Array:
    """Sums of s |x| / W_c, (m,), of the columns that `map_sorted_columns` may leave out.

    The l1 loss of centers at zero. What it holds for other columns has no meaning.
    """
    if isinstance(block, DenseBlock):  # every column is sorted, and gets its loss from there
        return block.backend.zeros(block.shape[1])
    return absolute_sums(block, samples.shares(samples.class_weight), ctx)


def map_sorted_columns(
    block: Block, task: Callable[[SortedColumns], Result], samples: Samples, ctx: Context
) -> Iterator[tuple[Any, Result]]:
    """(columns, ``task`` of these columns sorted within each class).

    Columns are a slice or an array of numbers. Columns whose medians all are zero may be left
    out. Ranges of columns are worked on side by side, in halves where memory runs out.
    """
    ctx = ctx.shared_by_threads(block.shape[0] * block.shape[1])
    if isinstance(block, DenseBlock):
        plans = _dense_plans(block, samples, ctx)
    else:
        plans = _sparse_plans(block, samples, ctx)
    for plan, of_plan in plans:
        yield from plan.map(task, of_plan)


@dataclass(frozen=True)
class SortingPlan:
    """How the columns of a block are to be sorted.

    Attributes
    ----------
    ranges : list of (start, stop)
        Ranges of columns, to be sorted side by side.
    sort : callable
        ``sort(start, stop)`` gives the columns of X whose medians are not known beforehand, as a
        slice or an array of numbers, and these sorted; or None.
    too_large : str
        The message of the error for one column that does not fit into memory.
    """

    ranges: list[tuple[int, int]]
    sort: Callable[[int, int], tuple[Any, SortedColumns] | None]
    too_large: str

    def map(
        self, task: Callable[[SortedColumns], Result], ctx: Context
    ) -> Iterator[tuple[Any, Result]]:
        """(columns, ``task`` of these columns sorted)."""

        def sort_and_do(start: int, stop: int) -> tuple[Any, Result] | None:
            found = self.sort(start, stop)
            return None if found is None else (found[0], task(found[1]))

        label = "columns sorted"
        for found in ctx.map_halving(
            sort_and_do, self.ranges, label=label, too_large=self.too_large
        ):
            if found is not None:
                yield found


def column_too_large(n: int) -> str:
    """The message for a column of ``n`` samples that does not fit into memory."""
    return f"a column of {n} samples does not fit into memory while it is sorted."


# --- dense -----------------------------------------------------------------------------------


def _dense_plans(
    block: DenseBlock, samples: Samples, ctx: Context
) -> Iterator[tuple[SortingPlan, Context]]:
    """All columns; of a memory map in C order a strip at a time, as wide as the budget allows."""
    (n, m), array = block.shape, block.array
    if not (_is_memory_map(array) and array.flags.c_contiguous and m > 1):
        yield _dense_plan(block, samples, ctx, 0), ctx
        return
    width = max(1, min(m, ctx.budget // (2 * n * array.itemsize)))
    passes = -(-m // width)
    half = replace(ctx, budget=max(1, ctx.budget // 2))
    for start, stop in ctx.progress(ranges(m, width), passes, f"{passes} passes over X"):
        strip = replace(block, array=np.array(array[:, start:stop]))
        yield _dense_plan(strip, samples, half, start), half


def _dense_plan(block: DenseBlock, samples: Samples, ctx: Context, first: int) -> SortingPlan:
    """How to sort columns, the first of which is ``first`` of X.

    Rows of weight zero are left out: they never count, not as the next value either.
    """
    n, m = block.shape
    rows = samples.positive_by_class()
    weights, given = None, samples.sample_weight
    if given is not None and not all(bool((given[r] == 1).all()) for r in rows):
        weights = samples.backend_weights
    class_lists, scratch = ClassLists(block.backend, rows), Scratch()
    left_out = None
    if given is not None and not np.all(given > 0):
        left_out = block.backend.asarray(np.flatnonzero(given == 0))

    def sort(start: int, stop: int) -> tuple[slice, SortedColumns]:
        chunk = block.chunk((0, n), (start, stop))
        if left_out is not None:  # a sample that is left out must still hold numbers
            xp = block.backend.xp
            if not bool(xp.all(xp.isfinite(xp.take(chunk, left_out, axis=0)))):
                block.check_finite(False, ctx)
        lists = sort_columns(chunk, class_lists, weights, samples, ctx, scratch)
        return slice(first + start, first + stop), lists

    # A sort, its input, and the temporaries of the search.
    most = ctx.budget // (48 * n)
    width = _LEAST_SORT_COLUMNS + 4 * block.chunk_size(ctx) // n
    if block.upload is not None:
        width = max(_LEAST_SORT_COLUMNS, block.chunk_size(ctx) // n)
    width = max(1, min(-(-m // ctx.threads), width, most))
    return SortingPlan(list(ranges(m, width)), sort, column_too_large(n))


def _is_memory_map(array: Any) -> bool:
    """Whether an array is a view of a file: of a slice only its base tells."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return True
        array = array.base
    return False


# --- stored entries --------------------------------------------------------------------------


def _sparse_plans(
    matrix: SparseBlock, samples: Samples, ctx: Context
) -> Iterator[tuple[SortingPlan, Context]]:
    """The columns that may have a median other than zero.

    More than half of a class's weight at zero makes its median zero, and counting shows this for
    nearly every column of text. One count finds the columns that store too little for anything
    else. Those left are put in column order, as many at a time as the budget allows, and counted by
    class; the rest is sorted.
    """
    columns, stored = _perhaps_not_zero(matrix, samples, ctx)
    # Put in order, an entry takes about 48 bytes on the way.
    cost = np.concatenate([[0], np.cumsum(48 * to_numpy(stored))])
    passes = list(row_ranges(cost, max(1, ctx.budget // 2)))
    for start, stop in ctx.progress(passes, len(passes), f"{len(passes)} passes over X"):
        block = matrix.select(columns[start:stop], ctx, by_row=False)
        yield _sparse_plan(block, columns[start:stop], samples, ctx), ctx


def _perhaps_not_zero(
    matrix: SparseBlock, samples: Samples, ctx: Context
) -> tuple[SparseArray, SparseArray]:
    """The columns that may have a median other than zero in some class, and their entries."""
    xp, backend = matrix.backend.xp, matrix.backend
    stored = stored_per_column(matrix, ctx)
    weighted = samples.sample_weight is not None
    enough = enough_stored(stored, min(samples.class_weight), weighted=weighted)
    if worth_a_count_by_class(stored, enough, matrix.nnz, samples.n_classes):
        held = backend.zeros((samples.n_classes, matrix.shape[1]))
        ones = replace(matrix, data=_ones(matrix), transform=None)
        add_class_sums(ones, samples, RawSums(held), ctx)
        enough = perhaps_half(held, backend.asarray(samples.class_weight))
    columns = xp.nonzero(enough)[0]
    return columns, xp.take(stored, columns)


def _ones(matrix: SparseBlock) -> SparseArray:
    """As many ones as there are entries, on the backend of the data, in little memory."""
    if matrix.on_host:
        return np.broadcast_to(np.ones(1), (matrix.nnz,))
    here = backend_of(matrix.data)
    with here.current():
        return here.xp.ones(matrix.nnz, dtype=here.xp.bool)


def _sparse_plan(
    block: SparseBlock, columns: SparseArray, samples: Samples, ctx: Context
) -> SortingPlan:
    """How to sort some columns, given in column order."""
    # Each entry takes part in about twelve arrays of 8 bytes, each list in about sixteen.
    stored = np.diff(block.host_indptr.astype(np.int64))
    cost = np.concatenate([[0], np.cumsum(_SORT_BYTES * stored + 128 * samples.n_classes)])

    def sort(start: int, stop: int) -> tuple[SparseArray, SortedColumns] | None:
        kept, lists = sort_segments(*block.columns(start, stop), samples)
        return None if lists is None else (columns[start:stop][kept], lists)

    # On a device each range waits for some numbers: there as few as there is memory for.
    size = ctx.budget
    if not block.backend.sync_is_expensive:
        size = min(size, _SORT_BYTES * _SORT_ENTRIES)
    return SortingPlan(list(row_ranges(cost, size)), sort, column_too_large(block.shape[0]))


def absolute_sums(matrix: SparseBlock, per_sample: np.ndarray, ctx: Context) -> SparseArray:
    """Sums of a number for each sample times abs(x), over each column: (m,)."""
    backend, xp = matrix.backend, matrix.backend.xp
    factor: SparseArray = backend.asarray(per_sample)

    def add_partition(cut: Partition) -> SparseArray:
        sums: SparseArray = backend.zeros(matrix.shape[1])
        if matrix.has_compiled_loops:
            buffer = np.empty(ctx.chunk)
            for e in matrix.entries(ctx, *cut):
                x = buffer[: e.minor.shape[0]]
                x[:] = e.values
                np.abs(x, out=x)
                sparsetools.scale_rows(e.offsets, e.minor, x, per_sample[e.first : e.last])
                sparsetools.add_at(sums, e.minor, x)
            return sums
        for entries in matrix.entries(ctx, *cut):
            terms = xp.abs(xp.astype(entries.values, xp.float64)) * entries.of_row(factor)
            add_at(sums, entries.columns(), terms)
        return sums

    return _sum_partitions(add_partition, matrix, ctx)


def stored_per_column(matrix: SparseBlock, ctx: Context) -> SparseArray:
    """How many entries each column stores: int64, shape (m,)."""
    backend, xp = matrix.backend, matrix.backend.xp
    if not matrix.by_row:
        indptr = xp.astype(backend.move(matrix.indptr), xp.int64)
        return indptr[1:] - indptr[:-1]

    def count_partition(cut: Partition) -> SparseArray:
        counts = backend.zeros(matrix.shape[1], xp.int64)
        ones = xp.ones(min(ctx.chunk, cut[1] - cut[0]), dtype=xp.int64)
        for entries in matrix.entries(ctx, *cut):
            add_at(counts, entries.minor, ones[: entries.minor.shape[0]])
        return counts

    return _sum_partitions(count_partition, matrix, ctx)


def _sum_partitions(
    add: Callable[[Partition], SparseArray], matrix: SparseBlock, ctx: Context
) -> SparseArray:
    parts = ctx.map(add, partitions(matrix.nnz, matrix.shape[1], matrix.backend))
    sums = next(parts)
    for part in parts:
        merge(sums, part, ctx)
    return sums
