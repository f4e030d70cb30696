"""Sums over the stored entries of a sparse matrix, in lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np

from . import family, host, kernels
from .compressed import INT32, Compressed
from .devices import Place
from .grid import chunk_size, lanes, ranges
from .groups import Groups
from .namespace import is_cupy
from .threads import run, thread_count
from .typing import Array
from .work import Work

_SPARE = 1024

Lane = tuple[int, int]
Targets = tuple[Array, Array | None, Array | None]


def add_class_sums(
    matrix: Compressed,
    groups: Groups,
    total: Array,
    square: Array | None,
    energy: Array | None,
    work: Work,
) -> None:
    """Add sums of each class and feature, in place: see `SparseBlock.add_class_sums`.

    The entries are cut into lanes, by their number alone. The first lane adds to the given
    accumulators, each other one to its own, merged in order: the same bits whether the lanes run
    one after the other or side by side. (On CUDA a kernel adds them all to the same accumulators.)
    """
    xp, targets = matrix.place.xp, (total, square, energy)
    if is_cupy(xp):
        _add_on_device(matrix, groups, targets, work)
        return
    k, m = total.shape
    cuts = lanes(matrix.nnz, k * m, matrix.place)
    size = sum(a.nbytes for a in targets if a is not None) if len(cuts) > 1 else 1
    width = max(1, min(thread_count(matrix.place), 1 + work.budget // size))

    def add_lane(job: tuple[Lane, Targets]) -> Targets:
        cut, into = job
        _add_entries(matrix, cut, groups, into)
        return into

    def jobs() -> Iterator[tuple[Lane, Targets]]:
        for number, cut in enumerate(cuts):
            if number == 0:
                yield cut, targets
            else:
                fresh = [None if a is None else xp.zeros_like(a) for a in targets]
                yield cut, (fresh[0], fresh[1], fresh[2])

    coming = work.progress(jobs(), len(cuts), "entries added")
    while wave := list(islice(coming, width)):
        for sums in run(add_lane, wave, matrix.place, width):
            for target, part in zip(targets, sums, strict=True):
                if target is not None and part is not target:
                    _merge(target, part, matrix.place)


def _add_on_device(matrix: Compressed, groups: Groups, into: Targets, work: Work) -> None:
    """Add all entries by a kernel: no keys are made, and nothing waits for the device."""
    xp, place = matrix.place.xp, matrix.place
    total, square, energy = into
    codes = xp.astype(groups.device_codes, xp.int32)
    # Many threads add to the few sums over all features: so each class has many of them.
    spread = None if energy is None else place.zeros((groups.n_classes, kernels.SLOTS))
    # (As they are, any number of entries takes no memory, and one launch.)
    whole = matrix.resident and matrix.reading is None
    steps = 1 if whole else -(-matrix.nnz // chunk_size(place, uploaded=not matrix.resident))
    runs = [matrix.whole()] if whole else matrix.entries()
    for e in work.progress(runs, steps, "entries added"):
        values = e.values
        if values.dtype not in (xp.float32, xp.float64, xp.bool):
            values = xp.astype(values, xp.float64)
        kernels.add_class_sums(
            *(values, e.minor, e.offsets, e.first, e.by_row),
            *(codes, groups.device_weights, total, square, spread),
        )
    if energy is not None:
        energy += xp.sum(spread, axis=1)


def _add_entries(matrix: Compressed, cut: Lane, groups: Groups, into: Targets) -> None:
    xp, place = matrix.place.xp, matrix.place
    k, m = into[0].shape
    kind = xp.int32 if k * m < INT32 else xp.int64
    total, square, energy = (None if a is None else xp.reshape(a, (-1,)) for a in into)
    codes, weights = groups.device_codes, groups.device_weights
    assert total is not None
    if matrix.on_host:
        runs, size = matrix.entries(*cut), chunk_size(place)
        host.add_class_sums(runs, size, kind, m, codes, weights, total, square, energy)
        return
    base = xp.astype(codes, kind) * m
    for entries in matrix.entries(*cut):
        key = entries.of_row(base) + xp.astype(entries.columns(), base.dtype, copy=False)
        x = xp.astype(entries.values, xp.float64, copy=False)
        sx = x if weights is None else x * entries.of_row(weights)
        family.scatter_add(total, key, sx, xp)
        if square is None and energy is None:
            continue
        sx = sx * x
        if square is not None:
            family.scatter_add(square, key, sx, xp)
        if energy is not None:
            code = xp.astype(entries.of_row(codes), xp.int64)
            energy += xp.bincount(code, weights=sx, minlength=groups.n_classes)


def absolute_sums(matrix: Compressed, groups: Groups) -> Array:
    """Sums of weight / W_c times abs(x) over each column: (m,)."""
    place, xp = matrix.place, matrix.place.xp
    share = 1.0 / np.asarray(groups.weight)[groups.codes]
    share = place.asarray(share if groups.weights is None else share * groups.weights)

    def add_lane(cut: Lane) -> Array:
        sums = place.zeros(matrix.shape[1])
        if matrix.on_host:
            host.add_absolute_sums(matrix.entries(*cut), chunk_size(place), share, sums)
            return sums
        for entries in matrix.entries(*cut):
            terms = xp.abs(xp.astype(entries.values, xp.float64)) * entries.of_row(share)
            family.scatter_add(sums, entries.columns(), terms, xp)
        return sums

    return _sum_lanes(add_lane, matrix)


def stored_per_column(matrix: Compressed) -> Array:
    """How many entries each column stores: int64, shape (m,)."""
    place, xp = matrix.place, matrix.place.xp
    if not matrix.by_row:
        indptr = xp.astype(place.move(matrix.indptr), xp.int64)
        return indptr[1:] - indptr[:-1]

    def count_lane(cut: Lane) -> Array:
        counts = place.zeros(matrix.shape[1], xp.int64)
        ones = xp.ones(min(chunk_size(place), cut[1] - cut[0]), dtype=xp.int64)
        for entries in matrix.entries(*cut):
            family.scatter_add(counts, entries.minor, ones[: entries.minor.shape[0]], xp)
        return counts

    return _sum_lanes(count_lane, matrix)


def _sum_lanes(lane: Callable[[Lane], Array], matrix: Compressed) -> Array:
    first, *others = lanes(matrix.nnz, matrix.shape[1], matrix.place)
    parts = run(lane, [first, *others], matrix.place)
    sums = next(parts)
    for part in parts:
        _merge(sums, part, matrix.place)
    return sums


def _merge(target: Array, part: Array, place: Place) -> None:
    """``target += part``, by slices on all threads."""
    target, part = (place.xp.reshape(a, (-1,)) for a in (target, part))

    def add(cut: tuple[int, int]) -> None:
        target[cut[0] : cut[1]] += part[cut[0] : cut[1]]

    for _ in run(add, ranges(target.shape[0], 2**22), place):
        pass


def centred_moments(matrix: Compressed, columns: Array, groups: Groups) -> tuple[Array, Array]:
    """Sums and second moments about the mean of each class in some columns: two (K, d) arrays.

    Two passes over the stored entries. Implicit zeros exist in a column of a class only if fewer
    rows of positive weight are stored than exist: a count, which is exact.
    """
    xp, place = matrix.place.xp, matrix.place
    k, d = groups.n_classes, int(columns.shape[0])
    size, lookup = k * d, matrix.lookup(columns)
    # To drop the entries of all other columns, a device would have to say how many are left: there
    # they go to places of their own behind the sums, enough that they do not wait for each other.
    spare = _SPARE if place.stalls else 0
    total, held, spread, error = (place.zeros(size + spare) for _ in range(4))
    stored = place.zeros(size + spare, xp.int64)

    def parts() -> Iterator[tuple[Array, Array, Array]]:
        weights = groups.device_weights
        for entries in matrix.entries():
            position, code = entries.of_column(lookup), entries.of_row(groups.device_codes)
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
        family.scatter_add(total, key, s * x, xp)
        family.scatter_add(held, key, s, xp)
        family.scatter_add(stored, key, xp.astype(s > 0, xp.int64), xp)
    weight = xp.repeat(place.asarray([w or 1.0 for w in groups.weight]), d)
    rows = xp.repeat(place.asarray(groups.count, dtype=xp.int64), d)
    zeros = weight - held[:size]
    zeros = xp.where((stored[:size] < rows) & (zeros > 0), zeros, xp.zeros_like(zeros))
    mean = total[:size] / weight
    around = xp.concat([mean, place.zeros(spare)])
    for key, x, s in parts():
        away = x - xp.take(around, key)
        family.scatter_add(error, key, s * away, xp)
        family.scatter_add(spread, key, s * away * away, xp)
    error = error[:size] - zeros * mean
    spread = spread[:size] + zeros * mean * mean - error * (error / weight)
    spread = xp.where(spread < 0, xp.zeros_like(spread), spread)
    return xp.reshape(total[:size], (k, d)), xp.reshape(spread, (k, d))
