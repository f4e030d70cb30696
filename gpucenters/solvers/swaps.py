"""From the dual to a support: between the sides of a kink, then swaps at the edge.

The value of a support D, a constant aside, is the least sum of h_i(p) over D, taken at its own
p = B / sum(B). For another support D' with masses B' and shares p'

    value(D') = (sum of h_i(p) over D') - sum(B') * (relative entropy of p' to p),

so that a change is told by what goes in and out, without sums over all of D.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..arrays.functions import array_namespace, index_mask, to_float, to_floats, top_k
from ..arrays.typing import Array
from .divergence import divergence, kl_divergence
from .selection import ranking_key

_EDGE_FEATURES = 128  # features on either side of the edge that are tried in swaps
_LEAST_EDGE = 8
_SWAP_MASSES = 2**20  # masses of classes that are computed for one swap
_MOST_SWAPS = 200
_SAME_VALUE = 1e-13  # relative difference of values that is rounding


@dataclass(frozen=True)
class SupportValue:
    """A support and its value.

    Attributes
    ----------
    support : array of int64 of shape (k,)
        Ascending.
    p : list of K floats
        B / sum(B).
    value : float
        The sum of h_i(p) over the support.
    h : array of shape (d,)
        h_i(p) of all candidates.
    mass : array of shape (K,)
        B.
    """

    support: Array
    p: list[float]
    value: float
    h: Array
    mass: Array

    def over(self, other: SupportValue | None) -> SupportValue:
        """The one of larger value; of equal ones the lexicographically smaller support."""
        if other is None or self.value > other.value + _SAME_VALUE * abs(other.value):
            return self
        if other.value > self.value + _SAME_VALUE * abs(self.value):
            return other
        xp = array_namespace(self.support)
        differ = xp.nonzero(self.support != other.support)[0]
        if differ.shape[0] and int(self.support[differ[0]]) < int(other.support[differ[0]]):
            return self
        return other


def support_value(f: Array, support: Array) -> SupportValue:
    """The value of a support: an array of candidates' numbers, ascending."""
    xp = array_namespace(f)
    mass = xp.sum(xp.take(f, support, axis=1), axis=1)
    p = _shares(mass)
    h = divergence(f, p)
    return SupportValue(support, p, to_float(xp.sum(xp.take(h, support))), h, mass)


def best_support(f: Array, supports: list[Array], h: Array, bound: float) -> SupportValue:
    """The best support that can be found from those of the dual.

    Parameters
    ----------
    f : array of shape (K, d), float64, positive
    supports : list of arrays of shape (k,)
        The k largest at the dual solution, and on all sides of it.
    h : array of shape (d,)
        h_i at the dual solution: it says which features are at the edge.
    bound : float
        What no support exceeds.

    Returns
    -------
    Primal
        Not below the best of ``supports``, which is the published reconstruction.
    """
    best: SupportValue | None = None
    for support in supports:
        best = support_value(f, support).over(best)
    assert best is not None
    for support in supports:
        best = _between(f, best, support).over(best)
    if bound - best.value <= _SAME_VALUE * bound or best.support.shape[0] == f.shape[1]:
        return best
    return _swapped(f, best, h).over(best)


def _between(f: Array, one: SupportValue, other: Array) -> SupportValue:
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
    steps = xp.cumulative_sum(xp.take(one.h, enter) - xp.take(one.h, leave))
    f_leave, f_enter = xp.take(f, leave, axis=1), xp.take(f, enter, axis=1)
    both = xp.take(f, xp.nonzero(member & wanted)[0], axis=1)
    rest = xp.sum(both, axis=1)[:, None] + _sums_after(f_leave)
    change = steps - _drop(rest + xp.cumulative_sum(f_enter, axis=1), one.p)
    count = int(xp.argmax(ranking_key(change - xp.min(change)))) + 1
    kept = xp.nonzero(member & ~index_mask(leave[:count], f.shape[1]))[0]
    return support_value(f, xp.sort(xp.concat([kept, enter[:count]])))


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
    xp = array_namespace(mass)
    mass = xp.permute_dims(mass, (1, 0))
    total = xp.sum(mass, axis=1)
    return total * kl_divergence(mass / total[:, None], p)


def _swapped(f: Array, at: SupportValue, h: Array) -> SupportValue:
    """The support after swaps of one feature inside the edge for one outside, while they help."""
    xp, k = array_namespace(f), f.shape[0]
    member = index_mask(at.support, f.shape[1])
    inside, outside = xp.nonzero(member)[0], xp.nonzero(~member)[0]
    key = ranking_key(h)
    # Fewer where there are many classes: all pairs are tried, in each class.
    most = max(_LEAST_EDGE, min(_EDGE_FEATURES, math.isqrt(_SWAP_MASSES // k)))
    weak = top_k(-xp.take(key, inside), min(most, int(inside.shape[0])))
    strong = top_k(xp.take(key, outside), min(most, int(outside.shape[0])))
    # Swaps are told by the few features at the edge and the mass of the rest.
    edge = xp.sort(xp.concat([xp.take(inside, weak), xp.take(outside, strong)]))
    f_edge, chosen, mass = xp.take(f, edge, axis=1), xp.take(member, edge), at.mass
    rest = xp.nonzero(member & ~index_mask(edge, f.shape[1]))[0]
    fixed = xp.sum(xp.take(f, rest, axis=1), axis=1)[:, None]
    for _ in range(_MOST_SWAPS):
        p = _shares(mass)
        h = divergence(f_edge, p)
        # (Of pairs that are alike, the first: the last feature leaves, and the first enters.)
        leave, enter = xp.flip(xp.nonzero(chosen)[0]), xp.nonzero(~chosen)[0]
        f_leave, f_enter = xp.take(f_edge, leave, axis=1), xp.take(f_edge, enter, axis=1)
        steps = xp.take(h, enter)[None, :] - xp.take(h, leave)[:, None]
        # A swap gains no more than its step, so that few have to be told exactly.
        least = _SAME_VALUE * at.value
        i, j = xp.nonzero(steps > least)
        if i.shape[0] == 0:
            break
        left = fixed + _sums_before(f_leave) + _sums_after(f_leave)
        masses = xp.take(left, i, axis=1) + xp.take(f_enter, j, axis=1)
        change = steps[steps > least] - _drop(masses, p)
        best = int(xp.argmax(ranking_key(change - xp.min(steps))))
        if to_float(change[best]) <= least:
            break
        chosen[int(leave[i[best]])], chosen[int(enter[j[best]])] = False, True
        mass = masses[:, best]
    return support_value(f, xp.sort(xp.concat([rest, xp.take(edge, xp.nonzero(chosen)[0])])))


def _shares(mass: Array) -> list[float]:
    b = to_floats(mass)
    return [x / sum(b) for x in b]
