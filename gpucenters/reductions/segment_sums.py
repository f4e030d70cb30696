"""Sums over segments of features of what the features add to the scores of each row.

A segment is a run of consecutive features of a ranking. Sums over the segments, added up, are the
scores for every number of features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Protocol

import numpy as np

from ..arrays.cached import cached_property
from ..arrays.context import Context
from ..arrays.functions import add_at
from ..arrays.namespace import array_namespace
from ..arrays.typing import Array
from ..arrays.typing import NumPyOrCuPy as SparseArray
from ..blocks import Block
from ..blocks.dense import DenseBlock
from ..blocks.sparse import Entries, SparseBlock


class Terms(Protocol):
    """What each of d features adds to q scores, and to a bound on their rounding: r = q + 1 rows.

    `segment_sums` calls `of_columns` for dense data, `at_zero` and `beyond_zero` for sparse data.
    """

    @property
    def n_sums(self) -> int:
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
    """``(x_i - shift_i) coef_i``, with the bound ``|x_i - shift_i| bound_coef_i``.

    Attributes
    ----------
    shift : array of shape (d,)
    coef : array of shape (d, q)
    bound_coef : array of shape (d,), not negative
    bound_share : float, optional
        ``bound_coef`` as a share of the absolute value of ``coef``, where q is 1.
    """

    shift: Array
    coef: Array
    bound_coef: Array
    bound_share: float | None = None

    @property
    def n_sums(self) -> int:
        """Q + 1."""
        return int(self.coef.shape[1]) + 1

    def of_columns(self, x: Array, part: slice) -> Array:
        """Products of a run of features: see `Terms`."""
        xp = array_namespace(x)
        x = x - self.shift[part]
        return xp.concat(
            [x @ self.coef[part, :], (xp.abs(x) @ self.bound_coef[part])[:, None]], axis=1
        )

    @cached_property
    def at_zero(self) -> Array:
        """The products at zero: see `Terms`."""
        xp = array_namespace(self.coef)
        products = -self.shift * xp.permute_dims(self.coef, (1, 0))
        return xp.concat([products, (xp.abs(self.shift) * self.bound_coef)[None, :]])

    def beyond_zero(self, x: Array, position: Array) -> list[Array]:
        """The products without the shift: see `Terms`."""
        xp = array_namespace(x)
        found = [x * xp.take(self.coef[:, c], position) for c in range(self.n_sums - 1)]
        if self.bound_share is not None:  # to rounding, which the bound has room for
            return [found[0], xp.abs(found[0]) * self.bound_share]
        return [*found, xp.abs(x) * xp.take(self.bound_coef, position)]


@dataclass(frozen=True)
class DistanceTerms:
    """Minus the distances of x_i to the centers of K classes, divided by the scale.

    For two classes the distance to class 0 less that to class 1. The bound is ``relative_bound``
    times the largest distance that counts.

    Attributes
    ----------
    distance : callable, elementwise
        ``distance(x, center)``.
    centers : array of shape (K, d)
    inverse_scale : array of shape (d,)
    relative_bound : float
    """

    distance: Callable[[Array, Array], Array]
    centers: Array
    inverse_scale: Array
    relative_bound: float

    @property
    def n_sums(self) -> int:
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
        return largest * (scale * self.relative_bound)

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
        bound = _largest(distances) * (scale * self.relative_bound)
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
    return reduce(array_namespace(distances[0]).maximum, distances)


def segment_totals(values: Array, cuts: list[int]) -> Array:
    """Sums of (r, d) values over the segments between the cuts: (r, S)."""
    xp = array_namespace(values)
    return xp.stack([xp.sum(values[:, a:b], axis=1) for a, b in pairwise(cuts)], axis=1)


def segment_sums(
    block: Block, columns: Array, cuts: list[int], terms: Terms, ctx: Context
) -> Array:
    """Sums of terms over segments of features, of each row: float64, (r, S, n).

    Parameters
    ----------
    columns : array of shape (d,)
        The features of ``terms``, in any order.
    cuts : list of S + 1 ints
        Where the segments begin among them, ascending from 0 to d.
    terms : Terms
    ctx : Context
    """
    if not isinstance(block, DenseBlock):
        return _sparse_segment_sums(block, columns, cuts, terms, ctx)
    xp, r, parts = block.backend.xp, terms.n_sums, [slice(*cut) for cut in pairwise(cuts)]

    def sums(x: Array) -> Array:
        return xp.concat([terms.of_columns(x[:, part], part) for part in parts], axis=1)

    found = block.map_rows(columns, r * len(parts), sums, ctx, ascending=False)
    found = xp.reshape(found, (block.shape[0], len(parts), r))
    return xp.permute_dims(found, (2, 1, 0))


def _sparse_segment_sums(
    matrix: SparseBlock, columns: SparseArray, cuts: list[int], terms: Terms, ctx: Context
) -> SparseArray:
    """Those of a row of zeros; and each stored entry adds to the segment of its feature."""
    xp, backend, n = matrix.backend.xp, matrix.backend, matrix.shape[0]
    position_of = matrix.position_table(columns)
    segments, every = len(cuts) - 1, int(columns.shape[0]) == matrix.shape[1]
    sizes = [b - a for a, b in pairwise(cuts)]
    segment_of = backend.asarray(np.repeat(np.arange(segments), sizes) * n)
    out = backend.zeros((terms.n_sums, segments * n))

    def beyond_zero(entries: Entries) -> tuple[SparseArray, list[SparseArray]]:
        position = entries.of_column(position_of)
        if every:
            rows, x = entries.rows(), xp.astype(entries.values, xp.float64)
        else:
            keep = xp.nonzero(position >= 0)[0]
            rows, position = entries.rows_at(keep), xp.take(position, keep)
            x = xp.astype(xp.take(entries.values, keep), xp.float64)
        return xp.take(segment_of, position) + rows, terms.beyond_zero(x, position)

    for index, parts in ctx.map(beyond_zero, matrix.entries(ctx)):
        for row, part in enumerate(parts):
            add_at(out[row, :], index, part)
    out = xp.reshape(out, (terms.n_sums, segments, n))
    if terms.at_zero is not None:
        out += segment_totals(terms.at_zero, cuts)[:, :, None]
    return out
