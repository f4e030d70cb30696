"""Chan's formula: sums of squares about the means of two sets of samples, merged.

T. Chan, G. Golub, R. LeVeque, "Updating formulae and a pairwise algorithm for computing sample
variances", 1979.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..arrays.namespace import array_namespace
from ..arrays.typing import Array


@dataclass(frozen=True)
class CentredSums:
    """Sums of K classes, to be added to in place.

    Attributes
    ----------
    weight : list of K floats
    total : array of shape (K, m), float64
        Weighted sums.
    centred : array of shape (K, m) or (K,), float64
        Weighted sums of squares about the class means; or these summed over the features.
    """

    weight: list[float]
    total: Array
    centred: Array


def add_centred(into: CentredSums, c: int, weight: float, total: Array, centred: Array) -> None:
    """Add the sums of more samples to those of class c, in place.

    Parameters
    ----------
    into : CentredSums
    c : int
    weight : float
        That of the samples.
    total : array of shape (m,)
        Their weighted sums.
    centred : array of shape (m,) or ()
        Their sums of squares about their mean, in the form that ``into`` has.
    """
    if weight == 0:
        return
    xp, before = array_namespace(total), into.weight[c]
    if before > 0:
        shift = total / weight - into.total[c, :] / before
        between = shift * shift * (before * weight / (before + weight))
        into.centred[c, ...] += between if into.centred.ndim == 2 else xp.sum(between)
    into.centred[c, ...] += centred
    into.total[c, :] += total
    into.weight[c] += weight
