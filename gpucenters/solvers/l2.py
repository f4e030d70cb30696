"""Sparse l2 centers: Definition 1, Prop. 1 and Algorithm 1 of Calafiore & Fracastoro."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from ..arrays import errors
from ..arrays.convert import Block, as_block
from ..arrays.dense import DenseBlock
from ..arrays.devices import Place, resolve_place
from ..arrays.grid import chunk_size, ranges
from ..arrays.groups import Groups, check_every_class, group_rows
from ..arrays.ops import array_namespace, numbers, to_float
from ..arrays.threads import run
from ..arrays.typing import Array
from ..arrays.work import Work, carry_out
from .centers import SparseCenters
from .moments import ClassMoments
from .raw_moments import moments_of
from .scaling import feature_scale

_UNDERFLOW = 1e-140  # sums below it have squares near, or below, the least numbers


@dataclass(frozen=True)
class L2Centers(SparseCenters):
    """Sparse l2 centers; free and tied are formed from the class sums when asked for.

    Attributes
    ----------
    total : array of shape (K, m), float64
        Class sums.
    """

    total: Array

    def at(self, columns: Array | None = None) -> tuple[Array, Array]:
        xp = self.place.xp
        total = self.total if columns is None else xp.take(self.total, columns, axis=1)
        free = total / self.place.asarray(list(self.weight))[:, None]
        return free, tied_mean(free)

    def to(self, place: Place) -> L2Centers:
        scale = None if self.scale is None else place.move(self.scale)
        return replace(
            self,
            place=place,
            gain=place.move(self.gain),
            scale=scale,
            total=place.move(self.total),
        )


def tied_mean(free: Array) -> Array:
    """The mean of the class means, in the form that is exact where they are equal."""
    k = free.shape[0]
    excess = free[0, :] - free[0, :]
    for c in range(1, k):
        excess = excess + (free[c, :] - free[0, :])
    return free[0, :] + excess / k


def solve_l2(moments: ClassMoments, scale: str | None = None) -> L2Centers:
    """Sparse l2 centers from class moments.

    Parameters
    ----------
    moments : ClassMoments
        With second moments per feature if there is a ``scale``.
    scale : {None, "std", "pooled"}

    Returns
    -------
    L2Centers

    Raises
    ------
    ValueError
        Where values are so large that the sums leave float64, or so small that their squares do.
    """
    place, xp, weight = moments.place, moments.place.xp, moments.weight
    sigma, spread = None, None
    if scale is None:
        scatter = moments.scatter()
    else:
        moments = moments.centred()
        sigma, spread = feature_scale(moments, scale), moments.spread
    total, m = moments.total, moments.total.shape[1]
    gain = place.zeros(m)

    def fill(cut: tuple[int, int]) -> Array | None:
        part = slice(*cut)
        gain[part] = _gain(total[:, part], weight, place)
        if sigma is None or spread is None:
            return None
        variance = sigma[part] * sigma[part]
        gain[part] /= variance
        return xp.sum(spread[:, part] / variance, axis=1)

    sums = list(run(fill, ranges(m, chunk_size(place)), place))
    if scale is not None:
        scatter = numbers(xp.sum(xp.stack(sums), axis=0))
    loss = sum(s / w for s, w in zip(scatter, weight, strict=True))
    _check(gain, loss, total)
    return L2Centers(place, tuple(weight), gain, loss, sigma, total)


def _gain(total: Array, weight: list[float], place: Place) -> Array:
    """What freeing each feature saves, unscaled, from class sums."""
    if len(weight) == 2:
        delta = _difference(total, weight)
        return 0.5 * (delta * delta)
    away = deviations(total, weight, place)
    return place.xp.sum(away * away, axis=0)


def _difference(total: Array, weight: list[float]) -> Array:
    """The second of two class means less the first one."""
    # Exact for integer data, where the difference of two rounded means is not.
    # (Weights and sums are brought near one by powers of two: no product leaves float64.)
    (w0, e0), (w1, e1) = (math.frexp(w) for w in weight)
    s0, s1 = total[0, :] * math.ldexp(1.0, -e0), total[1, :] * math.ldexp(1.0, -e1)
    return (w0 * s1 - w1 * s0) / (w0 * w1)


def deviations(total: Array, weight: list[float], place: Place) -> Array:
    """The class means less their mean, (K, m), from class sums."""
    if len(weight) == 2:
        half = _difference(total, weight) / 2
        return place.xp.stack([-half, half])
    free = total / place.asarray(weight)[:, None]
    return free - tied_mean(free)


def _check(gain: Array, loss: float, total: Array) -> None:
    xp = array_namespace(gain)
    saved = to_float(xp.sum(gain))
    if loss + saved < _UNDERFLOW**2 and 0 < to_float(xp.max(xp.abs(total))) < _UNDERFLOW:
        raise ValueError("the values of X are too small: their squares underflow. Rescale X.")
    if not math.isfinite(saved):
        bad = xp.nonzero(~xp.isfinite(gain))[0]
        if bad.shape[0]:
            errors.raise_overflow(int(bad[0]))
    if loss - loss != 0:
        raise ValueError("the values of X are too large: their squares overflow float64.")


def l2_centers(
    X: Any,
    y: Any,
    *,
    n_classes: int | None = None,
    sample_weight: Any = None,
    scale: str | None = None,
    device: str | None = None,
    memory_budget: int | str | None = None,
) -> L2Centers:
    """Sparse l2 centers of labelled data, for every k at once.

    Solves, for every k, the problem of Definition 1 of Calafiore & Fracastoro [1]_ (for any number
    of classes): the K centers with the least weighted mean squared distance to their classes, of
    which at most k coordinates may differ between classes.

    Parameters
    ----------
    X : array or CSR/CSC matrix of shape (n, m)
        Of any library and any real type. Left as it is.
    y : array of integers of shape (n,)
        Classes 0..K-1.
    n_classes : int, optional
        K; by default the largest code + 1.
    sample_weight : array of shape (n,), optional
        Weights count as repetitions; 0 leaves a sample out.
    scale : {None, "std", "pooled"}, optional
        Divide each feature by its standard deviation, over all samples or pooled within classes.
        No centring: sparse data stay sparse.
    device : {None, "cpu", "cuda", "cuda:N", "auto"}, optional
        Where to work; None follows X.
    memory_budget : int or str, optional
        Workspace beyond X and the result, in bytes or as "2GB"; a quarter of what is free.

    Returns
    -------
    L2Centers
        ``gain`` ranks the features: see `select`.

    Raises
    ------
    ValueError
        For NaN, infinity or values whose squares overflow (named by feature and row), values whose
        squares all underflow, negative weights, a class without weight, lengths that differ, a
        damaged sparse matrix.

    References
    ----------
    .. [1] G. Calafiore and G. Fracastoro, "Sparse l1 and l2 Center Classifiers", IEEE Trans. Neural
       Networks and Learning Systems 33(3), 2022. Prop. 1 and Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from gpucenters.solvers import l2_centers, select
    >>> X = np.asarray([[0.0, 0.0], [0.0, 2.0], [2.0, 0.0], [2.0, 2.0]])
    >>> centers = l2_centers(X, [0, 0, 1, 1])
    >>> centers.gain
    array([2., 0.])
    >>> select(centers, 1).support
    array([0])
    """

    def solve(place: Place, work: Work) -> L2Centers:
        block = as_block(X, place)
        groups = group_rows(y, block.shape[0], place, n_classes=n_classes, weights=sample_weight)
        check_every_class(groups)
        moments = class_moments(block, groups, work, per_feature=scale is not None)
        return solve_l2(moments, scale)

    return carry_out(solve, resolve_place(device, X), memory_budget)


def class_moments(block: Block, groups: Groups, work: Work, *, per_feature: bool) -> ClassMoments:
    """Class moments of a block.

    Raises
    ------
    ValueError
        For values that are not finite or whose squares overflow. Finiteness is read off the sums:
        only a bad sum starts the search for its row.
    """
    moments = moments_of(block, groups, work, per_feature=per_feature)
    # (Dense moments are taken about the mean, so a huge constant shows in the sums alone.)
    xp = block.place.xp
    huge = isinstance(block, DenseBlock) and to_float(xp.max(xp.abs(moments.total))) > errors.LIMIT
    if huge or any(s - s != 0 for s in moments.scatter()):
        block.check_finite(squares=True)
        if not huge:
            raise ValueError("the sums of squares of X overflow float64. Rescale the features.")
    return moments
