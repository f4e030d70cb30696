"""Class moments: weight, sum and second moment of each class and feature.

Accumulators: passed in and added to in place. A stream, a shard or a device each gives one, and
two of them merge. Second moments are kept in one of two forms. Dense blocks give centred ones,
merged by Chan's formula. Sparse blocks give raw sums of squares, which simply add up, so that any
split of integer data gives the same bits; only columns where raw sums would cancel are kept centred
as well.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..arrays.convert import Block
from ..arrays.dense import RowChunk
from ..arrays.devices import Place
from ..arrays.groups import Groups
from ..arrays.ops import not_negative, numbers
from ..arrays.sparse import SparseBlock
from ..arrays.threads import run
from ..arrays.typing import Array
from ..arrays.work import Work
from .class_sums import ClassSums


@dataclass
class ClassMoments(ClassSums):
    """What l2 centers need to know of the data: class sums, and second moments in some form."""

    squares = True

    def add(self, block: Block, groups: Groups, work: Work) -> ClassMoments:
        raise NotImplementedError

    def centred(self) -> CentredMoments:
        """These moments with second moments about the class means."""
        raise NotImplementedError

    def scatter(self) -> list[float]:
        """Second moment about the mean of each class, summed over the features."""
        raise NotImplementedError


@dataclass
class CentredMoments(ClassMoments):
    """Moments of dense data.

    Attributes
    ----------
    spread : array of shape (K, m) or (K,), float64
        Weighted sums of squares about the class means; summed over the features where no model
        needs them apart.
    """

    spread: Array

    @classmethod
    def empty(cls, place: Place, k: int, m: int, per_feature: bool) -> CentredMoments:
        """Moments of no data."""
        spread = place.zeros((k, m) if per_feature else k)
        return cls(place, [0.0] * k, [0] * k, place.zeros((k, m)), spread)

    def touched(self, block: Block) -> Array | None:
        return None  # where the weight of a class grows, its spread changes in every column

    def add(self, block: Block, groups: Groups, work: Work) -> CentredMoments:
        if isinstance(block, SparseBlock):
            return self.merge(sparse_moments(block, groups, per_feature=self.spread.ndim == 2))
        strips = block.row_chunks(groups)
        for chunk in work.progress(strips, block.strips, "rows added"):
            before = list(self.weight)

            def add_columns(
                columns: slice, chunk: RowChunk = chunk, before: list[float] = before
            ) -> list[tuple[int, Array]]:
                return self._add_columns(chunk, columns, before)

            # Side by side over the columns, in order over the rows.
            for sums in run(add_columns, chunk.columns, self.place):
                if self.spread.ndim == 1:
                    for c, spread in sums:
                        self.spread[c] += spread
            for c, _, _, w in chunk.parts:
                self.weight[c] += w
        self.count = [a + b for a, b in zip(self.count, groups.count, strict=True)]
        return self

    def _add_columns(
        self, chunk: RowChunk, columns: slice, before: list[float]
    ) -> list[tuple[int, Array]]:
        """Add a chunk in some columns; returns spreads to add."""
        xp, grown = self.place.xp, []
        parts = [
            (c, *self._part(c, columns, before[c], *part)) for c, *part in chunk.by_class(columns)
        ]
        for c, total, spread in parts:
            self.total[c, columns] += total
            if self.spread.ndim == 2:
                self.spread[c, columns] += spread
            grown.append((c, xp.sum(spread)))
        return grown

    def _part(
        self, c: int, columns: slice, before: float, x: Array, s: Array | None, w: float
    ) -> tuple[Array, Array]:
        """The sums of some rows of one class in some columns, and what the spread grows by."""
        xp = self.place.xp
        sx = x if s is None else x * s
        total = xp.sum(sx, axis=0)
        # Two passes over the chunk in the corrected form: the second sum mends the rounding of
        # the mean. (Rows that all have weight zero add nothing, but NaN among them shows.)
        w_or_one = w or 1.0
        d = x - total / w_or_one
        sd = d if s is None else d * s
        error = xp.sum(sd, axis=0)
        spread = not_negative(xp.sum(sd * d, axis=0) - error * (error / w_or_one))
        if before > 0 and w > 0:
            # Chan, Golub & LeVeque: merge with what was there.
            shift = (total + error) / w - self.total[c, columns] / before
            spread = spread + shift * shift * (before * w / (before + w))
        return total, spread

    def merge(self, other: CentredMoments) -> CentredMoments:
        """The moments of both data sets together, in place."""
        xp = self.place.xp
        for c, (a, b) in enumerate(zip(self.weight, other.weight, strict=True)):
            if b == 0:
                continue
            if a > 0:
                shift = other.total[c, :] / b - self.total[c, :] / a
                between = shift * shift * (a * b / (a + b))
                if self.spread.ndim == 2:
                    self.spread[c, :] += between
                else:
                    self.spread[c] += xp.sum(between)
            if self.spread.ndim == 2:
                self.spread[c, :] += other.spread[c, :]
            else:
                self.spread[c] += other.spread[c]
            self.total[c, :] += other.total[c, :]
        self.weight = [a + b for a, b in zip(self.weight, other.weight, strict=True)]
        self.count = [a + b for a, b in zip(self.count, other.count, strict=True)]
        return self

    def centred(self) -> CentredMoments:
        return self

    def scatter(self) -> list[float]:
        xp = self.place.xp
        sums = xp.sum(self.spread, axis=1) if self.spread.ndim == 2 else self.spread
        return numbers(sums)


def sparse_moments(block: SparseBlock, groups: Groups, *, per_feature: bool) -> CentredMoments:
    """Centred moments of a sparse block, by two passes over its entries."""
    xp = block.place.xp
    every = xp.arange(block.shape[1], dtype=xp.int64, device=block.place.device)
    total, spread = block.centred_moments(every, groups)
    spread = spread if per_feature else xp.sum(spread, axis=1)
    return CentredMoments(block.place, list(groups.weight), list(groups.count), total, spread)
