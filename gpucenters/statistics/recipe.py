"""Recipes: what statistics hold, and how they are made of the samples of a block."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from ..arrays.context import Context, TooLargeError
from ..blocks import Block
from ..blocks.samples import Samples
from ..blocks.transforms import ValueTransform

KINDS: dict[str, Any] = {}  # the class of each kind of statistics


@dataclass(frozen=True)
class Recipe:
    """How statistics were made. Only statistics of equal recipes merge.

    Attributes
    ----------
    kind : str
        What they hold: "class sums", "exposed sums", "class moments" or "cross moments".
    transform : ValueTransform or None
        Of the values of X.
    per_feature : bool
        Whether second moments are kept for each feature, or only their sum over the features.
    fourth : bool
        Whether third and fourth moments are kept.
    final : tuple of K floats, or None
        The weights of the classes in all the data, where these had to be known beforehand.
    exposure : {"total", "unit", "given"} or None
        What the exposure of a row is: its total, 1, or a number that was given.
    nonzero : bool
        Whether values other than zero are counted.
    """

    kind: str
    transform: ValueTransform | None = None
    per_feature: bool = False
    fourth: bool = False
    final: tuple[float, ...] | None = None
    exposure: str | None = None
    nonzero: bool = False

    def serves(self, needed: Recipe) -> bool:
        """Whether statistics made so hold all that a model needs."""
        return (
            self.kind == needed.kind
            and self.transform == needed.transform
            and self.per_feature >= needed.per_feature
            and self.fourth >= needed.fourth
            and self.exposure in (needed.exposure, "given")
        )

    def empty(self, block: Block, n_classes: int) -> Any:
        """Statistics of no samples, for blocks like this one.

        Raises
        ------
        MemoryError
            That says how much they need.
        """
        kind, backend = KINDS[self.kind], block.backend
        shapes = kind._shapes(block, n_classes, self)
        try:
            arrays = {name: backend.zeros(shape) for name, shape in shapes.items()}
        except MemoryError as error:
            size = sum(8 * math.prod(shape) for shape in shapes.values())
            raise TooLargeError(
                f"the sums of {n_classes} classes x {block.shape[1]:,} features need {size:,} "
                "bytes, more than there is."
            ) from error
        recipe, k = replace(self, transform=block.transform), n_classes
        return kind(backend, recipe, [0.0] * k, [0] * k, **arrays)

    def of(self, block: Block, samples: Samples, ctx: Context, *, mergeable: bool = False) -> Any:
        """The statistics of a block that is seen whole; ``mergeable`` where others may follow.

        Raises
        ------
        ValueError
            For values that are not finite, that the block's transform refuses, or whose squares
            overflow. They are searched for only if a sum is not finite.
        """
        recipe = self if mergeable else KINDS[self.kind]._recipe_of_whole(self, block, samples)
        found = recipe.empty(block, samples.n_classes).add(block, samples, ctx)
        return found._checked(block, samples, ctx, mergeable=mergeable)

    def __str__(self) -> str:
        parts = [self.kind]
        parts += [f"of {self.transform}"] if self.transform else []
        parts += ["with second moments for each feature"] if self.per_feature else []
        parts += [f"with {self.exposure} exposures"] if self.exposure else []
        parts += ["with fourth moments"] if self.fourth else []
        parts += ["with numbers of values other than zero"] if self.nonzero else []
        parts += [f"for final class weights {list(self.final)}"] if self.final else []
        return " ".join(parts)
