"""Sparse Bernoulli naive Bayes: Theorem 1 of Askari, d'Aspremont & El Ghaoui, for any K."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..arrays.convert import Block, as_block
from ..arrays.dense import DenseBlock
from ..arrays.devices import Place, resolve_place
from ..arrays.grid import chunk_size, ranges
from ..arrays.groups import check_every_class, group_rows
from ..arrays.ops import array_namespace, members, not_negative, to_float
from ..arrays.reading import Binarized
from ..arrays.threads import run
from ..arrays.typing import Array
from ..arrays.work import Work, carry_out
from .centers import SparseCenters
from .class_sums import ClassSums, check_alpha, class_sums
from .divergence import phi


@dataclass(frozen=True)
class BernoulliCenters(SparseCenters):
    """Sparse Bernoulli naive Bayes: centers are probabilities that a feature is there.

    Attributes
    ----------
    total : array of shape (K, m), float64
        How much weight of each class has each feature.
    alpha : float
        Smoothing: added to what has the feature, and to what has it not.
    """

    total: Array
    alpha: float

    def counts(self, columns: Array | None = None) -> tuple[Array, Array]:
        """Smoothed weight with and without some features: two arrays of shape (K, d)."""
        xp = self.place.xp
        total = self.total if columns is None else xp.take(self.total, columns, axis=1)
        return _counts(total, list(self.weight), self.alpha, self.place)

    def at(self, columns: Array | None = None) -> tuple[Array, Array]:
        with_it, without = self.counts(columns)
        xp = self.place.xp
        pooled = xp.sum(with_it, axis=0), xp.sum(without, axis=0)
        return with_it / (with_it + without), pooled[0] / (pooled[0] + pooled[1])

    def log_theta(self, support: Array) -> Array:
        """Log probabilities of all features, free on the support and tied elsewhere: (K, m)."""
        xp = self.place.xp
        with_it, without = self.counts()
        f, rest = xp.sum(with_it, axis=0), xp.sum(without, axis=0)
        tied = xp.log(f / (f + rest))
        free = xp.log(with_it / (with_it + without))
        return xp.where(members(support, f.shape[0]), free, tied)

    def to(self, place: Place) -> BernoulliCenters:
        return replace(self, place=place, gain=place.move(self.gain), total=place.move(self.total))


def _counts(total: Array, weight: list[float], alpha: float, place: Place) -> tuple[Array, Array]:
    # (The weight without a feature is not N - f: alpha would drown in a large class.)
    weights = place.asarray(weight)[:, None]
    return total + alpha, not_negative(weights - total) + alpha


def solve_bernoulli(sums: ClassSums, alpha: float) -> BernoulliCenters:
    """Sparse Bernoulli naive Bayes from class sums of zeros and ones.

    Parameters
    ----------
    sums : ClassSums
    alpha : float
        Positive.

    Returns
    -------
    BernoulliCenters
    """
    place, weight, total = sums.place, sums.weight, sums.total
    xp, m = place.xp, total.shape[1]
    gain = place.zeros(m)

    def fill(cut: tuple[int, int]) -> Array:
        part = slice(*cut)
        with_it, without = _counts(total[:, part], weight, alpha, place)
        gain[part] = _gain(total[:, part], with_it, without, weight, alpha)
        n = with_it + without
        return xp.sum(with_it * xp.log(with_it / n) + without * xp.log(without / n))

    likelihood = xp.sum(xp.stack(list(run(fill, ranges(m, chunk_size(place)), place))))
    loss = -to_float(likelihood)
    return BernoulliCenters(place, tuple(weight), gain, loss, None, total, alpha)


def _gain(total: Array, with_it: Array, without: Array, weight: list[float], alpha: float) -> Array:
    """What freeing each feature adds to the log-likelihood; 0 to the bit for null features."""
    xp, k, whole = array_namespace(with_it), len(weight), sum(weight)
    f, rest = xp.sum(with_it, axis=0), xp.sum(without, axis=0)
    pooled, n = xp.sum(total, axis=0), whole + 2 * k * alpha
    gain = xp.zeros_like(f)
    for c, w in enumerate(weight):
        # f_c N - F N_c with alpha taken apart, so that it is 0 where the shares are equal: what is
        # left are differences of whole numbers.
        e = total[c, :] * whole - pooled * w
        e = e + alpha * (2 * (k * total[c, :] - pooled) + (whole - k * w))
        n_c = w + 2 * alpha
        terms = f * phi(e / (n_c * f)) + rest * phi(-e / (n_c * rest))
        gain = gain + (n_c / n) * terms
    return gain


def bernoulli_form(
    centers: BernoulliCenters, support: Array, log_prior: list[float]
) -> tuple[Array, Array, Array]:
    """The decision as (shift, coef, offset): score = (x[support] - shift) @ coef + offset.

    Of shapes (d,), (d, K) and (K,); for two classes (d, 1) and (1,): class 1 less class 0.
    """
    xp, place = centers.place.xp, centers.place
    with_it, without = centers.counts(support)
    odds = xp.log(with_it) - xp.log(without)
    absent = xp.log(without / (with_it + without))
    if len(log_prior) == 2:
        odds = odds[1:, :] - odds[:1, :]
        constant = xp.sum(absent[1:, :] - absent[:1, :], axis=1) + (log_prior[1] - log_prior[0])
    else:
        constant = xp.sum(absent, axis=1) + place.asarray(log_prior)
    return place.zeros(support.shape[0]), xp.permute_dims(odds, (1, 0)), constant


def bernoulli_nb(
    X: Any,
    y: Any,
    *,
    alpha: float = 1.0,
    binarize: float | None = 0.0,
    n_classes: int | None = None,
    sample_weight: Any = None,
    device: str | None = None,
    memory_budget: int | str | None = None,
) -> BernoulliCenters:
    """Sparse Bernoulli naive Bayes of labelled data, for every k at once.

    Maximises, for every k, the likelihood of zeros and ones under Bernoulli naive Bayes where at
    most k features may have probabilities that differ between classes: Theorem 1 of Askari,
    d'Aspremont & El Ghaoui [1]_, for any number of classes.

    Parameters
    ----------
    X : array or CSR/CSC matrix of shape (n, m)
        Of any library and any real type. Left as it is.
    y : array of integers of shape (n,)
        Classes 0..K-1.
    alpha : float, default=1.0
        Smoothing; below 1e-10 it counts as 1e-10.
    binarize : float or None, default=0.0
        Values above it are 1, others 0. None: X holds zeros and ones already.
    n_classes : int, optional
        K; by default the largest code + 1.
    sample_weight : array of shape (n,), optional
        Weights count as repetitions; 0 leaves a sample out.
    device : {None, "cpu", "cuda", "cuda:N", "auto"}, optional
        Where to work; None follows X.
    memory_budget : int or str, optional
        Workspace beyond X and the result, in bytes or as "2GB"; a quarter of what is free.

    Returns
    -------
    BernoulliCenters
        ``gain`` ranks the features: see `select`.

    Raises
    ------
    ValueError
        For NaN, infinity, values other than 0 and 1 with ``binarize=None`` (named by feature and
        row), a negative threshold of sparse data, a class without weight.

    References
    ----------
    .. [1] A. Askari, A. d'Aspremont and L. El Ghaoui, "Naive Feature Selection: Sparsity in Naive
       Bayes", AISTATS 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from gpucenters.solvers import bernoulli_nb, select
    >>> X = np.asarray([[0, 1, 1], [0, 1, 0], [1, 1, 0], [1, 1, 1]])
    >>> centers = bernoulli_nb(X, [0, 0, 1, 1])
    >>> centers.gain.round(3)
    array([1.046, 0.   , 0.   ])
    >>> centers.free
    array([[0.25, 0.75, 0.5 ],
           [0.75, 0.75, 0.5 ]])
    """
    alpha = check_alpha(alpha)

    def solve(place: Place, work: Work) -> BernoulliCenters:
        block = binarized(as_block(X, place), binarize, "bernoulli_nb")
        groups = group_rows(y, block.shape[0], place, n_classes=n_classes, weights=sample_weight)
        check_every_class(groups)
        return solve_bernoulli(class_sums(block, groups, work), alpha)

    return carry_out(solve, resolve_place(device, X), memory_budget)


def binarized(block: Block, threshold: float | None, reader: str) -> Block:
    """A block that is read as zeros and ones.

    Raises
    ------
    ValueError
        For a negative threshold of a sparse block: each of its zeros would become a one.
    """
    if threshold is not None and threshold < 0 and not isinstance(block, DenseBlock):
        raise ValueError(
            f"binarize={threshold!r} would make ones of all zeros of sparse data: use a threshold "
            "of at least 0, or dense data."
        )
    return replace(block, reading=Binarized(reader, threshold))
