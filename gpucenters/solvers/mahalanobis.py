"""Sparse Mahalanobis centers: Section IV-A of Calafiore & Fracastoro, with a full covariance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..arrays import errors
from ..arrays.convert import Block
from ..arrays.devices import Place
from ..arrays.groups import Groups
from ..arrays.ops import to_float
from ..arrays.products import one_blas_thread, quadratic_forms
from ..arrays.typing import Array
from ..arrays.work import Work
from .centers import SparseCenters
from .covariance import covariance_matrix, whitening
from .cross_moments import CrossMoments
from .l2 import deviations, tied_mean
from .scores import slope_and_offset


@dataclass(frozen=True)
class MahalanobisCenters(SparseCenters):
    """Sparse l2 centers of the features xi = S^(-1/2) x.

    Gain, free and tied are those of the transformed features.

    Attributes
    ----------
    root : array of shape (m, m), float64
        S^(-1/2), symmetric.
    middle : array of shape (m,), float64
        The mean of the class means, in the units of X.
    away : array of shape (K, m), float64
        Free less tied, transformed. (Formed from differences in X: the transformed means
        themselves would lose them where features have large offsets.)
    shrinkage : float
        How far S was shrunk.
    """

    root: Array
    middle: Array
    away: Array
    shrinkage: float

    def at(self, columns: Array | None = None) -> tuple[Array, Array]:
        """(free, tied) of some transformed features, of shapes (K, d) and (d,)."""
        xp = self.place.xp
        root = self.root if columns is None else xp.take(self.root, columns, axis=1)
        away = self.away if columns is None else xp.take(self.away, columns, axis=1)
        tied = self.middle @ root
        return tied + away, tied

    def to(self, place: Place) -> MahalanobisCenters:
        moved = {name: place.move(getattr(self, name)) for name in _ARRAYS}
        return replace(self, place=place, **moved)


_ARRAYS = ("gain", "root", "middle", "away")


def cross_moments(block: Block, groups: Groups, work: Work, *, fourth: bool) -> CrossMoments:
    """Moments of a block, seen whole.

    Raises
    ------
    ValueError
        For values that are not finite or whose squares overflow. Finiteness is read off the sums:
        only a bad sum starts the search for its row.
    """
    k, m = groups.n_classes, block.shape[1]
    moments = CrossMoments.empty(block.place, k, m, fourth=fourth, final=groups.weight)
    moments = moments.add(block, groups, work)
    # (Moments are taken about the mean, so a huge constant shows in the sums alone.)
    xp = block.place.xp
    most = to_float(xp.max(xp.abs(moments.total)))
    overflow = any(t - t != 0 for t in [most, *moments.traces()])
    if overflow or most > errors.LIMIT:
        block.check_finite(squares=True)
    if overflow:
        raise ValueError("the sums of squares of X overflow float64. Rescale the features.")
    return moments


def solve_mahalanobis(
    moments: CrossMoments, covariance: Any = "pooled", shrinkage: float | str | None = None
) -> MahalanobisCenters:
    """Sparse Mahalanobis centers from class moments, for every k at once.

    Parameters
    ----------
    moments : CrossMoments
        With third and fourth moments for "ledoit-wolf".
    covariance, shrinkage
        See `covariance_matrix`.

    Returns
    -------
    MahalanobisCenters

    Raises
    ------
    ValueError
        For a covariance that is singular (the rank is named) or, where it was given, not symmetric
        and positive definite.
    """
    place, xp, weight = moments.place, moments.place.xp, moments.weight
    with one_blas_thread(place):
        S, amount = covariance_matrix(moments, covariance, shrinkage)
        found = whitening(S, place, given=not isinstance(covariance, str))
        away = deviations(moments.total, weight, place) @ found.root
        gain = xp.sum(away * away, axis=0)
        # tr(S^-1 B) along the eigenvectors: a sum of terms that are not negative.
        spread = quadratic_forms(moments.mean_within(), found.vectors, place)
        loss = to_float(xp.sum(spread / found.values))
    if loss - loss != 0 or not bool(xp.all(xp.isfinite(gain))):
        raise ValueError(
            "the transformed features overflow float64: the scales of the features lie too far "
            "apart. Rescale X."
        )
    middle = tied_mean(moments.total / place.asarray(weight)[:, None])
    return MahalanobisCenters(
        place, tuple(weight), gain, loss, None, found.root, middle, away, amount
    )


def mahalanobis_form(
    centers: MahalanobisCenters, support: Array, log_prior: list[float]
) -> tuple[Array, Array, Array]:
    """The decision on X as (shift, coef, offset): score = (x - shift) @ coef + offset.

    As `linear_form` on the transformed features of the support, centred in X.

    Returns
    -------
    shift : array of shape (m,)
    coef : array of shape (m, K), or (m, 1) for two classes: class 1 less class 0
    offset : array of shape (K,) or (1,)
    """
    xp, place = centers.place.xp, centers.place
    root, away = (xp.take(a, support, axis=1) for a in (centers.root, centers.away))
    tied = place.zeros(support.shape[0])
    slope, offset = slope_and_offset(away, tied, None, log_prior, place)
    return centers.middle, root @ slope, offset
