"""Columns of X in a given order, for sums and medians under many permutations at once.

Labels of many permutations go through the columns together: class sums are one product with the
indicators of the classes, and a column that is sorted once gives the sorted lists of each class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from ..arrays import sparsetools
from ..arrays.backend import Backend
from ..arrays.context import Context
from ..arrays.functions import repeat_per_row
from ..arrays.grid import ranges, row_ranges
from ..arrays.namespace import array_namespace, is_numpy, sparse_module, stored_once, to_numpy
from ..arrays.sorting import ClassLists, sorted_lines_of_rows
from ..arrays.typing import Array
from ..arrays.typing import NumPyOrCuPy as SparseArray
from ..blocks import Block
from ..blocks.dense import DenseBlock
from ..blocks.sparse import INT32, SparseBlock
from .half_weight import enough_stored
from .labelled_columns import LabelledColumns, PermutedCodes
from .medians import stored_per_column
from .moments import EXACT_INTEGERS, is_ill_conditioned
from .sorted_columns import SortedColumns
from .sparse_sorting import lists_of_entries

_LIST_CHUNKS = 4  # entries in the lists that are worked on at once, in chunks
_LIST_BYTES = 96  # workspace for each of them
_OF_SQUARES = 2.0**-51  # the rounding of a sum of squares of n values is n times as large, or less

Task = Callable[[SortedColumns | LabelledColumns], tuple[Array, ...]]


@dataclass(frozen=True)
class DenseStrip:
    """Some columns of dense data in a given order, on the backend: features for many labels.

    Runs of columns start..stop are worked on for p permutations of the labels at once.

    Attributes
    ----------
    backend : Backend
    array : array of shape (n, d), of a floating type
    """

    backend: Backend
    array: Array

    @property
    def width(self) -> int:
        """How many columns there are."""
        return self.array.shape[1]

    def cuts(self, permutations: int, size: int) -> list[tuple[int, int]]:
        """(start, stop) of runs of columns, of about ``size`` values and sums each."""
        n, d = self.array.shape
        return list(ranges(d, max(1, size // max(n, permutations))))

    def _columns(self, start: int, stop: int) -> Array:
        """Some columns as rows, float64."""
        xp = self.backend.xp
        return xp.astype(xp.permute_dims(self.array[:, start:stop], (1, 0)), xp.float64)

    def _relative(self, start: int, stop: int) -> tuple[Array, Array]:
        """Some columns as rows, less the value of each that is nearest its mean, and this value."""
        xp, lines = self.backend.xp, self._columns(start, stop)
        off = xp.abs(lines - xp.mean(lines, axis=1, keepdims=True))
        shift = xp.take_along_axis(lines, xp.argmin(off, axis=1)[:, None], axis=1)
        return lines - shift, shift[:, 0]

    def label_sums(
        self, labels: PermutedCodes, start: int, stop: int, *, relative: bool = False
    ) -> Array:
        """Sums of x over each class of each permutation, in some columns: (K, b, p), float64.

        Exact where values are integers and sums are less than 2^53.

        Parameters
        ----------
        labels : PermutedCodes
        start, stop : int
        relative : bool
            Of x less its shift, a value of the column, so that an offset of the column does not
            cancel in differences of the sums. The shift is 0 for sparse columns without need of it.
        """
        xp = self.backend.xp
        lines = self._relative(start, stop)[0] if relative else self._columns(start, stop)
        total = xp.sum(lines, axis=1) if _sums_are_exact(lines) else None
        return _sums_of_classes(lambda d: lines @ d, labels, total)

    def label_moments(
        self, labels: PermutedCodes, start: int, stop: int
    ) -> tuple[Array, Array, Array]:
        """Relative sums, sums of squares about the class means, and the shift of each column.

        Two arrays of shape (K, b, p), and one of shape (b,).
        """
        lines, shift = self._relative(start, stop)
        total = _sums_of_classes(lambda d: lines @ d, labels, None)
        squares = lines * lines
        square = _sums_of_classes(lambda d: squares @ d, labels, None)
        return total, _about_class_means(total, square, labels), shift

    def spread(self, start: int, stop: int, power: int) -> Array:
        """Sums over all samples of |x - shift|, or of its squares for a power of 2: (b,)."""
        lines, _ = self._relative(start, stop)
        return self.backend.xp.sum(lines * lines if power == 2 else abs(lines), axis=1)

    def map_label_medians(
        self,
        task: Task,
        results: int,
        labels: PermutedCodes,
        start: int,
        stop: int,
        ctx: Context,
    ) -> list[Array]:
        """``task`` of the columns, sorted within each class of each permutation: arrays (b, p).

        A column is sorted once for all permutations. Where all class medians are known to be zero
        the task is not called, and its results are zero.

        Parameters
        ----------
        task : callable
            Gives ``results`` arrays with a number for each column of its own.
        results : int
        labels : PermutedCodes
        start, stop : int
        ctx : Context
        """
        xp, backend, (n, p) = self.backend.xp, self.backend, labels.codes.shape
        chunk = self.array[:, start:stop]
        values, origin = sorted_lines_of_rows(chunk, ClassLists(backend, [np.arange(n)]))
        values, origin = (xp.permute_dims(part, (1, 0)) for part in (values, origin))
        values = xp.astype(values, xp.float64)
        found = task(LabelledColumns(backend, values, origin, labels))
        return [xp.reshape(part, (-1, p)) for part in found]


@dataclass(frozen=True)
class _Entries:
    """Stored values of columns of sparse data, relative to a value of each.

    Attributes
    ----------
    rows, z : arrays of shape (e,)
        Row and value, less the shift, of each.
    offsets : array of integers of shape (b + 1,)
        Where the columns begin.
    shift : array of shape (b,)
    lacking : array of shape (b,), float64
        How many values are not stored: they are minus the shift.
    """

    rows: SparseArray
    z: SparseArray
    offsets: SparseArray
    shift: SparseArray
    lacking: SparseArray


@dataclass(frozen=True)
class SparseStrip:
    """Some columns of sparse data, with the methods of `DenseStrip`.

    Attributes
    ----------
    matrix : SparseBlock
        By column, on its backend, its values read.
    """

    matrix: SparseBlock

    @property
    def width(self) -> int:
        """How many columns there are."""
        return self.matrix.shape[1]

    def cuts(self, permutations: int, size: int) -> list[tuple[int, int]]:
        """(start, stop) of runs of columns: see `DenseStrip`."""
        cost = self.matrix.host_indptr + permutations * np.arange(self.width + 1)
        return list(row_ranges(cost, size))

    def _entries(self, start: int, stop: int) -> _Entries:
        """The stored values of some columns as they are."""
        xp, (rows, values, offsets) = self.matrix.backend.xp, self.matrix.columns(start, stop)
        lacking = self.matrix.shape[0] - xp.astype(offsets[1:] - offsets[:-1], xp.float64)
        return _Entries(rows, xp.astype(values, xp.float64), offsets, lacking * 0, lacking)

    def _relative(self, start: int, stop: int, *, squares: bool = False) -> _Entries:
        """Some columns, less their first value where they store all values.

        With ``squares`` also where these cancel: nearly all values are stored there.
        """
        e, xp, backend = self._entries(start, stop), self.matrix.backend.xp, self.matrix.backend
        shifted = e.lacking == 0
        if squares:
            total, square = (self._product(e, v, self._one)[:, 0] for v in (e.z, e.z * e.z))
            shifted = shifted | is_ill_conditioned(total, square, float(self.matrix.shape[0]))
        first = xp.take(xp.concat([e.z, backend.zeros(1)]), e.offsets[:-1])
        shift = xp.where(shifted, first, e.shift)
        of_entry = repeat_per_row(shift, e.offsets, e.z.shape[0], e.rows)
        return replace(e, z=e.z - of_entry, shift=shift)

    @property
    def _one(self) -> SparseArray:
        return self.matrix.backend.xp.ones((self.matrix.shape[0], 1))

    def label_sums(
        self, labels: PermutedCodes, start: int, stop: int, *, relative: bool = False
    ) -> Array:
        """Sums of x over each class of each permutation: see `DenseStrip`."""
        e = self._relative(start, stop) if relative else self._entries(start, stop)
        total = self._product(e, e.z, self._one)[:, 0] if _sums_are_exact(e.z) else None
        return _sums_of_classes(lambda d: self._product(e, e.z, d), labels, total)

    def _product(self, e: _Entries, values: SparseArray, factor: SparseArray) -> SparseArray:
        """The transpose of columns of such values times a matrix of shape (n, p): (b, p)."""
        xp, b = self.matrix.backend.xp, e.offsets.shape[0] - 1
        if is_numpy(xp) and sparsetools.AVAILABLE:
            out = np.zeros((b, factor.shape[1]))
            sparsetools.add_product(e.offsets, e.rows, values, factor, out)
            return out
        shape = (b, self.matrix.shape[0])
        part = sparse_module(xp).csr_matrix((values, e.rows, e.offsets), shape=shape)
        return stored_once(part) @ factor

    def label_moments(
        self, labels: PermutedCodes, start: int, stop: int
    ) -> tuple[Array, Array, Array]:
        """Sums, and sums of squares about the class means: see `DenseStrip`."""
        e = self._relative(start, stop, squares=True)

        def sums_of(v: SparseArray) -> Array:
            return _sums_of_classes(lambda d: self._product(e, v, d), labels, None)

        total, square = sums_of(e.z), sums_of(e.z * e.z)
        xp, shift = self.matrix.backend.xp, e.shift[:, None]
        if bool(xp.any(e.lacking * e.shift != 0)):
            lacking = _class_weight(labels) - sums_of(xp.ones_like(e.z))
            total, square = total - lacking * shift, square + lacking * (shift * shift)
        return total, _about_class_means(total, square, labels), e.shift

    def spread(self, start: int, stop: int, power: int) -> Array:
        """Sums of |x - shift| or of its squares: see `DenseStrip`."""
        e = self._relative(start, stop)  # so nothing is shifted where values lack
        return self._product(e, e.z * e.z if power == 2 else abs(e.z), self._one)[:, 0]

    def map_label_medians(
        self,
        task: Task,
        results: int,
        labels: PermutedCodes,
        start: int,
        stop: int,
        ctx: Context,
    ) -> list[Array]:
        """``task`` of the sorted columns: see `DenseStrip`."""
        backend, b, p = self.matrix.backend, stop - start, labels.count
        xp, samples, k = backend.xp, labels.samples, labels.samples.n_classes
        rows, values, offsets = self.matrix.columns(start, stop)
        stored = offsets[1:] - offsets[:-1]
        enough = enough_stored(stored, min(samples.class_weight), weighted=False)
        column = repeat_per_row(backend.arange(b), offsets, values.shape[0], rows)
        keep = xp.nonzero((values != 0) & xp.take(enough, column))[0]
        rows, x, column = (xp.take(part, keep) for part in (rows, values, column))
        order = xp.argsort(x, stable=True)
        order = xp.take(order, xp.argsort(xp.take(column, order), stable=True))
        rows, x, column = (xp.take(part, order) for part in (rows, x, column))
        by_labelling, e = xp.permute_dims(labels.codes, (1, 0)), int(x.shape[0])
        out = [backend.zeros(p * b) for _ in range(results)]
        most = min(_LIST_CHUNKS * ctx.chunk, ctx.budget // _LIST_BYTES)
        step = max(1, most // max(1, e))
        step = min(step, max(1, (INT32 - 1) // (k * b)))
        for first, last in ranges(p if e else 0, step):
            count = last - first
            code = xp.astype(xp.take(by_labelling[first:last, :], rows, axis=1), xp.int32)
            number = xp.arange(count, dtype=xp.int32)[:, None] * b + xp.astype(column, xp.int32)
            segment = code * (count * b) + number
            every = xp.reshape(xp.broadcast_to(x[None, :], code.shape), (-1,))
            number, segment = (xp.reshape(part, (-1,)) for part in (number, segment))
            kept, lists = lists_of_entries(
                number, segment, every, None, count * b, samples, in_order=True
            )
            if lists is None:
                continue
            for target, part in zip(out, task(lists), strict=True):
                target[first * b + kept] = part
        return [xp.permute_dims(xp.reshape(target, (p, b)), (1, 0)) for target in out]


Strip: TypeAlias = DenseStrip | SparseStrip


def column_strips(block: Block, columns: Array, ctx: Context) -> Iterator[tuple[slice, Strip]]:
    """The columns in the given order, as many at a time as memory allows: (part, these).

    Parameters
    ----------
    block : Block
    columns : array of integers of shape (d,)
        In any order, without duplicates.
    ctx : Context
    """
    if isinstance(block, DenseBlock):
        for part, array in block.take_columns(columns, ctx):
            yield part, DenseStrip(block.backend, array)
        return
    stored = block.backend.xp.take(stored_per_column(block, ctx), columns)
    # Put in order, an entry takes about 48 bytes on the way.
    cost = np.concatenate([[0], np.cumsum(48 * to_numpy(stored) + 64)])
    for start, stop in row_ranges(cost, max(1, ctx.budget // 2)):
        chosen = block.select(columns[start:stop], ctx, by_row=False, ascending=False)
        yield slice(start, stop), SparseStrip(chosen)


def _sums_are_exact(values: SparseArray) -> bool:
    """Whether these are integers of NumPy, all of whose sums are exact in any order."""
    if not is_numpy(array_namespace(values)):
        return False
    few = values[:1]  # most often they tell
    if np.any(few != np.rint(few)) or np.any(values != np.rint(values)):
        return False
    return bool(np.sum(np.abs(values)) < EXACT_INTEGERS)


def _class_weight(labels: PermutedCodes) -> Array:
    return labels.samples.backend.asarray(labels.samples.class_weight)[:, None, None]


def _about_class_means(total: Array, square: Array, labels: PermutedCodes) -> Array:
    """Sums of squares about the class means, from sums of x and x^2; 0 for those of rounding."""
    weight = _class_weight(labels)
    found = square - total * (total / weight)
    rounding = _OF_SQUARES * weight * square
    return array_namespace(found).where(found > rounding, found, 0 * found)


def _sums_of_classes(
    product: Callable[[Array], Array], labels: PermutedCodes, total: Array | None
) -> Array:
    """``product`` of the indicator of each class: (K, b, p).

    With the exact ``total`` over all samples, the last class is what the others leave of it.
    """
    k = labels.samples.n_classes
    sums = [product(labels.indicator(c)) for c in range(k - (total is not None))]
    if total is not None:
        sums.append(total[:, None] - sum(sums[1:], sums[0]))
    return labels.samples.backend.xp.stack(sums)
