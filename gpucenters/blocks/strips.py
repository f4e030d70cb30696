"""Columns of X in a given order, for sums and medians under many permutations at once.

Labels of many permutations go through the columns together: class sums are one product with the
indicators of the classes, and a column that is sorted once gives the sorted lists of each class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..arrays import numpy_cupy, portable, sparsetools
from ..arrays.backend import Backend
from ..arrays.class_lists import ClassLists
from ..arrays.context import Context
from ..arrays.functions import clip_negative
from ..arrays.grid import ranges, row_ranges
from ..arrays.namespace import is_numpy, sparse_module
from ..arrays.typing import Array
from ..arrays.typing import NumPyOrCuPy as SparseArray
from .compressed import INT32, Compressed
from .conditioning import EXACT_INTEGERS, is_ill_conditioned
from .half_weight import enough_stored
from .labelled_columns import LabelledColumns
from .labels import Labels
from .sorted_columns import SortedColumns
from .sparse_sorting import lists_of_entries

_LIST_CHUNKS = 4  # entries in the lists that are worked on at once, in chunks
_LIST_BYTES = 96  # workspace for each of them

Task = Callable[[SortedColumns | LabelledColumns], tuple[Array, ...]]


@dataclass(frozen=True)
class DenseStrip:
    """A `Strip` of dense data.

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
        """(start, stop) of runs of columns: see `Strip`."""
        n, d = self.array.shape
        return list(ranges(d, max(1, size // max(n, permutations))))

    def _columns(self, start: int, stop: int) -> Array:
        """Some columns as contiguous rows, float64."""
        xp = self.backend.xp
        lines = xp.permute_dims(self.array[:, start:stop], (1, 0))
        return xp.astype(lines, xp.float64)

    def label_sums(self, labels: Labels, start: int, stop: int) -> Array:
        """Sums of x over each class of each permutation: see `Strip`."""
        xp, lines = self.backend.xp, self._columns(start, stop)
        exact = is_numpy(xp) and _sums_are_exact(lines)
        total = xp.sum(lines, axis=1) if exact else None
        return _sums_of_classes(lambda d: lines @ d, labels, total)

    def label_moments(self, labels: Labels, start: int, stop: int) -> tuple[Array, Array]:
        """Sums, and sums of squares about the class means: see `Strip`."""
        lines = self._columns(start, stop)
        # Relative to the first sample: so squares do not cancel, and integers stay integers.
        first = lines[:, :1]
        lines = lines - first
        total = _sums_of_classes(lambda d: lines @ d, labels, None)
        squares = lines * lines
        square = _sums_of_classes(lambda d: squares @ d, labels, None)
        w = self.backend.asarray(labels.samples.class_weight)[:, None, None]
        return total + w * first, clip_negative(square - total * (total / w))

    def map_label_medians(
        self,
        task: Task,
        results: int,
        labels: Labels,
        start: int,
        stop: int,
        ctx: Context,
    ) -> list[Array]:
        """``task`` of the columns, sorted within each class of each permutation: see `Strip`."""
        xp, backend, (n, p) = self.backend.xp, self.backend, labels.codes.shape
        own = numpy_cupy if backend.is_numpy_or_cupy else portable
        chunk = self.array[:, start:stop]
        values, origin = own.sorted_lines_of_rows(chunk, ClassLists(backend, [np.arange(n)]), xp)
        values, origin = (xp.permute_dims(part, (1, 0)) for part in (values, origin))
        values = xp.astype(values, xp.float64)
        found = task(LabelledColumns(backend, values, origin, labels))
        return [xp.reshape(part, (-1, p)) for part in found]


@dataclass(frozen=True)
class SparseStrip:
    """A `Strip` of sparse data.

    Attributes
    ----------
    matrix : Compressed
        By column, on its backend, its values read.
    """

    matrix: Compressed

    @property
    def width(self) -> int:
        """How many columns there are."""
        return self.matrix.shape[1]

    def cuts(self, permutations: int, size: int) -> list[tuple[int, int]]:
        """(start, stop) of runs of columns: see `Strip`."""
        cost = self.matrix.host_indptr + permutations * np.arange(self.width + 1)
        return list(row_ranges(cost, size))

    def label_sums(self, labels: Labels, start: int, stop: int) -> Array:
        """Sums of x over each class of each permutation: see `Strip`."""
        backend, (rows, values, offsets) = (
            self.matrix.backend,
            self.matrix.columns(start, stop),
        )
        xp = backend.xp
        values = xp.astype(values, xp.float64)
        total = None
        if is_numpy(xp) and _sums_are_exact(values):
            ones = np.ones((self.matrix.shape[0], 1))
            total = self._product(rows, values, offsets, ones)[:, 0]
        return _sums_of_classes(lambda d: self._product(rows, values, offsets, d), labels, total)

    def _product(
        self, rows: SparseArray, values: SparseArray, offsets: SparseArray, factor: SparseArray
    ) -> SparseArray:
        """The transpose of some columns times a matrix of shape (n, p): (b, p)."""
        xp, b = self.matrix.backend.xp, offsets.shape[0] - 1
        if is_numpy(xp) and sparsetools.AVAILABLE:
            out = np.zeros((b, factor.shape[1]))
            sparsetools.add_product(offsets, rows, values, factor, out)
            return out
        shape = (b, self.matrix.shape[0])
        return sparse_module(xp).csr_matrix((values, rows, offsets), shape=shape) @ factor

    def label_moments(self, labels: Labels, start: int, stop: int) -> tuple[Array, Array]:
        """Sums, and sums of squares about the class means: see `Strip`.

        From raw sums, as of any sparse data. Columns where these cancel store nearly all values:
        there the sums are taken relative to the mean of the stored values.
        """
        backend, n = self.matrix.backend, self.matrix.shape[0]
        rows, values, offsets = self.matrix.columns(start, stop)
        xp, x = backend.xp, backend.xp.astype(values, backend.xp.float64)
        one = backend.xp.ones((n, 1))
        stored = xp.astype(offsets[1:] - offsets[:-1], xp.float64)
        sums, squares = (self._product(rows, v, offsets, one)[:, 0] for v in (x, x * x))
        ill = is_ill_conditioned(sums, squares, float(n))
        mean = xp.where(ill, sums / xp.maximum(stored, xp.ones_like(stored)), stored * 0)
        of_entry = numpy_cupy.repeat_per_row(mean, offsets, x.shape[0], xp, rows)
        z = x - of_entry
        w = backend.asarray(labels.samples.class_weight)[:, None, None]

        def sums_of(v: SparseArray) -> Array:
            return _sums_of_classes(lambda d: self._product(rows, v, offsets, d), labels, None)

        total, square, held = sums_of(z), sums_of(z * z), sums_of(xp.ones_like(z))
        shift = mean[:, None]
        raw = total + held * shift
        # The values that are not stored are zero: they are minus the shift.
        total, square = total - (w - held) * shift, square + (w - held) * (shift * shift)
        return raw, clip_negative(square - total * (total / w))

    def map_label_medians(
        self,
        task: Task,
        results: int,
        labels: Labels,
        start: int,
        stop: int,
        ctx: Context,
    ) -> list[Array]:
        """``task`` of the columns, sorted within each class of each permutation: see `Strip`."""
        backend, b, p = self.matrix.backend, stop - start, labels.count
        xp, samples, k = backend.xp, labels.samples, labels.samples.n_classes
        rows, values, offsets = self.matrix.columns(start, stop)
        enough = enough_stored(offsets[1:] - offsets[:-1], samples)
        column = numpy_cupy.repeat_per_row(backend.arange(b), offsets, values.shape[0], xp, rows)
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


def _sums_are_exact(values: SparseArray) -> bool:
    """Whether values of NumPy are integers, all of whose sums are exact in any order."""
    few = values[:1]  # most often they tell
    if np.any(few != np.rint(few)) or np.any(values != np.rint(values)):
        return False
    return bool(np.sum(np.abs(values)) < EXACT_INTEGERS)


def _sums_of_classes(
    product: Callable[[Array], Array], labels: Labels, total: Array | None
) -> Array:
    """``product`` of the indicator of each class: (K, b, p).

    With the exact ``total`` over all samples, the last class is what the others leave of it.
    """
    k = labels.samples.n_classes
    sums = [product(labels.indicator(c)) for c in range(k - (total is not None))]
    if total is not None:
        sums.append(total[:, None] - sum(sums[1:], sums[0]))
    return labels.samples.backend.xp.stack(sums)
