"""Gains of Poisson, Gaussian and shrunken centers under permuted labels."""

from __future__ import annotations

from functools import lru_cache

from ..arrays.context import Context
from ..arrays.typing import Array
from ..blocks.block import Block, Strip
from ..blocks.labels import Labels
from ..blocks.samples import Samples
from .exposure import row_totals
from .gaussian import class_variances, gaussian_gain
from .permutation import NullGain, flat, of_shape
from .poisson import dispersion_divisor, poisson_dispersion, poisson_gain
from .scaling import EPS, scale_divisor, zero_up_to
from .shrunken import shrunken_size, standard_scale


def poisson_null_gain(
    block: Block, samples: Samples, alpha: float, kind: str, scale: str | None, ctx: Context
) -> NullGain:
    """Gains of sparse Poisson naive Bayes; the exposures of the classes go with the labels.

    Raises
    ------
    ValueError
        For a dispersion with row totals as exposures: sums of x^2 by the exposure are no function
        of the sums of x and x^2.
    """
    backend, xp, k, n = block.backend, block.backend.xp, samples.n_classes, block.shape[0]
    weight = backend.asarray(samples.class_weight)[:, None, None]
    if scale is not None and kind != "unit":
        raise ValueError(
            "permutation_gains takes scale='dispersion' with exposure=None only: use scale=None."
        )
    totals = row_totals(block, ctx) if kind == "total" else None

    @lru_cache(maxsize=1)
    def exposure(labels: Labels) -> Array:
        if totals is None:
            return weight
        return xp.stack([totals @ labels.indicator(c) for c in range(k)])[:, None, :]

    def gain(
        strip: Strip, start: int, stop: int, columns: Array, labels: Labels, ctx: Context
    ) -> Array:
        if scale is None:
            total = strip.label_sums(labels, start, stop)
            return poisson_gain(total, exposure(labels), alpha, n)
        total, centred = strip.label_moments(labels, start, stop)
        square = centred + total * (total / weight)
        divisor = dispersion_divisor(samples.class_weight, samples.count)
        dispersion = poisson_dispersion(total, weight, square, divisor)
        return poisson_gain(total, weight, alpha, n) / dispersion

    return gain


def gaussian_null_gain(samples: Samples, pooling: float, epsilon: float, ddof: int) -> NullGain:
    """Gains of sparse Gaussian naive Bayes; ``epsilon`` does not depend on the labels."""
    backend, xp, weight, n = (
        samples.backend,
        samples.backend.xp,
        samples.class_weight,
        len(samples.codes),
    )

    def gain(
        strip: Strip, start: int, stop: int, columns: Array, labels: Labels, ctx: Context
    ) -> Array:
        total, centred = (flat(part) for part in strip.label_moments(labels, start, stop))
        variance, between, of_all = class_variances(total, centred, weight, n, ddof, backend)
        found, _ = gaussian_gain(variance, between, weight, pooling, epsilon)
        found = xp.where(of_all > 0, found, xp.zeros_like(found))
        least = xp.zeros_like(found) + sum(weight) * (n * EPS) ** 2
        return of_shape(zero_up_to(least, found), labels)

    return gain


def shrunken_null_gain(samples: Samples, offset: float) -> NullGain:
    """Sizes max_c |d_c| of nearest shrunken centroids, with a given s0."""
    backend, weight, n = samples.backend, samples.class_weight, len(samples.codes)
    divisor = scale_divisor(samples, "pooled")

    def gain(
        strip: Strip, start: int, stop: int, columns: Array, labels: Labels, ctx: Context
    ) -> Array:
        total, centred = (flat(part) for part in strip.label_moments(labels, start, stop))
        sigma = standard_scale(total, centred, weight, n, divisor, backend) + offset
        return of_shape(shrunken_size(total, sigma, weight, n, backend), labels)

    return gain
