"""Gains under permuted labels, and how often they reach the observed ones.

Westfall & Young, *Resampling-Based Multiple Testing*, 1993 (maximum of the gains, step-down);
Tusher, Tibshirani & Chu, "Significance analysis of microarrays", PNAS 98, 2001 (SAM).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from ..arrays.context import Context
from ..arrays.functions import clip_negative, running_max, to_host
from ..arrays.linalg import one_blas_thread
from ..arrays.sorting import Thresholds
from ..arrays.typing import Array
from ..blocks import Block
from ..blocks.samples import Samples
from ..reductions.column_panels import column_panels
from ..reductions.permuted_columns import PermutedCodes
from .null_gains import NullGain, Run
from .selection import ranking_key

_BYTES_PER_GAIN = 160  # workspace for each class of a gain
_BYTES_PER_LABEL = 9  # a class code, and the indicator of one class
_LABELS = 2**21  # of one batch of permutations: products read them again and again
_LEAST_BATCH = 64  # permutations: each batch sorts the columns of l1 anew
_RELATIVE = 2.0**-38  # twice what logarithms and a few operations may change of a gain


class PermutationCounts(NamedTuple):
    """How often gains under permuted labels reach the observed ones, up to rounding; on the host.

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
    itself : array of int64 of shape (m,)
        Features whose observed gain reaches that of this feature.
    """

    gain: Array
    order: Array
    own: Array
    largest: Array
    reached: Array
    itself: Array


def count_permutations(
    null_gain: NullGain,
    block: Block,
    samples: Samples,
    permutations: Any,
    ctx: Context,
) -> PermutationCounts:
    """Compare the gains of all features under permuted labels with the observed ones.

    Columns go from the last in rank to the first, so that the largest gain of each permutation
    among the features from some rank on is a running maximum: nothing of size m x P is kept.

    A gain reaches the observed one g if it is at least ``(1 - 2^-38) g`` less the bound on rounding
    that the model gives: so gains that are equal in exact arithmetic do, in whatever order their
    sums were added.

    Parameters
    ----------
    null_gain : NullGain
    block : Block
    samples : Samples
        The observed labels, without weights.
    permutations : LabelPermutations
        ``batches(most)``: sequences of the numbers of at most so many permutations, within each of
        which each class keeps its number of samples. ``codes(numbers)``: the class codes of these
        permutations, on the host; (n, p).
    ctx : Context
    """
    backend, xp = block.backend, block.backend.xp
    (n, m), k = block.shape, samples.n_classes
    most_labels = max(1, ctx.budget // (4 * _BYTES_PER_LABEL * k * n))
    batches = permutations.batches(min(max(_LEAST_BATCH, _LABELS // n), most_labels))
    ctx = ctx.shared_by_threads(sum(map(len, batches)) * m)
    gain, least = backend.zeros(m), backend.zeros(m)

    def observe(run: Run) -> tuple[Array, Array]:
        found = run.shaped(null_gain.gain(run))[:, 0]
        return found, clip_negative(found - _RELATIVE * found - null_gain.rounding(run, found))

    observed = [PermutedCodes(backend.asarray(samples.codes[:, None]), samples)]
    for _, part, found in _map_runs(observe, block, backend.arange(m), lambda: observed, ctx):
        gain[part], least[part] = found
    upward = xp.flip(xp.argsort(-ranking_key(gain), stable=True))
    least = xp.take(least, upward)
    ascending = xp.argsort(least, stable=True)
    place = xp.argsort(ascending, stable=True)
    thresholds = Thresholds(xp.take(least, ascending))
    most = [backend.zeros(len(numbers)) - 1.0 for numbers in batches]
    own, largest, reached = (backend.zeros(m, xp.int64) for _ in range(3))

    def compare(run: Run) -> tuple[Array, Array, Array]:
        gains = run.shaped(null_gain.gain(run))
        return gains, thresholds.count(xp.reshape(gains, (-1,))), running_max(gains)

    def permuted() -> Iterable[PermutedCodes]:
        for numbers in batches:
            codes = permutations.codes(numbers)
            yield PermutedCodes(backend.asarray(codes), replace(samples, codes=codes[:, 0]))

    for number, part, (gains, above, running) in _map_runs(compare, block, upward, permuted, ctx):
        running = xp.maximum(running, most[number][None, :])
        own[part] += xp.count_nonzero(gains >= least[part][:, None], axis=1)
        largest[part] += xp.count_nonzero(running >= least[part][:, None], axis=1)
        most[number] = running[-1, :]
        reached += above
    itself = thresholds.count(gain)
    counts = own, largest, *(xp.take(a, place) for a in (reached, itself))
    return PermutationCounts(*map(to_host, (gain, *(xp.flip(a) for a in (upward, *counts)))))


def _map_runs(
    task: Callable[[Run], Any],
    block: Block,
    columns: Array,
    batches: Callable[[], Iterable[PermutedCodes]],
    ctx: Context,
) -> Iterator[tuple[int, slice, Any]]:
    """(number of the batch, part of the columns, ``task`` of these), by columns in order."""
    # All observed gains are looked up among the gains of each run: so it has as many, or more.
    size = max(ctx.chunk, block.shape[1])
    most = ctx.budget // _BYTES_PER_GAIN
    for place, panel in column_panels(block, columns, ctx):
        for number, labels in enumerate(batches()):
            first, count = place.start, labels.count
            width = max(1, min(size, most // labels.samples.n_classes))
            cuts = panel.cuts(count, width)
            parts = [slice(first + start, first + stop) for start, stop in cuts]
            runs = [
                Run(panel.part(*cut), columns[part], labels, ctx)
                for cut, part in zip(cuts, parts, strict=True)
            ]
            results = ctx.progress(ctx.map(task, runs), len(runs), f"columns, {count} permutations")
            with one_blas_thread(ctx.backend):
                for part, found in zip(parts, results, strict=True):
                    yield number, part, found
