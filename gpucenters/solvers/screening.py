"""The features that can be among the k largest h_i(p), without a logarithm for each of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..arrays.context import Context
from ..arrays.functions import index_mask, to_float, top_k
from ..arrays.typing import Array
from .divergence import divergence, sum_over_classes
from .selection import ranking_key

_ALL_BELOW = 2**15  # features that are all taken, without screening
_THRESHOLD_SAMPLE = 2**15  # features from which a first threshold is estimated
_NEAR_EDGE = 0.98  # the share of the k-th largest from which on a feature counts as near the edge


@dataclass(frozen=True)
class Screen:
    """The features of a problem, screened by two bounds that need no logarithm for each feature.

    h_i(p) is at most g_i times the largest -log p_c, and at most the chi-square distance: the sum
    over c of (f_ci - g_i p_c)^2 / (g_i p_c). The dual is solved on the features that pass a
    threshold. Its solution holds for all features if no other is above the k-th largest there,
    which is checked afterwards (`missed`), so that the threshold may be an estimate.

    Attributes
    ----------
    total : array of shape (K, m), float64
    alpha : float
    ctx : Context
    """

    total: Array
    alpha: float
    ctx: Context

    def first(self, k: int, p: list[float]) -> Array:
        """Candidates to start from: more than k features, those of large h_i(p) among them."""
        xp, m = self.ctx.backend.xp, self.total.shape[1]
        if m <= _ALL_BELOW or 4 * k >= m:
            return self._every()
        step = max(1, m // _THRESHOLD_SAMPLE)
        sample = self.total[:, ::step]
        size = int(sample.shape[1])
        h = self.ctx.backend.zeros(size)

        def fill(part: slice) -> None:
            h[part] = divergence(sample[:, part] + self.alpha, p)

        self.ctx.map_columns(fill, size, len(p))
        rank = min(size, 8 + math.ceil(2 * k * size / m))
        threshold = to_float(xp.min(xp.take(h, top_k(h, rank))))
        while threshold > 1e-300:
            columns, _ = self.above(p, threshold)
            if columns.shape[0] > k:
                return columns
            threshold /= 4
        return self._every()

    def missed(self, columns: Array, h: Array, k: int, p: list[float]) -> tuple[Array, bool]:
        """(candidates with those near the edge, whether others are among the k largest), at p."""
        xp = self.ctx.backend.xp
        if columns.shape[0] == self.total.shape[1]:
            return columns, False
        kth = xp.min(xp.take(h, top_k(h, k)), keepdims=True)
        near, h_near = self.above(p, _NEAR_EDGE * to_float(kth[0]))
        known = index_mask(columns, self.total.shape[1])
        new = xp.nonzero(~xp.take(known, near))[0]
        missed = bool(xp.any(ranking_key(xp.take(h_near, new)) >= ranking_key(kth)))
        return xp.sort(xp.concat([columns, xp.take(near, new)])), missed

    def above(self, p: list[float], threshold: float) -> tuple[Array, Array]:
        """The features with h_i(p) of at least a threshold, ascending, and their h_i(p)."""
        xp = self.ctx.backend.xp
        least = threshold / max(-math.log(share) for share in p)

        def find(columns: slice) -> tuple[Array, Array]:
            part = self.total[:, columns]
            heavy = xp.sum(part, axis=0) >= (least - len(p) * self.alpha) * (1 - 1e-12)
            index = xp.nonzero(heavy)[0]
            f = xp.take(part, index, axis=1) + self.alpha
            g = xp.sum(f, axis=0)

            def chi_square(classes: Any, share: Any) -> Array:
                difference = f[classes, :] - g * share
                return difference * difference / share

            distance = sum_over_classes(chi_square, p, f)
            far = xp.nonzero(distance >= threshold * (1 - 1e-12) * g)[0]
            h = divergence(xp.take(f, far, axis=1), p)
            index, keep = xp.take(index, far) + columns.start, xp.nonzero(h >= threshold)[0]
            return xp.take(index, keep), xp.take(h, keep)

        parts = self.ctx.map_columns(find, self.total.shape[1], len(p))
        return xp.concat([i for i, _ in parts]), xp.concat([h for _, h in parts])

    def _every(self) -> Array:
        return self.ctx.backend.arange(self.total.shape[1])
