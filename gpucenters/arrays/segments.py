"""Sorted columns of sparse data: sorting what is stored, with all zeros as one item."""

from __future__ import annotations

from typing import Any

from . import family
from .devices import Place
from .groups import Groups
from .ordering import SparseSortedColumns
from .typing import Array


def sort_segments(
    rows: Array, values: Array, offsets: Array, groups: Groups, place: Place
) -> tuple[Array, SparseSortedColumns | None]:
    """The columns whose medians are not settled as zero by counting, and those sorted.

    Parameters
    ----------
    rows, values : arrays of shape (e,)
        The entries, column after column.
    offsets : array of int64 of shape (b + 1,)
        Where the columns begin.
    groups : Groups
    place : Place

    Returns
    -------
    kept : array of int64
        The columns that are left.
    lists : SparseSortedColumns or None
        None where no column is left.
    """
    xp, k, b = place.xp, groups.n_classes, int(offsets.shape[0]) - 1
    kind = xp.int32 if k * b < 2**31 else xp.int64
    column = family.spread(xp.arange(b, dtype=kind), offsets, values.shape[0], xp)
    segment = xp.astype(xp.take(groups.device_codes, rows), kind) * b + column
    x = values if values.dtype == xp.float32 else xp.astype(values, xp.float64)
    weight = None if groups.weights is None else xp.take(groups.device_weights, rows)
    counts = x != 0 if weight is None else (x != 0) & (weight > 0)
    if not bool(xp.all(counts)):
        column, segment, x, weight = _those(xp.nonzero(counts)[0], column, segment, x, weight, xp)
    # The weight that is stored, of each class and column.
    held = place.zeros(k * b, xp.int64 if groups.whole else xp.float64)
    share = xp.ones(x.shape[0], dtype=held.dtype) if weight is None else weight
    family.scatter_add(held, segment, xp.astype(share, held.dtype, copy=False), xp)
    held = xp.reshape(held, (k, b))
    total = place.asarray(groups.weight)[:, None]
    unsettled = xp.any(2 * held >= (1 - 1e-9) * total, axis=0)
    kept = xp.nonzero(unsettled)[0]
    width = int(kept.shape[0])
    if width == 0:
        return kept, None
    if width < b:
        # Drop the entries of all other columns and number those left anew.
        left = xp.nonzero(xp.take(unsettled, column))[0]
        column, segment, x, weight = _those(left, column, segment, x, weight, xp)
        position = xp.astype(xp.cumsum(xp.astype(unsettled, xp.int64)) - 1, kind)
        segment = (segment // b) * width + xp.take(position, column)
    return kept, _lists(x, segment, weight, xp.take(held, kept, axis=1), groups, place)


def _those(
    index: Array, column: Array, segment: Array, x: Array, weight: Array | None, xp: Any
) -> tuple[Array, Array, Array, Array | None]:
    """The entries of these numbers."""
    column, segment, x = (xp.take(part, index) for part in (column, segment, x))
    return column, segment, x, None if weight is None else xp.take(weight, index)


def _lists(
    x: Array, segment: Array, weight: Array | None, held: Array, groups: Groups, place: Place
) -> SparseSortedColumns:
    xp, shape = place.xp, held.shape
    k, width = shape
    negative = place.zeros(k * width, xp.int64)
    below = x < 0
    if bool(xp.any(below)):
        family.scatter_add(negative, segment, xp.astype(below, xp.int64), xp)
    if weight is None:
        stored = xp.reshape(held, (-1,))
    else:
        stored = place.zeros(k * width, xp.int64)
        family.scatter_add(stored, segment, xp.ones_like(segment, dtype=xp.int64), xp)
    values, weights = family.segment_sort(x, segment, k * width, xp, weight)
    ends = xp.cumsum(stored)
    start = ends - stored
    bounds = xp.concat([place.zeros(1, xp.int64), ends])
    owner = family.spread(xp.arange(k * width, dtype=xp.int64), bounds, x.shape[0], xp)
    # A list has a zero item if fewer rows of positive weight are stored than exist.
    rows = place.asarray(groups.count, dtype=xp.int64)[:, None]
    stored, negative = xp.reshape(stored, shape), xp.reshape(negative, shape)
    has_zero = stored < rows
    mass = place.asarray(groups.weight, dtype=held.dtype)[:, None] - held
    mass = xp.where(has_zero & (mass > 0), mass, xp.zeros_like(mass))
    size = stored + xp.astype(has_zero, xp.int64)
    cumulative = None
    if weights is not None:
        unit = place.asarray([1.0 if groups.whole else w / 2**52 for w in groups.weight])
        unit = xp.take(unit, owner // width)
        cumulative = xp.astype(_running(weights / unit, start, owner, xp), held.dtype)
        if not groups.whole:
            cumulative = cumulative * unit
    return SparseSortedColumns(
        place=place,
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


def _running(weights: Array, start: Array, owner: Array, xp: Any) -> Array:
    """Running sums of whole numbers that begin anew in each list.

    In int64, where the difference of two sums is exact even if both have wrapped around: sums of
    floats over all lists would drown a light one. Real weights come as multiples of their class'
    weight / 2**52.
    """
    sums = xp.cumsum(xp.astype(xp.round(weights), xp.int64))
    before = xp.take(xp.concat([xp.zeros(1, dtype=sums.dtype), sums]), start)
    return sums - xp.take(before, owner)
