"""Sorted columns of sparse data: the stored values are sorted, and all zeros are one item."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..arrays.backend import backend_of
from ..arrays.functions import add_at, repeat_per_row
from ..arrays.namespace import array_namespace
from ..arrays.sorting import segment_sort
from ..arrays.typing import Array
from ..arrays.typing import NumPyOrCuPy as SparseArray
from ..blocks.samples import Samples
from ..blocks.sparse import INT32
from .sorted_columns import SortedColumns

_ANY_ORDER = 1e-6  # more than sums of 10^9 weights differ by, or their tolerance


# Which columns of sparse data may have a median other than zero: counts of their entries tell.


def enough_stored(stored: Array, least: float, *, weighted: bool) -> Array:
    """Whether columns (m,) store so many entries that half of some class may be among them.

    ``least`` is the weight of the smallest class. Few samples may have it where they are weighted.
    """
    return stored > 0 if weighted else 2 * stored >= least


def perhaps_not_zero(
    stored: Array,
    entries: int,
    weight: Sequence[float],
    by_class: Callable[[], Array],
    *,
    weighted: bool,
) -> Array:
    """Whether columns of sparse data may have a median other than zero in some class: (m,).

    A class has the median zero, and no other, where less than half of its weight is stored.

    Parameters
    ----------
    stored : array of shape (m,)
        Entries of each column,
    entries : int
        and of all columns.
    weight : K floats
        W_c.
    by_class : callable
        The weight of the entries of each class and column, (K, m): asked for where the number of
        entries leaves so many in question that it saves time.
    weighted : bool
        Whether samples have weights.
    """
    enough = enough_stored(stored, min(weight), weighted=weighted)
    if len(weight) * stored.shape[0] > entries:
        return enough
    xp = array_namespace(stored)
    if 8 * int(xp.sum(xp.where(enough, stored, stored * 0))) < entries:
        return enough
    return perhaps_half(by_class(), backend_of(stored).asarray(weight))


def perhaps_half(mass: Array, weight: Array) -> Array:
    """Whether half of some class may be in a column, were its mass (K, m) summed in another order.

    ``weight`` holds W_c: (K,).
    """
    return array_namespace(mass).any(2 * mass >= (1 - _ANY_ORDER) * weight[:, None], axis=0)


@dataclass(frozen=True, kw_only=True)
class SparseSortedColumns(SortedColumns):
    """Lists of any length, one after the other.

    Attributes
    ----------
    segment : array of int64 of shape (N,)
        The list of each stored value: class times b plus column.
    """

    segment: Array

    def weighted_sums(self, f: Callable[..., Array], *parameters: Array) -> Array:
        xp = self.backend.xp
        x = xp.astype(self.values, xp.float64)
        terms = f(x, *(xp.take(xp.reshape(p, (-1,)), self.segment) for p in parameters))
        terms = terms if self.weights is None else terms * self.weights
        stored = self.backend.zeros(self.shape[0] * self.shape[1])
        add_at(stored, self.segment, terms)
        at_zero = f(self.backend.zeros(self.shape), *parameters)
        return xp.reshape(stored, self.shape) + xp.astype(self.zero_mass, xp.float64) * at_zero


def sort_segments(
    rows: SparseArray, values: SparseArray, offsets: SparseArray, samples: Samples
) -> tuple[SparseArray, SparseSortedColumns | None]:
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
    xp, k, b = samples.backend.xp, samples.n_classes, int(offsets.shape[0]) - 1
    kind = xp.int32 if k * b < INT32 else xp.int64
    column = repeat_per_row(xp.arange(b, dtype=kind), offsets, values.shape[0], rows)
    segment = xp.astype(xp.take(samples.backend_codes, rows), kind) * b + column
    x = values if values.dtype == xp.float32 else xp.astype(values, xp.float64)
    weight = None if samples.sample_weight is None else xp.take(samples.backend_weights, rows)
    counts = x != 0 if weight is None else (x != 0) & (weight > 0)
    if not bool(xp.all(counts)):
        index = xp.nonzero(counts)[0]
        segment, x = xp.take(segment, index), xp.take(x, index)
        weight = None if weight is None else xp.take(weight, index)
    return lists_of_entries(segment, x, weight, b, samples)


def lists_of_entries(
    segment: SparseArray,
    x: SparseArray,
    weight: SparseArray | None,
    b: int,
    samples: Samples,
    *,
    in_order: bool = False,
) -> tuple[SparseArray, SparseSortedColumns | None]:
    """`sort_segments` of entries that are not zero, given one by one.

    Parameters
    ----------
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
    xp, kind = backend.xp, segment.dtype
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
        # Drop the entries of all other columns and number the lists of those left anew.
        position = xp.cumsum(xp.astype(undecided, xp.int64)) - 1
        number = xp.where(undecided, xp.arange(k)[:, None] * width + position, -1)
        segment = xp.take(xp.astype(xp.reshape(number, (-1,)), kind), segment)
        index = xp.nonzero(segment >= 0)[0]
        segment, x = xp.take(segment, index), xp.take(x, index)
        weight = None if weight is None else xp.take(weight, index)
    held = xp.take(held, kept, axis=1)
    return kept, _lists(x, segment, weight, held, samples, in_order=in_order)


def _lists(
    x: SparseArray,
    segment: SparseArray,
    weight: SparseArray | None,
    held: SparseArray,
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
    if in_order:  # a stable sort by segment leaves the values of each ascending
        order = xp.argsort(segment, stable=True)
        values, weights = xp.take(x, order), None if weight is None else xp.take(weight, order)
    else:
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
    n_items = stored + xp.astype(has_zero, xp.int64)
    cumulative = None
    if weights is not None:
        exact = samples.has_integer_weights
        units = backend.asarray([1.0 if exact else w / 2**52 for w in samples.class_weight])
        unit = xp.take(units, owner // width)
        cumulative = xp.astype(_running_sums(weights / unit, start, owner, xp), held.dtype)
        if not exact:
            cumulative = cumulative * unit
    return SparseSortedColumns(
        samples=samples,
        values=values,
        start=xp.reshape(start, shape),
        n_items=n_items,
        bisections=int(xp.max(n_items)).bit_length() + 1,
        zero_at=xp.where(has_zero, negative, n_items),
        zero_mass=mass,
        weights=weights,
        cumulative=cumulative,
        segment=owner,
    )


def _running_sums(
    weights: SparseArray, start: SparseArray, owner: SparseArray, xp: Any
) -> SparseArray:
    """Running sums of integers, from zero in each list.

    In int64 the difference of two sums is exact even if both have wrapped around, whereas a
    floating-point sum over all lists would lose the digits of a light list. Real weights come as
    multiples of W_c / 2**52.
    """
    sums = xp.cumsum(xp.astype(xp.round(weights), xp.int64))
    before = xp.take(xp.concat([xp.zeros(1, dtype=sums.dtype), sums]), start)
    return sums - xp.take(before, owner)
