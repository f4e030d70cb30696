"""Class moments: weight, sum and second moment of each class and feature.

Accumulators: passed in and added to in place. A stream, a shard or a device each gives one, and
two of them merge. Second moments are kept in one of two forms. Dense blocks give centred ones,
merged by Chan's formula. Sparse blocks give raw sums of squares, which simply add up, so that any
split of integer data gives the same bits; only columns where raw sums would cancel are kept centred
as well.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

from ..arrays.convert import Block
from ..arrays.dense import DenseBlock, RowChunk
from ..arrays.devices import Place
from ..arrays.grid import chunk_size, ranges
from ..arrays.groups import Groups
from ..arrays.ops import not_negative, to_float
from ..arrays.sparse import SparseBlock
from ..arrays.threads import run
from ..arrays.typing import Array
from ..arrays.work import Work

#: Where the square of a class' mean is more than this share of its mean square, raw sums cancel,
#: and the column gets a centred second moment. (Only a class that stores more than this share of
#: its column can have it so.)
CANCELS = 0.9

_IN_PLACE = ("total", "square", "spread", "energy")  # arrays that blocks add to


@dataclass
class ClassMoments:
    """What l2 centers need to know of the data.

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

    @property
    def shape(self) -> tuple[int, int]:
        """(K, m)."""
        return self.total.shape

    def add(self, block: Block, groups: Groups, work: Work) -> ClassMoments:
        """Add a block, in place; returns the moments to go on with.

        ``work.budget`` is what further accumulators may take, in bytes.
        """
        raise NotImplementedError

    def centred(self) -> CentredMoments:
        """These moments with second moments about the class means."""
        raise NotImplementedError

    def scatter(self) -> list[float]:
        """Second moment about the mean of each class, summed over the features."""
        raise NotImplementedError

    def add_batch(self, block: Block, groups: Groups, work: Work) -> ClassMoments:
        """Add a block in place, all of it or nothing; returns the moments to go on with."""
        block.check_finite(squares=True)
        before = self.copy()
        try:
            return self.add(block, groups, work)
        except BaseException:
            # Into the arrays that are there: a solution may refer to them.
            for name, value in vars(before).items():
                if getattr(value, "shape", ()) and name in _IN_PLACE:
                    getattr(self, name)[...] = value
                else:
                    setattr(self, name, value)
            raise

    def copy(self) -> ClassMoments:
        """Moments that may be added to without changing these."""
        return copy.deepcopy(self)

    def to(self, place: Place) -> ClassMoments:
        """These moments at another place."""
        new = copy.copy(self)
        new.place = place
        for name, value in vars(self).items():
            if hasattr(value, "to"):
                value = value.to(place)
            elif hasattr(value, "shape") and name != "shape":
                value = place.move(value)
            if name != "place":
                setattr(new, name, value)
        return new

    def _count(self, groups: Groups) -> None:
        self.weight = [a + b for a, b in zip(self.weight, groups.weight, strict=True)]
        self.count = [a + b for a, b in zip(self.count, groups.count, strict=True)]


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

    def add(self, block: Block, groups: Groups, work: Work) -> CentredMoments:
        if isinstance(block, SparseBlock):
            fresh = RawMoments.empty(self.place, *self.shape, self.spread.ndim == 2)
            return self.merge(fresh.add(block, groups, work).centred())
        strips = block.row_chunks(groups)
        for chunk in work.progress(strips, block.strips, "rows added"):
            before = list(self.weight)

            def add_columns(
                columns: slice, chunk: RowChunk = chunk, before: list[float] = before
            ) -> list[tuple[int, Array]]:
                parts = chunk.by_class(columns)
                return [(c, self._add_part(c, columns, before[c], *part)) for c, *part in parts]

            # Side by side over the columns, in order over the rows.
            for sums in run(add_columns, chunk.columns, self.place):
                if self.spread.ndim == 1:
                    for c, spread in sums:
                        self.spread[c] += spread
            for c, _, _, w in chunk.parts:
                self.weight[c] += w
        self.count = [a + b for a, b in zip(self.count, groups.count, strict=True)]
        return self

    def _add_part(
        self, c: int, columns: slice, before: float, x: Array, s: Array | None, w: float
    ) -> Array:
        """Add rows of one class in some columns; returns what the spread has grown by."""
        xp = self.place.xp
        sx = x if s is None else x * s
        total = xp.sum(sx, axis=0)
        # Two passes over the chunk in the corrected form: the second sum mends the rounding of
        # the mean. (Rows that all have weight zero add nothing, but NaN among them shows.)
        w_or_one = w or 1.0
        d = x - total / w_or_one
        sd = d if s is None else d * s
        error = xp.sum(sd, axis=0)
        spread = not_negative(xp.sum(sd * d, axis=0) - error * error / w_or_one)
        if before > 0 and w > 0:
            # Chan, Golub & LeVeque: merge with what was there.
            shift = (total + error) / w - self.total[c, columns] / before
            spread = spread + shift * shift * (before * w / (before + w))
        self.total[c, columns] += total
        if self.spread.ndim == 2:
            self.spread[c, columns] += spread
        return xp.sum(spread)

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
        return [to_float(sums[c]) for c in range(self.shape[0])]


