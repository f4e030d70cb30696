"""Blocks of dense data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, TypeVar

import numpy as np

from ..arrays.backend import Backend, backend_of
from ..arrays.cached import cached_property
from ..arrays.class_lists import ClassLists
from ..arrays.context import Context
from ..arrays.grid import dense_grid, full_width_ranges, ranges
from ..arrays.namespace import array_namespace, is_cupy, is_numpy
from ..arrays.on_disk import OnDisk
from ..arrays.threads import Scratch
from ..arrays.typing import Array
from ..arrays.uploads import Upload, sendable
from . import dense_scatter, dense_sums, errors
from .accumulators import CentredSums, RawSums
from .dense_sums import Strip
from .objects import as_float64
from .readers import Reader, refuse
from .row_chunk import RowChunk
from .samples import Samples
from .scatter import ScatterSums
from .segment_terms import Terms
from .sorted_columns import SortedColumns, SortingPlan, column_too_large, sort_columns
from .strips import DenseStrip
from .working_columns import DenseColumns

_DISTANCE_PARTS = 2  # of a chunk: of it and of its distances more would not fit into a cache
_LEAST_SORT_COLUMNS = 64  # with fewer columns in a range the steps of the search are too small

Result = TypeVar("Result")


@dataclass(frozen=True)
class DenseBlock:
    """A `Block` of dense data, an n x m array that is read chunk by chunk.

    Attributes
    ----------
    array : array of shape (n, m), on any backend or `OnDisk`, of any real type
        Never changed, never copied whole; chunks are widened and moved on their own.
    backend : Backend
        Where the work is done.
    reader : Reader or None
        What the values are read as.
    """

    array: Any
    backend: Backend
    reader: Reader | None = None
    has_implicit_zeros: ClassVar[bool] = False

    @property
    def shape(self) -> tuple[int, int]:
        """(n, m)."""
        return self.array.shape

    def read_as(self, reader: Reader) -> DenseBlock:
        """The block with its values read by ``reader``."""
        return replace(self, reader=reader)

    def rows(self, start: int, stop: int, ctx: Context) -> DenseBlock:
        """The rows start..stop, a view."""
        return replace(self, array=self.array[start:stop, :])

    # --- reading -------------------------------------------------------------------------------

    def chunk(self, rows: tuple[int, int], columns: tuple[int, int]) -> Array:
        """A rectangle of the array on ``backend``, in its own type if that is a floating one."""
        part = self.array[rows[0] : rows[1], columns[0] : columns[1]]
        return self._widen(part, rows[0], range(*columns))

    def _widen(self, part: Any, row: int, columns: Any) -> Array:
        if part.dtype == object:
            part = as_float64(part, row, columns)
        if self._upload is not None:
            part = self._upload.send(sendable(part))[0]
        with backend_of(part).current():
            xp = array_namespace(part)
            if not xp.isdtype(part.dtype, (xp.float32, xp.float64)):
                part = xp.astype(part, xp.float64)
        part = self.backend.move(part)
        return part if self.reader is None else self.reader(part)

    @cached_property
    def _upload(self) -> Upload | None:
        here = isinstance(self.array, np.ndarray | OnDisk)
        return Upload() if here and is_cupy(self.backend.xp) else None

    def _chunk_size(self, ctx: Context) -> int:
        return ctx.chunk_size(0 if self._upload is None else self.array.dtype.itemsize)

    def _strips(self, samples: Samples, ctx: Context) -> Iterator[Strip]:
        """The fixed grid of chunks, a strip of rows at a time, with progress."""
        n, m = self.shape
        rows, width = dense_grid(n, m, self._chunk_size(ctx), samples.n_classes)
        columns = [slice(*cut) for cut in ranges(m, width)]
        strips = ranges(n, rows)
        for start, stop in ctx.progress(strips, -(-n // rows), "rows added"):
            labels, factors = samples.row_labels(start, stop), samples.backend_square_factors
            factors = None if factors is None else factors[start:stop]
            yield Strip(labels, columns, partial(self._float64, (start, stop)), factors)

    def _float64(self, rows: tuple[int, int], columns: slice) -> Array:
        """A rectangle of the array as float64, in memory of its own."""
        chunk, xp = self.chunk(rows, (columns.start, columns.stop)), self.backend.xp
        if is_numpy(xp):
            return np.array(chunk, dtype=np.float64, order="C")
        return xp.astype(chunk, xp.float64, copy=False)

    def full_rows(self, samples: Samples, ctx: Context) -> Iterator[RowChunk]:
        """Strips of rows, each one chunk in its full width."""
        n, m = self.shape
        for cut in full_width_ranges(n, m, self.backend, ctx.chunk):
            yield self._row_chunk(samples, cut, [slice(0, m)])

    def _row_chunk(self, samples: Samples, rows: tuple[int, int], columns: list[slice]) -> RowChunk:
        parts = []
        for c, members in samples.by_class(*rows):
            s, weight = None, float(len(members))
            if samples.sample_weight is not None:
                w = samples.sample_weight[rows[0] : rows[1]][members]
                s, weight = self.backend.asarray(w)[:, None], float(w.sum())
            parts.append((c, self.backend.asarray(members), s, weight))

        def read(start: int, stop: int) -> Array:
            return self.chunk(rows, (start, stop))

        return RowChunk(self.backend, read, columns, parts)

    # --- sums ----------------------------------------------------------------------------------

    def add_sums(self, samples: Samples, into: RawSums, ctx: Context) -> None:
        """Add sums of each class and feature, in place: see `Block`."""
        dense_sums.add_sums(self._strips(samples, ctx), into, ctx)

    def add_centred(self, samples: Samples, into: CentredSums, ctx: Context) -> None:
        """Add sums and centred squares of each class, in place: see `Block`."""
        dense_sums.add_centred(self._strips(samples, ctx), into, ctx)

    def centred_moments(
        self, samples: Samples, columns: Array, ctx: Context
    ) -> tuple[Array, Array]:
        """Sums and centred squares of each class in some columns: see `Block`."""
        k, d = samples.n_classes, int(columns.shape[0])
        here = backend_of(self.array)
        part = array_namespace(self.array).take(self.array, here.move(columns), axis=1)
        found = CentredSums([0.0] * k, self.backend.zeros((k, d)), self.backend.zeros((k, d)))
        replace(self, array=part).add_centred(samples, found, ctx)
        return found.total, found.centred

    def add_scatter(self, samples: Samples, into: ScatterSums, ctx: Context) -> None:
        """Add the scatter matrix of each class, in place: see `Block`."""
        strips = len(full_width_ranges(*self.shape, self.backend, ctx.chunk))
        chunks = ctx.progress(self.full_rows(samples, ctx), strips, "rows added")
        dense_scatter.add_rows(chunks, into, ctx)

    def add_higher_moments(self, samples: Samples, into: ScatterSums, ctx: Context) -> None:
        """Add third and fourth moments about the class means, in place: see `Block`."""
        dense_scatter.add_higher_moments(self.full_rows(samples, ctx), into)

    def narrowed(self, also: Array | None = None) -> None:
        """None: all columns change."""

    # --- sorted columns ------------------------------------------------------------------------

    def zero_center_loss(self, samples: Samples, ctx: Context) -> Array:
        """Zeros, (m,): every column is sorted, and gets its loss from there."""
        return self.backend.zeros(self.shape[1])

    def map_sorted_columns(
        self, task: Callable[[SortedColumns], Result], samples: Samples, ctx: Context
    ) -> Iterator[tuple[Any, Result]]:
        """``task`` of all columns, sorted: see `Block`.

        Rows of weight zero are left out: they never count, not as the next value either. A memory
        map in C order is read a strip of columns at a time, as wide as the budget allows.
        """
        n, m = self.shape
        ctx = ctx.shared_by_threads(n * m)
        array: Any = self.array
        if not (_is_memory_map(array) and array.flags.c_contiguous and m > 1):
            yield from self._sorting_plan(samples, ctx, 0).map(task, ctx)
            return
        width = max(1, min(m, ctx.budget // (2 * n * array.itemsize)))
        passes = -(-m // width)
        half = replace(ctx, budget=max(1, ctx.budget // 2))
        for start, stop in ctx.progress(ranges(m, width), passes, f"{passes} passes over X"):
            strip = replace(self, array=np.array(array[:, start:stop]))
            yield from strip._sorting_plan(samples, half, start).map(task, half)

    def _sorting_plan(self, samples: Samples, ctx: Context, first: int) -> SortingPlan:
        n, m = self.shape
        rows = samples.positive_by_class()
        weights, given = None, samples.sample_weight
        if given is not None and not all(bool((given[r] == 1).all()) for r in rows):
            weights = samples.backend_weights
        class_lists, scratch = ClassLists(self.backend, rows), Scratch()
        left_out = None
        if given is not None and not np.all(given > 0):
            left_out = self.backend.asarray(np.flatnonzero(given == 0))

        def sort(start: int, stop: int) -> tuple[slice, SortedColumns]:
            chunk = self.chunk((0, n), (start, stop))
            if left_out is not None:  # a sample that is left out must still hold numbers
                xp = self.backend.xp
                if not bool(xp.all(xp.isfinite(xp.take(chunk, left_out, axis=0)))):
                    self.check_finite(False, ctx)
            lists = sort_columns(chunk, class_lists, weights, samples, ctx, scratch)
            return slice(first + start, first + stop), lists

        # A sort, its input, and the temporaries of the search.
        most = ctx.budget // (48 * n)
        width = _LEAST_SORT_COLUMNS + 4 * self._chunk_size(ctx) // n
        if self._upload is not None:
            width = max(_LEAST_SORT_COLUMNS, self._chunk_size(ctx) // n)
        width = max(1, min(-(-m // ctx.threads), width, most))
        return SortingPlan(list(ranges(m, width)), sort, column_too_large(n))

    def strips(self, columns: Array, ctx: Context) -> Iterator[tuple[slice, DenseStrip]]:
        """The columns in the given order, as many at a time as memory allows: see `Block`."""
        (n, _), d, here = self.shape, int(columns.shape[0]), backend_of(self.array)
        columns = here.move(columns)
        for start, stop in ranges(d, max(1, min(d, ctx.budget // (32 * n)))):
            some, parts = columns[start:stop], []
            # Row by row: a memory map is read in order.
            for cut in ranges(n, max(1, self._chunk_size(ctx) // (stop - start))):
                with here.current():
                    xp = array_namespace(self.array)
                    part = xp.take(self.array[cut[0] : cut[1], :], some, axis=1)
                part = self._widen(part, cut[0], some)
                # What was sent to a device is valid for a while only.
                parts.append(part if self._upload is None else part + 0)
            yield slice(start, stop), DenseStrip(self.backend, self.backend.xp.concat(parts))

    # --- products and scores -------------------------------------------------------------------

    def product(
        self,
        columns: Array,
        shift: Array,
        coef: Array,
        ctx: Context,
        *,
        size: Array | None = None,
    ) -> Array:
        """``(X[:, columns] - shift) @ coef``: see `Block`."""
        xp, q = self.backend.xp, coef.shape[1]
        if size is None:
            return self._map_rows(columns, q, lambda x: (x - shift) @ coef, ctx)

        def with_size(x: Array) -> Array:
            x = x - shift
            return xp.concat([x @ coef, (xp.abs(x) @ size)[:, None]], axis=1)

        return self._map_rows(columns, q + 1, with_size, ctx)

    def products(
        self,
        parts: list[tuple[Array, Array, Array]],
        ctx: Context,
        *,
        sizes: list[Array] | None = None,
    ) -> list[Array]:
        """The product for each (columns, shift, coef): see `Block`."""
        if sizes is None:
            return [self.product(*part, ctx) for part in parts]
        of_each = zip(parts, sizes, strict=True)
        return [self.product(*part, ctx, size=size) for part, size in of_each]

    def product_and_bound(
        self, columns: Array, shift: Array, coef: Array, size: Array, ctx: Context
    ) -> tuple[Array, Array]:
        """The product, and the largest value of each row times all of ``size``: see `Block`."""
        xp, q = self.backend.xp, coef.shape[1]

        def with_largest(x: Array) -> Array:
            x = x - shift
            # (A norm would be a call of BLAS a row, with threads of its own.)
            most = xp.maximum(xp.max(x, axis=1, keepdims=True), -xp.min(x, axis=1, keepdims=True))
            return xp.concat([x @ coef, most], axis=1)

        found = self._map_rows(columns, q + 1, with_largest, ctx)
        return found[:, :q], found[:, q] * xp.sum(size)

    def add_products(self, columns: Array, coef: Array, out: Array, ctx: Context) -> None:
        """Add ``X[:, columns] @ coef``, of a few columns: see `Block`."""
        xp, (d, *shape) = self.backend.xp, coef.shape
        flat = xp.reshape(coef, (d, -1))
        found = self._map_rows(columns, flat.shape[1], lambda x: x @ flat, ctx)
        out += xp.permute_dims(xp.reshape(found, (-1, *shape)), (1, 2, 0))

    def working_columns(
        self, columns: Array, shift: Array, scale: Array, rows: np.ndarray | None, ctx: Context
    ) -> DenseColumns:
        """``(X[rows, columns] - shift) / scale`` in memory: see `Block`."""
        xp = self.backend.xp
        parts = [xp.astype(s.array, xp.float64) for _, s in self.strips(columns, ctx)]
        values = parts[0] if len(parts) == 1 else xp.concat(parts, axis=1)
        if rows is not None:
            values = xp.take(values, self.backend.asarray(rows), axis=0)
        return DenseColumns(self.backend, (values - shift) / scale)

    def padded_rows(
        self, rows: Array, columns: Array, ctx: Context, *, filled: bool = False
    ) -> Iterator[tuple[Array, Array | None]]:
        """A few rows, some at a time: see `Block`."""
        d, here = int(columns.shape[0]), backend_of(self.array)
        rows, columns = here.move(rows), here.move(columns)
        for first, last in ranges(int(rows.shape[0]), max(1, ctx.chunk // max(1, d))):
            with here.current():
                xp = array_namespace(self.array)
                some, part = rows[first:last], self.array
                on_disk = isinstance(part, OnDisk)
                part = part.take(some) if on_disk else xp.take(part, some, axis=0)
                part = xp.take(part, columns, axis=1)
            part = self._widen(part, 0, columns)
            yield self.backend.xp.astype(part, self.backend.xp.float64), None

    def distance_scores(
        self,
        columns: Array,
        distance: Callable[..., Array],
        params: tuple[Array, ...],
        scale: Array | None,
        ctx: Context,
    ) -> Array:
        """Minus the sums of distances over the columns: see `Block`."""
        xp, (k, d) = self.backend.xp, params[0].shape
        # Some rows and classes at a time, so that what is between the steps stays in the cache.
        size = max(1, self._chunk_size(ctx) // _DISTANCE_PARTS)
        step = k if k == 2 else min(k, max(1, size // max(1, d)))
        own = [tuple(p[a:b, :] for p in params) for a, b in ranges(k, step)]
        rows = max(1, size // max(1, d * step))

        def sums(x: Array, of_classes: tuple[Array, ...]) -> Array:
            terms = distance(x, *of_classes)
            terms = terms[:, 1:, :] - terms[:, :1, :] if k == 2 else terms
            return xp.sum(terms if scale is None else terms / scale, axis=2)

        def scores(x: Array) -> Array:
            parts = []
            for a, b in ranges(int(x.shape[0]), rows):
                found = [sums(x[a:b, None, :], of_classes) for of_classes in own]
                parts.append(found[0] if len(found) == 1 else xp.concat(found, axis=1))
            return -xp.concat(parts)

        return self._map_rows(columns, 1 if k == 2 else k, scores, ctx)

    def segment_sums(self, columns: Array, cuts: list[int], terms: Terms, ctx: Context) -> Array:
        """Sums of terms over segments of features: see `Block`."""
        xp, r, parts = self.backend.xp, terms.rows, [slice(*cut) for cut in pairwise(cuts)]

        def sums(x: Array) -> Array:
            return xp.concat([terms.of_columns(x[:, part], part) for part in parts], axis=1)

        found = self._map_rows(columns, r * len(parts), sums, ctx, ascending=False)
        found = xp.reshape(found, (self.shape[0], len(parts), r))
        return xp.permute_dims(found, (2, 1, 0))

    def _map_rows(
        self,
        columns: Array,
        q: int,
        task: Callable[[Array], Array],
        ctx: Context,
        *,
        ascending: bool = True,
    ) -> Array:
        """``task`` of the columns (float64) of strips of rows, which gives q numbers a row."""
        n, m = self.shape
        xp = self.backend.xp
        out = self.backend.zeros((n, q))
        d = int(columns.shape[0])
        rows = max(1, self._chunk_size(ctx) // max(1, d))  # by the shape alone: see `grid`
        every = d == m and ascending
        here = range(m) if every else backend_of(self.array).move(columns)

        def fill(cut: tuple[int, int]) -> None:
            part: Any
            if isinstance(self.array, OnDisk):
                part = self.array.take_columns(*cut, here)
            else:
                part = self.array[cut[0] : cut[1], :]
                if not every:
                    with backend_of(part).current():
                        part = array_namespace(part).take(part, here, axis=1)
            x = xp.astype(self._widen(part, cut[0], here), xp.float64)
            out[cut[0] : cut[1], :] = task(x)

        for _ in ctx.map(fill, ranges(n, rows)):
            pass
        return out

    # --- checks --------------------------------------------------------------------------------

    def holds_integers(self, ctx: Context) -> bool:
        """Whether all values are integers."""
        n, m = self.shape
        xp = self.backend.xp
        rows, columns = dense_grid(n, m, self._chunk_size(ctx))
        chunks = (self.chunk(r, c) for r in ranges(n, rows) for c in ranges(m, columns))
        return all(bool(xp.all(chunk == xp.round(chunk))) for chunk in chunks)

    def check_finite(self, squares: bool, ctx: Context) -> None:
        """Raise for the first value that is not finite, or is refused: see `Block`."""
        n, m = self.shape
        plain = replace(self, reader=None)
        rows, columns = dense_grid(n, m, self._chunk_size(ctx))
        for start, stop in ranges(m, columns):
            for top, bottom in ranges(n, rows):
                chunk = plain.chunk((top, bottom), (start, stop))
                bad = errors.first_bad(chunk, squares, self.backend.xp)
                if bad is not None:
                    errors.raise_bad_value(float(chunk[bad]), start + bad[1], top + bad[0])
                if self.reader is None:
                    continue
                bad = errors.first_bad(self.reader(chunk), False, self.backend.xp)
                if bad is not None:
                    refuse(self.reader, chunk[bad], start + bad[1], top + bad[0])


def _is_memory_map(array: Any) -> bool:
    """Whether an array is a view of a file: of a slice only its base tells."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return True
        array = array.base
    return False
