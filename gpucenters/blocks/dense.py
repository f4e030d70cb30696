"""Blocks of dense data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np

from ..arrays.backend import Backend, backend_of
from ..arrays.cached import cached_property
from ..arrays.context import Context
from ..arrays.inputs import OnDisk
from ..arrays.namespace import array_namespace, is_cupy, is_numpy
from ..arrays.schedule import dense_grid, ranges
from ..arrays.typing import Array
from ..arrays.uploads import Upload, sendable
from .samples import Samples
from .transforms import ValueTransform
from .validation import Place, as_float64, check_values

Part = TypeVar("Part")


@dataclass(frozen=True)
class DenseBlock:
    """A `Block` of dense data, an n x m array that is read chunk by chunk.

    Attributes
    ----------
    array : array of shape (n, m), on any backend or `OnDisk`, of any real type
        Never changed, never copied whole; chunks are widened and moved on their own.
    backend : Backend
        Where the work is done.
    transform : ValueTransform or None
        Of each value.
    """

    array: Any
    backend: Backend
    transform: ValueTransform | None = None
    has_implicit_zeros: ClassVar[bool] = False

    @property
    def shape(self) -> tuple[int, int]:
        """(n, m)."""
        return self.array.shape

    def rows(self, start: int, stop: int, ctx: Context) -> DenseBlock:
        """The rows start..stop, a view."""
        return replace(self, array=self.array[start:stop, :])

    def narrowed(self, also: Array | None = None) -> None:
        """None: all columns change."""

    # --- reading -------------------------------------------------------------------------------

    def chunk(self, rows: tuple[int, int], columns: tuple[int, int]) -> Array:
        """A rectangle of the array on ``backend``, in its own type if that is a floating one."""
        part = self.array[rows[0] : rows[1], columns[0] : columns[1]]
        return self.widen(part, rows[0], range(*columns))

    def widen(self, part: Any, row: int, columns: Any) -> Array:
        """A part of the array on ``backend`` and read; its row and columns are for errors."""
        if part.dtype == object:
            part = as_float64(part, row, columns)
        if self.upload is not None:
            part = self.upload.send(sendable(part))[0]
        with backend_of(part).current():
            xp = array_namespace(part)
            if not xp.isdtype(part.dtype, (xp.float32, xp.float64)):
                part = xp.astype(part, xp.float64)
        part = self.backend.move(part)
        return part if self.transform is None else self.transform(part)

    @cached_property
    def upload(self) -> Upload | None:
        """What sends chunks of host data to a CUDA device."""
        here = isinstance(self.array, np.ndarray | OnDisk)
        return Upload() if here and is_cupy(self.backend.xp) else None

    def chunk_size(self, ctx: Context) -> int:
        """Elements in one chunk."""
        return ctx.chunk_size(0 if self.upload is None else self.array.dtype.itemsize)

    def take_columns(self, columns: Array, ctx: Context) -> Iterator[tuple[slice, Array]]:
        """The columns in the given order, as many at a time as memory allows: (part, these)."""
        (n, _), d = self.shape, int(columns.shape[0])
        columns = backend_of(self.array).move(columns)
        for start, stop in ranges(d, max(1, min(d, ctx.budget // (32 * n)))):
            some, parts = columns[start:stop], []
            # Row by row: a memory map is read in order.
            for cut in ranges(n, max(1, self.chunk_size(ctx) // (stop - start))):
                part = self._some_columns(cut, some)
                # What was sent to a device is valid for a while only.
                parts.append(part if self.upload is None else part + 0)
            yield slice(start, stop), self.backend.xp.concat(parts)

    def _some_columns(self, rows: tuple[int, int], columns: Any) -> Array:
        if isinstance(self.array, OnDisk):
            part = self.array.take_columns(*rows, columns)
        else:
            with backend_of(self.array).current():
                xp = array_namespace(self.array)
                part = xp.take(self.array[rows[0] : rows[1], :], columns, axis=1)
        return self.widen(part, rows[0], columns)

    def row_strips(self, samples: Samples, ctx: Context) -> Iterator[RowStrip]:
        """The fixed grid of chunks, a strip of rows at a time, with progress."""
        n, m = self.shape
        rows, width = dense_grid(n, m, self.chunk_size(ctx), samples.n_classes)
        columns = [slice(*cut) for cut in ranges(m, width)]
        for cut in ctx.progress(ranges(n, rows), -(-n // rows), "rows added"):
            yield RowStrip(self, slice(*cut), samples.take(slice(*cut)), columns)

    def map_rows(
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
        rows = max(1, self.chunk_size(ctx) // max(1, d))  # by the shape alone: see `grid`
        every = d == m and ascending
        here = backend_of(self.array).move(columns)

        def fill(cut: tuple[int, int]) -> None:
            part = self.chunk(cut, (0, m)) if every else self._some_columns(cut, here)
            out[cut[0] : cut[1], :] = task(xp.astype(part, xp.float64))

        for _ in ctx.map(fill, ranges(n, rows)):
            pass
        return out

    # --- checks --------------------------------------------------------------------------------

    def holds_integers(self, ctx: Context) -> bool:
        """Whether all values are integers."""
        n, m = self.shape
        xp = self.backend.xp
        rows, columns = dense_grid(n, m, self.chunk_size(ctx))
        chunks = (self.chunk(r, c) for r in ranges(n, rows) for c in ranges(m, columns))
        return all(bool(xp.all(chunk == xp.round(chunk))) for chunk in chunks)

    def check_finite(self, squares: bool, ctx: Context) -> None:
        """Raise for the first value that is not finite, or is refused: see `Block`."""
        n, m = self.shape
        plain = replace(self, transform=None)
        rows, columns = dense_grid(n, m, self.chunk_size(ctx))
        for c in ranges(m, columns):
            for r in ranges(n, rows):

                def place(at: tuple[int, ...], top: int = r[0], left: int = c[0]) -> Place:
                    return top + at[0], left + at[1]

                check_values(plain.chunk(r, c), squares, self.transform, place)


@dataclass(frozen=True)
class RowStrip:
    """Consecutive rows of a dense block.

    Attributes
    ----------
    block : DenseBlock
    rows : slice
    samples : Samples
    columns : list of slices
        The grid: they can be read side by side.
    """

    block: DenseBlock
    rows: slice
    samples: Samples
    columns: list[slice]

    def read(self, columns: slice) -> Array:
        """The rows in a range of columns: float64, C-contiguous, the caller's."""
        rows, xp = self.rows, self.block.backend.xp
        chunk = self.block.chunk((rows.start, rows.stop), (columns.start, columns.stop))
        if is_numpy(xp):
            return np.array(chunk, dtype=np.float64, order="C")
        return xp.astype(chunk, xp.float64, copy=False)


def map_strips(
    strips: Iterable[RowStrip],
    sums_of: Callable[[RowStrip, slice], Part],
    merge: Callable[[RowStrip, slice, Part], None],
    ctx: Context,
) -> Iterator[RowStrip]:
    """Merge the sums of all parts of the grid, those of each column in the order of the rows.

    Ranges of columns are summed and merged side by side; where there is only one, strips of rows
    are summed side by side, and merged one after the other. Yields each strip once it is merged.
    """

    def of_strip(strip: RowStrip) -> tuple[RowStrip, Part | None]:
        one = strip.columns[0] if len(strip.columns) == 1 else None
        return strip, None if one is None else sums_of(strip, one)

    for strip, part in ctx.map(of_strip, strips):
        if part is not None:
            merge(strip, strip.columns[0], part)
        else:

            def add(columns: slice, strip: RowStrip = strip) -> None:
                merge(strip, columns, sums_of(strip, columns))

            for _ in ctx.map(add, strip.columns):
                pass
        yield strip
