"""Class sums of counts whose rows have an exposure: documents of unlike length, libraries, times.

Sparse Poisson naive Bayes is a function of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from ..arrays.context import Context
from ..arrays.functions import to_floats
from ..arrays.typing import Array
from ..blocks.accumulators import RawSums
from ..blocks.block import Block
from ..blocks.samples import Samples
from .base import Recipe
from .class_sums import ClassSums, feature_sums


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
        block.add_sums(samples, RawSums(self.total, self.square, nonzero=self.nonzero), ctx)
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
