"""Sparse multinomial naive Bayes beyond the bound: screening of features, and swaps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..arrays.context import Context
from ..arrays.functions import array_namespace, backend_of, index_mask, row_sums, to_float, top_k
from ..arrays.typing import Array
from .divergence import divergence, phi, relative_entropy, sum_over_classes
from .duality import DualPoint
from .selection import ranking_key

_ALL_BELOW = 2**15  # features that are all taken, without screening
_THRESHOLD_SAMPLE = 2**15  # features from which a first threshold is estimated
_NEAR_EDGE = 0.98  # the share of the k-th largest from which on a feature counts as near the edge
_EDGE_FEATURES = 128  # features on either side of the edge that are tried in swaps
_LEAST_EDGE = 8
_SWAP_MASSES = 2**20  # masses of classes that are computed for one swap
_MOST_SWAPS = 200
_SAME_VALUE = 1e-13  # relative difference of values that is rounding


# The features that can be among the k largest h_i(p), without a logarithm for each of them.


@dataclass(frozen=True)
class Screen:
    """The features of a problem, screened by two bounds that need no logarithm for each feature.

    h_i(p) is at most g_i times the largest -log p_c, and at most the chi-square distance: the sum
    over c of (f_ci - g_i p_c)^2 / (g_i p_c). The dual is solved on the features that pass a
    threshold. Its solution holds for all features if no other is above the k-th largest there,
    which is checked afterwards (`missed`), so that the threshold may be an estimate.
    """

    total: Array  # (K, m)
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


@dataclass(frozen=True)
class SupportValue:
    """A support and its value."""

    support: Array  # int64 of shape (k,), ascending
    value: float  # the least sum of h_i over the support
    mass: Array  # B: (K,)

    def over(self, other: SupportValue | None, same: float) -> SupportValue:
        """The one of larger value; of the ``same`` value the lexicographically smaller support."""
        if other is None or self.value > other.value + same:
            return self
        if other.value > self.value + same:
            return other
        xp = array_namespace(self.support)
        differ = xp.nonzero(self.support != other.support)[0]
        if differ.shape[0] and int(self.support[differ[0]]) < int(other.support[differ[0]]):
            return self
        return other


def support_value(f: Array, support: Array, dual: DualPoint) -> SupportValue:
    """The value of a support: an array of candidates' numbers, ascending."""
    xp = array_namespace(f)
    mass = row_sums(xp.take(f, support, axis=1))
    value = to_float(xp.sum(xp.take(dual.h, support)))
    return SupportValue(support, value - relative_entropy(mass, dual.p), mass)


def best_support(f: Array, dual: DualPoint) -> SupportValue:
    """The best support that can be found from those of the dual, for smoothed class sums f, (K, d).

    Not below the best of the supports of the dual, which is the published reconstruction.
    """
    best: SupportValue | None = None
    same = _SAME_VALUE * dual.value
    for support in dual.supports:
        best = support_value(f, support, dual).over(best, same)
    assert best is not None
    for support in dual.supports:
        best = _between(f, best, support, dual).over(best, same)
    if dual.value - best.value <= same or best.support.shape[0] == f.shape[1]:
        return best
    return _swapped(f, best, dual, same).over(best, same)


def _between(f: Array, one: SupportValue, other: Array, dual: DualPoint) -> SupportValue:
    """The best of the supports on a way from one to another, feature by feature.

    Where many features are alike, as rare words are, a kink is met by some of one kind and some of
    another.
    """
    xp = array_namespace(f)
    member = index_mask(one.support, f.shape[1])
    wanted = index_mask(other, f.shape[1])
    leave, enter = xp.nonzero(member & ~wanted)[0], xp.nonzero(wanted & ~member)[0]
    if leave.shape[0] == 0:
        return one
    leave = xp.flip(leave)
    steps = xp.cumulative_sum(xp.take(dual.h, enter) - xp.take(dual.h, leave))
    f_leave, f_enter = xp.take(f, leave, axis=1), xp.take(f, enter, axis=1)
    both = xp.take(f, xp.nonzero(member & wanted)[0], axis=1)
    rest = xp.sum(both, axis=1)[:, None] + _sums_after(f_leave)
    change = steps - _drop(rest + xp.cumulative_sum(f_enter, axis=1), dual.p)
    count = int(xp.argmax(ranking_key(change - xp.min(change)))) + 1
    kept = xp.nonzero(member & ~index_mask(leave[:count], f.shape[1]))[0]
    return support_value(f, xp.sort(xp.concat([kept, enter[:count]])), dual)


