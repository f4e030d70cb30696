"""Sparse Mahalanobis centers: Section IV-A of Calafiore & Fracastoro, with a full covariance."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from ..arrays.functions import to_float
from ..arrays.linalg import one_blas_thread, quadratic_forms
from ..arrays.typing import Array
from ..statistics.cross_moments import CrossMoments
from .centers import SparseCenters
from .covariance import Shrinkage
from .l2 import centred_means, tied_mean
from .linear_form import LinearForm, squared_distance_form
from .whitening import whitening


@dataclass(frozen=True)
class MahalanobisCenters(SparseCenters):
    """Sparse l2 centers of the features xi = S^(-1/2) x.

    Gain, free and tied are those of the transformed features.

    Attributes
    ----------
    root : array of shape (m, m), float64
        S^(-1/2), symmetric.
    tied_center : array of shape (m,), float64
        The mean of the class means, in the units of X.
    deviation : array of shape (K, m), float64
        Free less tied, transformed. Formed from differences in X, since the differences of the
        transformed means lose digits where features have large offsets.
    shrinkage : Shrinkage
        How S was made.
    """

    ARRAYS: ClassVar[tuple[str, ...]] = ("gain", "root", "tied_center", "deviation")

    root: Array
    tied_center: Array
    deviation: Array
    shrinkage: Shrinkage

    def centers_at(self, columns: Array | None = None) -> tuple[Array, Array]:
        """(free, tied) of some transformed features, of shapes (K, d) and (d,)."""
        xp = self.backend.xp
        root = self.root if columns is None else xp.take(self.root, columns, axis=1)
        deviation = self.deviation if columns is None else xp.take(self.deviation, columns, axis=1)
        with one_blas_thread(self.backend):
            tied = self.tied_center @ root
        return tied + deviation, tied

    def linear_form(self, support: Array, log_prior: list[float]) -> LinearForm:
        """The decision on all features of X: shift (m,), coef (m, q)."""
        xp, backend = self.backend.xp, self.backend
        root, deviation = (xp.take(a, support, axis=1) for a in (self.root, self.deviation))
        tied = backend.zeros(support.shape[0])
        form = squared_distance_form(deviation, tied, None, log_prior, backend, self.tied_center)
        with one_blas_thread(backend):
            return form._replace(coef=root @ form.coef)


def solve_mahalanobis(
    moments: CrossMoments,
    covariance: Any = "pooled",
    shrinkage: float | str | None = "auto",
    read_again: Callable[[], None] | None = None,
) -> MahalanobisCenters:
    """Sparse Mahalanobis centers from class moments, for every k at once.

    The l2 problem on xi = S^(-1/2) x: ``gain_i = sum_c d_ci^2``, where d_c is the mean of
    class c less the mean of the class means, times S^(-1/2); ``loss = tr(S^-1 B)``, where B is the
    sum of the scatter of each class divided by its weight. (Section IV-A.)

    Parameters
    ----------
    moments : CrossMoments
        With third and fourth moments for "ledoit-wolf".
    covariance : {"pooled", "total"} or array of shape (m, m)
        See `whitening`.
    shrinkage : float in [0, 1], "ledoit-wolf", "auto" or None
        See `whitening`.
    read_again : callable, optional
        Adds third and fourth moments to ``moments``; called where "auto" needs them.

    Returns
    -------
    MahalanobisCenters

    Raises
    ------
    ValueError
        For a covariance that is singular (the rank is named) unless ``shrinkage`` is "auto", or,
        where it was given, not symmetric and positive semi-definite.
    """
    backend, xp, weight = moments.backend, moments.backend.xp, moments.class_weight
    with one_blas_thread(backend):
        found = whitening(moments, covariance, shrinkage, read_again)
        deviation = centred_means(moments.total, weight, backend) @ found.root
        gain = xp.sum(deviation * deviation, axis=0)
        # tr(S^-1 B) along the eigenvectors: a sum of terms that are not negative.
        scatter = quadratic_forms(moments.mean_within(), found.vectors, backend)
        loss = to_float(xp.sum(scatter / found.values))
    if not math.isfinite(loss) or not bool(xp.all(xp.isfinite(gain))):
        raise ValueError(
            "the transformed features overflow float64: the scales of the features lie too far "
            "apart. Rescale X."
        )
    tied_center = tied_mean(moments.total / backend.asarray(weight)[:, None])
    parts = found.root, tied_center, deviation, found.shrinkage
    return MahalanobisCenters(backend, tuple(weight), gain, loss, None, *parts)
