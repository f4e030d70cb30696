"""Gains under permuted labels, and how often they reach the observed ones.

Westfall & Young, *Resampling-Based Multiple Testing*, 1993 (maximum of the gains, step-down);
Tusher, Tibshirani & Chu, "Significance analysis of microarrays", PNAS 98, 2001 (SAM).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, Self

from ..arrays.context import Context
from ..arrays.functions import array_namespace, running_max, to_host
from ..arrays.linalg import one_blas_thread
from ..arrays.thresholds import Thresholds
from ..arrays.typing import Array
from ..blocks.block import Block, Strip
from ..blocks.labels import Labels
from ..blocks.samples import Samples
from .bernoulli import bernoulli_gain
from .divergence import divergence
from .exposure import row_totals
from .l1 import l1_loss, l1_medians, scaled_l1_gain
from .l2 import l2_gain, scaled_l2_gain
from .scaling import Scale, scale_divisor, scale_of_sums
from .selection import ranking_key

_BYTES_PER_GAIN = 160  # workspace for each class of a gain
_BYTES_PER_LABEL = 9  # a class code, and the indicator of one class
_LABELS = 2**21  # of one batch of permutations: products read them again and again
_LEAST_BATCH = 64  # permutations: each batch sorts the columns of l1 anew


#: ``gain(strip, start, stop, columns, labels, ctx)``: the gains of the columns start..stop of a
#: strip, which have the numbers ``columns`` in X, for each of p permutations; (b, p).
NullGain = Callable[[Strip, int, int, Array, Labels, Context], Array]


def l2_null_gain(samples: Samples, scale: str | None, sigma: Array | None) -> NullGain:
    """Gains of l2 centers.

    Parameters
    ----------
    samples : Samples
    scale : {None, "std", "pooled"}
    sigma : array of shape (m,), or None
        For "std", which does not depend on the labels.
    """
    backend, weight = samples.backend, samples.class_weight
    xp = backend.xp

    def gain(
        strip: Strip, start: int, stop: int, columns: Array, labels: Labels, ctx: Context
    ) -> Array:
        if scale == "pooled":
            total, by_labels = _pooled_scale(strip, start, stop, labels)
            return of_shape(scaled_l2_gain(total, by_labels, samples), labels)
        total = strip.label_sums(labels, start, stop)
        found = of_shape(l2_gain(flat(total), weight, backend), labels)
        if sigma is None:
            return found
        of_columns = xp.take(sigma, columns)[:, None]
        return found / (of_columns * of_columns)

    return gain


def l1_null_gain(samples: Samples, scale: str | None, sigma: Array | None) -> NullGain:
    """Gains of l1 centers; the parameters are those of `l2_null_gain`."""
    xp = samples.backend.xp

    def gain(
        strip: Strip, start: int, stop: int, columns: Array, labels: Labels, ctx: Context
    ) -> Array:
        def medians(lists: Any) -> tuple[Array, ...]:
            free, _, gain = l1_medians(samples, lists)
            return (gain, l1_loss(samples, lists, free)) if scale == "pooled" else (gain,)

        results = 2 if scale == "pooled" else 1
        found, *loss = strip.map_label_medians(medians, results, labels, start, stop, ctx)
        if scale == "pooled":
            _, flat = _pooled_scale(strip, start, stop, labels)
            by_labels = Scale(*(of_shape(part, labels) for part in flat))
            return scaled_l1_gain(found, loss[0], by_labels, samples)
        return found if sigma is None else found / xp.take(sigma, columns)[:, None]

    return gain


def bernoulli_null_gain(samples: Samples, alpha: float) -> NullGain:
    """Gains of sparse Bernoulli naive Bayes."""
    backend, weight = samples.backend, samples.class_weight

    def gain(
        strip: Strip, start: int, stop: int, columns: Array, labels: Labels, ctx: Context
    ) -> Array:
        total = flat(strip.label_sums(labels, start, stop))
        return of_shape(bernoulli_gain(total, weight, alpha, backend), labels)

    return gain


def multinomial_null_gain(block: Block, samples: Samples, alpha: float, ctx: Context) -> NullGain:
    """Gains of sparse multinomial naive Bayes: h_i(p) at p the shares of the classes in all."""
    backend, m = block.backend, block.shape[1]
    xp, k = backend.xp, samples.n_classes
    row_sums = row_totals(block, ctx)[:, None]

    @lru_cache(maxsize=1)
    def shares(labels: Labels) -> list[Array]:
        mass = [xp.sum(row_sums * labels.indicator(c), axis=0) + m * alpha for c in range(k)]
        all_mass = sum(mass[1:], mass[0])
        return [of_class / all_mass for of_class in mass]

    def gain(
        strip: Strip, start: int, stop: int, columns: Array, labels: Labels, ctx: Context
    ) -> Array:
        return divergence(strip.label_sums(labels, start, stop) + alpha, shares(labels))

    return gain


def _pooled_scale(strip: Strip, start: int, stop: int, labels: Labels) -> tuple[Array, Scale]:
    """Class sums, and the scale within the classes, of each column and permutation: (K, b * p)."""
    samples = labels.samples
    total, centred = (flat(part) for part in strip.label_moments(labels, start, stop))
    divisor = scale_divisor(samples, "pooled")
    return total, scale_of_sums(total, centred, samples, "pooled", divisor)


def flat(sums: Array) -> Array:
    """(K, b, p) as (K, b * p): to the models each pair is one feature."""
    return array_namespace(sums).reshape(sums, (sums.shape[0], -1))


def of_shape(gain: Array, labels: Labels) -> Array:
    """Gains of these pairs as (b, p)."""
    return array_namespace(gain).reshape(gain, (-1, labels.count))


@dataclass(frozen=True)
class PermutationCounts:
    """How often gains under permuted labels reach the observed ones, compared by ranking keys.

    Attributes
    ----------
    gain : array of shape (m,), float64
        The observed gains.
    order : array of int64 of shape (m,)
        The features by descending ranking key, ties by ascending number.
    own : array of int64 of shape (m,)
        Permutations in which the feature's gain reaches the observed one, in this order.
    largest : array of int64 of shape (m,)
        Permutations in which the largest gain among this feature and those after it does.
    reached : array of int64 of shape (m,)
        Pairs of permutation and feature whose gain reaches the observed gain of this feature.
    """

    gain: Array
    order: Array
    own: Array
    largest: Array
    reached: Array

    def to_host(self) -> Self:
        """The same counts in arrays of the host."""
        return type(self)(*(to_host(getattr(self, f.name)) for f in fields(self)))


def count_permutations(
    null_gain: NullGain,
    block: Block,
    samples: Samples,
    codes: Callable[[int, int], Any],
    n_permutations: int,
    ctx: Context,
) -> PermutationCounts:
    """Compare the gains of all features under permuted labels with the observed ones.

    Columns go from the last in rank to the first, so that the largest gain of each permutation
    among the features from some rank on is a running maximum: nothing of size m x P is kept.

    Parameters
    ----------
    null_gain : NullGain
    block : Block
    samples : Samples
        The observed labels, without weights.
    codes : callable
        ``codes(start, stop)``: the class codes of these permutations, on the host; (n, p).
    n_permutations : int
        P.
    ctx : Context
    """
    backend, xp = block.backend, block.backend.xp
    (n, m), k = block.shape, samples.n_classes
    ctx = ctx.shared_by_threads(n_permutations * m)
    gain = backend.zeros(m)
    # The observed labels go through the same product, so that equal gains have equal keys.
    observed = Labels(backend.asarray(samples.codes[:, None]), samples)
    every = backend.arange(m)
    for _, part, found in _map_gains(
        lambda gains, part: gains[:, 0], null_gain, block, every, lambda: [observed], ctx
    ):
        gain[part] = found
    key = ranking_key(gain)
    upward = xp.flip(xp.argsort(-key, stable=True))
    key = xp.take(key, upward)
    thresholds = Thresholds(key)
    batch = min(max(_LEAST_BATCH, _LABELS // n), ctx.budget // (4 * _BYTES_PER_LABEL * k * n))
    batch = max(1, min(batch, n_permutations))
    cuts = [(a, min(a + batch, n_permutations)) for a in range(0, n_permutations, batch)]
    most = [xp.full(b - a, -1.0, dtype=xp.float64, device=backend.device) for a, b in cuts]
    own, largest, reached = (backend.zeros(m, xp.int64) for _ in range(3))

    def compare(gains: Array, part: slice) -> tuple[Array, Array, Array]:
        keys = ranking_key(gains)
        reach = xp.count_nonzero(keys >= key[part][:, None], axis=1)
        return reach, thresholds.count(xp.reshape(keys, (-1,))), running_max(keys)

    def batches() -> Iterable[Labels]:
        return (Labels(backend.asarray(codes(a, b)), samples) for a, b in cuts)

    for number, part, found in _map_gains(compare, null_gain, block, upward, batches, ctx):
        reach, above, running = found
        running = xp.maximum(running, most[number][None, :])
        own[part] += reach
        largest[part] += xp.count_nonzero(running >= key[part][:, None], axis=1)
        most[number] = running[-1, :]
        reached += above
    return PermutationCounts(gain, *(xp.flip(a) for a in (upward, own, largest, reached)))


def _map_gains(
    task: Callable[[Array, slice], Any],
    null_gain: NullGain,
    block: Block,
    columns: Array,
    batches: Callable[[], Iterable[Labels]],
    ctx: Context,
) -> Iterator[tuple[int, slice, Any]]:
    """(number of the batch, part of the columns, ``task(gains, part)``), by columns in order."""
    # All observed keys are looked up among the gains of each run: so it has as many, or more.
    size = max(ctx.chunk, block.shape[1])
    most = ctx.budget // _BYTES_PER_GAIN
    for strip_part, strip in block.strips(columns, ctx):
        for number, labels in enumerate(batches()):
            count, k = labels.count, labels.samples.n_classes

            def work(
                cut: tuple[int, int],
                strip: Strip = strip,
                labels: Labels = labels,
                first: int = strip_part.start,
            ) -> tuple[slice, Any]:
                part = slice(first + cut[0], first + cut[1])
                gains = null_gain(strip, *cut, columns[part], labels, ctx)
                return part, task(gains, part)

            runs = strip.cuts(count, max(1, min(size, most // k)))
            label = f"columns, {count} permutations"
            with one_blas_thread(ctx.backend):
                for part, found in ctx.progress(ctx.map(work, runs), len(runs), label):
                    yield number, part, found
