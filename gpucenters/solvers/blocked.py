"""Gains within blocks: differences between donors, batches or sites count for nothing.

Each block has parameters of its own, and features are compared between the classes of a block. The
gain of a feature is what its own parameters for the classes of each block add to the
log-likelihood of one for each block.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ..arrays.backend import Backend
from ..arrays.context import Context
from ..arrays.functions import EPS, array_namespace, chi2_tail, f_tail, to_float, to_host
from ..arrays.typing import Array
from ..blocks.validation import raise_overflow
from ..statistics.base import Statistics
from .bernoulli import bernoulli_gain
from .gaussian import class_variances
from .poisson import dispersion_divisor, pearson_excess, poisson_gain
from .scaling import zero_up_to


class Blocked(NamedTuple):
    """The gains of m features within blocks, and tests of them, on the host.

    Attributes
    ----------
    gain : array of shape (m,), float64
    pvalues : array of shape (m,), float64
        Of tests of the gain without smoothing; 1 where nothing is tested.
    degrees : array of shape (m,), float64
        Their degrees of freedom; 0 where nothing is tested.
    centers : array of shape (K, m), float64
        Class centers standardised to the same blocks: means of those of the blocks that have all K
        classes, by the harmonic mean of the class weights there. NaN where there is none.
    """

    gain: Array
    pvalues: Array
    degrees: Array
    centers: Array


class WithinBlocks:
    """Sums over blocks, each of which may lack some of the classes.

    A subclass adds what is its own (`_add`) and solves (`_solve`).
    """

    def __init__(self, backend: Backend, n_classes: int, n_features: int) -> None:
        self.backend = backend
        self.n_classes = n_classes
        # Of all cells, which are the classes of each block.
        self.weight: list[float] = []
        self.count: list[int] = []
        self.gain, self.degrees = (backend.zeros(n_features) for _ in range(2))
        self._centers, self._shares = backend.zeros((n_classes, n_features)), 0.0

    def add(self, statistics: Any, ctx: Context) -> None:
        """Add a block: the statistics of the classes that it has, in their order."""
        k, m = statistics.shape
        self.weight += statistics.class_weight
        self.count += statistics.count
        size = self._size(statistics, ctx)
        column = self.backend.asarray(size)[:, None]
        whole = k == self.n_classes and min(size) > 0
        share = 1 / sum(1 / e for e in size) if whole else 0.0
        self._shares += share

        def add(part: slice) -> None:
            self._add(part, statistics, column)
            if whole:
                self._centers[:, part] += share * (statistics.total[:, part] / column)

        ctx.map_columns(add, m, k)

    def _size(self, statistics: Any, ctx: Context) -> list[float]:
        """What the sums of each class are divided by."""
        return statistics.class_weight

    def _add(self, part: slice, statistics: Any, size: Array) -> None:
        raise NotImplementedError

    def solve(self, ctx: Context) -> Blocked:
        """The gains, from all blocks; raises a ValueError where values overflow."""
        xp = self.backend.xp
        gain, statistic, residual = self._solve(ctx)
        if not bool(xp.all(xp.isfinite(gain))):
            raise_overflow(xp.isfinite(gain))
        degrees = to_host(self._tested)
        if residual is None:
            pvalues = chi2_tail(statistic, degrees)
        else:
            pvalues = f_tail(statistic, degrees, residual)
        centers = self._centers / (self._shares or math.nan)
        return Blocked(to_host(gain), pvalues, to_host(self.degrees), to_host(centers))

    @property
    def _tested(self) -> Array:
        """Degrees of freedom, 1 where nothing is tested: the statistic is 0 there."""
        return self.backend.xp.maximum(self.degrees, self.backend.xp.ones_like(self.degrees))

    def _solve(self, ctx: Context) -> tuple[Array, Array, float | None]:
        """(gain, statistic, residual degrees of freedom).

        The statistic is that of a likelihood-ratio test, twice the gain without smoothing; with
        residual degrees of freedom, the denominator's, that of an F test.
        """
        raise NotImplementedError


class BernoulliBlocks(WithinBlocks):
    """Of Bernoulli probabilities: the gains of the blocks add up."""

    def __init__(self, backend: Backend, n_classes: int, n_features: int, alpha: float) -> None:
        super().__init__(backend, n_classes, n_features)
        self.alpha, self.ratio = alpha, backend.zeros(n_features)

    def _add(self, part: slice, statistics: Statistics, size: Array) -> None:
        xp, weight, k = self.backend.xp, statistics.class_weight, statistics.shape[0]
        total = statistics.total[:, part]
        self.gain[part] += bernoulli_gain(total, statistics, self.alpha)
        self.ratio[part] += bernoulli_gain(total, statistics, 0.0)
        held = xp.sum(total, axis=0)
        self.degrees[part] += _where((held > 0) & (held < sum(weight)), k - 1)

    def _solve(self, ctx: Context) -> tuple[Array, Array, float | None]:
        return self.gain, 2 * self.ratio, None


class PoissonBlocks(WithinBlocks):
    """Of Poisson rates: the gains of the blocks add up; a dispersion is that within all cells."""

    def __init__(
        self, backend: Backend, n_classes: int, n_features: int, alpha: float, *, scaled: bool
    ) -> None:
        super().__init__(backend, n_classes, n_features)
        self.alpha, self.ratio = alpha, backend.zeros(n_features)
        self.excess = backend.zeros(n_features) if scaled else None

    def _size(self, statistics: Any, ctx: Context) -> list[float]:
        return statistics.class_exposure(ctx)

    def _add(self, part: slice, statistics: Any, size: Array) -> None:
        total, n, k = statistics.total[:, part], sum(statistics.count), statistics.shape[0]
        self.gain[part] += poisson_gain(total, size, self.alpha, n)
        self.ratio[part] += poisson_gain(total, size, 0.0, n)
        self.degrees[part] += _where(self.backend.xp.sum(total, axis=0) > 0, k - 1)
        if self.excess is not None:
            self.excess[part] += pearson_excess(total, size, statistics.square[:, part])

    def _solve(self, ctx: Context) -> tuple[Array, Array, float | None]:
        if self.excess is None:
            return self.gain, 2 * self.ratio, None
        xp, left = self.backend.xp, dispersion_divisor(self.weight, self.count)
        dispersion = xp.maximum(self.excess / left, xp.ones_like(self.excess))
        return self.gain / dispersion, 2 * self.ratio / self._tested / dispersion, left


class GaussianBlocks(WithinBlocks):
    """Of Gaussian means with one variance for all cells: the sums of squares of the blocks add up.

    ``gain = W/2 log(1 + B / (S + W e))`` where B is the sum of squares between the classes of a
    block, and S that within them, over all blocks: the likelihood ratio of a linear model with the
    blocks as fixed effects.
    """

    def __init__(
        self, backend: Backend, n_classes: int, n_features: int, var_smoothing: float
    ) -> None:
        super().__init__(backend, n_classes, n_features)
        self.var_smoothing = var_smoothing
        self.between, self.within = (backend.zeros(n_features) for _ in range(2))

    def _add(self, part: slice, statistics: Any, size: Array) -> None:
        total, weight = statistics.total[:, part], statistics.class_weight
        variance, between, _ = class_variances(total, statistics.centred_at(part), statistics, 0)
        self.within[part] += self.backend.xp.sum(size * variance, axis=0)
        self.between[part] += sum(weight) * between
        self.degrees[part] += float(len(weight) - 1)

    def _solve(self, ctx: Context) -> tuple[Array, Array, float | None]:
        xp, weight, n = self.backend.xp, sum(self.weight), sum(self.count)
        left = dispersion_divisor(self.weight, self.count, "the model of blocks")
        largest = to_float(xp.max(self.between + self.within)) / weight

        def ratio(smoothing: float) -> Array:
            floor = self.within + smoothing
            safe = xp.where(floor > 0, floor, xp.ones_like(floor))
            found = xp.where(floor > 0, self.between / safe, xp.full_like(floor, math.inf))
            return xp.where(self.between > 0, found, xp.zeros_like(found))

        smoothed = ratio(weight * self.var_smoothing * largest)
        if bool(xp.any(xp.isinf(smoothed))):
            raise ValueError(
                f"feature {int(xp.argmax(smoothed))} has no variance within the classes of the "
                "blocks, so that its gain has no bound: use var_smoothing above 0."
            )
        gain = weight / 2 * xp.log1p(smoothed)
        gain = zero_up_to(xp.zeros_like(gain) + weight * (n * EPS) ** 2, gain)
        return gain, ratio(0.0) / self._tested * left, left


def _where(condition: Array, number: float) -> Array:
    """The number where a condition holds, else 0."""
    xp = array_namespace(condition)
    return number * xp.astype(condition, xp.float64)
