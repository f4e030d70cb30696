"""Class sums: the weight of each class, and the sum of each class and feature.

Naive Bayes models and scores of counts are functions of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

from ..arrays.context import Context
from ..arrays.functions import row_sums, to_float, to_floats
from ..arrays.typing import Array
from ..blocks.accumulators import RawSums
from ..blocks.block import Block
from ..blocks.conditioning import EXACT_INTEGERS
from ..blocks.errors import raise_overflow
from ..blocks.samples import Samples
from .base import Recipe, Statistics, nonzero_sums, sums_too_large


@dataclass(eq=False)
class ClassSums(Statistics):
    """Weights, counts and weighted sums of the classes."""

    @classmethod
    def empty(cls, block: Block, n_classes: int) -> Self:
        """Sums of no samples, for blocks like this one.

        Raises
        ------
        MemoryError
            That says how much they need.
        """
        backend, m = block.backend, block.shape[1]
        try:
            total, nonzero = backend.zeros((n_classes, m)), nonzero_sums(block, n_classes)
        except MemoryError as error:
            raise sums_too_large(n_classes, m, 1) from error
        recipe = Recipe("class sums", block.reader, nonzero=block.counts_nonzero)
        return cls(backend, recipe, [0.0] * n_classes, [0] * n_classes, total, nonzero=nonzero)

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


def class_sums(block: Block, samples: Samples, ctx: Context) -> ClassSums:
    """Class sums of a block.

    Raises
    ------
    ValueError
        For values that are not finite, or that the block's reader refuses. They are searched for
        only if a sum is not finite.
    """
    sums = ClassSums.empty(block, samples.n_classes).add(block, samples, ctx)
    require_finite_sums(sums.total, block, ctx)
    return sums


def require_finite_sums(sums: Array, block: Block, ctx: Context) -> None:
    """Raise for the first bad value of a block if its sums, (K, m), are not finite."""
    if not all(math.isfinite(s) for s in feature_sums(sums, ctx)):
        block.check_finite(False, ctx)
        xp = ctx.backend.xp
        bad = xp.nonzero(~xp.all(xp.isfinite(sums), axis=0))[0]
        raise_overflow(int(bad[0]) if bad.shape[0] else 0)


def feature_sums(total: Array, ctx: Context) -> list[float]:
    """Sums over all features: K numbers from a (K, m) array."""
    k, m = total.shape
    sums = ctx.sum_columns(lambda part: row_sums(total[:, part]), m, k)
    return to_floats(sums)
