"""Sums of classes that blocks add to in place, and Chan's formula to merge centred ones.

T. Chan, G. Golub, R. LeVeque, "Updating formulae and a pairwise algorithm for computing sample
variances", 1979.
"""

from __future__ import annotations

from typing import NamedTuple

from ..arrays.backend import backend_of
from ..arrays.functions import row_sums
from ..arrays.namespace import array_namespace
from ..arrays.typing import Array


class RawSums(NamedTuple):
    """Sums of K classes that add up.

    Attributes
    ----------
    total : array of shape (K, m), float64
        Weighted sums of x.
    square : array of shape (K, m), float64, or None
        Weighted sums of x^2; of x^2 divided by the exposure, where samples have one.
    sum_of_squares : array of shape (K,), float64, or None
        Weighted sums of x^2 over all features.
    nonzero : array of shape (K, m), float64, or None
        Weighted numbers of values other than zero.
    """

    total: Array
    square: Array | None = None
    sum_of_squares: Array | None = None
    nonzero: Array | None = None

    def zeros_like(self) -> RawSums:
        """Sums of no samples, of the same shapes."""
        xp = array_namespace(self.total)
        others = (None if a is None else xp.zeros_like(a) for a in self[1:])
        return RawSums(xp.zeros_like(self.total), *others)


class CentredSums(NamedTuple):
    """Sums of K classes, with second moments about the class means.

    Attributes
    ----------
    class_weight : list of K floats
    total : array of shape (K, m), float64
        Weighted sums of x.
    centred : array of shape (K, m) or (K,), float64
        Weighted sums of squares about the class means; or these summed over the features.
    nonzero : array of shape (K, m), float64, or None
        Weighted numbers of values other than zero, which blocks count.
    """

    class_weight: list[float]
    total: Array
    centred: Array
    nonzero: Array | None = None

    def add(self, c: int, weight: float, total: Array, centred: Array) -> None:
        """Add the sums of more samples to those of class c, by Chan's formula.

        ``C = C_1 + C_2 + (mean_2 - mean_1)^2 W_1 W_2 / (W_1 + W_2)``.

        Parameters
        ----------
        c : int
        weight : float
            That of the samples.
        total : array of shape (m,)
            Their weighted sums.
        centred : array of shape (m,) or ()
            Their sums of squares about their mean, in the form that is kept here.
        """
        if weight == 0:
            return
        xp, before = array_namespace(total), self.class_weight[c]
        if before > 0:
            shift = total / weight - self.total[c, :] / before
            between = shift * shift * (before * weight / (before + weight))
            self.centred[c, ...] += between if self.centred.ndim == 2 else xp.sum(between)
        self.centred[c, ...] += centred
        self.total[c, :] += total
        self.class_weight[c] += weight

    def add_classes(self, weight: list[float], total: Array, centred: Array) -> None:
        """The same for all classes at once: K weights, (K, m) sums, (K, m) or (K,) squares."""
        pairs = list(zip(self.class_weight, weight, strict=True))
        backend = backend_of(total)
        before, new = (
            backend.asarray([w or 1.0 for w in of])[:, None] for of in (self.class_weight, weight)
        )
        harmonic = [a * b / (a + b) if a > 0 and b > 0 else 0.0 for a, b in pairs]
        shift = total / new - self.total / before
        between = shift * shift * backend.asarray(harmonic)[:, None]
        self.centred[...] += between if self.centred.ndim == 2 else row_sums(between)
        self.centred[...] += centred
        self.total[...] += total
        self.class_weight[:] = [a + b for a, b in pairs]
