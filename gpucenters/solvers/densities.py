"""Log densities of Gaussian features, and as what they add to the scores for every k."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..arrays.cached import cached_property
from ..arrays.functions import array_namespace
from ..arrays.typing import Array
from ..reductions.distances import FAR

#: Tied mean, deviation of the class mean, 1 / variance and log(variance) / 2: four (K, d).
Params = tuple[Array, ...]


def negative_log_density(
    x: Array, tied: Array, deviation: Array, inverse: Array, half_log: Array
) -> Array:
    """Minus the log density of x, up to a constant, from the elements of `Params`."""
    # Relative to the tied mean: the means of classes far from zero would be rounded apart.
    d = x - tied - deviation
    return half_log + 0.5 * (d * d * inverse)


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
        no_bound = xp.full_like(bound, math.inf)
        return xp.stack([*scores, xp.where(bound > FAR * self.size, no_bound, bound)])

    def beyond_zero(self, x: Array, position: Array) -> list[Array]:
        """The terms less those at zero: see `Terms`."""
        xp = array_namespace(x)
        params = tuple(xp.take(p, position, axis=1) for p in self.params)
        here, there = self._terms(x, params), self._terms(xp.zeros_like(x), params)
        scores = [a - b for a, b in zip(here[:-1], there[:-1], strict=True)]
        return [*scores, here[-1] + there[-1]]
