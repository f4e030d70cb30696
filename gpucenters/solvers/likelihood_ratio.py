"""Gains without smoothing: half of the statistics of likelihood-ratio tests (Wilks 1938).

Twice the gain is the statistic of the hypothesis that the parameters of a feature are equal in all
classes. Under it the statistic is asymptotically chi-squared.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..arrays.context import Context
from ..arrays.typing import Array
from ..statistics.base import Statistics
from ..statistics.class_sums import ClassSums, ExposedSums
from ..statistics.moments import ClassMoments
from .bernoulli import bernoulli_gain
from .gaussian import class_variances, gaussian_gain
from .poisson import poisson_gain
from .scaling import EPS, zero_up_to


def bernoulli_ratio(sums: ClassSums, ctx: Context) -> Array:
    """Gains of Bernoulli probabilities: half of the G statistic of each 2 x K table, (m,)."""
    backend, weight = sums.backend, sums.class_weight
    return _of_columns(
        lambda part: bernoulli_gain(sums.total[:, part], weight, 0.0, backend), sums, ctx
    )


def poisson_ratio(sums: ExposedSums, ctx: Context) -> Array:
    """Gains of Poisson rates, without dispersion: (m,)."""
    exposure, n = sums.backend.asarray(sums.class_exposure(ctx))[:, None], sum(sums.count)
    return _of_columns(lambda part: poisson_gain(sums.total[:, part], exposure, 0.0, n), sums, ctx)


def gaussian_ratio(moments: ClassMoments, ctx: Context, pooling: float) -> Array:
    """Gains of Gaussian means and variances: (m,). Infinite for variances of zero."""
    backend, xp, weight = moments.backend, moments.backend.xp, moments.class_weight
    n = sum(moments.count)

    def gain(part: slice) -> Array:
        parts = moments.total[:, part], moments.centred_at(part)
        variance, between, of_all = class_variances(*parts, weight, n, 0, backend)
        found, u = gaussian_gain(variance, between, weight, pooling, 0.0)
        found = zero_up_to(xp.zeros_like(found) + sum(weight) * (n * EPS) ** 2, found)
        found = xp.where(xp.any(u <= 0, axis=0), xp.full_like(found, math.inf), found)
        return xp.where(of_all > 0, found, xp.zeros_like(found))

    return _of_columns(gain, moments, ctx)


def _of_columns(gain: Callable[[slice], Array], statistics: Statistics, ctx: Context) -> Array:
    k, m = statistics.shape
    return ctx.backend.xp.concat(ctx.map_columns(gain, m, k))
