"""Class sums: the weight of each class, and the sum of each class and feature.

Naive Bayes models and scores of counts are functions of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

from ..arrays.context import Context
from ..arrays.functions import to_float, to_floats
from ..arrays.typing import Array
from ..blocks.accumulators import RawSums
from ..blocks.block import Block
from ..blocks.conditioning import EXACT_INTEGERS
from ..blocks.errors import raise_overflow
from ..blocks.samples import Samples
from .base import Recipe, Statistics


@dataclass(eq=False)
class ClassSums(Statistics, kind="class sums"):
    """Weights, counts and weighted sums of the classes."""

    @classmethod
    def of(
        cls, block: Block, samples: Samples, ctx: Context, recipe: Recipe, *, mergeable: bool
    ) -> Self:
        found = super().of(block, samples, ctx, recipe, mergeable=mergeable)
        for name, axes, sums in found._arrays():
            if "feature" in axes and name != "nonzero":
                _require_finite(sums, block, ctx)
        return found

    def add(self, block: Block, samples: Samples, ctx: Context) -> Self:
        block.add_sums(samples, RawSums(self.total, nonzero=self.nonzero), ctx)
        self._count(samples)
        return self

    def without(self, block: Block, samples: Samples, ctx: Context) -> Self | None:
        xp = self.backend.xp
        if to_float(xp.max(xp.abs(self.total))) >= EXACT_INTEGERS:
            return None
        raw = RawSums(self.total, nonzero=self.nonzero).zeros_like()
        block.add_sums(samples, raw, ctx)
        return self._less(raw, samples)


def _require_finite(sums: Array, block: Block, ctx: Context) -> None:
    """Raise for the first bad value of a block if its sums, (K, m), are not finite."""
    if not all(math.isfinite(s) for s in feature_sums(sums, ctx)):
        block.check_finite(False, ctx)
        xp = ctx.backend.xp
        bad = xp.nonzero(~xp.all(xp.isfinite(sums), axis=0))[0]
        raise_overflow(int(bad[0]) if bad.shape[0] else 0)


def feature_sums(total: Array, ctx: Context) -> list[float]:
    """Sums over all features: K numbers from a (K, m) array."""
    xp = ctx.backend.xp
    k, m = total.shape
    sums = ctx.sum_columns(lambda part: xp.sum(total[:, part], axis=1), m, k)
    return to_floats(sums)
