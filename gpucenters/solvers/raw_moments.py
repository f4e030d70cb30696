"""Class moments of sparse data: raw sums, which add up, and centred ones where those cancel."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..arrays.convert import Block
from ..arrays.dense import DenseBlock
from ..arrays.devices import Place
from ..arrays.errors import TooLargeError
from ..arrays.grid import chunk_size, ranges
from ..arrays.groups import Groups
from ..arrays.ops import not_negative, numbers
from ..arrays.sparse import SparseBlock
from ..arrays.threads import run
from ..arrays.typing import Array
from ..arrays.work import Work
from .moments import CentredMoments, ClassMoments, sparse_moments

#: Where the square of a class' mean is more than this share of its mean square, raw sums cancel,
#: and the column gets a centred second moment. (Only a class that stores more than this share of
#: its column can have it so.)
CANCELS = 0.9


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

    @classmethod
    def empty(cls, place: Place, k: int, m: int, per_feature: bool) -> RawMoments:
        """Moments of no data."""
        square = place.zeros((k, m)) if per_feature else None
        return cls(place, [0.0] * k, [0] * k, place.zeros((k, m)), place.zeros(k), square)

    def add(self, block: Block, groups: Groups, work: Work) -> ClassMoments:
        if isinstance(block, DenseBlock):
            # Dense data after sparse: go on in the form that never cancels.
            return self.centred().add(block, groups, work)
        columns = block.touched_columns()
        energy = self.energy if self.square is None else None
        block.add_class_sums(groups, self.total, self.square, energy, work)
        before = list(self.weight), list(self.count)
        self._count(groups)
        if self.square is not None:
            self._centre_steep(self._find_steep(columns), block, groups, *before)
        return self

    def scatter_cancels(self) -> bool:
        """Whether the sums of squares over all features cancel, and are not kept apart either."""
        if self.square is not None:
            return False
        means, energies = self._energy_of_means(), numbers(self.energy)
        return any(m > CANCELS * e for m, e in zip(means, energies, strict=True))

    def exact(self, block: SparseBlock, groups: Groups) -> bool:
        """Whether these sums over a block are sums of whole numbers that float64 holds."""
        return max(numbers(self.energy)) < 2.0**53 and groups.whole and block.holds_whole_numbers()

    def _energy_of_means(self) -> list[float]:
        """W_c times the squared norm of the mean of each class."""
        xp = self.place.xp
        squares = [
            xp.sum(part * part, axis=1)
            for cut in ranges(self.shape[1], chunk_size(self.place))
            for part in (self.total[:, cut[0] : cut[1]],)
        ]
        found = numbers(xp.sum(xp.stack(squares), axis=0))
        return [square / (w or 1.0) for square, w in zip(found, self.weight, strict=True)]

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

    def _spread(self) -> Array:
        assert self.square is not None
        total, square = self.total, self.square
        weight = self.place.asarray([w or 1.0 for w in self.weight])[:, None]
        spread = self.place.zeros(self.shape)

        def fill(cut: tuple[int, int]) -> None:
            part = slice(*cut)
            means = total[:, part] / weight
            spread[:, part] = not_negative(square[:, part] - total[:, part] * means)

        for _ in run(fill, ranges(self.shape[1], chunk_size(self.place)), self.place):
            pass
        if self.steep is not None and self.steep_moments is not None:
            spread[:, self.steep] = self.steep_moments.spread
        return spread

    def centred(self) -> CentredMoments:
        spread = self.place.asarray(self.scatter()) if self.square is None else self._spread()
        weight, count = list(self.weight), list(self.count)
        return CentredMoments(self.place, weight, count, self.total, spread)

    def scatter(self) -> list[float]:
        if self.square is not None:
            # (As finite as the sums of squares are, which is what it is asked for.)
            return numbers(self.place.xp.sum(self._spread(), axis=1))
        means, energies = self._energy_of_means(), numbers(self.energy)
        return [max(e - m, 0.0) for e, m in zip(energies, means, strict=True)]


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
        raise TooLargeError(
            f"the sums of {n_classes} classes x {m:,} features need {size:,} bytes, more than "
            "there is."
        ) from error


def moments_of(block: Block, groups: Groups, work: Work, *, per_feature: bool) -> ClassMoments:
    """Moments of one block, seen whole: where its sums of squares cancel, it is read again."""
    moments = empty_moments(block, groups.n_classes, per_feature=per_feature)
    moments = moments.add(block, groups, work)
    if isinstance(moments, RawMoments) and isinstance(block, SparseBlock):
        cancels = moments.scatter_cancels()
        if cancels and not moments.exact(block, groups):
            return sparse_moments(block, groups, per_feature=False)
    return moments