def _sums_after(f: Array) -> Array:
    """The sum of all columns after each one, of shape (K, j).

    (The mass that is left when features go is added up, not subtracted: of a few large features it
    would be rounding.)
    """
    xp = array_namespace(f)
    return xp.flip(_sums_before(xp.flip(f, axis=1)), axis=1)


def _sums_before(f: Array) -> Array:
    xp = array_namespace(f)
    return xp.concat([xp.zeros_like(f[:, :1]), xp.cumulative_sum(f[:, :-1], axis=1)], axis=1)


def _drop(mass: Array, p: list[float]) -> Array:
    """What the values of supports of ``mass`` (K, j) fall short of their sums at ``p``."""
    total = array_namespace(mass).sum(mass, axis=0)
    of_all = mass / total
    relative = sum_over_classes(lambda c, share: share * phi(of_all[c, ...] / share - 1), p, mass)
    return total * relative


def _least_drop(mass: Array, p: list[float]) -> Array:
    """No more than `_drop`, nearly it for p nearby, without logarithms: Pinsker's inequality."""
    xp = array_namespace(mass)
    total = xp.sum(mass, axis=0)
    distance = xp.sum(xp.abs(mass - total * backend_of(mass).asarray(p)[:, None]), axis=0)
    return distance * distance / (2 * total)


def _swapped(f: Array, at: SupportValue, dual: DualPoint, least: float) -> SupportValue:
    """The support after swaps of one feature inside the edge for one outside, while they help."""
    xp, k, h, p = array_namespace(f), f.shape[0], dual.h, dual.p
    member = index_mask(at.support, f.shape[1])
    inside, outside = xp.nonzero(member)[0], xp.nonzero(~member)[0]
    key = ranking_key(h)
    # Fewer where there are many classes: all pairs are tried, in each class.
    most = max(_LEAST_EDGE, min(_EDGE_FEATURES, math.isqrt(_SWAP_MASSES // k)))
    weak = top_k(-xp.take(key, inside), min(most, int(inside.shape[0])))
    strong = top_k(xp.take(key, outside), min(most, int(outside.shape[0])))
    # Swaps are told by the few features at the edge and the mass of the rest.
    edge = xp.sort(xp.concat([xp.take(inside, weak), xp.take(outside, strong)]))
    edge = xp.take(edge, xp.argsort(-xp.take(key, edge), stable=True))
    f_edge, h_edge, chosen = xp.take(f, edge, axis=1), xp.take(h, edge), xp.take(member, edge)
    rest = xp.nonzero(member & ~index_mask(edge, f.shape[1]))[0]
    fixed = row_sums(xp.take(f, rest, axis=1))[:, None]
    # Features with the same counts are side by side: of these one leaves, the last, or one enters.
    alike = xp.all(f_edge[:, 1:] == f_edge[:, :-1], axis=0)
    end = xp.ones_like(alike[:1])
    drop = relative_entropy(at.mass, p)
    for _ in range(_MOST_SWAPS):
        apart = ~(alike & (chosen[1:] == chosen[:-1]))
        inside = xp.nonzero(chosen)[0]
        leave = xp.nonzero(xp.take(xp.concat([apart, end]), inside))[0]
        enter = xp.nonzero(~chosen & xp.concat([end, apart]))[0]
        f_in, f_enter = xp.take(f_edge, inside, axis=1), xp.take(f_edge, enter, axis=1)
        left = xp.take(fixed + _sums_before(f_in) + _sums_after(f_in), leave, axis=1)
        leave = xp.take(inside, leave)
        steps = drop + xp.take(h_edge, enter)[None, :] - xp.take(h_edge, leave)[:, None]
        # A swap gains its step less its drop, so that few drops have to be told exactly.
        i, j = xp.nonzero(steps > least)
        steps = steps[steps > least]
        masses = xp.take(left, i, axis=1) + xp.take(f_enter, j, axis=1)
        near = xp.nonzero(steps - _least_drop(masses, p) > least)[0]
        if near.shape[0] == 0:
            break
        drops = _drop(xp.take(masses, near, axis=1), p)
        change = xp.take(steps, near) - drops
        best = int(xp.argmax(ranking_key(change - xp.min(change))))
        if to_float(change[best]) <= least:
            break
        swap, drop = int(near[best]), to_float(drops[best])
        chosen[int(leave[i[swap]])], chosen[int(enter[j[swap]])] = False, True
    support = xp.sort(xp.concat([rest, xp.take(edge, xp.nonzero(chosen)[0])]))
    return support_value(f, support, dual)
