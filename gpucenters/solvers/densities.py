"""Log densities of Gaussian features, and as what they add to the scores for every k."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ..arrays.cached import cached_property
from ..arrays.context import Context
from ..arrays.functions import array_namespace
from ..arrays.typing import Array
from ..blocks.block import Block

#: Tied mean, deviation of the class mean, 1 / variance and log(variance) / 2: four (K, d).
Params = tuple[Array, ...]

#: How much larger than a score what cancels in it may be: 2^9 times loses 9 of 53 bits.
_LARGEST_LOSS = 512.0


def negative_log_density(
    x: Array, tied: Array, deviation: Array, inverse: Array, half_log: Array
) -> Array:
    """Minus the log density of x, up to a constant, from the elements of `Params`."""
    # Relative to the tied mean: the means of classes far from zero would be rounded apart.
    d = x - tied - deviation
    return half_log + 0.5 * (d * d * inverse)


def scores_of_sparse_rows(
    expanded: Callable[[Block, Array, Params, Context], Array],
    block: Block,
    columns: Array,
    params: Params,
    ctx: Context,
) -> Array:
    """Log densities of sparse rows, summed over some features: (n, K); (n, 1) for two classes.

    ``expanded`` forms them as the density of a row of zeros with a correction for each stored
    value. Both are ``(mean / sd)^2 / 2`` where a mean is far from zero, and cancel. What is lost in
    them is formed again, relative to the means, of the features that are far from zero alone: a
    class mean is so only if nearly all of its values are stored, or very few.

    Parameters
    ----------
    expanded : callable
        ``expanded(block, columns, params, ctx)``.
    block : Block
        With implicit zeros.
    columns : array of shape (d,), ascending
    params : Params
        Of these features.
    ctx : Context
    """
    found, xp = expanded(block, columns, params, ctx), array_namespace(params[0])
    size = _at_zero(params)
    far = xp.any(size > _LARGEST_LOSS, axis=0)
    size = xp.sum(xp.where(far, size, xp.zeros_like(size)), axis=1)
    if size.shape[0] == 2:
        size = xp.sum(size, keepdims=True)
    lost = size > _LARGEST_LOSS * (1 + xp.abs(found))
    rows, classes = xp.nonzero(lost)
    if rows.shape[0] == 0:
        return found
    near = expanded(block, columns[~far], _take(params, ~far), ctx)
    far_columns, params, parts = columns[far], _take(params, far), []
    own = [params] if near.shape[1] > 1 else [tuple(p[c:, :] for p in params) for c in (0, 1)]
    start = 0
    for x, _ in block.padded_rows(rows, far_columns, ctx, filled=True):
        of_rows = classes[start : start + x.shape[0]]
        of_class = [[xp.take(p, of_rows, axis=0) for p in some] for some in own]
        sums = [xp.sum(negative_log_density(x, *some), axis=1) for some in of_class]
        parts.append(-sums[0] if len(sums) == 1 else sums[0] - sums[1])
        start += x.shape[0]
    found[rows, classes] = near[rows, classes] + xp.concat(parts)
    return found


def _at_zero(params: Params) -> Array:
    """``(mean / sd)^2 / 2`` of each class and feature: (K, d)."""
    mean = params[0] + params[1]
    return mean * mean * params[2] / 2


def _take(params: Params, chosen: Array) -> Params:
    return tuple(p[:, chosen] for p in params)


@dataclass(frozen=True)
class DensityTerms:
    """Log densities of x_i in K classes; for two, that of class 1 less that of class 0.

    The bound is ``size`` times the largest of what is summed.
    """

    params: Params
    size: float

    @property
    def rows(self) -> int:
        """2 for two classes, else K + 1."""
        k = int(self.params[0].shape[0])
        return 2 if k == 2 else k + 1

    def _terms(self, x: Array, params: Params) -> list[Array]:
        """Scores of values x of some features, and their bound, from params (K, ...)."""
        found, largest = [], abs(x) * 0
        for c in range(params[0].shape[0]):
            own = [p[c, ...] for p in params]
            d = negative_log_density(x, *own)
            largest = array_namespace(x).maximum(largest, d - own[3] + abs(own[3]))
            found.append(d)
        scores = [found[0] - found[1]] if len(found) == 2 else [-d for d in found]
        return [*scores, largest * self.size]

    def of_columns(self, x: Array, part: slice) -> Array:
        """Sums over a run of features: see `Terms`."""
        xp, params = array_namespace(x), tuple(p[:, part] for p in self.params)
        return xp.stack([xp.sum(t, axis=1) for t in self._terms(x, params)], axis=1)

    @cached_property
    def at_zero(self) -> Array:
        """The terms at zero: see `Terms`. No bound serves features that are far from zero."""
        xp = array_namespace(self.params[0])
        *scores, bound = self._terms(xp.zeros_like(self.params[0][0, :]), self.params)
        far = xp.any(_at_zero(self.params) > _LARGEST_LOSS, axis=0)
        return xp.stack([*scores, xp.where(far, xp.full_like(bound, math.inf), bound)])

    def beyond_zero(self, x: Array, position: Array) -> list[Array]:
        """The terms less those at zero: see `Terms`."""
        xp = array_namespace(x)
        params = tuple(xp.take(p, position, axis=1) for p in self.params)
        here, there = self._terms(x, params), self._terms(xp.zeros_like(x), params)
        scores = [a - b for a, b in zip(here[:-1], there[:-1], strict=True)]
        return [*scores, here[-1] + there[-1]]
