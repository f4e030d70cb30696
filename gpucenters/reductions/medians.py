"""The columns of a block whose medians are not known by counting, sorted within each class."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from ..arrays.backend import backend_of
from ..arrays.context import Context
from ..arrays.namespace import to_numpy
from ..arrays.schedule import Scratch, ranges, row_ranges
from ..arrays.sorting import ClassLists
from ..arrays.typing import Array
from ..arrays.typing import NumPyOrCuPy as SparseArray
from ..blocks import Block
from ..blocks.dense import DenseBlock
from ..blocks.samples import Samples
from ..blocks.sparse import SparseBlock
from ..blocks.transforms import Magnitude
from .class_sums import RawSums, add_class_sums
from .dense_sorting import sort_columns
from .sorted_columns import SortedColumns
from .sparse_sorting import perhaps_not_zero, sort_segments

_LEAST_SORT_COLUMNS = 64  # with fewer columns in a range the steps of the search are too small
_SORT_ENTRIES = 2**20  # entries in one range of columns: enough for each step of the search
_SORT_BYTES = 96  # workspace for each of them

Result = TypeVar("Result")


#: Ranges of columns that are sorted side by side, and ``sort(start, stop)``: the columns of X among
#: them whose medians are not known beforehand, as a slice or an array of numbers, and these sorted;
#: or None where there are none.
Plan = tuple[list[tuple[int, int]], Callable[[int, int], tuple[Any, SortedColumns] | None], Context]


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
    for plan in plans:
        yield from _map_plan(task, plan, block.shape[0])


def _map_plan(
    task: Callable[[SortedColumns], Result], plan: Plan, n: int
) -> Iterator[tuple[Any, Result]]:
    cuts, sort, ctx = plan

    def sort_and_do(start: int, stop: int) -> tuple[Any, Result] | None:
        found = sort(start, stop)
        return None if found is None else (found[0], task(found[1]))

    too_large = f"a column of {n} samples does not fit into memory while it is sorted."
    for found in ctx.map_halving(sort_and_do, cuts, label="columns sorted", too_large=too_large):
        if found is not None:
            yield found


# --- dense -----------------------------------------------------------------------------------


def _dense_plans(block: DenseBlock, samples: Samples, ctx: Context) -> Iterator[Plan]:
    """All columns; of a memory map in C order some at a time, as many as the budget allows."""
    (n, m), array = block.shape, block.array
    if not (_is_memory_map(array) and array.flags.c_contiguous and m > 1):
        yield _dense_plan(block, samples, ctx, 0)
        return
    width = max(1, min(m, ctx.budget // (2 * n * array.itemsize)))
    passes = -(-m // width)
    half = replace(ctx, budget=max(1, ctx.budget // 2))
    for start, stop in ctx.progress(ranges(m, width), passes, f"{passes} passes over X"):
        part = replace(block, array=np.array(array[:, start:stop]))
        yield _dense_plan(part, samples, half, start)


def _dense_plan(block: DenseBlock, samples: Samples, ctx: Context, first: int) -> Plan:
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
    return list(ranges(m, width)), sort, ctx


def _is_memory_map(array: Any) -> bool:
    """Whether an array is a view of a file: of a slice only its base tells."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return True
        array = array.base
    return False


# --- stored entries --------------------------------------------------------------------------


def _sparse_plans(matrix: SparseBlock, samples: Samples, ctx: Context) -> Iterator[Plan]:
    """The columns that may have a median other than zero.

    More than half of a class's weight at zero makes its median zero, and counting shows this for
    nearly every column of text. One count finds the columns that store too little for anything
    else. Those left are put in column order, as many at a time as the budget allows, and counted by
    class; the rest is sorted.
    """
    xp, stored = matrix.backend.xp, stored_per_column(matrix, ctx)
    enough = perhaps_not_zero(
        stored,
        matrix.nnz,
        samples.class_weight,
        lambda: stored_by_class(matrix, samples, ctx),
        weighted=samples.sample_weight is not None,
    )
    columns = xp.nonzero(enough)[0]
    stored = xp.take(stored, columns)
    # Put in order, an entry takes about 48 bytes on the way.
    cost = np.concatenate([[0], np.cumsum(48 * to_numpy(stored))])
    passes = list(row_ranges(cost, max(1, ctx.budget // 2)))
    for start, stop in ctx.progress(passes, len(passes), f"{len(passes)} passes over X"):
        block = matrix.select(columns[start:stop], ctx, by_row=False)
        yield _sparse_plan(block, columns[start:stop], samples, ctx)


def stored_by_class(matrix: SparseBlock, samples: Samples, ctx: Context) -> SparseArray:
    """The weight of the samples of each class that store an entry of each column: (K, m)."""
    held = matrix.backend.zeros((samples.n_classes, matrix.shape[1]))
    add_class_sums(_with_ones(matrix), samples, RawSums(held), ctx)
    return held


def _with_ones(matrix: SparseBlock) -> SparseBlock:
    """The matrix with ones for its values, on the backend of the data, in little memory."""
    here = backend_of(matrix.data)
    with here.current():
        if not matrix.on_host:
            ones: SparseArray = here.xp.ones(matrix.nnz, dtype=here.xp.bool)
        else:  # (Compiled loops add float64 as it is, and less is sent to a device.)
            kind = np.float64 if matrix.has_compiled_loops else np.bool
            ones = np.broadcast_to(np.ones(1, kind), (matrix.nnz,))
    return replace(matrix, data=ones, transform=None)


def _sparse_plan(block: SparseBlock, columns: SparseArray, samples: Samples, ctx: Context) -> Plan:
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
    return list(row_ranges(cost, size)), sort, ctx


def absolute_sums(matrix: SparseBlock, per_sample: np.ndarray, ctx: Context) -> SparseArray:
    """Sums of a number for each sample times abs(x), over each column: (m,)."""
    return _column_sums(replace(matrix, transform=Magnitude()), per_sample, ctx)


def stored_per_column(matrix: SparseBlock, ctx: Context) -> SparseArray:
    """How many entries each column stores: int64, shape (m,)."""
    backend, xp = matrix.backend, matrix.backend.xp
    if matrix.by_row:
        return xp.astype(_column_sums(_with_ones(matrix), None, ctx), xp.int64)
    indptr = xp.astype(backend.move(matrix.indptr), xp.int64)
    return indptr[1:] - indptr[:-1]


def _column_sums(matrix: SparseBlock, weight: np.ndarray | None, ctx: Context) -> SparseArray:
    one_class = np.zeros(matrix.shape[0], np.uint8)
    sums = RawSums(matrix.backend.zeros((1, matrix.shape[1])))
    add_class_sums(matrix, Samples(matrix.backend, one_class, weight, 1), sums, ctx)
    return sums.total[0, :]
