"""Gains of each model under permuted labels, and bounds on their rounding.

The bounds follow from those of sums of n terms, ``n u`` times the sum of their absolute values with
u = 2^-53, and hold with a margin for the observed and the permuted gain together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ..arrays.context import Context
from ..arrays.functions import array_namespace
from ..arrays.typing import Array
from ..blocks.block import Block
from ..reductions.column_panels import Panel
from ..reductions.permuted_columns import PermutedCodes
from ..statistics.base import Statistics
from ..statistics.class_sums import ClassSums, ExposedSums
from ..statistics.moments import ClassMoments
from .bernoulli import bernoulli_gain
from .data import row_totals
from .divergence import divergence
from .gaussian import class_variances, gaussian_gain
from .l1 import l1_loss, l1_medians, scaled_l1_gain
from .l2 import l2_gain, scaled_l2_gain
from .permutation import NullGain
from .poisson import dispersion_divisor, poisson_gain
from .scaling import EPS, Scale, scale_divisor, scale_of_sums, zero_up_to
from .shrunken import shrunken_size, standard_scale

_OF_MEANS = 2.0**-48  # of the mean of a class, by the sum of the absolute values of the column


def l2_null_gain(scale: str | None, sigma: Array | None) -> NullGain:
    """Gains of l2 centers.

    Parameters
    ----------
    scale : {None, "std", "pooled"}
    sigma : array of shape (m,), or None
        For "std", which does not depend on the labels.
    """

    def gain(panel: Panel, columns: Array, labels: PermutedCodes, ctx: Context) -> Array:
        samples = labels.samples
        if scale == "pooled":
            total, by_labels = _pooled_scale(panel, labels)
            return _of_shape(scaled_l2_gain(total, by_labels, samples), labels)
        total = _flat(panel.class_sums(labels, relative=True))
        found = _of_shape(l2_gain(total, samples.class_weight, samples.backend), labels)
        if sigma is None:
            return found
        of_columns = samples.backend.xp.take(sigma, columns)[:, None]
        return found / (of_columns * of_columns)

    def rounding(panel: Panel, columns: Array, labels: PermutedCodes, gain: Array) -> Array:
        xp, k = labels.samples.backend.xp, labels.samples.n_classes
        error = _OF_MEANS * math.sqrt(k) * panel.spread(1)
        if scale == "pooled":
            of_labels = _pooled_scale(panel, labels)[1].sigma
            variance = of_labels * of_labels * scale_divisor(labels.samples, "pooled")
            return _of_square(error / of_labels, gain) + gain * _share(
                _of_squares(panel, labels) / variance
            )
        return _of_square(error if sigma is None else error / xp.take(sigma, columns), gain)

    return NullGain(gain, rounding)


def l1_null_gain(scale: str | None, sigma: Array | None) -> NullGain:
    """Gains of l1 centers; the parameters are those of `l2_null_gain`."""

    def gain(panel: Panel, columns: Array, labels: PermutedCodes, ctx: Context) -> Array:
        samples = labels.samples

        def medians(lists: Any) -> tuple[Array, ...]:
            free, _, gain = l1_medians(lists)
            return (gain, l1_loss(lists, free)) if scale == "pooled" else (gain,)

        results = 2 if scale == "pooled" else 1
        found, *loss = panel.map_class_medians(medians, results, labels, ctx)
        if scale == "pooled":
            _, flat = _pooled_scale(panel, labels)
            by_labels = Scale(*(_of_shape(part, labels) for part in flat))
            return scaled_l1_gain(found, loss[0], by_labels, samples)
        return found if sigma is None else found / samples.backend.xp.take(sigma, columns)[:, None]

    def rounding(panel: Panel, columns: Array, labels: PermutedCodes, gain: Array) -> Array:
        # Distances between medians are at most a few times the mean of absolute values in a class.
        weight, xp = labels.samples.class_weight, labels.samples.backend.xp
        error = _OF_MEANS * sum(weight) / min(weight) * len(weight) * panel.spread(1)
        if scale == "pooled":
            of_labels = _pooled_scale(panel, labels)[1].sigma
            variance = of_labels * of_labels * scale_divisor(labels.samples, "pooled")
            return error / of_labels + gain * _share(_of_squares(panel, labels) / variance)
        return error if sigma is None else error / xp.take(sigma, columns)

    return NullGain(gain, rounding)


def bernoulli_null_gain(alpha: float) -> NullGain:
    """Gains of sparse Bernoulli naive Bayes."""

    def gain(panel: Panel, columns: Array, labels: PermutedCodes, ctx: Context) -> Array:
        total, samples = _flat(panel.class_sums(labels)), labels.samples
        found = bernoulli_gain(total, samples.class_weight, alpha, samples.backend)
        return _of_shape(found, labels)

    def rounding(panel: Panel, columns: Array, labels: PermutedCodes, gain: Array) -> Array:
        return _of_counts(gain * 0 + len(labels.samples.codes), labels, gain)

    return NullGain(gain, rounding)


def multinomial_null_gain(block: Block, alpha: float, ctx: Context) -> NullGain:
    """Gains of sparse multinomial naive Bayes: h_i(p) at p the shares of the classes in all."""
    m, xp = block.shape[1], block.backend.xp
    row_sums = row_totals(block, ctx)[:, None]

    @lru_cache(maxsize=1)
    def shares(labels: PermutedCodes) -> list[Array]:
        classes = range(labels.samples.n_classes)
        mass = [xp.sum(row_sums * labels.indicator(c), axis=0) + m * alpha for c in classes]
        all_mass = sum(mass[1:], mass[0])
        return [of_class / all_mass for of_class in mass]

    def gain(panel: Panel, columns: Array, labels: PermutedCodes, ctx: Context) -> Array:
        return divergence(panel.class_sums(labels) + alpha, shares(labels))

    def rounding(panel: Panel, columns: Array, labels: PermutedCodes, gain: Array) -> Array:
        total = xp.sum(panel.class_sums(labels)[:, :, 0] + alpha, axis=0)
        return _of_counts(total, labels, gain)

    return NullGain(gain, rounding)


def poisson_null_gain(
    block: Block, alpha: float, kind: str, scale: str | None, ctx: Context
) -> NullGain:
    """Gains of sparse Poisson naive Bayes; the exposures of the classes go with the labels.

    Raises
    ------
    ValueError
        For a dispersion with row totals as exposures: sums of x^2 by the exposure are no function
        of the sums of x and x^2.
    """
    backend, xp, n = block.backend, block.backend.xp, block.shape[0]
    if scale is not None and kind != "unit":
        raise ValueError(
            "permutation_gains takes scale='dispersion' with exposure=None only: use scale=None."
        )
    totals = row_totals(block, ctx) if kind == "total" else None

    @lru_cache(maxsize=1)
    def exposure(labels: PermutedCodes) -> Array:
        if totals is None:
            return backend.asarray(labels.samples.class_weight)[:, None, None]
        classes = range(labels.samples.n_classes)
        return xp.stack([totals @ labels.indicator(c) for c in classes])[:, None, :]

    def dispersion(panel: Panel, labels: PermutedCodes, total: Array) -> tuple[Array, Array]:
        """(`poisson_dispersion` from squares about the class means, what these are divided by)."""
        samples = labels.samples
        divisor = dispersion_divisor(samples.class_weight, samples.count)
        _, centred, _ = panel.class_moments(labels)
        some = total > 0
        share = xp.where(some, exposure(labels) / xp.where(some, total, 1.0), 0.0) / divisor
        return xp.maximum(xp.sum(centred * share, axis=0), 1.0), xp.sum(share, axis=0)

    def gain(panel: Panel, columns: Array, labels: PermutedCodes, ctx: Context) -> Array:
        total = panel.class_sums(labels)
        found = poisson_gain(total, exposure(labels), alpha, n)
        return found if scale is None else found / dispersion(panel, labels, total)[0]

    def rounding(panel: Panel, columns: Array, labels: PermutedCodes, gain: Array) -> Array:
        total = panel.class_sums(labels)
        counts = xp.sum(total, axis=0)[:, 0]
        if scale is None:
            return _of_counts(counts, labels, gain)
        found, share = (a[:, 0] for a in dispersion(panel, labels, total))
        of_squares = _of_squares(panel, labels) * share / found
        return _of_counts(counts / found, labels, gain) + gain * _share(of_squares)

    return NullGain(gain, rounding)


def gaussian_null_gain(pooling: float, epsilon: float, ddof: int) -> NullGain:
    """Gains of sparse Gaussian naive Bayes; ``epsilon`` does not depend on the labels."""

    def parts(panel: Panel, labels: PermutedCodes) -> tuple[Array, Array, Array]:
        """(gain, smoothed variances of the classes, variance of all samples)."""
        total, centred, shift = _moments(panel, labels)
        samples = labels.samples
        weight, backend, n = samples.class_weight, samples.backend, len(samples.codes)
        if min(weight) <= ddof:
            raise ValueError(
                f"ddof={ddof} leaves a class of {min(weight):g} samples, as some permutations have "
                "one, no degrees of freedom: use ddof=0."
            )
        found = class_variances(total, centred, weight, n, ddof, backend, shift)
        return *gaussian_gain(*found[:2], weight, pooling, epsilon), found[2]

    def gain(panel: Panel, columns: Array, labels: PermutedCodes, ctx: Context) -> Array:
        found, _, of_all = parts(panel, labels)
        xp, n = labels.samples.backend.xp, len(labels.samples.codes)
        least = xp.where(of_all > 0, xp.zeros_like(found) + n * (n * EPS) ** 2, math.inf)
        return _of_shape(zero_up_to(least, found), labels)

    def rounding(panel: Panel, columns: Array, labels: PermutedCodes, gain: Array) -> Array:
        _, smoothed, of_all = parts(panel, labels)
        samples = labels.samples
        xp, n = samples.backend.xp, len(samples.codes)
        # Half of the weight times an error of the logarithm of a variance, of each class and all.
        weight = samples.backend.asarray(samples.class_weight)[:, None]
        smoothed = xp.where((smoothed > 0) & (of_all > 0), smoothed, math.inf)
        squares = _of_squares(panel, labels)
        logs = xp.sum(weight * xp.log1p(squares / (weight * smoothed)), axis=0)
        within = xp.sum(weight * smoothed, axis=0)
        error = _OF_MEANS * panel.spread(1) * n / xp.sqrt(2 * within)
        return logs + _of_square(error, gain)

    return NullGain(gain, rounding)


def shrunken_null_gain(offset: float) -> NullGain:
    """Sizes max_c |d_c| of nearest shrunken centroids, with a given s0."""

    def gain(panel: Panel, columns: Array, labels: PermutedCodes, ctx: Context) -> Array:
        samples = labels.samples
        weight, n, backend = samples.class_weight, len(samples.codes), samples.backend
        total, s, shift = deviations(panel, labels)
        return _of_shape(shrunken_size(total, s + offset, weight, n, backend, shift), labels)

    def deviations(panel: Panel, labels: PermutedCodes) -> tuple[Array, Array, Array]:
        samples, (total, centred, shift) = labels.samples, _moments(panel, labels)
        weight, n, backend = samples.class_weight, len(samples.codes), samples.backend
        divisor = scale_divisor(samples, "pooled")
        return total, standard_scale(total, centred, weight, n, divisor, backend, shift), shift

    def rounding(panel: Panel, columns: Array, labels: PermutedCodes, gain: Array) -> Array:
        samples, xp = labels.samples, labels.samples.backend.xp
        _, s, _ = deviations(panel, labels)
        sigma = xp.where(s + offset > 0, s + offset, xp.ones_like(s))
        # An error of s^2 is one of s by its root where s is 0.
        of_square = _of_squares(panel, labels) / scale_divisor(samples, "pooled")
        root = s + xp.sqrt(of_square)
        of_s = of_square / xp.where(root > 0, root, xp.ones_like(root))
        n, largest = len(samples.codes), max(samples.class_weight)
        unit = math.sqrt(1 / largest - 1 / n)  # the least m_c
        error = _OF_MEANS * panel.spread(1) / (sigma * unit)
        return error + gain * _share(of_s / sigma)

    return NullGain(gain, rounding)


def _pooled_scale(panel: Panel, labels: PermutedCodes) -> tuple[Array, Scale]:
    """Class sums, and the scale within the classes, of each column and permutation: (K, b * p)."""
    samples, (total, centred, shift) = labels.samples, _moments(panel, labels)
    divisor = scale_divisor(samples, "pooled")
    return total, scale_of_sums(total, centred, samples, "pooled", divisor, shift)


def _moments(panel: Panel, labels: PermutedCodes) -> tuple[Array, Array, Array]:
    """`Panel.class_moments` of each column and permutation: (K, b * p) twice, and (b * p,)."""
    total, centred, shift = panel.class_moments(labels)
    xp = array_namespace(total)
    return _flat(total), _flat(centred), xp.repeat(shift, labels.count)


def _flat(sums: Array) -> Array:
    """(K, b, p) as (K, b * p): to the models each pair is one feature."""
    return array_namespace(sums).reshape(sums, (sums.shape[0], -1))


def _of_shape(gain: Array, labels: PermutedCodes) -> Array:
    """Gains of these pairs as (b, p)."""
    return array_namespace(gain).reshape(gain, (-1, labels.count))


def _sum_error(labels: PermutedCodes) -> float:
    """The relative error of sums over all samples, of a few of which a result is made."""
    return (len(labels.samples.codes) + 16) * 2.0**-50


def _of_square(error: Array, gain: Array) -> Array:
    """The rounding of a gain that is the square of what has this error."""
    return 2 * error * array_namespace(gain).sqrt(gain) + error * error


def _of_counts(total: Array, labels: PermutedCodes, gain: Array) -> Array:
    """The rounding of a sum of ``expected phi(z)``, where sums of counts have a relative error."""
    error = _sum_error(labels)
    return _of_square(error * array_namespace(total).sqrt(total), gain) + error * gain


def _of_squares(panel: Panel, labels: PermutedCodes) -> Array:
    """The error of a sum of squares about the class means, which is a difference: (b,)."""
    return _sum_error(labels) * panel.spread(2)


def _share(error: Array) -> Array:
    """What a relative error of the divisor takes off a quotient, at most: as a share of it."""
    return error / (1 + error)


# Gains without smoothing: half of the statistics of likelihood-ratio tests (Wilks 1938).
#
# Twice the gain is the statistic of the hypothesis that the parameters of a feature are equal in
# all classes. Under it the statistic is asymptotically chi-squared.


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
