"""Some columns of X in a given order, for sums and medians under many permutations at once.

Class sums are one product with the indicators of a class in all permutations, and a column is
sorted once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from ..arrays import sparsetools
from ..arrays.backend import Backend
from ..arrays.context import Context
from ..arrays.functions import EXACT_INTEGERS, repeat_per_row
from ..arrays.namespace import array_namespace, assume_canonical, is_numpy, sparse_module, to_numpy
from ..arrays.schedule import ranges, row_ranges
from ..arrays.sorting import ClassLists, sorted_lines_of_rows
from ..arrays.typing import Array
from ..arrays.typing import NumPyOrCuPy as SparseArray
from ..blocks import Block
from ..blocks.dense import DenseBlock
from ..blocks.sparse import INT32, SparseBlock
from .medians import stored_per_column
from .moments import is_ill_conditioned
from .permuted_columns import PermutedCodes, PermutedColumns
from .sorted_columns import SortedColumns
from .sparse_sorting import enough_stored, lists_of_entries

_LIST_CHUNKS = 4  # entries in the lists that are worked on at once, in chunks
_LIST_BYTES = 96  # workspace for each of them

Task: TypeAlias = Callable[[SortedColumns | PermutedColumns], tuple[Array, ...]]


@dataclass(frozen=True)
class DensePanel:
    """Some columns of dense data in a given order, on the backend.

    Attributes
    ----------
    backend : Backend
    array : array of shape (n, b), of a floating type
    """

    backend: Backend
    array: Array

    def cuts(self, permutations: int, size: int) -> list[tuple[int, int]]:
        """(start, stop) of parts of about ``size`` values and sums each."""
        n, b = self.array.shape
        return list(ranges(b, max(1, size // max(n, permutations))))

    def part(self, start: int, stop: int) -> DensePanel:
        """The columns start..stop."""
        return DensePanel(self.backend, self.array[:, start:stop])

    def _lines(self, *, relative: bool) -> tuple[Array, Array | None]:
        """The columns as rows, float64; ``relative``, less a value of each near its mean."""
        xp = self.backend.xp
        lines = xp.astype(xp.permute_dims(self.array, (1, 0)), xp.float64)
        if not relative:
            return lines, None
        off = xp.abs(lines - xp.mean(lines, axis=1, keepdims=True))
        shift = xp.take_along_axis(lines, xp.argmin(off, axis=1)[:, None], axis=1)
        return lines - shift, shift[:, 0]

    def class_sums(self, permuted: PermutedCodes, *, relative: bool = False) -> Array:
        """Sums of x over each class of each permutation: (K, b, p), float64.

        Exact where values are integers and sums are less than 2^53.

        Parameters
        ----------
        permuted : PermutedCodes
        relative : bool
            Of x less its shift, a value of the column, so that an offset of the column does not
            cancel in differences of the sums. The shift is 0 for sparse columns without need of it.
        """
        lines, _ = self._lines(relative=relative)
        total = self.backend.xp.sum(lines, axis=1) if _sums_are_exact(lines) else None
        return permuted.class_sums(lambda d: lines @ d, total)

    def class_moments(self, permuted: PermutedCodes) -> tuple[Array, Array, Array]:
        """Relative sums, sums of squares about the class means, and the shift of each column.

        Two arrays of shape (K, b, p), and one of shape (b,).
        """
        lines, shift = self._lines(relative=True)
        assert shift is not None
        squares = lines * lines
        total = permuted.class_sums(lambda d: lines @ d, None)
        square = permuted.class_sums(lambda d: squares @ d, None)
        return total, permuted.about_class_means(total, square), shift

    def spread(self, power: int) -> Array:
        """Sums over all samples of |x - shift|, or of its squares for a power of 2: (b,)."""
        lines, _ = self._lines(relative=True)
        return self.backend.xp.sum(lines * lines if power == 2 else abs(lines), axis=1)

    def map_class_medians(
        self, task: Task, results: int, permuted: PermutedCodes, ctx: Context
    ) -> list[Array]:
        """``task`` of the columns, sorted within each class of each permutation: arrays (b, p).

        A column is sorted once for all permutations. Where all class medians are known to be zero
        the task is not called, and its results are zero.

        Parameters
        ----------
        task : callable
            Gives ``results`` arrays with a number for each column of its own.
        results : int
        permuted : PermutedCodes
        ctx : Context
        """
        xp, (n, p) = self.backend.xp, permuted.codes.shape
        lists = ClassLists(self.backend, [np.arange(n)])
        values, origin = (
            xp.permute_dims(part, (1, 0)) for part in sorted_lines_of_rows(self.array, lists)
        )
        found = task(PermutedColumns(permuted, xp.astype(values, xp.float64), origin))
        return [xp.reshape(part, (-1, p)) for part in found]


@dataclass(frozen=True)
class SparsePanel:
    """Some columns of sparse data, with the methods of `DensePanel`.

    Attributes
    ----------
    matrix : SparseBlock
        By column, on its backend, its values read.
    """

    matrix: SparseBlock

    def cuts(self, permutations: int, size: int) -> list[tuple[int, int]]:
        """(start, stop) of parts: see `DensePanel`."""
        cost = self.matrix.host_indptr + permutations * np.arange(self.matrix.shape[1] + 1)
        return list(row_ranges(cost, size))

    def part(self, start: int, stop: int) -> SparsePanel:
        """The columns start..stop."""
        rows, values, offsets = self.matrix.columns(start, stop)
        shape = self.matrix.shape[0], stop - start
        part = replace(self.matrix, indices=rows, data=values, indptr=offsets, shape=shape)
        return SparsePanel(part)

    def _entries(
        self, *, relative: bool, squares: bool = False
    ) -> tuple[SparseArray, SparseArray, SparseArray]:
        """(stored values less the shift, the shift, numbers of values that are not stored).

        The shift, (b,), is 0; if ``relative``, the first value of columns that store all values,
        and with ``squares`` also of those where these cancel: they store nearly all values.
        """
        matrix, backend, xp = self.matrix, self.matrix.backend, self.matrix.backend.xp
        z, offsets = xp.astype(matrix.data, xp.float64), matrix.indptr
        lacking = matrix.shape[0] - xp.astype(offsets[1:] - offsets[:-1], xp.float64)
        if not relative:
            return z, lacking * 0, lacking
        shifted = lacking == 0
        if squares:
            total, square = self._column_sums(z), self._column_sums(z * z)
            shifted = shifted | is_ill_conditioned(total, square, float(matrix.shape[0]))
        first = xp.take(xp.concat([z, backend.zeros(1)]), offsets[:-1])
        shift = xp.where(shifted, first, lacking * 0)
        of_entry = repeat_per_row(shift, offsets, z.shape[0], matrix.indices)
        return z - of_entry, shift, lacking

    def _product(self, values: SparseArray, factor: SparseArray) -> SparseArray:
        """The transpose of columns of such values times a matrix of shape (n, p): (b, p)."""
        m, (n, b), xp = self.matrix, self.matrix.shape, self.matrix.backend.xp
        if is_numpy(xp) and sparsetools.AVAILABLE:
            out = np.zeros((b, factor.shape[1]))
            sparsetools.add_product(m.indptr, m.indices, values, factor, out)
            return out
        part = sparse_module(xp).csr_matrix((values, m.indices, m.indptr), shape=(b, n))
        return assume_canonical(part) @ factor

    def _column_sums(self, values: SparseArray) -> SparseArray:
        return self._product(values, self.matrix.backend.xp.ones((self.matrix.shape[0], 1)))[:, 0]

    def class_sums(self, permuted: PermutedCodes, *, relative: bool = False) -> Array:
        """Sums of x over each class of each permutation: see `DensePanel`."""
        z = self._entries(relative=relative)[0]
        total = self._column_sums(z) if _sums_are_exact(z) else None
        return permuted.class_sums(lambda d: self._product(z, d), total)

    def class_moments(self, permuted: PermutedCodes) -> tuple[Array, Array, Array]:
        """Sums, and sums of squares about the class means: see `DensePanel`."""
        z, shift, lacking = self._entries(relative=True, squares=True)
        xp = self.matrix.backend.xp

        def sums_of(values: SparseArray) -> Array:
            return permuted.class_sums(lambda d: self._product(values, d), None)

        total, square = sums_of(z), sums_of(z * z)
        if bool(xp.any(lacking * shift != 0)):
            absent, of_zero = permuted.class_weight - sums_of(xp.ones_like(z)), shift[:, None]
            total, square = total - absent * of_zero, square + absent * (of_zero * of_zero)
        return total, permuted.about_class_means(total, square), shift

    def spread(self, power: int) -> Array:
        """Sums of |x - shift| or of its squares: see `DensePanel`."""
        z = self._entries(relative=True)[0]  # so nothing is shifted where values lack
        return self._column_sums(z * z if power == 2 else abs(z))

    def map_class_medians(
        self, task: Task, results: int, permuted: PermutedCodes, ctx: Context
    ) -> list[Array]:
        """``task`` of the sorted columns: see `DensePanel`."""
        matrix, backend, samples = self.matrix, self.matrix.backend, permuted.samples
        xp, b, p, k = backend.xp, matrix.shape[1], permuted.count, samples.n_classes
        rows, values, offsets = matrix.indices, matrix.data, matrix.indptr
        stored = offsets[1:] - offsets[:-1]
        enough = enough_stored(stored, min(samples.class_weight), weighted=False)
        column = repeat_per_row(backend.arange(b), offsets, values.shape[0], rows)
        keep = xp.nonzero((values != 0) & xp.take(enough, column))[0]
        rows, x, column = (xp.take(part, keep) for part in (rows, values, column))
        order = xp.argsort(x, stable=True)
        order = xp.take(order, xp.argsort(xp.take(column, order), stable=True))
        rows, x, column = (xp.take(part, order) for part in (rows, x, column))
        by_permutation, e = xp.permute_dims(permuted.codes, (1, 0)), int(x.shape[0])
        out = [backend.zeros(p * b) for _ in range(results)]
        most = min(_LIST_CHUNKS * ctx.chunk, ctx.budget // _LIST_BYTES)
        step = max(1, most // max(1, e))
        step = min(step, max(1, (INT32 - 1) // (k * b)))
        for first, last in ranges(p if e else 0, step):
            count = last - first
            code = xp.astype(xp.take(by_permutation[first:last, :], rows, axis=1), xp.int32)
            number = xp.arange(count, dtype=xp.int32)[:, None] * b + xp.astype(column, xp.int32)
            segment = xp.reshape(code * (count * b) + number, (-1,))
            every = xp.reshape(xp.broadcast_to(x[None, :], code.shape), (-1,))
            kept, lists = lists_of_entries(segment, every, None, count * b, samples, in_order=True)
            if lists is None:
                continue
            for target, part in zip(out, task(lists), strict=True):
                target[first * b + kept] = part
        return [xp.permute_dims(xp.reshape(target, (p, b)), (1, 0)) for target in out]


Panel: TypeAlias = DensePanel | SparsePanel


def column_panels(block: Block, columns: Array, ctx: Context) -> Iterator[tuple[slice, Panel]]:
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
            yield part, DensePanel(block.backend, array)
        return
    stored = block.backend.xp.take(stored_per_column(block, ctx), columns)
    # Put in order, an entry takes about 48 bytes on the way.
    cost = np.concatenate([[0], np.cumsum(48 * to_numpy(stored) + 64)])
    for start, stop in row_ranges(cost, max(1, ctx.budget // 2)):
        chosen = block.select(columns[start:stop], ctx, by_row=False, ascending=False)
        yield slice(start, stop), SparsePanel(chosen)


def _sums_are_exact(values: SparseArray) -> bool:
    """Whether these are integers of NumPy, all of whose sums are exact in any order."""
    if not is_numpy(array_namespace(values)):
        return False
    few = values[:1]  # most often they tell
    if np.any(few != np.rint(few)) or np.any(values != np.rint(values)):
        return False
    return bool(np.sum(np.abs(values)) < EXACT_INTEGERS)
