"""Class moments: weights, sums and second moments of each class and feature."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from ..arrays.context import Context
from ..arrays.functions import EXACT_INTEGERS, clip_negative, row_sums, to_float, to_floats
from ..arrays.typing import Array
from ..blocks import Block
from ..blocks.samples import Samples
from ..blocks.validation import LARGEST_SQUARABLE
from ..reductions.class_sums import add_class_sums
from ..reductions.moments import (
    LARGEST_SHARE,
    CentredSums,
    add_centred,
    centred_moments,
    is_ill_conditioned,
)
from .base import Statistics
from .recipe import Recipe


@dataclass(eq=False)
class ClassMoments(Statistics, kind="class moments"):
    """Weights, counts, sums and second moments of the classes, in one of two forms.

    *Centred*: sums of squares about the class means, merged by Chan's formula. Dense data give it.

    *Raw*: sums of x^2, which add up, so that any split of integer data gives the same bits. Sparse
    data give it, since implicit zeros add nothing to it. Where second moments are kept for each
    feature, the columns in which raw sums are ill-conditioned are kept centred as well. A union has
    no ill-conditioned column that none of its parts has, so those of both parts are enough, and a
    part that has no centred moments there forms them from its raw sums.

    Raw moments become centred ones when they are added to or merged with centred ones.

    Attributes
    ----------
    centred : array of shape (K, m) or (K,), float64, or None
        Weighted sums of squares about the class means, for each feature or summed over them. None
        in raw form.
    square : array of shape (K, m), float64, or None
        Weighted sums of x^2: raw form, for each feature.
    sum_of_squares : array of shape (K,), float64, or None
        Weighted sums of x^2 over all features: raw form, summed.
    integers : bool
        Whether all values and weights are integers; kept where x^2 is summed over the features.
    norms : list of K floats, or None
        Squared norms of the class sums, where they are known; a stream keeps them up to date.
    ill_conditioned : array of int64 of shape (f,), or None
        Columns where raw sums are, or once were, ill-conditioned.
    ill_total, ill_centred : arrays of shape (K, f), float64, or None
        Sums and centred squares of these columns.
    """

    ARRAYS: ClassVar[dict[str, tuple[str, ...]]] = {
        **Statistics.ARRAYS,
        "centred": ("class", "feature"),
        "square": ("class", "feature"),
        "sum_of_squares": ("class",),
        "ill_conditioned": ("column",),
        "ill_total": ("class", "column"),
        "ill_centred": ("class", "column"),
    }
    needs_squares: ClassVar[bool] = True

    centred: Array | None = None
    square: Array | None = None
    sum_of_squares: Array | None = None
    integers: bool = True
    norms: list[float] | None = None
    ill_conditioned: Array | None = None
    ill_total: Array | None = None
    ill_centred: Array | None = None

    @classmethod
    def _shapes(cls, block: Block, k: int, recipe: Recipe) -> dict[str, tuple[int, ...]]:
        shapes = super()._shapes(block, k, recipe)
        raw = "square" if recipe.per_feature else "sum_of_squares"
        second = raw if block.has_implicit_zeros else "centred"
        return shapes | {second: shapes["total"] if recipe.per_feature else (k,)}

    def _checked(self, block: Block, samples: Samples, ctx: Context, *, mergeable: bool) -> Self:
        moments = self
        if self.sum_of_squares is not None:
            self.integers = False
            self.norms = squared_norms(self.total, ctx)
            # Mergeable moments know whether the block holds integers, of which unions are exact.
            if mergeable or not self._is_accurate(self.norms, for_unions=True):
                self.integers = samples.has_integer_weights and block.holds_integers(ctx)
                if not self._is_accurate(self.norms):  # they cancel: the block is read again
                    empty = self._empty_like(samples.n_classes)
                    moments = empty._become_centred(ctx).add(block, samples, ctx)
        huge = moments.centred is not None and moments._largest_total(ctx) > LARGEST_SQUARABLE
        if huge or not all(map(math.isfinite, moments.within_sum_of_squares(ctx, moments.norms))):
            block.check_finite(True, ctx)
            if not huge:
                raise ValueError("the sums of squares of X overflow float64. Rescale the features.")
        return moments

    # --- adding and merging --------------------------------------------------------------------

    def add(self, block: Block, samples: Samples, ctx: Context) -> Self:
        if self.centred is None and block.has_implicit_zeros:
            add_class_sums(block, samples, self._raw_sums(), ctx)
            before = list(self.class_weight)
            self._count(samples)
            if self.square is not None:
                self._add_ill_conditioned(block, samples, before, ctx)
            return self
        self._become_centred(ctx)
        assert self.centred is not None
        sums = CentredSums(list(self.class_weight), self.total, self.centred, self.nonzero)
        add_centred(block, samples, sums, ctx)
        self.class_weight = sums.class_weight
        self.count = [a + b for a, b in zip(self.count, samples.count, strict=True)]
        return self

    def add_batch(
        self, block: Block, samples: Samples, ctx: Context, *, shared: bool = False
    ) -> Self:
        if self.norms is None and self.sum_of_squares is not None:
            self.norms = squared_norms(self.total, ctx)
        new = super().add_batch(block, samples, ctx, shared=shared)
        if new.sum_of_squares is None:
            return new
        if new._pending is None:
            new.norms = squared_norms(new.total, ctx)
        else:
            assert self.norms is not None
            columns, few = new._pending
            now = squared_norms(few.total, ctx)
            was = squared_norms(self.backend.xp.take(self.total, columns, axis=1), ctx)
            new.norms = [n + (a - b) for n, a, b in zip(self.norms, now, was, strict=True)]
        new.integers = self.integers and samples.has_integer_weights and block.holds_integers(ctx)
        if new._is_accurate(new.norms):
            return new
        # What was there before is accurate, and the rows of the batch are here: both are centred.
        centred = self.copy()._become_centred(ctx).add(block, samples, ctx)
        centred.check_overflow()
        return centred

    def _is_accurate(self, norms: list[float], *, for_unions: bool = False) -> bool:
        """Whether raw sums over all features lose few digits in every class, or none.

        One sample has no scatter, and sums of integers are exact while they are not large: both may
        not hold for unions of the classes, which need few lost digits in each class.
        """
        assert self.sum_of_squares is not None
        squares, least = to_floats(self.sum_of_squares), 1 if for_unions else 2
        sums = list(zip(norms, squares, self.class_weight, self.count, strict=True))
        if all(n < least or t2 <= LARGEST_SHARE * w * q for t2, q, w, n in sums):
            return True
        exact = self.integers and not for_unions
        return exact and all(w * q < EXACT_INTEGERS for _, q, w, _ in sums)

    def _narrowed(self, block: Block) -> tuple[Array, Block] | None:
        # Where the weight of a class grows, its centred squares change in every column.
        return None if self.centred is not None else block.narrowed(self.ill_conditioned)

    def _has_exact_sums(self) -> bool:
        if self.centred is not None or self.ill_conditioned is not None:
            return False
        # Of integers, the squares are at least the sums of absolute values.
        squares = self.sum_of_squares if self.square is None else self.square
        return to_float(self.backend.xp.max(squares)) < EXACT_INTEGERS

    def without(self, block: Block, samples: Samples, ctx: Context) -> Self | None:
        new = super().without(block, samples, ctx)
        if new is None:
            return None
        new.norms, new.integers = None, True
        if new.sum_of_squares is not None:
            weights = zip(new.class_weight, to_floats(new.sum_of_squares), strict=True)
            return new if all(w * q < EXACT_INTEGERS for w, q in weights) else None
        # Columns that are ill-conditioned are centred where the other samples are read alone.
        return new if new._find_ill_conditioned(ctx).shape[0] == 0 else None

    def _with_classes(self, of_classes: Callable, weight: list[float], count: list[int]) -> Self:
        new = super()._with_classes(of_classes, weight, count)
        new.norms = None
        return new

    def _ready_for_unions(self) -> Self:
        ctx = Context.of(self.backend)
        if not _may_cancel([self], [0] * self.shape[0], ctx):
            return self
        return self._same_arrays()._become_centred(ctx)

    def _add_all(self, other: Self) -> None:
        ctx, every = Context.of(self.backend), range(self.shape[0])
        centred = self.centred is not None or other.centred is not None
        if centred or _may_cancel([self, other], every, ctx):
            self._become_centred(ctx)
            other = other._same_arrays()._become_centred(ctx)
        elif self.ill_conditioned is not None or other.ill_conditioned is not None:
            both = [a for a in (self.ill_conditioned, other.ill_conditioned) if a is not None]
            columns = self.backend.xp.unique_values(self.backend.xp.concat(both))
            self._keep_centred(columns, self.class_weight)
            other = other._same_arrays()._keep_centred(columns, other.class_weight)
        self.integers, self.norms = self.integers and other.integers, None
        super()._add_all(other)

    def _add_class(self, c: int, other: Self, d: int) -> None:
        # Chan's formula: beside the sums, there are the squares of the difference of the means.
        before, weight = self.class_weight[c], other.class_weight[d]
        for total, centred in (("total", "centred"), ("ill_total", "ill_centred")):
            squares = getattr(self, centred)
            if squares is not None and before > 0 and weight > 0:
                shift = getattr(other, total)[d, :] / weight - getattr(self, total)[c, :] / before
                between = shift * shift * (before * weight / (before + weight))
                squares[c, ...] += between if squares.ndim == 2 else self.backend.xp.sum(between)
        super()._add_class(c, other, d)

    # --- ill-conditioned columns ---------------------------------------------------------------

    def _find_ill_conditioned(self, ctx: Context) -> Array:
        """The columns that are ill-conditioned now, ascending."""
        xp, m, square = self.backend.xp, self.shape[1], self.square
        assert square is not None
        weight = self.backend.asarray(self.class_weight)[:, None]

        def is_ill(part: slice) -> Array:
            found = is_ill_conditioned(self.total[:, part], square[:, part], weight)
            return xp.any(found, axis=0)

        return xp.nonzero(xp.concat(ctx.map_columns(is_ill, m, len(self.class_weight))))[0]

    def _add_ill_conditioned(
        self, block: Block, samples: Samples, before: list[float], ctx: Context
    ) -> None:
        """Add a block, which the raw sums hold already, to the columns that are kept centred.

        Before the block, the columns that are found only now were not ill-conditioned, so that
        their raw sums of that time (those of now less those of the block) are accurate.
        """
        columns, xp = self._find_ill_conditioned(ctx), self.backend.xp
        if self.ill_conditioned is not None:
            columns = xp.unique_values(xp.concat([self.ill_conditioned, columns]))
        if columns.shape[0] == 0:
            return
        total, centred = centred_moments(block, columns, samples, ctx)
        square = centred + total * (total / self._divisors(samples.class_weight))
        self._keep_centred(columns, before, (total, square))
        kept: Any = self.ill_total, self.ill_centred
        CentredSums(before, *kept).add(samples.class_weight, total, centred)

    def _keep_centred(
        self, columns: Array, weight: list[float], less: tuple[Array, Array] | None = None
    ) -> Self:
        """Keep these columns, ascending and with those kept already, centred.

        New ones are formed from raw sums: sums of x and x^2, ``less`` others, of this ``weight``.
        """
        xp = self.backend.xp
        total, square = (xp.take(a, columns, axis=1) for a in (self.total, self.square))
        if less is not None:
            total, square = total - less[0], square - less[1]
        # Without weight, differences are rounding, and must be zero.
        nothing, zero = self.backend.asarray([[w == 0] for w in weight]), xp.zeros_like(total)
        total = xp.where(nothing, zero, total)
        centred = clip_negative(square - total * (total / self._divisors(weight)))
        centred = xp.where(nothing, zero, centred)
        if self.ill_conditioned is not None:
            at = xp.searchsorted(columns, self.ill_conditioned)
            total[:, at], centred[:, at] = self.ill_total, self.ill_centred
        self.ill_conditioned, self.ill_total, self.ill_centred = columns, total, centred
        return self

    def _divisors(self, weight: list[float]) -> Array:
        """Weights to divide by, (K, 1): 1 where there is no weight, and so no sum."""
        return self.backend.asarray([w or 1.0 for w in weight])[:, None]

    # --- what models read ----------------------------------------------------------------------

    def centred_at(self, part: slice) -> Array:
        """Sums of squares about the class means of some features: (K, b)."""
        if self.centred is not None:
            return self.centred[:, part]
        assert self.square is not None
        xp, total = self.backend.xp, self.total[:, part]
        weight = self._divisors(self.class_weight)
        found = clip_negative(self.square[:, part] - total * (total / weight))
        ill = self.ill_conditioned
        if ill is None:
            return found
        # Raw sums that were ill-conditioned need not be so any more, nor in every class: what is
        # taken depends on the sums alone, not on the parts that they come from.
        total, square = (xp.take(a, ill, axis=1) for a in (self.total, self.square))
        raw = clip_negative(square - total * (total / weight))
        kept = xp.where(is_ill_conditioned(total, square, weight), self.ill_centred, raw)
        # Columns of other parts go to one more column: to leave them out, a device would wait.
        k, width = found.shape
        position = xp.where((ill >= part.start) & (ill < part.stop), ill - part.start, width)
        found = xp.concat([found, self.backend.zeros((k, 1))], axis=1)
        found[:, position] = kept
        return found[:, :width]

    def within_sum_of_squares(self, ctx: Context, norms: list[float] | None = None) -> list[float]:
        """Sum of squares about the mean of each class, over all features.

        ``norms`` are the squared norms of the sums, where they are known to the last bit, as those
        that batches keep up to date are not.
        """
        k, m = self.shape
        if self.sum_of_squares is not None:
            if norms is None and self.backend.sync_is_expensive:
                norms = self.norms
            norms = squared_norms(self.total, ctx) if norms is None else norms
            squares = to_floats(self.sum_of_squares)
            numbers = zip(norms, squares, self.class_weight, self.count, strict=True)
            return [about_mean(*of_class) for of_class in numbers]
        if self.centred is not None and self.centred.ndim == 1:
            return to_floats(self.centred)
        sums = ctx.sum_columns(lambda part: row_sums(self.centred_at(part)), m, k)
        return to_floats(sums)

    def _become_centred(self, ctx: Context) -> Self:
        if self.centred is not None:
            return self
        if self.sum_of_squares is not None:
            self.centred = self.backend.asarray(self.within_sum_of_squares(ctx))
        else:
            centred = self.backend.zeros(self.shape)

            def fill(part: slice) -> None:
                centred[:, part] = self.centred_at(part)

            ctx.map_columns(fill, self.shape[1], self.shape[0])
            self.centred = centred
        self.square = self.sum_of_squares = self.norms = None
        self.ill_conditioned = self.ill_total = self.ill_centred = None
        return self


def _may_cancel(parts: Sequence[ClassMoments], unions: Sequence[int], ctx: Context) -> bool:
    """Whether raw sums over all features that are accurate apart may not be so in unions.

    A union is ill-conditioned only if a part is, and then it is accurate only if it is exact.
    ``unions`` has the union that each class of the parts goes to.
    """
    squares = [part.sum_of_squares for part in parts if part.sum_of_squares is not None]
    if len(squares) < len(parts):
        return False
    if all(part.integers for part in parts):
        weight, square = dict.fromkeys(unions, 0.0), dict.fromkeys(unions, 0.0)
        for part, each in zip(parts, squares, strict=True):
            for union, w, q in zip(unions, part.class_weight, to_floats(each), strict=True):
                weight[union] += w
                square[union] += q
        if all(weight[union] * square[union] < EXACT_INTEGERS for union in weight):
            return False
    for part in parts:
        norms = squared_norms(part.total, ctx) if part.norms is None else part.norms
        if not part._is_accurate(norms, for_unions=True):
            return True
    return False


def squared_norms(total: Array, ctx: Context) -> list[float]:
    """The squared norm of each row of a (K, m) array."""
    if total.shape[1] == 0:
        return [0.0] * total.shape[0]

    def squares(part: slice) -> Array:
        x = total[:, part]
        return row_sums(x * x)

    return to_floats(ctx.sum_columns(squares, total.shape[1], total.shape[0]))


def about_mean(squared_total: float, square: float, weight: float, count: int) -> float:
    """The sum of squares about the mean: ``q - t^2 / W``, exact for integers that are not large."""
    if count < 2:
        return 0.0 * square  # NaN and infinity stay
    if weight * square < EXACT_INTEGERS:
        return max((weight * square - squared_total) / weight, 0.0)
    return max(square - squared_total / weight, 0.0)
