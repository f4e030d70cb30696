"""Sparse Mahalanobis centers: Section IV-A of Calafiore & Fracastoro, with a full covariance."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from ..arrays.context import Context
from ..arrays.double_double import Double
from ..arrays.functions import UNIT_ROUNDOFF, to_float
from ..arrays.linalg import one_blas_thread, quadratic_forms
from ..arrays.typing import Array
from ..blocks import Block
from ..blocks.convert import as_block
from ..reductions.products import product
from ..reductions.segment_sums import LinearTerms
from ..statistics.cross_moments import CrossMoments
from .centers import SparseCenters
from .close_scores import PairForm, Rounding, pair_form
from .covariance import Shrinkage, whitening
from .decisions import (
    Decision,
    LinearDecision,
    LinearForm,
    PathTerms,
    linear_terms,
    of_priors,
    squared_distance_form,
)
from .l2 import centred_means, tied_mean


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
    total : array of shape (K, m), float64
        Class sums.
    shrinkage : Shrinkage
        How S was made.
    """

    ARRAYS: ClassVar[dict[str, tuple[str, ...]]] = {
        "gain": ("candidate",),
        "root": ("feature", "candidate"),
        "tied_center": ("feature",),
        "deviation": ("class", "candidate"),
        "total": ("class", "feature"),
    }
    mixes_features: ClassVar[bool] = True

    root: Array
    tied_center: Array
    deviation: Array
    total: Array
    shrinkage: Shrinkage

    def _at(self, columns: Array) -> tuple[Array, Array]:
        """The root and the deviations of some transformed features: (m, d) and (K, d)."""
        take = self.backend.xp.take
        return take(self.root, columns, axis=1), take(self.deviation, columns, axis=1)

    def centers_at(self, columns: Array) -> tuple[Array, Array]:
        """(free, tied) of some transformed features, of shapes (K, d) and (d,)."""
        root, deviation = self._at(columns)
        with one_blas_thread(self.backend):
            tied = self.tied_center @ root
        return tied + deviation, tied

    def decision(self, support: Array, log_prior: list[float]) -> Decision:
        """The decision on all features of X."""
        root, form = self._transformed_form(support, log_prior)
        with one_blas_thread(self.backend):
            rounding, coef = self._rounding(root, log_prior), root @ form.coef
        of_all = LinearForm(self.tied_center, coef, form.summed().offset, None, rounding)
        every, pairs = self.backend.arange(root.shape[0]), partial(self.pair_forms, support)
        return LinearDecision(every, of_all, log_prior, pairs)

    def _transformed_form(self, columns: Array, log_prior: list[float]) -> tuple[Array, LinearForm]:
        """Some columns of the root, and the decision on these features, less the tied center."""
        (root, deviation), tied = self._at(columns), self.backend.zeros(columns.shape[0])
        return root, squared_distance_form(deviation, tied, None, log_prior, self.backend)

    def path_terms(
        self, ranking: Array, log_prior: list[float], block: Block, ctx: Context
    ) -> PathTerms:
        """The terms of transformed features, less the tied center."""
        backend, (m, d) = self.backend, (self.root.shape[0], ranking.shape[0])
        root, form = self._transformed_form(ranking, log_prior)
        with one_blas_thread(backend):
            coef, constant = self._rounding(root, log_prior)
        found, every = linear_terms(form, backend.arange(d), log_prior), backend.arange(m)
        terms = LinearTerms(form.shift, form.coef, form.shift)  # the bound is that of the rows

        def read(rows: Block, ctx: Context) -> tuple[Block, Array]:
            found = product(rows, every, self.tied_center, root, ctx, bound_coef=4 * coef)
            return as_block(found[:, :-1], backend, checked=True), found[:, -1]

        return found._replace(
            terms=terms, offset_bound=4 * constant, compared_columns=every, read=read
        )

    def _rounding(self, root: Array, log_prior: list[float]) -> Rounding:
        """A bound on the rounding of the scores, to the first order."""
        xp, (m, d) = self.backend.xp, root.shape
        means = self.total / self.backend.asarray(list(self.class_weight))[:, None]
        theta = xp.max(xp.abs(means), axis=0)
        a = xp.max(xp.abs(means - self.tied_center), axis=0)
        root = xp.abs(root)
        transformed = a @ root  # at least the deviations
        error = (m + 4) * transformed + 4 * (theta @ root)  # of the deviations
        coef = 2 * (root @ (error + (m + d + 8) * transformed))
        square = transformed @ (2 * error + (d + 4) * transformed)
        square = square + 8 * (theta @ (root @ transformed))
        return Rounding(UNIT_ROUNDOFF * coef, UNIT_ROUNDOFF * square + of_priors(log_prior))

    def pair_forms(self, support: Array) -> Callable[[int, int], PairForm]:
        """The comparison of two classes, with the transformed features of ``support`` free."""
        xp, backend = self.backend.xp, self.backend
        root = xp.take(self.root, support, axis=1)

        def metric(x: Double) -> Double:
            with one_blas_thread(backend):
                product = root @ (xp.matrix_transpose(root) @ x.high)
            return Double(product, xp.zeros_like(product))

        return lambda c, r: pair_form(self.total, self.class_weight, (c, r), metric)


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
    parts = found.root, tied_center, deviation, moments.total, found.shrinkage
    return MahalanobisCenters(backend, tuple(weight), gain, loss, None, *parts)
