"""Class moments: weight, sum and second moment of each class and feature.

Accumulators: passed in and added to in place. A stream, a shard or a device each gives one, and
two of them merge. Second moments are kept in one of two forms. Dense blocks give centred ones,
merged by Chan's formula. Sparse blocks give raw sums of squares, which simply add up, so that any
split of integer data gives the same bits; only columns that are nearly full, where raw sums would
cancel, are kept centred as well.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

from ..arrays.convert import Block
from ..arrays.dense import DenseBlock
from ..arrays.devices import Place
from ..arrays.groups import Groups
from ..arrays.ops import not_negative, to_float
from ..arrays.sparse import SparseBlock
from ..arrays.typing import Array

#: Columns that store more than this share of their rows get a centred second moment.
FULL = 0.9


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

    def add(self, block: Block, groups: Groups) -> ClassMoments:
        """Add a block, in place; returns the moments to go on with."""
        raise NotImplementedError

    def centred(self) -> CentredMoments:
        """These moments with second moments about the class means."""
        raise NotImplementedError

    def scatter(self) -> list[float]:
        """Second moment about the mean of each class, summed over the features."""
        raise NotImplementedError

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

    def add(self, block: Block, groups: Groups) -> CentredMoments:
        if isinstance(block, SparseBlock):
            fresh = RawMoments.empty(self.place, *self.shape, self.spread.ndim == 2)
            return self.merge(fresh.add(block, groups).centred())
        xp = self.place.xp
        weight = [[w] for w in self.weight]  # as it stands at the columns that come next
        seen: dict[tuple[int, int], float] = {}
        for columns, c, x, s, w in block.class_chunks(groups):
            if w == 0:
                continue
            sx = x if s is None else x * s
            total = xp.sum(sx, axis=0)
            # Two passes over the chunk in the corrected form: the second sum mends the rounding
            # of the mean.
            d = x - total / w
            sd = d if s is None else d * s
            error = xp.sum(sd, axis=0)
            spread = xp.sum(sd * d, axis=0) - error * error / w
            spread = not_negative(spread)
            key = (c, columns.start)
            before = seen.get(key, weight[c][0])
            if before > 0:
                # Chan, Golub & LeVeque: merge with what was there.
                shift = (total + error) / w - self.total[c, columns] / before
                spread = spread + shift * shift * (before * w / (before + w))
            seen[key] = before + w
            self.total[c, columns] += total
            if self.spread.ndim == 2:
                self.spread[c, columns] += spread
            else:
                self.spread[c] += xp.sum(spread)
        self._count(groups)
        return self

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
        Weighted sums of squares of x over all features.
    square : array of shape (K, m), float64, or None
        The same for each feature, where a model needs it.
    full : array of int64 of shape (f,), or None
        Columns that are, or once were, nearly full.
    full_moments : CentredMoments or None
        Their moments.
    """

    energy: Array
    square: Array | None
    full: Array | None = None
    full_moments: CentredMoments | None = field(default=None)

    @classmethod
    def empty(cls, place: Place, k: int, m: int, per_feature: bool) -> RawMoments:
        """Moments of no data."""
        square = place.zeros((k, m)) if per_feature else None
        return cls(place, [0.0] * k, [0] * k, place.zeros((k, m)), place.zeros(k), square)

    def add(self, block: Block, groups: Groups) -> ClassMoments:
        if isinstance(
            block, DenseBlock
        ):  # dense data after sparse: go on in the form that never cancels
            return self.centred().add(block, groups)
        if self.square is not None:
            self._extend_full(block.dense_columns(FULL))
            if self.full is not None and self.full_moments is not None:
                self.full_moments.add(block.densified(self.full), groups)
        block.add_class_sums(groups, self.total, self.square, self.energy)
        self._count(groups)
        return self

    def _extend_full(self, columns: Array) -> None:
        """Take columns among the full ones, with what the raw sums know of them so far."""
        xp = self.place.xp
        known = self.place.zeros(self.shape[1], xp.bool)
        if self.full is not None:
            known[self.full] = True
        columns = columns[~known[columns]]
        if columns.shape[0] == 0:
            return
        fresh = CentredMoments(
            self.place,
            list(self.weight),
            list(self.count),
            xp.take(self.total, columns, axis=1),
            xp.take(self._raw_spread(), columns, axis=1),
        )
        if self.full is None or self.full_moments is None:
            self.full, self.full_moments = columns, fresh
            return
        self.full = xp.concat([self.full, columns])
        old = self.full_moments
        old.total = xp.concat([old.total, fresh.total], axis=1)
        old.spread = xp.concat([old.spread, fresh.spread], axis=1)

    def _raw_spread(self) -> Array:
        weight = self.place.asarray([w or 1.0 for w in self.weight])[:, None]
        return not_negative(self.square - self.total * (self.total / weight))

    def _spread(self) -> Array:
        spread = self._raw_spread()
        if self.full is not None and self.full_moments is not None:
            spread[:, self.full] = self.full_moments.spread
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
        if self.full is not None:
            sums = xp.sum(self._spread(), axis=1)
            return [to_float(sums[c]) for c in range(k)]
        found = []
        for c, w in enumerate(self.weight):
            row = self.total[c, :]
            raw = to_float(self.energy[c]) - to_float(xp.sum(row * row)) / (w or 1.0)
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
    return kind.empty(block.place, n_classes, block.shape[1], per_feature)
