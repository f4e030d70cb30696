"""Class moments with all second moments about the class means, an m x m matrix of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from operator import matmul

from ..arrays.convert import Block
from ..arrays.dense import RowChunk
from ..arrays.devices import Place
from ..arrays.errors import TooLargeError
from ..arrays.grid import strip_ranges
from ..arrays.groups import Groups
from ..arrays.ops import to_float
from ..arrays.products import add_gram, one_blas_thread
from ..arrays.scatter import class_scatter, sparse_strips
from ..arrays.sparse import SparseBlock
from ..arrays.typing import Array
from ..arrays.work import Work
from .moments import ClassMoments

_APART = 2**24  # numbers that the scatter matrices of all classes may have, to be kept apart
_WORKSPACE = 7  # matrices that a fit needs beside its sums: eigenvectors, the root, copies


@dataclass
class CrossMoments(ClassMoments):
    """What full Mahalanobis centers need to know of the data.

    The covariance needs the scatter of all classes together. The objective divides the scatter of
    each class by its weight, which a stream knows at its end alone: so the matrices of the classes
    are kept apart, unless they are many and the final weights are known beforehand.

    Attributes
    ----------
    cross : array of shape (K, m, m) or (2, m, m), float64
        Weighted sums of (x - mean)(x - mean)' of each class; or, where ``final`` is given, their
        sum over the classes, and their sum with each divided by its weight.
    final : list of K floats, or None
        W_c of all the data that will ever come.
    cubic : array of shape (K, m), float64, or None
        Weighted sums of ``|x - mean|^2 (x - mean)``, where the Ledoit-Wolf shrinkage is wanted.
    quartic : array of shape (K,), float64, or None
        Weighted sums of ``|x - mean|^4``.
    """

    cross: Array
    final: list[float] | None = None
    cubic: Array | None = None
    quartic: Array | None = None

    @classmethod
    def empty(
        cls, place: Place, k: int, m: int, *, fourth: bool, final: list[float] | None = None
    ) -> CrossMoments:
        """Moments of no data.

        Parameters
        ----------
        place : Place
        k, m : int
            Classes and features.
        fourth : bool
            Whether to keep what the Ledoit-Wolf shrinkage needs.
        final : list of K floats, optional
            The weights of the classes, where all data come now.
        """
        if fourth or k * m * m <= _APART:
            final = None
        cross = place.zeros((k if final is None else 2, m, m))
        cubic, quartic = (place.zeros((k, m)), place.zeros(k)) if fourth else (None, None)
        return cls(place, [0.0] * k, [0] * k, place.zeros((k, m)), cross, final, cubic, quartic)

    def add(self, block: Block, groups: Groups, work: Work) -> CrossMoments:
        if self.final is not None and any(self.weight):
            raise ValueError(
                f"fit() has kept the scatter of {len(self.weight)} classes together, and no batch "
                "can follow. Give the first batch to partial_fit as well."
            )
        strips = sparse_strips(block, groups) if isinstance(block, SparseBlock) else None
        with one_blas_thread(self.place):
            if strips is None:
                self._add_rows(block, groups, work)
            else:
                for part, members in work.progress(strips, len(strips), "strips added"):
                    self._add_strip(part, members, work)
        self.count = [a + b for a, b in zip(self.count, groups.count, strict=True)]
        return self

    def touched(self, block: Block) -> None:
        """None: the matrices are copied whole before a batch."""

    def _add_strip(self, block: SparseBlock, groups: Groups, work: Work) -> None:
        """Add sparse rows by their products; as dense ones where these cancel."""
        found = class_scatter(block, groups, fourth=self.quartic is not None)
        if found is None:
            self._add_rows(block, groups, replace(work, verbose=False))
            return
        for c, w, total, products, cubic, quartic in found:
            before, shift = self.weight[c], None
            if before > 0 and w > 0:
                shift = total / w - self.total[c, :] / before
            if self.quartic is not None:
                trace = self.place.xp.linalg.trace(products)
                self._add_fourth(c, w, shift, trace, cubic, quartic, partial(matmul, products))
            if shift is not None:
                products = products + shift[:, None] * (shift * (before * w / (before + w)))
            self.total[c, :] += total
            self.weight[c] += w
            if self.final is None:
                self.cross[c, :, :] += products
            else:
                self.cross[0, :, :] += products
                self.cross[1, :, :] += products / self.final[c]

    def _add_rows(self, block: Block, groups: Groups, work: Work) -> None:
        strips = len(strip_ranges(*block.shape, self.place))
        for chunk in work.progress(block.full_rows(groups), strips, "rows added"):
            self._add_chunk(chunk)

    def _add_chunk(self, chunk: RowChunk) -> None:
        xp, place, together = self.place.xp, self.place, []
        for c, x, s, w in chunk.by_class(chunk.columns[0]):
            residuals = self._add_part(c, x, s, w)
            self.weight[c] += w
            if self.final is None:
                add_gram(residuals, self.cross[c, :, :], place)
            else:
                together.append((residuals, self.final[c]))
        if together:
            add_gram(xp.concat([r for r, _ in together]), self.cross[0, :, :], place)
            divided = xp.concat([r / w**0.5 for r, w in together])
            add_gram(divided, self.cross[1, :, :], place)

    def _add_part(self, c: int, x: Array, s: Array | None, w: float) -> Array:
        """Add rows of one class to its sums; returns the rows whose products its scatter gains.

        These are the residuals from the mean of these rows, each times the root of its weight. Of
        Chan's formula, generalised to matrices, the term for the distance to the mean of what was
        there is the product of one more row.
        """
        xp = self.place.xp
        total = xp.sum(x if s is None else x * s, axis=0)
        # Two passes: the second one mends the rounding of the mean. (Rows that all have weight
        # zero add nothing, but NaN among them shows.)
        d = x - total / (w or 1.0)
        error = xp.sum(d if s is None else d * s, axis=0)
        d = d - error / (w or 1.0)
        residuals = d if s is None else d * xp.sqrt(s)
        before, shift = self.weight[c], None
        if before > 0 and w > 0:
            shift = (total + error) / w - self.total[c, :] / before
        if self.quartic is not None:
            sd = d if s is None else d * s
            size = xp.sum(d * d, axis=1)
            weighted = xp.sum(sd * d, axis=1)
            self._add_fourth(
                c, w, shift, xp.sum(weighted), size @ sd, size @ weighted, lambda e: (d @ e) @ sd
            )
        if shift is not None:
            lead = shift * (before * w / (before + w)) ** 0.5
            residuals = xp.concat([residuals, lead[None, :]])
        self.total[c, :] += total
        return residuals

    def _add_fourth(
        self,
        c: int,
        w: float,
        shift: Array | None,
        trace: Array,
        cubic: Array,
        quartic: Array,
        times: Callable[[Array], Array],
    ) -> None:
        """Add third and fourth moments of some rows of a class; ``cross`` is without them yet.

        ``shift`` is the distance of their mean from the one of what was there, ``times`` multiplies
        their scatter by a vector, and ``trace`` is its trace.
        """
        assert self.cubic is not None
        assert self.quartic is not None
        if shift is not None:
            before, cross = self.weight[c], self.cross[c, :, :]
            here, there = shift * (before / (before + w)), -shift * (w / (before + w))
            old = self.place.xp.linalg.trace(cross), cross @ there, self.cubic[c, :]
            self.cubic[c, :], self.quartic[c] = _seen_from(there, before, *old, self.quartic[c])
            cubic, quartic = _seen_from(here, w, trace, times(here), cubic, quartic)
        self.cubic[c, :] += cubic
        self.quartic[c] += quartic

    def within(self) -> Array:
        """The scatter of all classes about their means: (m, m)."""
        return self.cross[0, :, :] if self.final else self.place.xp.sum(self.cross, axis=0)

    def mean_within(self) -> Array:
        """The sum of the scatter of each class divided by its weight: (m, m)."""
        if self.final:
            return self.cross[1, :, :]
        found = self.cross[0, :, :] / self.weight[0]
        for c in range(1, len(self.weight)):
            found = found + self.cross[c, :, :] / self.weight[c]
        return found

    def traces(self) -> list[float]:
        """The traces of the matrices in ``cross``: finite unless a sum has left float64."""
        xp = self.place.xp
        return [to_float(xp.linalg.trace(self.cross[g, :, :])) for g in range(self.cross.shape[0])]


def _seen_from(
    e: Array, weight: float, trace: Array, pull: Array, cubic: Array, quartic: Array
) -> tuple[Array, Array]:
    """Third and fourth moments about a point from which the mean lies at ``e``.

    By expansion of ``|r + e|^2 (r + e)`` and ``|r + e|^4``, where the r sum to zero. ``trace`` is
    the one of their scatter, and ``pull`` its product with e.
    """
    far = e @ e
    moved = cubic + trace * e + 2 * pull + (weight * far) * e
    spread = quartic + 4 * (e @ cubic) + 4 * (e @ pull) + 2 * far * trace + weight * far * far
    return moved, spread


def check_size(m: int, n_classes: int, budget: int, *, fourth: bool, streaming: bool) -> None:
    """Raise, before anything is allocated, where m x m matrices do not fit into the budget.

    Raises
    ------
    MemoryError
        That names the diagonal form, which needs none.
    """
    apart = streaming or fourth or n_classes * m * m <= _APART
    # (A batch is added to a copy, so that a bad one changes nothing.)
    sums = (n_classes if apart else 2) * (2 if streaming else 1)
    size = 8 * m * m * (sums + _WORKSPACE)
    if size > budget:
        raise TooLargeError(
            f"the covariance of {m:,} features takes {sums + _WORKSPACE} matrices of {m:,} x "
            f"{m:,} numbers, {size:,} bytes, and the memory budget is {budget:,}. Select features "
            "first, raise memory_budget, or use L2CenterClassifier(scale='pooled'), the diagonal "
            "form, which needs no matrix."
        )
