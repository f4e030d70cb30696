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
    weight : list of K floats
    total : array of shape (K, m), float64
        Weighted sums.
    cross : array of shape (K, m, m) or (2, m, m), float64
        Weighted sums of (x - mean)(x - mean)' of each class; or, where ``final`` is given, their
        sum over the classes, and their sum with each divided by its final weight.
    final : sequence of K floats, or None
        W_c of all the data that will ever come.
    cubic : array of shape (K, m), float64, or None
        Weighted sums of ``|x - mean|^2 (x - mean)``.
    quartic : array of shape (K,), float64, or None
        Weighted sums of ``|x - mean|^4``.
    """

    weight: list[float]
    total: Array
    cross: Array
    cubic: Array | None
    quartic: Array | None

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
    cubic : array of shape (m,), or None
    quartic : float or array of no dimension, or None
    """

    weight: float
    total: Array
    products: Array
    cubic: Array | None
    quartic: Array | None


def add_scatter(into: ScatterSums, c: int, part: Scatter) -> None:
    """Add the scatter of more samples to that of class c, in place."""
    before, w, shift = into.weight[c], part.weight, None
    if before > 0 and w > 0:
        shift = part.total / w - into.total[c, :] / before
    products = part.products
    if into.quartic is not None:
        trace = array_namespace(products).linalg.trace(products)
        times = partial(matmul, products)
        assert part.cubic is not None
        assert part.quartic is not None
        add_fourth(into, c, w, shift, trace, part.cubic, part.quartic, times)
    if shift is not None:
        products = products + shift[:, None] * (shift * (before * w / (before + w)))
    into.total[c, :] += part.total
    into.weight[c] += w
    if into.final is None:
        into.cross[c, :, :] += products
    else:
        into.cross[0, :, :] += products
        into.cross[1, :, :] += products / into.final[c]


def add_fourth(
    into: ScatterSums,
    c: int,
    w: float,
    shift: Array | None,
    trace: Array,
    cubic: Array,
    quartic: Array,
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
    cubic, quartic : arrays of shape (m,) and ()
        Their moments about their mean.
    times : callable
        Multiplies their scatter by a vector.
    """
    assert into.cubic is not None
    assert into.quartic is not None
    if shift is not None:
        before, cross = into.weight[c], into.cross[c, :, :]
        here, there = shift * (before / (before + w)), -shift * (w / (before + w))
        old = array_namespace(cross).linalg.trace(cross), cross @ there, into.cubic[c, :]
        moved = _moved(there, before, *old, into.quartic[c])
        into.cubic[c, :], into.quartic[c] = moved
        cubic, quartic = _moved(here, w, trace, times(here), cubic, quartic)
    into.cubic[c, :] += cubic
    into.quartic[c] += quartic


def _moved(
    e: Array, weight: float, trace: Array, pull: Array, cubic: Array, quartic: Array
) -> tuple[Array, Array]:
    """Third and fourth moments about a point from which the mean lies at ``e``.

    By expansion of ``|r + e|^2 (r + e)`` and ``|r + e|^4``, where the residuals r sum to zero.
    ``trace`` is that of their scatter, and ``pull`` the product of their scatter with e.
    """
    far = e @ e
    third = cubic + trace * e + 2 * pull + (weight * far) * e
    fourth = quartic + 4 * (e @ cubic) + 4 * (e @ pull) + 2 * far * trace + weight * far * far
    return third, fourth
