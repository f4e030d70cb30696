"""What the features of a block add to the scores of a sample, for sums over segments of features.

A segment is a run of consecutive features of a ranking. Sums over the segments, added up, are the
scores for every number of features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from ..arrays.cached import cached_property
from ..arrays.namespace import array_namespace
from ..arrays.typing import Array


class Terms(Protocol):
    """What each of d features adds to q scores, and to a bound on their rounding: r = q + 1 rows.

    A block calls `of_columns`, or `at_zero` and `beyond_zero`, whichever suits its storage.
    """

    @property
    def rows(self) -> int:
        """The number r of sums."""

    def of_columns(self, x: Array, part: slice) -> Array:
        """The sums over a run of features: (b, r), from their values (b, w)."""

    @property
    def at_zero(self) -> Array | None:
        """What each feature adds where its value is zero: (r, d), or None for nothing."""

    def beyond_zero(self, x: Array, position: Array) -> list[Array]:
        """What values x of features at these positions add beyond zero: r arrays of x's shape."""


@dataclass(frozen=True)
class LinearTerms:
    """``(x_i - shift_i) coef_i``, with the bound ``|x_i - shift_i| size_i``.

    Attributes
    ----------
    shift : array of shape (d,)
    coef : array of shape (d, q)
    size : array of shape (d,), not negative
    relative : float, optional
        ``size`` as a share of the size of the coefficients, where q is 1.
    """

    shift: Array
    coef: Array
    size: Array
    relative: float | None = None

    @property
    def rows(self) -> int:
        """Q + 1."""
        return int(self.coef.shape[1]) + 1

    def of_columns(self, x: Array, part: slice) -> Array:
        """Products of a run of features: see `Terms`."""
        xp = array_namespace(x)
        x = x - self.shift[part]
        return xp.concat([x @ self.coef[part, :], (xp.abs(x) @ self.size[part])[:, None]], axis=1)

    @cached_property
    def at_zero(self) -> Array:
        """The products at zero: see `Terms`."""
        xp = array_namespace(self.coef)
        products = -self.shift * xp.permute_dims(self.coef, (1, 0))
        return xp.concat([products, (xp.abs(self.shift) * self.size)[None, :]])

    def beyond_zero(self, x: Array, position: Array) -> list[Array]:
        """The products without the shift: see `Terms`."""
        xp = array_namespace(x)
        found = [x * xp.take(self.coef[:, c], position) for c in range(self.rows - 1)]
        if self.relative is not None:  # to rounding, which the bound has room for
            return [found[0], xp.abs(found[0]) * self.relative]
        return [*found, xp.abs(x) * xp.take(self.size, position)]


@dataclass(frozen=True)
class DistanceTerms:
    """Minus the distances of x_i to the centers of K classes, divided by the scale.

    For two classes the distance to class 0 less that to class 1. The bound is ``size`` times the
    largest distance that counts.

    Attributes
    ----------
    distance : callable, elementwise
        ``distance(x, center)``.
    centers : array of shape (K, d)
    inverse_scale : array of shape (d,)
    size : float
    """

    distance: Callable[[Array, Array], Array]
    centers: Array
    inverse_scale: Array
    size: float

    @property
    def rows(self) -> int:
        """2 for two classes, else K + 1."""
        k = int(self.centers.shape[0])
        return 2 if k == 2 else k + 1

    def _of_classes(self) -> list[Array]:
        return [self.centers[c, :] for c in range(self.centers.shape[0])]

    def _scores(self, distances: list[Array], scale: Array) -> list[Array]:
        if len(distances) == 2:
            return [(distances[0] - distances[1]) * scale]
        return [-d * scale for d in distances]

    def _bound(self, largest: Array, centers: list[Array], scale: Array) -> Array:
        if len(centers) == 2:  # equal centers cancel exactly
            xp = array_namespace(largest)
            largest = xp.where(centers[0] == centers[1], xp.zeros_like(largest), largest)
        return largest * (scale * self.size)

    def of_columns(self, x: Array, part: slice) -> Array:
        """Sums of distances over a run of features: see `Terms`."""
        xp, scale = array_namespace(x), self.inverse_scale[part]
        centers = [center[part] for center in self._of_classes()]
        distances = [self.distance(x, center) for center in centers]
        bound = self._bound(_largest(distances), centers, scale)
        terms = [*self._scores(distances, scale), bound]
        return xp.stack([xp.sum(term, axis=1) for term in terms], axis=1)

    @cached_property
    def at_zero(self) -> Array:
        """The distances at zero: see `Terms`."""
        xp, scale = array_namespace(self.centers), self.inverse_scale
        zero = xp.zeros_like(scale)
        distances = [self.distance(zero, center) for center in self._of_classes()]
        # The distances of each class may be summed before they are subtracted: none cancels here.
        bound = _largest(distances) * (scale * self.size)
        return xp.stack([*self._scores(distances, scale), bound])

    def beyond_zero(self, x: Array, position: Array) -> list[Array]:
        """The distances less those at zero: see `Terms`."""
        xp = array_namespace(x)
        scale = xp.take(self.inverse_scale, position)
        centers = [xp.take(center, position) for center in self._of_classes()]
        zero = xp.zeros_like(x)
        changes = [self.distance(x, center) - self.distance(zero, center) for center in centers]
        return [*self._scores(changes, scale), self._bound(xp.abs(x), centers, scale)]


def _largest(distances: list[Array]) -> Array:
    xp, found = array_namespace(distances[0]), distances[0]
    for d in distances[1:]:
        found = xp.maximum(found, d)
    return found


def segment_totals(values: Array, cuts: list[int]) -> Array:
    """Sums of (r, d) values over the segments between the cuts: (r, S)."""
    xp = array_namespace(values)
    return xp.stack([xp.sum(values[:, a:b], axis=1) for a, b in pairwise(cuts)], axis=1)
