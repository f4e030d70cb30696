"""Class sums: the weight of each class, and the sum of each class and feature; with exposures.

Naive Bayes models and scores of counts are functions of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

from ..arrays.context import Context
from ..arrays.functions import row_sums, to_float, to_floats
from ..arrays.typing import Array
from ..blocks import Block
from ..blocks.samples import Samples
from ..blocks.validation import raise_overflow
from ..reductions.class_sums import RawSums, add_class_sums
from ..reductions.moments import EXACT_INTEGERS
from .base import Recipe, Statistics


@dataclass(eq=False)
class ClassSums(Statistics, kind="class sums"):
    """Weights, counts and weighted sums of the classes."""

    @classmethod
    def of(
        cls, block: Block, samples: Samples, ctx: Context, recipe: Recipe, *, mergeable: bool
    ) -> Self:
        found = cls.empty(block, samples.n_classes, recipe).add(block, samples, ctx)
        for name, axes, sums in found._arrays():
            if "feature" in axes and name != "nonzero":
                _require_finite(sums, block, ctx)
        return found

    def add(self, block: Block, samples: Samples, ctx: Context) -> Self:
        add_class_sums(block, samples, RawSums(self.total, nonzero=self.nonzero), ctx)
        self._count(samples)
        return self

    def without(self, block: Block, samples: Samples, ctx: Context) -> Self | None:
        xp = self.backend.xp
        if to_float(xp.max(xp.abs(self.total))) >= EXACT_INTEGERS:
            return None
        raw = RawSums(self.total, nonzero=self.nonzero).zeros_like()
        add_class_sums(block, samples, raw, ctx)
        return self._less(raw, samples)


@dataclass(eq=False)
class ExposedSums(ClassSums, kind="exposed sums"):
    """Weights, counts and weighted sums of the classes, and how much they were exposed.

    Attributes
    ----------
    exposure : array of shape (K,), float64, or None
        Weighted sums of given exposures. Those that follow from the other sums are not kept: row
        totals are summed with the features, and exposures of 1 with the weights.
    square : array of shape (K, m), float64, or None
        Weighted sums of x^2 divided by the exposure of the row.
    """

    ARRAYS: ClassVar[dict[str, tuple[str, ...]]] = {
        **ClassSums.ARRAYS,
        "exposure": ("class",),
        "square": ("class", "feature"),
    }

    exposure: Array | None = None
    square: Array | None = None

    @classmethod
    def _shapes(cls, block: Block, k: int, recipe: Recipe) -> dict[str, tuple[int, ...]]:
        shapes = super()._shapes(block, k, recipe)
        if recipe.per_feature:
            shapes["square"] = shapes["total"]
        if recipe.exposure == "given":
            shapes["exposure"] = (k,)
        return shapes

    def add(self, block: Block, samples: Samples, ctx: Context) -> Self:
        add_class_sums(block, samples, RawSums(self.total, self.square, nonzero=self.nonzero), ctx)
        if self.exposure is not None:
            self.exposure += self.backend.asarray(samples.class_exposure)
        self._count(samples)
        return self

    def without(self, block: Block, samples: Samples, ctx: Context) -> Self | None:
        # Shares of counts are rounded, and given exposures need not be integers.
        if self.square is not None or self.exposure is not None:
            return None
        return super().without(block, samples, ctx)

    def _add_class(self, c: int, other: Self, d: int) -> None:
        super()._add_class(c, other, d)
        for name in ("exposure", "square"):
            if getattr(self, name) is not None:
                getattr(self, name)[c, ...] += getattr(other, name)[d, ...]

    def class_exposure(self, ctx: Context) -> list[float]:
        """E_c: the sum of weight times exposure of each class."""
        if self.exposure is not None:
            return to_floats(self.exposure)
        if self.recipe.exposure == "total":
            return feature_sums(self.total, ctx)
        return list(self.class_weight)


def _require_finite(sums: Array, block: Block, ctx: Context) -> None:
    """Raise for the first bad value of a block if its sums, (K, m), are not finite."""
    if not all(math.isfinite(s) for s in feature_sums(sums, ctx)):
        block.check_finite(False, ctx)
        xp = ctx.backend.xp
        raise_overflow(xp.all(xp.isfinite(sums), axis=0))


def feature_sums(total: Array, ctx: Context) -> list[float]:
    """Sums over all features: K numbers from a (K, m) array."""
    k, m = total.shape
    sums = ctx.sum_columns(lambda part: row_sums(total[:, part]), m, k)
    return to_floats(sums)
