"""Sparse Bernoulli naive Bayes: Theorem 1 of Askari, d'Aspremont & El Ghaoui, for any K."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from .._docstrings import filled
from ..arrays.context import Context
from ..arrays.functions import (
    array_namespace,
    clip_negative,
    index_mask,
    row_sums,
    to_float,
    to_floats,
)
from ..arrays.typing import Array
from ..blocks import Block
from ..blocks.samples import Samples
from ..blocks.transforms import Binarized
from ..statistics.base import Statistics
from ..statistics.class_sums import ClassSums
from ..statistics.recipe import Recipe
from .centers import SparseCenters
from .decisions import LinearForm
from .divergence import phi
from .user_input import as_number, check_alpha, solve_from_data

_CANCELS = 1e-2  # the share of a loss below which a difference of two losses loses digits


@dataclass(frozen=True)
class BernoulliCenters(SparseCenters):
    """Sparse Bernoulli naive Bayes: centers are probabilities that a feature is there.

    Attributes
    ----------
    total : array of shape (K, m), float64
        Weight of the samples of each class in which each feature is present.
    alpha : float
        Additive smoothing of the weights with and without the feature.
    """

    ARRAYS: ClassVar[dict[str, tuple[str, ...]]] = {
        "gain": ("candidate",),
        "total": ("class", "candidate"),
    }

    total: Array
    alpha: float

    def counts(self, columns: Array | None = None) -> tuple[Array, Array]:
        """Smoothed weight with and without some features: two arrays of shape (K, d)."""
        xp = self.backend.xp
        total = self.total if columns is None else xp.take(self.total, columns, axis=1)
        weight = self.backend.asarray(list(self.class_weight))[:, None]
        return _counts(total, weight, self.alpha)

    def centers_at(self, columns: Array) -> tuple[Array, Array]:
        present, absent = self.counts(columns)
        xp = self.backend.xp
        f, rest = xp.sum(present, axis=0), xp.sum(absent, axis=0)
        return present / (present + absent), f / (f + rest)

    def _log_shares(self, support: Array) -> tuple[Array, Array]:
        """Logs of the probabilities of all features to be there, and not to be: two (K, m)."""
        xp = self.backend.xp
        counts = self.counts()
        size, selected = counts[0] + counts[1], index_mask(support, self.total.shape[1])
        of_all, n = [xp.sum(a, axis=0) for a in counts], xp.sum(size, axis=0)
        present, absent = (
            xp.log(xp.where(selected, own / size, tied / n))
            for own, tied in zip(counts, of_all, strict=True)
        )
        return present, absent

    def log_theta(self, support: Array) -> Array:
        """Log probabilities of all features, free on the support and tied elsewhere: (K, m)."""
        return self._log_shares(support)[0]

    def likelihood_form(self, support: Array) -> LinearForm:
        """The log-likelihood of a sample in each class, over all features."""
        xp = self.backend.xp
        present, absent = self._log_shares(support)
        coef = xp.permute_dims(present - absent, (1, 0))
        return LinearForm(self.backend.zeros(coef.shape[0]), coef, row_sums(absent))

    def linear_form(self, columns: Array, log_prior: list[float]) -> LinearForm:
        """The decision; for more than two classes each score is relative to the tied center."""
        xp, backend = self.backend.xp, self.backend
        present, absent = self.counts(columns)
        odds = xp.log(present) - xp.log(absent)
        log_absent = xp.log(absent / (present + absent))
        if len(log_prior) > 2:
            f, rest = xp.sum(present, axis=0), xp.sum(absent, axis=0)
            odds = odds - (xp.log(f) - xp.log(rest))
            log_absent = log_absent - xp.log(rest / (f + rest))
        if len(log_prior) == 2:
            odds = odds[1:, :] - odds[:1, :]
            log_absent = log_absent[1:, :] - log_absent[:1, :]
            log_prior = [log_prior[1] - log_prior[0]]
        shift, offset = backend.zeros(columns.shape[0]), backend.asarray(log_prior)
        return LinearForm(shift, xp.permute_dims(odds, (1, 0)), offset, log_absent)


def _counts(total: Array, weight: Array, alpha: float) -> tuple[Array, Array]:
    # Not N - f for the weight without a feature: in a large class alpha would be rounded away.
    return total + alpha, clip_negative(weight - total) + alpha


def solve_bernoulli(sums: ClassSums, ctx: Context, alpha: float) -> BernoulliCenters:
    """Sparse Bernoulli naive Bayes from class sums of zeros and ones: Theorem 1.

    The loss with all features free is the negative log-likelihood of the smoothed counts:
    ``- sum_c sum_i [f_ci log(f_ci / N_c) + (N_c - f_ci) log(1 - f_ci / N_c)]``.
    """
    backend, weight, total = sums.backend, sums.class_weight, sums.total
    xp, m = backend.xp, total.shape[1]
    gain, column = backend.zeros(m), backend.asarray(weight)[:, None]

    def fill(part: slice) -> Array:
        present, absent = _counts(total[:, part], column, alpha)
        f, rest = xp.sum(present, axis=0), xp.sum(absent, axis=0)
        gain[part] = _gain(total[:, part], f, rest, weight, column, alpha)
        n = f + rest
        tied = xp.sum(f * xp.log(f / n) + rest * xp.log(rest / n))
        return xp.stack([tied, xp.sum(gain[part])])

    def fill_free(part: slice) -> Array:
        present, absent = _counts(total[:, part], column, alpha)
        n = present + absent
        return xp.sum(present * xp.log(present / n) + absent * xp.log(absent / n))

    tied, gains = to_floats(ctx.sum_columns(fill, m, len(weight)))
    loss = -tied - gains
    # Logarithms of all cells are needed only where the difference loses digits.
    if loss < _CANCELS * -tied:
        loss = -to_float(ctx.sum_columns(fill_free, m, len(weight)))
    return BernoulliCenters(backend, tuple(weight), gain, loss, None, total, alpha)


def bernoulli_ratio(sums: ClassSums, ctx: Context) -> Array:
    """The gain without smoothing, half of the G statistic of each 2 x K table: (m,)."""
    k, m = sums.shape
    parts = ctx.map_columns(lambda part: bernoulli_gain(sums.total[:, part], sums, 0.0), m, k)
    return sums.backend.xp.concat(parts)


def bernoulli_gain(total: Array, classes: Statistics | Samples, alpha: float) -> Array:
    """The gain of features, (d,), from class sums, (K, d): see `_gain`."""
    weight, xp = classes.backend.asarray(classes.class_weight)[:, None], classes.backend.xp
    f, rest = (xp.sum(count, axis=0) for count in _counts(total, weight, alpha))
    return _gain(total, f, rest, classes.class_weight, weight, alpha)


def _gain(
    total: Array, f: Array, rest: Array, weights: list[float], weight: Array, alpha: float
) -> Array:
    """How much the log-likelihood grows if a feature is free: Theorem 1, for any number of classes.

    From class sums, (K, d), and ``weights``, W_c, which ``weight`` has on the device, (K, 1). With
    f_c = total_c + alpha, N_c = W_c + 2 alpha, F and N their sums over the classes (``rest`` is
    N - F), q = F / N, e_c = f_c N - F N_c and phi(z) = (1 + z) log(1 + z) - z:

        gain = sum_c N_c [ q phi(e_c / (N_c F)) + (1 - q) phi(-e_c / (N_c (N - F))) ]

    Each term is non-negative, and exactly 0 where the shares of all classes are equal. (The
    textbook difference of f log f terms goes negative there.)
    """
    xp, (k, _), total_weight = array_namespace(total), weight.shape, sum(weights)
    n = total_weight + 2 * k * alpha
    n_c = weight + 2 * alpha
    total_sum = xp.sum(total, axis=0)
    # f_c N - F N_c without and with alpha: both parts are differences of integers, so that the sum
    # is 0 where the shares are equal.
    e = total * total_weight - total_sum * weight
    e = e + alpha * (total * (2 * k) - 2 * total_sum + (total_weight - k * weight))
    if alpha == 0:  # what none or all samples have does not differ: e is 0
        f, rest = (xp.where(a > 0, a, xp.ones_like(a)) for a in (f, rest))
    e, share = e / n_c, n_c / n
    there = xp.sum(share * phi(e / f), axis=0)
    return f * there + rest * xp.sum(share * phi(e / -rest), axis=0)


@filled
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
    binarize : float or None, default=0.0
        Values above it are 1, others 0. None: X holds zeros and ones already.

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
    alpha, binarize = check_alpha(alpha), check_binarize(binarize)

    def solve(block: Block, samples: Samples, ctx: Context) -> BernoulliCenters:
        block = binarized(block, binarize, "bernoulli_nb")
        return solve_bernoulli(Recipe("class sums").of(block, samples, ctx), ctx, alpha)

    return solve_from_data(solve, X, y, n_classes, sample_weight, device, memory_budget)


def check_binarize(binarize: Any) -> float | None:
    """``binarize`` if it is None or a number, as a float; a ValueError for anything else."""
    if binarize is None:
        return None
    value = as_number(binarize)
    if math.isnan(value):
        raise ValueError(
            f"binarize={binarize!r} is not valid: use a number that float64 can hold, or None for "
            "data of zeros and ones."
        )
    return value


def binarized(block: Block, threshold: float | None, caller: str) -> Block:
    """A block that is read as zeros and ones.

    Raises
    ------
    ValueError
        For a negative threshold of a block with implicit zeros: each would become a one.
    """
    if threshold is not None and threshold < 0 and block.has_implicit_zeros:
        raise ValueError(
            f"binarize={threshold!r} would make ones of all zeros of sparse data: use a threshold "
            "of at least 0, or dense data."
        )
    return replace(block, transform=Binarized(caller, threshold))