@dataclass
class RawMoments(ClassMoments):
    """Moments of sparse data.

    Attributes
    ----------
    energy : array of shape (K,), float64
        Weighted sums of squares of x over all features; zeros where ``square`` has them apart.
    square : array of shape (K, m), float64, or None
        The same for each feature, where a model needs it.
    steep : array of int64 of shape (f,), or None
        Columns where raw sums cancel, or once did.
    steep_moments : CentredMoments or None
        Their moments.
    """

    energy: Array
    square: Array | None
    steep: Array | None = None
    steep_moments: CentredMoments | None = field(default=None)

    def add_batch(self, block: Block, groups: Groups, work: Work) -> ClassMoments:
        if isinstance(block, DenseBlock):
            return super().add_batch(block, groups, work)
        columns = block.touched_columns()
        if columns is None:
            return super().add_batch(block, groups, work)
        # A batch of few rows must cost no more than its entries, so keep only what it touches.
        block.check_finite(squares=True)
        xp, sums = self.place.xp, [a for a in (self.total, self.square) if a is not None]
        kept = [xp.take(a, columns, axis=1) for a in sums]
        before = {
            name: copy.deepcopy(value)
            for name, value in vars(self).items()
            if name not in ("place", "total", "square")  # what stays, and what is kept above
        }
        try:
            return self.add(block, groups, work)
        except BaseException:
            for a, old in zip(sums, kept, strict=True):
                a[:, columns] = old
            vars(self).update(before)
            raise

    @classmethod
    def empty(cls, place: Place, k: int, m: int, per_feature: bool) -> RawMoments:
        """Moments of no data."""
        square = place.zeros((k, m)) if per_feature else None
        return cls(place, [0.0] * k, [0] * k, place.zeros((k, m)), place.zeros(k), square)

    def add(self, block: Block, groups: Groups, work: Work) -> ClassMoments:
        if isinstance(
            block, DenseBlock
        ):  # dense data after sparse: go on in the form that never cancels
            return self.centred().add(block, groups, work)
        columns = block.touched_columns()
        energy = self.energy if self.square is None else None
        block.add_class_sums(groups, self.total, self.square, energy, work)
        before = list(self.weight), list(self.count)
        self._count(groups)
        if self.square is not None:
            self._centre_steep(self._find_steep(columns), block, groups, *before)
        return self

    def _find_steep(self, columns: Array | None) -> Array:
        """Columns, among those given, where raw sums cancel and that are not kept centred yet."""
        xp, m = self.place.xp, self.shape[1]
        assert self.square is not None
        weight = self.place.asarray(self.weight)[:, None]

        def steep(total: Array, square: Array) -> Array:
            return xp.any(total * total > CANCELS * weight * square, axis=0)

        if columns is None:
            cuts = ranges(m, chunk_size(self.place))
            found = [steep(self.total[:, a:b], self.square[:, a:b]) for a, b in cuts]
            columns = xp.nonzero(xp.concat(found))[0]
        else:
            total, square = (xp.take(a, columns, axis=1) for a in (self.total, self.square))
            columns = columns[steep(total, square)]
        if self.steep is None or columns.shape[0] == 0:
            return columns
        known = self.place.zeros(m, xp.bool)
        known[self.steep] = True
        return columns[~xp.take(known, columns)]

    def _centre_steep(
        self,
        found: Array,
        block: SparseBlock,
        groups: Groups,
        weight: list[float],
        count: list[int],
    ) -> None:
        """Add the block, already in the raw sums, to the centred moments of steep columns.

        What came before the block in a column found only now was not steep, so its raw sums (those
        of now less those of the block) tell it well.
        """
        xp, place = self.place.xp, self.place
        assert self.square is not None
        old = 0 if self.steep is None else int(self.steep.shape[0])
        if old + found.shape[0] == 0:
            return
        columns = found if self.steep is None else xp.concat([self.steep, found])
        order = xp.argsort(columns)
        total, spread = block.centred_moments(xp.take(columns, order), groups)
        back = xp.argsort(order)
        total, spread = xp.take(total, back, axis=1), xp.take(spread, back, axis=1)
        of_block = CentredMoments(place, list(groups.weight), list(groups.count), total, spread)
        w = place.asarray([w or 1.0 for w in groups.weight])[:, None]
        was = place.asarray([w or 1.0 for w in weight])[:, None]
        total, spread = total[:, old:], spread[:, old:]
        square = xp.take(self.square, found, axis=1) - (spread + total * (total / w))
        total = xp.take(self.total, found, axis=1) - total
        # (Nothing came before where there was no weight: the rounding of a difference must not.)
        nothing = place.asarray([[w == 0] for w in weight])
        total = xp.where(nothing, xp.zeros_like(total), total)
        spread = not_negative(square - total * (total / was))
        spread = xp.where(nothing, xp.zeros_like(spread), spread)
        if self.steep_moments is not None:
            total = xp.concat([self.steep_moments.total, total], axis=1)
            spread = xp.concat([self.steep_moments.spread, spread], axis=1)
        before = CentredMoments(place, weight, count, total, spread)
        self.steep, self.steep_moments = columns, before.merge(of_block)

    def _raw_spread(self) -> Array:
        weight = self.place.asarray([w or 1.0 for w in self.weight])[:, None]
        return not_negative(self.square - self.total * (self.total / weight))

    def _spread(self) -> Array:
        spread = self._raw_spread()
        if self.steep is not None and self.steep_moments is not None:
            spread[:, self.steep] = self.steep_moments.spread
        return spread

    def centred(self) -> CentredMoments:
        xp = self.place.xp
        spread = self.place.asarray(self.scatter()) if self.square is None else self._spread()
        return CentredMoments(
            self.place,
            list(self.weight),
            list(self.count),
            xp.asarray(self.total, copy=True),
            spread,
        )

    def scatter(self) -> list[float]:
        xp = self.place.xp
        k = self.shape[0]
        if self.square is not None:
            sums = xp.sum(self._spread(), axis=1)
            return [to_float(sums[c]) for c in range(k)]
        found = []
        for c, w in enumerate(self.weight):
            squares = [
                xp.sum(row * row)
                for cut in ranges(self.shape[1], chunk_size(self.place))
                for row in (self.total[c, cut[0] : cut[1]],)
            ]
            raw = to_float(self.energy[c]) - to_float(xp.sum(xp.stack(squares))) / (w or 1.0)
            found.append(max(raw, 0.0))
        return found


def empty_moments(block: Block, n_classes: int, *, per_feature: bool) -> ClassMoments:
    """Moments of no data, in the form that blocks of this kind add to.

    Parameters
    ----------
    block : Block
    n_classes : int
    per_feature : bool
        Whether second moments are wanted for each feature.
    """
    kind = CentredMoments if isinstance(block, DenseBlock) else RawMoments
    m = block.shape[1]
    try:
        return kind.empty(block.place, n_classes, m, per_feature)
    except MemoryError as error:
        size = 8 * n_classes * m * (2 if per_feature else 1)
        raise MemoryError(
            f"the sums of {n_classes} classes x {m:,} features need {size:,} bytes, more than there "
            "is."
        ) from error
