"""Sorted columns of sparse data: the stored values are sorted, and all zeros are one item."""

from __future__ import annotations

from typing import Any

from ..arrays.functions import add_at, repeat_per_row
from ..arrays.sorting import segment_sort
from ..arrays.typing import NumPyOrCuPy as Array
from ..blocks.samples import Samples
from ..blocks.sparse import INT32
from .half_weight import perhaps_half
from .sorted_columns import SparseSortedColumns


def sort_segments(
    rows: Array, values: Array, offsets: Array, samples: Samples
) -> tuple[Array, SparseSortedColumns | None]:
    """The columns whose medians are not known to be zero by counting, and these sorted.

    Parameters
    ----------
    rows, values : arrays of shape (e,)
        The entries, column after column.
    offsets : array of integers of shape (b + 1,)
        Where the columns begin.
    samples : Samples

    Returns
    -------
    kept : array of int64
        The columns that are left.
    lists : SparseSortedColumns or None
        None where no column is left.
    """
    backend, k, b = samples.backend, samples.n_classes, int(offsets.shape[0]) - 1
    xp = backend.xp
    kind = xp.int32 if k * b < INT32 else xp.int64
    numbers, count = xp.arange(b, dtype=kind), values.shape[0]
    column = repeat_per_row(numbers, offsets, count, rows)
    segment = xp.astype(xp.take(samples.backend_codes, rows), kind) * b + column
    x = values if values.dtype == xp.float32 else xp.astype(values, xp.float64)
    weight = None if samples.sample_weight is None else xp.take(samples.backend_weights, rows)
    counts = x != 0 if weight is None else (x != 0) & (weight > 0)
    if not bool(xp.all(counts)):
        left = xp.nonzero(counts)[0]
        column, segment, x, weight = _take_entries(left, column, segment, x, weight, xp)
    return lists_of_entries(column, segment, x, weight, b, samples)


def lists_of_entries(
    column: Array,
    segment: Array,
    x: Array,
    weight: Array | None,
    b: int,
    samples: Samples,
    *,
    in_order: bool = False,
) -> tuple[Array, SparseSortedColumns | None]:
    """`sort_segments` of entries that are not zero, given one by one.

    Parameters
    ----------
    column : array of integers of shape (e,)
        From 0 to b - 1.
    segment : array of integers of shape (e,)
        Class times b plus column.
    x : array of shape (e,)
    weight : array of shape (e,), positive, or None
    b : int
    samples : Samples
    in_order : bool
        Whether the values of each column are ascending already.
    """
    backend, k = samples.backend, samples.n_classes
    xp, kind = backend.xp, column.dtype
    # The weight that is stored, of each class and column.
    held = backend.zeros(k * b, xp.int64 if samples.has_integer_weights else xp.float64)
    share = xp.ones(x.shape[0], dtype=held.dtype) if weight is None else weight
    add_at(held, segment, xp.astype(share, held.dtype, copy=False))
    held = xp.reshape(held, (k, b))
    # Where less than half of each class is stored, all medians are zero.
    undecided = perhaps_half(held, backend.asarray(samples.class_weight))
    kept = xp.nonzero(undecided)[0]
    width = int(kept.shape[0])
    if width == 0:
        return kept, None
    if width < b:
        # Drop the entries of all other columns and number those left anew.
        left = xp.nonzero(xp.take(undecided, column))[0]
        column, segment, x, weight = _take_entries(left, column, segment, x, weight, xp)
        position = xp.astype(xp.cumsum(xp.astype(undecided, xp.int64)) - 1, kind)
        segment = (segment // b) * width + xp.take(position, column)
    held = xp.take(held, kept, axis=1)
    if in_order:  # a stable sort by segment leaves the values of each ascending
        order = xp.argsort(segment, stable=True)
        segment, x = xp.take(segment, order), xp.take(x, order)
    return kept, _lists(x, segment, weight, held, samples, in_order=in_order)


def _take_entries(
    index: Array,
    column: Array,
    segment: Array,
    x: Array,
    weight: Array | None,
    xp: Any,
) -> tuple[Array, Array, Array, Array | None]:
    """The entries of these numbers."""
    column, segment, x = (xp.take(part, index) for part in (column, segment, x))
    return column, segment, x, None if weight is None else xp.take(weight, index)


def _lists(
    x: Array,
    segment: Array,
    weight: Array | None,
    held: Array,
    samples: Samples,
    *,
    in_order: bool,
) -> SparseSortedColumns:
    backend, shape = samples.backend, held.shape
    xp = backend.xp
    k, width = shape
    negative = backend.zeros(k * width, xp.int64)
    below = x < 0
    if bool(xp.any(below)):
        add_at(negative, segment, xp.astype(below, xp.int64))
    if weight is None:
        stored = xp.reshape(held, (-1,))
    else:
        stored = backend.zeros(k * width, xp.int64)
        add_at(stored, segment, xp.ones_like(segment, dtype=xp.int64))
    values, weights = x, weight
    if not in_order:
        values, weights = segment_sort(x, segment, k * width, weight)
    ends = xp.cumsum(stored)
    start = ends - stored
    count = x.shape[0]
    bounds = xp.concat([backend.zeros(1, xp.int64), ends])
    bounds = bounds if count >= INT32 else xp.astype(bounds, segment.dtype, copy=False)
    owner = repeat_per_row(backend.arange(k * width), bounds, count, segment)
    # A list has a zero item if fewer rows of positive weight are stored than exist.
    rows = backend.asarray(samples.count, dtype=xp.int64)[:, None]
    stored, negative = xp.reshape(stored, shape), xp.reshape(negative, shape)
    has_zero = stored < rows
    mass = backend.asarray(samples.class_weight, dtype=held.dtype)[:, None] - held
    mass = xp.where(has_zero & (mass > 0), mass, xp.zeros_like(mass))
    size = stored + xp.astype(has_zero, xp.int64)
    cumulative = None
    if weights is not None:
        exact = samples.has_integer_weights
        units = backend.asarray([1.0 if exact else w / 2**52 for w in samples.class_weight])
        unit = xp.take(units, owner // width)
        cumulative = xp.astype(_running_sums(weights / unit, start, owner, xp), held.dtype)
        if not exact:
            cumulative = cumulative * unit
    return SparseSortedColumns(
        backend=backend,
        values=values,
        start=xp.reshape(start, shape),
        size=size,
        depth=int(xp.max(size)).bit_length() + 1,
        zero_at=xp.where(has_zero, negative, size),
        zero_mass=mass,
        weights=weights,
        cumulative=cumulative,
        segment=owner,
    )


def _running_sums(weights: Array, start: Array, owner: Array, xp: Any) -> Array:
    """Running sums of integers, from zero in each list.

    In int64 the difference of two sums is exact even if both have wrapped around, whereas a
    floating-point sum over all lists would lose the digits of a light list. Real weights come as
    multiples of W_c / 2**52.
    """
    sums = xp.cumsum(xp.astype(xp.round(weights), xp.int64))
    before = xp.take(xp.concat([xp.zeros(1, dtype=sums.dtype), sums]), start)
    return sums - xp.take(before, owner)
