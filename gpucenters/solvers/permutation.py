"""Gains under permuted labels, and how often they reach the observed ones.

Westfall & Young, *Resampling-Based Multiple Testing*, 1993 (maximum of the gains, step-down);
Tusher, Tibshirani & Chu, "Significance analysis of microarrays", PNAS 98, 2001 (SAM).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self, TypeVar

from ..arrays.context import Context
from ..arrays.functions import clip_negative, running_max, to_host
from ..arrays.linalg import one_blas_thread
from ..arrays.sorting import Thresholds
from ..arrays.typing import Array
from ..blocks.block import Block
from ..blocks.samples import Samples
from ..reductions.column_panels import Panel, column_panels
from ..reductions.permuted_columns import PermutedCodes
from .selection import ranking_key

_BYTES_PER_GAIN = 160  # workspace for each class of a gain
_BYTES_PER_LABEL = 9  # a class code, and the indicator of one class
_LABELS = 2**21  # of one batch of permutations: products read them again and again
_LEAST_BATCH = 64  # permutations: each batch sorts the columns of l1 anew
_RELATIVE = 2.0**-38  # twice what logarithms and a few operations may change of a gain

Batch = TypeVar("Batch")

#: (panel, columns, labels): some columns, their numbers in X, and p permutations of the labels.
Run = tuple[Panel, Array, PermutedCodes]


@dataclass(frozen=True)
class NullGain:
    """The gain of a model under permuted labels, and what rounding may change of it.

    Attributes
    ----------
    gain : callable
        ``gain(*run, ctx)``: the gains of a `Run`, (b, p).
    rounding : callable
        ``rounding(*run, gain)``: how far two gains that are equal in exact arithmetic may lie apart
        where one is the ``gain`` (b,) of the observed labels, those of the run: not negative, (b,).
        What a few operations on the gain itself change need not be counted.
    """

    gain: Callable[[Panel, Array, PermutedCodes, Context], Array]
    rounding: Callable[[Panel, Array, PermutedCodes, Array], Array]


@dataclass(frozen=True)
class PermutationCounts:
    """How often gains under permuted labels reach the observed ones, up to rounding.

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

    def to_host(self) -> Self:
        """The same counts in arrays of the host."""
        return type(self)(*(to_host(getattr(self, f.name)) for f in fields(self)))


def count_permutations(
    null_gain: NullGain,
    block: Block,
    samples: Samples,
    cut: Callable[[int], Sequence[Batch]],
    codes: Callable[[Batch], Any],
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
    cut : callable
        ``cut(most)``: batches of at most so many permutations. Within a batch each class keeps its
        number of samples.
    codes : callable
        ``codes(batch)``: the class codes of these permutations, on the host; (n, p).
    ctx : Context
    """
    backend, xp = block.backend, block.backend.xp
    (n, m), k = block.shape, samples.n_classes
    most_labels = max(1, ctx.budget // (4 * _BYTES_PER_LABEL * k * n))
    cuts = cut(min(max(_LEAST_BATCH, _LABELS // n), most_labels))
    sizes = [codes(batch).shape[1] for batch in cuts]
    ctx = ctx.shared_by_threads(sum(sizes) * m)
    gain, least = backend.zeros(m), backend.zeros(m)

    def observe(run: Run) -> tuple[Array, Array]:
        found = null_gain.gain(*run, ctx)[:, 0]
        return found, clip_negative(found - _RELATIVE * found - null_gain.rounding(*run, found))

    every, observed = (
        backend.arange(m),
        PermutedCodes(backend.asarray(samples.codes[:, None]), samples),
    )
    for _, part, found in _map_runs(observe, block, every, lambda: [observed], ctx):
        gain[part], least[part] = found
    upward = xp.flip(xp.argsort(-ranking_key(gain), stable=True))
    least = xp.take(least, upward)
    ascending = xp.argsort(least, stable=True)
    place = xp.argsort(ascending, stable=True)
    thresholds = Thresholds(xp.take(least, ascending))
    most = [xp.full(p, -1.0, dtype=xp.float64, device=backend.device) for p in sizes]
    own, largest, reached = (backend.zeros(m, xp.int64) for _ in range(3))

    def compare(run: Run) -> tuple[Array, Array, Array]:
        gains = null_gain.gain(*run, ctx)
        return gains, thresholds.count(xp.reshape(gains, (-1,))), running_max(gains)

    def batches() -> Iterable[PermutedCodes]:
        for batch in cuts:
            found = codes(batch)
            yield PermutedCodes(backend.asarray(found), replace(samples, codes=found[:, 0]))

    for number, part, (gains, above, running) in _map_runs(compare, block, upward, batches, ctx):
        running = xp.maximum(running, most[number][None, :])
        own[part] += xp.count_nonzero(gains >= least[part][:, None], axis=1)
        largest[part] += xp.count_nonzero(running >= least[part][:, None], axis=1)
        most[number] = running[-1, :]
        reached += above
    itself = thresholds.count(gain)
    counts = own, largest, *(xp.take(a, place) for a in (reached, itself))
    return PermutationCounts(gain, *(xp.flip(a) for a in (upward, *counts)))


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
            count, k = labels.count, labels.samples.n_classes

            def work(
                cut: tuple[int, int],
                panel: Panel = panel,
                labels: PermutedCodes = labels,
                first: int = place.start,
            ) -> tuple[slice, Any]:
                part = slice(first + cut[0], first + cut[1])
                return part, task((panel.part(*cut), columns[part], labels))

            runs = panel.cuts(count, max(1, min(size, most // k)))
            label = f"columns, {count} permutations"
            with one_blas_thread(ctx.backend):
                for part, found in ctx.progress(ctx.map(work, runs), len(runs), label):
                    yield number, part, found
