"""Class sums: the weight of each class, and the sum of each class and feature; with exposures.

Naive Bayes models and scores of counts are functions of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

from ..arrays.context import Context
from ..arrays.functions import EXACT_INTEGERS, row_sums, to_float, to_floats
from ..arrays.typing import Array
from ..blocks import Block
from ..blocks.samples import Samples
from ..blocks.validation import raise_overflow
from ..reductions.class_sums import add_class_sums
from .base import Statistics
from .recipe import Recipe


@dataclass(eq=False)
class ClassSums(Statistics, kind="class sums"):
    """Weights, counts and weighted sums of the classes."""

    def add(self, block: Block, samples: Samples, ctx: Context) -> Self:
        add_class_sums(block, samples, self._raw_sums(), ctx)
        self._count(samples)
        return self

    def _checked(self, block: Block, samples: Samples, ctx: Context, *, mergeable: bool) -> Self:
        for name, axes, sums in self._arrays():
            if "feature" not in axes or name == "nonzero":
                continue
            if not all(map(math.isfinite, feature_sums(sums, ctx))):
                block.check_finite(False, ctx)
                xp = ctx.backend.xp
                raise_overflow(xp.all(xp.isfinite(sums), axis=0))
        return self

    def _has_exact_sums(self) -> bool:
        xp = self.backend.xp
        return to_float(xp.max(xp.abs(self.total))) < EXACT_INTEGERS


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
        super().add(block, samples, ctx)
        if self.exposure is not None:
            self.exposure += self.backend.asarray(samples.class_exposure)
        return self

    def _has_exact_sums(self) -> bool:
        # Shares of counts are rounded, and given exposures need not be integers.
        return self.square is None and self.exposure is None and super()._has_exact_sums()

    def class_exposure(self, ctx: Context) -> list[float]:
        """E_c: the sum of weight times exposure of each class."""
        if self.exposure is not None:
            return to_floats(self.exposure)
        if self.recipe.exposure == "total":
            return feature_sums(self.total, ctx)
        return list(self.class_weight)


def feature_sums(total: Array, ctx: Context) -> list[float]:
    """Sums over all features: K numbers from a (K, m) array."""
    k, m = total.shape
    sums = ctx.sum_columns(lambda part: row_sums(total[:, part]), m, k)
    return to_floats(sums)
