"""Sums, and sums of squares about the mean, of each class and feature.

T. Chan, G. Golub, R. LeVeque, "Updating formulae and a pairwise algorithm for computing sample
variances", 1979.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np

from ..arrays.backend import backend_of
from ..arrays.context import Context
from ..arrays.double_double import two_sum
from ..arrays.functions import add_at, clip_negative, row_sums, squared_row_norms
from ..arrays.namespace import array_namespace
from ..arrays.typing import Array
from ..arrays.typing import NumPyOrCuPy as SparseArray
from ..blocks import Block
from ..blocks.dense import DenseBlock, RowStrip, map_strips
from ..blocks.samples import Samples
from ..blocks.sparse import SparseBlock
from .class_sums import RawSums, add_class_sums, count_nonzero

#: Threshold on t^2 / (W q) above which q - t^2 / W is inaccurate: it is less than a tenth of q.
LARGEST_SHARE = 0.9

_UNUSED_SUMS = 1024  # for entries that a device cannot drop without waiting

Number = TypeVar("Number", float, Array)


def is_ill_conditioned(total: Number, square: Number, weight: Number) -> Number:
    """Whether sums of x and x^2 cancel when the sum of squares about the mean is formed.

    Parameters
    ----------
    total, square, weight : floats or arrays
        t, q and W: the weighted sums of x and x^2, and of the weights.

    Notes
    -----
    The union of two sets of samples has no ill-conditioned column that neither of them has, since
    ``(t1 + t2)^2 / (W1 + W2) <= t1^2 / W1 + t2^2 / W2``.
    """
    # In this form no product of extreme weights overflows. Without weight, 0 / 0 compares as false.
    return total * (total / weight) > LARGEST_SHARE * square


class CentredSums(NamedTuple):
    """Sums of K classes, with second moments about the class means.

    Attributes
    ----------
    class_weight : list of K floats
    total : array of shape (K, m), float64
        Weighted sums of x.
    centred : array of shape (K, m) or (K,), float64
        Weighted sums of squares about the class means; or these summed over the features.
    nonzero : array of shape (K, m), float64, or None
        Weighted numbers of values other than zero.
    """

    class_weight: list[float]
    total: Array
    centred: Array
    nonzero: Array | None = None

    def add(self, weight: list[float], total: Array, centred: Array) -> None:
        """Add the sums of more samples: K weights, (K, m) sums, (K, m) or (K,) squares.

        By Chan's formula: ``C = C_1 + C_2 + (mean_2 - mean_1)^2 W_1 W_2 / (W_1 + W_2)``.
        """
        pairs = list(zip(self.class_weight, weight, strict=True))
        backend = backend_of(total)
        before, new = (
            backend.asarray([w or 1.0 for w in of])[:, None] for of in (self.class_weight, weight)
        )
        harmonic = [a * b / (a + b) if a > 0 and b > 0 else 0.0 for a, b in pairs]
        shift = total / new - self.total / before
        between = shift * shift * backend.asarray(harmonic)[:, None]
        self.centred[...] += between if self.centred.ndim == 2 else row_sums(between)
        self.centred[...] += centred
        self.total[...] += total
        self.class_weight[:] = [a + b for a, b in pairs]


def add_centred(block: Block, samples: Samples, into: CentredSums, ctx: Context) -> None:
    """Add weights, sums, and sums of squares about the mean, of each class, in place."""
    if isinstance(block, DenseBlock):
        _add_dense(block, samples, into, ctx)
        return
    every = block.backend.arange(block.shape[1])
    total, centred = _sparse_moments(block, every, samples, ctx)
    if into.centred.ndim == 1:
        centred = row_sums(centred)
    into.add(samples.class_weight, total, centred)
    if into.nonzero is not None:
        unused = block.backend.xp.zeros_like(into.total)
        add_class_sums(block, samples, RawSums(unused, nonzero=into.nonzero), ctx)


def centred_moments(
    block: Block, columns: Array, samples: Samples, ctx: Context
) -> tuple[Array, Array]:
    """Sums, and sums of squares about the mean, of each class in some columns: two (K, d)."""
    if not isinstance(block, DenseBlock):
        return _sparse_moments(block, columns, samples, ctx)
    k, d = samples.n_classes, int(columns.shape[0])
    here = backend_of(block.array)
    part = array_namespace(block.array).take(block.array, here.move(columns), axis=1)
    found = CentredSums([0.0] * k, block.backend.zeros((k, d)), block.backend.zeros((k, d)))
    _add_dense(replace(block, array=part), samples, found, ctx)
    return found.total, found.centred


class _StripMoments(NamedTuple):
    """Sums of a part of the grid, by class: of x, and about the mean of these rows alone.

    Attributes
    ----------
    total, mean : arrays of shape (K, b)
    centred : array of shape (K, b) or (K,)
    nonzero : array of shape (K, b), or None
    """

    total: Array
    mean: Array
    centred: Array
    nonzero: Array | None


def _add_dense(block: DenseBlock, samples: Samples, into: CentredSums, ctx: Context) -> None:
    backend = ctx.backend
    by_feature = into.centred.ndim == 2
    # What the sums of chunks lose when they are added to large totals.
    low = backend.zeros(into.total.shape)
    before = np.asarray(into.class_weight, dtype=np.float64)
    of_columns: dict[int, Array] = {}

    def sums_of(strip: RowStrip, columns: slice) -> _StripMoments:
        x, rows = strip.read(columns), strip.samples
        weight = backend.asarray([w or 1.0 for w in rows.class_weight])[:, None]
        total = rows.class_sums(x)
        mean = total / weight
        nonzero = None if into.nonzero is None else count_nonzero(x, rows)
        # Two passes over the chunk, so that the squares do not cancel. Rows that all have weight
        # zero add nothing, but NaN among them shows.
        d = rows.residuals(x, mean)
        if not by_feature:
            norms = squared_row_norms(d)
            return _StripMoments(total, mean, rows.class_sums(norms[:, None])[:, 0], nonzero)
        # The sum of the residuals corrects the rounding of the mean.
        error = rows.class_sums(d)
        centred = clip_negative(rows.class_sums(d * d) - error * (error / weight))
        return _StripMoments(total, mean + error / weight, centred, nonzero)

    def merge(strip: RowStrip, columns: slice, part: _StripMoments) -> None:
        # Chan's formula, for all classes at once.
        weight, total = np.asarray(strip.samples.class_weight), into.total[:, columns]
        both = (before > 0) & (weight > 0)
        harmonic = np.where(both, before * weight / np.where(both, before + weight, 1.0), 0.0)
        centred = part.centred
        if both.any():
            held = backend.asarray(np.where(before > 0, before, 1.0))[:, None]
            shift = part.mean - total / held
            between = shift * shift * backend.asarray(harmonic)[:, None]
            centred = centred + (between if by_feature else row_sums(between))
        new = two_sum(total, part.total)
        into.total[:, columns] = new.high
        low[:, columns] += new.low
        if into.nonzero is not None:
            into.nonzero[:, columns] += part.nonzero
        if by_feature:
            into.centred[:, columns] += centred
        else:
            of_columns[columns.start] = centred

    for strip in map_strips(block.row_strips(samples, ctx), sums_of, merge, ctx):
        if not by_feature:
            for columns in strip.columns:
                into.centred[...] += of_columns[columns.start]
        before = before + np.asarray(strip.samples.class_weight)
    into.class_weight[:] = before.tolist()
    into.total[...] += low


def _sparse_moments(
    matrix: SparseBlock, columns: SparseArray, samples: Samples, ctx: Context
) -> tuple[SparseArray, SparseArray]:
    """`centred_moments` by two passes over the stored entries.

    Implicit zeros exist in a column of a class only if fewer
    rows of positive weight are stored than exist: a count, which is exact.
    """
    xp, backend = matrix.backend.xp, matrix.backend
    k, d = samples.n_classes, int(columns.shape[0])
    size, table = k * d, matrix.position_table(columns)
    # Dropping the entries of all other columns needs their number, for which a device would wait.
    # There they are added to unused sums, many of them, to avoid contention of atomic additions.
    spare = _UNUSED_SUMS if backend.sync_is_expensive else 0
    total, held, square, error = (backend.zeros(size + spare) for _ in range(4))
    stored = backend.zeros(size + spare, xp.int64)

    def parts() -> Iterator[tuple[SparseArray, SparseArray, SparseArray]]:
        weights = samples.backend_weights
        for entries in matrix.entries(ctx):
            position, code = entries.of_column(table), entries.of_row(samples.backend_codes)
            x, s = entries.values, None if weights is None else entries.of_row(weights)
            if not spare:
                keep = xp.nonzero(position >= 0)[0]
                position, code, x = (xp.take(part, keep) for part in (position, code, x))
                s = None if s is None else xp.take(s, keep)
            key = xp.astype(code, xp.int64) * d + position
            if spare:
                behind = size + xp.arange(key.shape[0], dtype=xp.int64) % spare
                key = xp.where(position >= 0, key, behind)
            x = xp.astype(x, xp.float64)
            yield key, x, xp.ones_like(x) if s is None else s

    for key, x, s in parts():
        add_at(total, key, s * x)
        add_at(held, key, s)
        add_at(stored, key, xp.astype(s > 0, xp.int64))
    weight = xp.repeat(backend.asarray([w or 1.0 for w in samples.class_weight]), d)
    rows = xp.repeat(backend.asarray(samples.count, dtype=xp.int64), d)
    zeros = weight - held[:size]
    zeros = xp.where((stored[:size] < rows) & (zeros > 0), zeros, xp.zeros_like(zeros))
    mean = total[:size] / weight
    around = xp.concat([mean, backend.zeros(spare)])
    for key, x, s in parts():
        residual = x - xp.take(around, key)
        add_at(error, key, s * residual)
        add_at(square, key, s * residual * residual)
    error = error[:size] - zeros * mean
    square = square[:size] + zeros * mean * mean - error * (error / weight)
    square = xp.where(square < 0, xp.zeros_like(square), square)
    return xp.reshape(total[:size], (k, d)), xp.reshape(square, (k, d))
