"""Scatter matrices of classes, with third and fourth moments, and how parts of them are merged.

Chan's formula, generalised to matrices: the scatter of two sets of samples is the sum of theirs and
``shift shift' a b / (a + b)``, where shift is the difference of their means and a, b their weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import matmul
from typing import Protocol

from ..arrays.namespace import array_namespace
from ..arrays.typing import Array


class ScatterSums(Protocol):
    """What scatter matrices are added to, in place.

    Attributes
    ----------
    class_weight : list of K floats
    total : array of shape (K, m), float64
        Weighted sums.
    scatter : array of shape (K, m, m) or (2, m, m), float64
        Weighted sums of (x - mean)(x - mean)' of each class; or, where ``final`` is given, their
        sum over the classes, and their sum with each divided by its final weight.
    final : sequence of K floats, or None
        W_c of the complete data.
    third_moment : array of shape (K, m), float64, or None
        Weighted sums of ``|x - mean|^2 (x - mean)``.
    fourth_moment : array of shape (K,), float64, or None
        Weighted sums of ``|x - mean|^4``.
    """

    class_weight: list[float]
    total: Array
    scatter: Array
    third_moment: Array | None
    fourth_moment: Array | None

    @property
    def final(self) -> Sequence[float] | None: ...


@dataclass(frozen=True)
class Scatter:
    """What the samples of one class add up to; all but ``total`` are about their mean.

    Attributes
    ----------
    weight : float
    total : array of shape (m,)
    products : array of shape (m, m)
    third_moment : array of shape (m,), or None
    fourth_moment : float or array of no dimension, or None
    """

    weight: float
    total: Array
    products: Array
    third_moment: Array | None
    fourth_moment: Array | None


def add_scatter(into: ScatterSums, c: int, part: Scatter) -> None:
    """Add the scatter of more samples to that of class c, in place."""
    before, w, shift = into.class_weight[c], part.weight, None
    if before > 0 and w > 0:
        shift = part.total / w - into.total[c, :] / before
    products = part.products
    if into.fourth_moment is not None:
        trace = array_namespace(products).linalg.trace(products)
        times = partial(matmul, products)
        assert part.third_moment is not None
        assert part.fourth_moment is not None
        add_fourth(into, c, w, shift, trace, part.third_moment, part.fourth_moment, times)
    if shift is not None:
        products = products + shift[:, None] * (shift * (before * w / (before + w)))
    into.total[c, :] += part.total
    into.class_weight[c] += w
    if into.final is None:
        into.scatter[c, :, :] += products
    else:
        into.scatter[0, :, :] += products
        into.scatter[1, :, :] += products / into.final[c]


def add_fourth(
    into: ScatterSums,
    c: int,
    w: float,
    shift: Array | None,
    trace: Array,
    third: Array,
    fourth: Array,
    times: Callable[[Array], Array],
) -> None:
    """Add third and fourth moments of more samples to those of class c, before their scatter.

    Parameters
    ----------
    into : ScatterSums
    c : int
    w : float
        The weight of the samples.
    shift : array of shape (m,), or None
        Their mean less that of the class so far.
    trace : array of no dimension
        The trace of their scatter.
    third, fourth : arrays of shape (m,) and ()
        Their moments about their mean.
    times : callable
        Multiplies their scatter by a vector.
    """
    assert into.third_moment is not None
    assert into.fourth_moment is not None
    if shift is not None:
        before, scatter, xp = into.class_weight[c], into.scatter[c, :, :], array_namespace(shift)
        here, there = shift * (before / (before + w)), -shift * (w / (before + w))
        old = into.third_moment[c, :], into.fourth_moment[c]
        moved = _about(there, before, xp.linalg.trace(scatter), scatter @ there, *old)
        into.third_moment[c, :], into.fourth_moment[c] = moved
        third, fourth = _about(here, w, trace, times(here), third, fourth)
    into.third_moment[c, :] += third
    into.fourth_moment[c] += fourth


def _about(
    e: Array, weight: float, trace: Array, scatter_e: Array, third: Array, fourth: Array
) -> tuple[Array, Array]:
    """Third and fourth moments about the point ``mean - e``, from those about the mean.

    By expansion of ``|r + e|^2 (r + e)`` and ``|r + e|^4``, where the residuals r sum to zero.
    ``trace`` is that of their scatter, and ``scatter_e`` the product of their scatter with e.
    """
    norm2 = e @ e
    new_third = third + trace * e + 2 * scatter_e + (weight * norm2) * e
    new_fourth = fourth + 4 * (e @ third) + 4 * (e @ scatter_e)
    return new_third, new_fourth + 2 * norm2 * trace + weight * norm2 * norm2
