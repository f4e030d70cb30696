"""Class sums: the weight of each class, and the sum of each class and feature.

Accumulators: passed in and added to in place. They are all that naive Bayes models and scores of
counts need to know of the data; `moments` adds the second moments of the center models.
"""

from __future__ import annotations

import copy
import math
import numbers
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from ..arrays import errors, ops
from ..arrays.convert import Block
from ..arrays.dense import DenseBlock, RowChunk
from ..arrays.devices import Place
from ..arrays.grid import chunk_size, ranges
from ..arrays.groups import Groups
from ..arrays.threads import run
from ..arrays.typing import Array
from ..arrays.work import Work

# Arrays that blocks add to.
_IN_PLACE = ("total", "square", "spread", "energy", "cross", "cubic", "quartic")
_LEAST_ALPHA = 1e-10  # as scikit-learn: logarithms of zero help nobody
_MOST_ALPHA = 1e100  # beyond it products of smoothed sums leave float64


@dataclass
class ClassSums:
    """Weights and sums of the classes.

    Attributes
    ----------
    place : Place
    weight : list of K floats
        W_c.
    count : list of K ints
        Rows of positive weight.
    total : array of shape (K, m), float64
        Weighted sums of x.
    """

    place: Place
    weight: list[float]
    count: list[int]
    total: Array
    squares: ClassVar[bool] = False  # whether squares of x must be finite too

    @property
    def shape(self) -> tuple[int, int]:
        """(K, m)."""
        return self.total.shape

    def add(self, block: Block, groups: Groups, work: Work) -> ClassSums:
        """Add a block, in place; returns the sums to go on with.

        ``work.budget`` is what further accumulators may take, in bytes.
        """
        if isinstance(block, DenseBlock):
            _add_dense(block, groups, self.total, work)
        else:
            block.add_class_sums(groups, self.total, None, None, work)
        self._count(groups)
        return self

    def add_batch(self, block: Block, groups: Groups, work: Work) -> ClassSums:
        """Add a block in place, all of it or nothing; returns the sums to go on with."""
        block.check_finite(self.squares)
        columns = self.touched(block)
        if columns is None:
            before = self.copy()
        else:
            # A batch of few rows must cost no more than its entries, so keep only what it touches.
            before = copy.copy(self)
            for name, value in vars(self).items():
                if name in _IN_PLACE and value is not None and value.ndim == 2:
                    setattr(before, name, self.place.xp.take(value, columns, axis=1))
                elif name != "place":
                    setattr(before, name, copy.deepcopy(value))
        try:
            return self.add(block, groups, work).checked(columns)
        except BaseException:
            # Into the arrays that are there: a solution may refer to them.
            for name, value in vars(before).items():
                if name not in _IN_PLACE or value is None:
                    setattr(self, name, value)
                elif columns is None or value.ndim < 2:
                    getattr(self, name)[...] = value
                else:
                    getattr(self, name)[:, columns] = value
            raise

    def touched(self, block: Block) -> Array | None:
        """The columns of the sums that adding a block changes; None where they are not few."""
        return None if isinstance(block, DenseBlock) else block.touched_columns()

    def checked(self, columns: Array | None) -> Self:
        """These sums; raises if some have left float64, in some columns or (None) in any."""
        xp = self.place.xp
        for name in _IN_PLACE:
            sums = getattr(self, name, None)
            if sums is None:
                continue
            if columns is not None and sums.ndim == 2:
                sums = xp.take(sums, columns, axis=1)
            if not bool(xp.all(xp.isfinite(sums))):
                raise ValueError(
                    "with these samples the sums of X overflow float64: their values are too "
                    "large. Rescale X from the first batch on."
                )
        return self

    def copy(self) -> Self:
        """Sums that may be added to without changing these."""
        return copy.deepcopy(self)

    def to(self, place: Place) -> Self:
        """These sums at another place, or, with the same arrays, at this one in other chunks."""
        new = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, ClassSums):
                setattr(new, name, value.to(place))
            elif isinstance(value, list):
                setattr(new, name, list(value))
            elif hasattr(value, "shape"):
                setattr(new, name, place.move(value))
        new.place = place
        return new

    def _count(self, groups: Groups) -> None:
        self.weight = [a + b for a, b in zip(self.weight, groups.weight, strict=True)]
        self.count = [a + b for a, b in zip(self.count, groups.count, strict=True)]


def _add_dense(block: DenseBlock, groups: Groups, total: Array, work: Work) -> None:
    xp = block.place.xp
    for chunk in work.progress(block.row_chunks(groups), block.strips, "rows added"):

        def add_columns(columns: slice, chunk: RowChunk = chunk) -> None:
            for c, x, s, _ in chunk.by_class(columns):
                total[c, columns] += xp.sum(x if s is None else x * s, axis=0)

        # Side by side over the columns, in order over the rows.
        for _ in run(add_columns, chunk.columns, block.place):
            pass


def empty_sums(block: Block, n_classes: int) -> ClassSums:
    """Class sums of no data.

    Raises
    ------
    MemoryError
        That says how much they need.
    """
    shape = n_classes, block.shape[1]
    try:
        total = block.place.zeros(shape)
    except MemoryError as error:
        raise errors.TooLargeError(
            f"the sums of {n_classes} classes x {shape[1]:,} features need "
            f"{8 * n_classes * shape[1]:,} bytes, more than there is."
        ) from error
    return ClassSums(block.place, [0.0] * n_classes, [0] * n_classes, total)


def class_sums(block: Block, groups: Groups, work: Work) -> ClassSums:
    """Class sums of a block.

    Raises
    ------
    ValueError
        For values that are not finite, or that the block's reading refuses. They are looked for
        where a sum is not finite, and not before.
    """
    sums = empty_sums(block, groups.n_classes).add(block, groups, work)
    if not all(math.isfinite(s) for s in feature_sums(sums.total, sums.place)):
        block.check_finite(squares=False)
        xp = sums.place.xp
        bad = xp.nonzero(~xp.all(xp.isfinite(sums.total), axis=0))[0]
        errors.raise_overflow(int(bad[0]) if bad.shape[0] else 0)
    return sums


def feature_sums(total: Array, place: Place) -> list[float]:
    """Sums over all features, in chunks: K numbers from a (K, m) array."""
    xp = place.xp
    cuts = ranges(total.shape[1], chunk_size(place))
    parts = list(run(lambda cut: xp.sum(total[:, cut[0] : cut[1]], axis=1), cuts, place))
    sums = xp.sum(xp.stack(parts), axis=0)
    return ops.numbers(sums)


def check_alpha(alpha: Any) -> float:
    """``alpha`` as a float, at least 1e-10; raises for anything but a number from 0 to 1e100."""
    try:
        number = isinstance(alpha, numbers.Real) and not isinstance(alpha, bool)
        value = float(alpha) if number else math.nan
    except OverflowError:
        value = math.nan
    if not 0 <= value <= _MOST_ALPHA:
        raise ValueError(
            f"alpha={alpha!r} is not valid: use one number from 0 to {_MOST_ALPHA:g}, the same for "
            "every feature."
        )
    return max(value, _LEAST_ALPHA)
