"""Class moments with all second moments about the class means: an m x m matrix of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from ..arrays.context import Context, TooLargeError
from ..arrays.functions import to_float
from ..arrays.linalg import one_blas_thread
from ..arrays.typing import Array
from ..blocks import Block
from ..blocks.samples import Samples
from ..blocks.validation import LARGEST_SQUARABLE
from ..reductions.scatter import (
    Scatter,
    add_class_scatter,
    add_higher_moments,
    add_scatter,
)
from .base import Statistics
from .recipe import Recipe

_MOST_APART = 2**24  # numbers that the scatter matrices of all classes may have, to be kept apart
_WORK_MATRICES = 7  # that a fit needs beside its sums: eigenvectors, the root, copies


@dataclass(eq=False)
class CrossMoments(Statistics, kind="cross moments"):
    """Weights, counts, sums and scatter matrices of the classes.

    The covariance needs the scatter of all classes together. The objective divides the scatter of
    each class by its weight, which is not known before the last batch: so the matrices of the
    classes are kept apart, unless they are many and all data come at once.

    Attributes
    ----------
    scatter : array of shape (K, m, m) or (2, m, m), float64
        Weighted sums of (x - mean)(x - mean)' of each class; or, where ``recipe.final`` is given,
        their sum over the classes, and their sum with each divided by its final weight.
    third_moment : array of shape (K, m), float64, or None
        Weighted sums of ``|x - mean|^2 (x - mean)``, for the Ledoit-Wolf shrinkage.
    fourth_moment : array of shape (K,), float64, or None
        Weighted sums of ``|x - mean|^4``.
    """

    ARRAYS: ClassVar[dict[str, tuple[str, ...]]] = {
        "total": ("class", "feature"),
        "scatter": ("class", "feature", "feature"),
        "third_moment": ("class", "feature"),
        "fourth_moment": ("class",),
    }
    UNCHECKED: ClassVar[tuple[str, ...]] = ("third_moment", "fourth_moment")
    needs_squares: ClassVar[bool] = True

    scatter: Any = None
    third_moment: Array | None = None
    fourth_moment: Array | None = None

    @classmethod
    def _shapes(cls, block: Block, k: int, recipe: Recipe) -> dict[str, tuple[int, ...]]:
        m = block.shape[1]
        shapes = {"total": (k, m), "scatter": (k if recipe.final is None else 2, m, m)}
        return shapes | ({"third_moment": (k, m), "fourth_moment": (k,)} if recipe.fourth else {})

    @classmethod
    def _recipe_of_whole(cls, recipe: Recipe, block: Block, samples: Samples) -> Recipe:
        if _are_apart(block.shape[1], samples.n_classes, fourth=recipe.fourth):
            return recipe
        return replace(recipe, final=tuple(samples.class_weight))

    def _checked(self, block: Block, samples: Samples, ctx: Context, *, mergeable: bool) -> Self:
        most = self._largest_total(ctx)
        overflow = not all(math.isfinite(t) for t in [most, *self.traces()])
        if overflow or most > LARGEST_SQUARABLE:
            block.check_finite(True, ctx)
        if overflow:
            raise ValueError("the sums of squares of X overflow float64. Rescale the features.")
        return self

    @property
    def final(self) -> tuple[float, ...] | None:
        """W_c of the complete data, or None where the classes are kept apart."""
        return self.recipe.final

    def add(self, block: Block, samples: Samples, ctx: Context) -> Self:
        if self.final is not None and any(self.class_weight):
            raise ValueError(
                f"fit() has kept the scatter of {self.shape[0]} classes together, and no batch can "
                "follow. Give the first batch to partial_fit as well."
            )
        with one_blas_thread(self.backend):
            add_scatter(block, samples, self, ctx)
        self.count = [a + b for a, b in zip(self.count, samples.count, strict=True)]
        return self

    def add_higher_moments(self, block: Block, samples: Samples, ctx: Context) -> None:
        """Form third and fourth moments, from the samples that these moments are of."""
        self.third_moment = self.backend.zeros(self.shape)
        self.fourth_moment = self.backend.zeros(self.shape[0])
        with one_blas_thread(self.backend):
            add_higher_moments(block, samples, self, ctx)
        self.recipe = replace(self.recipe, fourth=True)

    def _narrowed(self, block: Block) -> None:
        """None: the matrices are copied whole before a batch."""

    def _add_class(self, c: int, other: Self, d: int) -> None:
        third = None if other.third_moment is None else other.third_moment[d, :]
        fourth = None if other.fourth_moment is None else other.fourth_moment[d]
        sums = other.class_weight[d], other.total[d, :], other.scatter[d, :, :]
        with one_blas_thread(self.backend):
            add_class_scatter(self, c, Scatter(*sums, third, fourth))
        self.count[c] += other.count[d]

    def _add_all(self, other: Self) -> None:
        if self.final is None:
            super()._add_all(other)
            return
        # The matrices are sums over the classes already; what is added for each class is the term
        # for the difference of its two means.
        self.scatter += other.scatter
        nothing = self.backend.zeros(other.scatter.shape[1:])
        for c, weight in enumerate(other.class_weight):
            add_class_scatter(self, c, Scatter(weight, other.total[c, :], nothing, None, None))
            self.count[c] += other.count[c]

    def _empty_like(self, n_classes: int) -> Self:
        if self.final is not None:
            raise ValueError(
                "the scatter matrices of the classes were kept together: such statistics have no "
                "unions of classes. Make them with statistics() or partial_fit()."
            )
        return super()._empty_like(n_classes)

    def within(self) -> Array:
        """The scatter of all classes about their means: (m, m)."""
        return self.scatter[0, :, :] if self.final else self.backend.xp.sum(self.scatter, axis=0)

    def within_squares(self) -> Array:
        """Sums of squares of each feature about the class means, the diagonal of `within`: (m,)."""
        xp = self.backend.xp
        kept = self.scatter[:1, :, :] if self.final else self.scatter
        return xp.sum(xp.linalg.diagonal(kept), axis=0)

    def mean_within(self) -> Array:
        """The sum of the scatter of each class divided by its weight: (m, m)."""
        if self.final:
            return self.scatter[1, :, :]
        found = self.scatter[0, :, :] / self.class_weight[0]
        for c in range(1, len(self.class_weight)):
            found = found + self.scatter[c, :, :] / self.class_weight[c]
        return found

    def traces(self) -> list[float]:
        """The traces of the matrices in ``scatter``: finite unless a sum has left float64."""
        xp, s = self.backend.xp, self.scatter
        return [to_float(xp.linalg.trace(s[g, :, :])) for g in range(s.shape[0])]


def _are_apart(m: int, n_classes: int, *, fourth: bool) -> bool:
    """Whether the scatter matrices of the classes of whole data are kept apart."""
    return fourth or n_classes * m * m <= _MOST_APART


def check_size(m: int, n_classes: int, budget: int, *, fourth: bool, streaming: bool) -> None:
    """Raise, before anything is allocated, where m x m matrices do not fit into the budget.

    Raises
    ------
    MemoryError
        That names the diagonal form, which needs none.
    """
    apart = streaming or _are_apart(m, n_classes, fourth=fourth)
    # A batch is added to a copy, so that a bad one changes nothing.
    sums = (n_classes if apart else 2) * (2 if streaming else 1)
    size = 8 * m * m * (sums + _WORK_MATRICES)
    if size > budget:
        raise TooLargeError(
            f"the covariance of {m:,} features takes {sums + _WORK_MATRICES} matrices of {m:,} x "
            f"{m:,} numbers, {size:,} bytes, and the memory budget is {budget:,}. Select features "
            "first, raise memory_budget, or use L2CenterClassifier(scale='pooled'), the diagonal "
            "form, which needs no matrix."
        )
