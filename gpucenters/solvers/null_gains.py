"""Gains of each model under permuted labels, and bounds on their rounding.

The bounds follow from those of sums of n terms, ``n u`` times the sum of their absolute values with
u = 2^-53, and hold with a margin for the observed and the permuted gain together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..arrays.backend import Backend
from ..arrays.context import Context
from ..arrays.functions import array_namespace
from ..arrays.typing import Array
from ..blocks import Block
from ..blocks.samples import Samples
from ..reductions.column_panels import Panel
from ..reductions.permuted_columns import PermutedCodes
from .bernoulli import bernoulli_gain
from .divergence import divergence
from .gaussian import class_variances, gaussian_gain
from .l1 import l1_loss, l1_medians, scaled_l1_gain
from .l2 import l2_gain, scaled_l2_gain
from .poisson import dispersion_divisor, poisson_gain
from .scaling import Scale, scale_divisor, scale_of_sums
from .shrunken import shrunken_size, standard_scale
from .user_input import row_totals

_OF_MEANS = 2.0**-48  # of the mean of a class, by the sum of the absolute values of the column


@dataclass(frozen=True)
class Run:
    """A run of columns under p permutations of the labels: to a model b * p features."""

    panel: Panel
    columns: Array  # their numbers in X: integers, (b,)
    labels: PermutedCodes
    ctx: Context

    @property
    def samples(self) -> Samples:
        """Those of one of the permutations: each has as many of each class."""
        return self.labels.samples

    @property
    def backend(self) -> Backend:
        """That of the columns."""
        return self.labels.samples.backend

    def sums(self, *, relative: bool = False) -> Array:
        """Class sums, of values less the shift of their column if ``relative``: (K, b, p)."""
        return self.panel.class_sums(self.labels, relative=relative)

    def moments(self) -> tuple[Array, Array, Array]:
        """Relative class sums, squares about the class means, and shifts: (K, b * p), (b * p,)."""
        total, centred, shift = self.panel.class_moments(self.labels)
        return _flat(total), _flat(centred), self.backend.xp.repeat(shift, self.labels.count)

    def pooled_scale(self) -> tuple[Array, Scale]:
        """Relative class sums, and the scale within the classes: (K, b * p), (b * p,)."""
        total, centred, shift = self.moments()
        divisor = scale_divisor(self.samples, "pooled")
        return total, scale_of_sums(total, centred, self.samples, "pooled", divisor, shift)

    def shaped(self, gain: Array) -> Array:
        """The gains of all pairs of a column and a permutation as (b, p)."""
        return self.backend.xp.reshape(gain, (-1, self.labels.count))

    @property
    def sum_error(self) -> float:
        """The relative error of sums over all samples, of a few of which a result is made."""
        return (len(self.samples.codes) + 16) * 2.0**-50

    def mean_error(self) -> Array:
        """The error of class means by the weight of a sample: (b,)."""
        return _OF_MEANS * self.panel.spread(1)

    def square_error(self) -> Array:
        """The error of a sum of squares about the class means, which is a difference: (b,)."""
        return self.sum_error * self.panel.spread(2)

    def count_error(self, total: Array, gain: Array) -> Array:
        """That of a sum of ``expected phi(z)`` over counts, of which there are ``total``: (b,)."""
        error = self.sum_error
        return _of_square(error * array_namespace(total).sqrt(total), gain) + error * gain


@dataclass(frozen=True)
class NullGain:
    """The gain of a model under permuted labels, and what rounding may change of it.

    Attributes
    ----------
    gain : callable
        ``gain(run)``: the gains of a `Run`, (b, p) or (b * p,).
    rounding : callable
        ``rounding(run, gain)``: how far two gains that are equal in exact arithmetic may lie apart
        where one is the ``gain`` (b,) of the observed labels, those of the run: not negative, (b,).
        What a few operations on the gain itself change need not be counted.
    """

    gain: Callable[[Run], Array]
    rounding: Callable[[Run, Array], Array]


def l2_null_gain(scale: str | None, sigma: Array | None) -> NullGain:
    """Gains of l2 centers; ``sigma``, (m,), is the scale "std", the same for all labels."""

    def gain(run: Run) -> Array:
        if scale == "pooled":
            return scaled_l2_gain(*run.pooled_scale(), run.samples)
        total = _flat(run.sums(relative=True))
        found = run.shaped(l2_gain(total, run.samples.class_weight, run.backend))
        if sigma is None:
            return found
        of_columns = run.backend.xp.take(sigma, run.columns)[:, None]
        return found / (of_columns * of_columns)

    def rounding(run: Run, gain: Array) -> Array:
        error = math.sqrt(run.samples.n_classes) * run.mean_error()
        error, lost = _scaled_error(run, error, scale, sigma)
        return _of_square(error, gain) + gain * lost

    return NullGain(gain, rounding)


def l1_null_gain(scale: str | None, sigma: Array | None) -> NullGain:
    """Gains of l1 centers; the parameters are those of `l2_null_gain`."""

    def gain(run: Run) -> Array:
        samples = run.samples

        def medians(lists: Any) -> tuple[Array, ...]:
            free, _, gain = l1_medians(lists)
            return (gain, l1_loss(lists, free)) if scale == "pooled" else (gain,)

        results = 2 if scale == "pooled" else 1
        found, *loss = run.panel.map_class_medians(medians, results, run.labels, run.ctx)
        if scale == "pooled":
            by_labels = Scale(*map(run.shaped, run.pooled_scale()[1]))
            return scaled_l1_gain(found, loss[0], by_labels, samples)
        return found if sigma is None else found / run.backend.xp.take(sigma, run.columns)[:, None]

    def rounding(run: Run, gain: Array) -> Array:
        # Distances between medians are at most a few times the mean of absolute values in a class.
        weight = run.samples.class_weight
        error = sum(weight) / min(weight) * len(weight) * run.mean_error()
        error, lost = _scaled_error(run, error, scale, sigma)
        return error + gain * lost

    return NullGain(gain, rounding)


def bernoulli_null_gain(alpha: float) -> NullGain:
    """Gains of sparse Bernoulli naive Bayes."""

    def gain(run: Run) -> Array:
        return bernoulli_gain(_flat(run.sums()), run.samples, alpha)

    def rounding(run: Run, gain: Array) -> Array:
        return run.count_error(gain * 0 + len(run.samples.codes), gain)

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

    def gain(run: Run) -> Array:
        return divergence(run.sums() + alpha, shares(run.labels))

    def rounding(run: Run, gain: Array) -> Array:
        return run.count_error(xp.sum(run.sums()[:, :, 0] + alpha, axis=0), gain)

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

    def dispersion(run: Run, total: Array) -> tuple[Array, Array]:
        """(`poisson_dispersion` from squares about the class means, what these are divided by)."""
        divisor = dispersion_divisor(run.samples.class_weight, run.samples.count)
        _, centred, _ = run.panel.class_moments(run.labels)
        some = total > 0
        share = xp.where(some, exposure(run.labels) / xp.where(some, total, 1.0), 0.0) / divisor
        return xp.maximum(xp.sum(centred * share, axis=0), 1.0), xp.sum(share, axis=0)

    def gain(run: Run) -> Array:
        total = run.sums()
        found = poisson_gain(total, exposure(run.labels), alpha, n)
        return found if scale is None else found / dispersion(run, total)[0]

    def rounding(run: Run, gain: Array) -> Array:
        total = run.sums()
        counts = xp.sum(total, axis=0)[:, 0]
        if scale is None:
            return run.count_error(counts, gain)
        found, share = (a[:, 0] for a in dispersion(run, total))
        lost = _share(run.square_error() * share / found)
        return run.count_error(counts / found, gain) + gain * lost

    return NullGain(gain, rounding)


def gaussian_null_gain(pooling: float, epsilon: float, ddof: int) -> NullGain:
    """Gains of sparse Gaussian naive Bayes; ``epsilon`` does not depend on the labels."""

    def gain_and_variances(run: Run) -> tuple[Array, Array, Array]:
        """(gain, smoothed variances of the classes, variance of all samples)."""
        least = min(run.samples.class_weight)
        if least <= ddof:
            raise ValueError(
                f"ddof={ddof} leaves a class of {least:g} samples, as some permutations have one, "
                "no degrees of freedom: use ddof=0."
            )
        total, centred, shift = run.moments()
        variance, between, of_all = class_variances(total, centred, run.samples, ddof, shift)
        return *gaussian_gain(variance, between, run.samples, pooling, epsilon), of_all

    def rounding(run: Run, gain: Array) -> Array:
        _, smoothed, of_all = gain_and_variances(run)
        xp, n = run.backend.xp, len(run.samples.codes)
        # Half of the weight times an error of the logarithm of a variance, of each class and all.
        weight = run.backend.asarray(run.samples.class_weight)[:, None]
        smoothed = xp.where((smoothed > 0) & (of_all > 0), smoothed, math.inf)
        logs = xp.sum(weight * xp.log1p(run.square_error() / (weight * smoothed)), axis=0)
        within = xp.sum(weight * smoothed, axis=0)
        return logs + _of_square(run.mean_error() * n / xp.sqrt(2 * within), gain)

    return NullGain(lambda run: gain_and_variances(run)[0], rounding)


def shrunken_null_gain(offset: float) -> NullGain:
    """Sizes max_c |d_c| of nearest shrunken centroids, with a given s0."""

    def deviations(run: Run) -> tuple[Array, Array, Array]:
        """(relative class sums, s, shift)."""
        total, centred, shift = run.moments()
        divisor = scale_divisor(run.samples, "pooled")
        return total, standard_scale(total, centred, run.samples, divisor, shift), shift

    def gain(run: Run) -> Array:
        total, s, shift = deviations(run)
        return shrunken_size(total, s + offset, run.samples, shift)

    def rounding(run: Run, gain: Array) -> Array:
        xp, (_, s, _) = run.backend.xp, deviations(run)
        sigma = xp.where(s + offset > 0, s + offset, xp.ones_like(s))
        # An error of s^2 is one of s by its root where s is 0.
        of_square = run.square_error() / scale_divisor(run.samples, "pooled")
        root = s + xp.sqrt(of_square)
        of_s = of_square / xp.where(root > 0, root, xp.ones_like(root))
        n, largest = len(run.samples.codes), max(run.samples.class_weight)
        unit = math.sqrt(1 / largest - 1 / n)  # the least m_c
        return run.mean_error() / (sigma * unit) + gain * _share(of_s / sigma)

    return NullGain(gain, rounding)


def _flat(sums: Array) -> Array:
    """(K, b, p) as (K, b * p)."""
    return array_namespace(sums).reshape(sums, (sums.shape[0], -1))


def _of_square(error: Array, gain: Array) -> Array:
    """The rounding of a gain that is the square of what has this error."""
    return 2 * error * array_namespace(gain).sqrt(gain) + error * error


def _share(error: Array) -> Array:
    """What a relative error of the divisor takes off a quotient, at most: as a share of it."""
    return error / (1 + error)


def _scaled_error(
    run: Run, error: Array, scale: str | None, sigma: Array | None
) -> tuple[Array, Array | float]:
    """(an error in units of the scale, the share of a gain that the scale's own may take off)."""
    if scale == "pooled":
        of_labels = run.pooled_scale()[1].sigma
        variance = of_labels * of_labels * scale_divisor(run.samples, "pooled")
        return error / of_labels, _share(run.square_error() / variance)
    return (error if sigma is None else error / run.backend.xp.take(sigma, run.columns)), 0.0
