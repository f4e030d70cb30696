"""Sparse multinomial naive Bayes: Theorems 2 and 3 of Askari, d'Aspremont & El Ghaoui."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar, Self

from .._docstrings import filled
from ..arrays.context import Context
from ..arrays.functions import array_namespace, index_mask, row_sums, to_float, to_floats
from ..arrays.typing import Array
from ..blocks import Block
from ..blocks.samples import Samples
from ..blocks.transforms import NotNegative
from ..statistics.class_sums import ClassSums, feature_sums
from ..statistics.recipe import Recipe
from .centers import Centers
from .decisions import LinearForm
from .divergence import divergence
from .duality import DualPoint, solve_dual
from .selection import Selection, resolve_k, warn_of_no_gain
from .support_search import Screen, SupportValue, best_support
from .user_input import as_number, check_alpha, solve_from_data

DEFAULT_TOL = 1e-9  # a share of the log-likelihood that no one will miss
_MOST_MASS = 1e150  # beyond it squares overflow; beyond as many times alpha shares underflow


@dataclass(frozen=True)
class MultinomialSelection(Selection):
    """The features for one k, with what is known of how good they are.

    Attributes
    ----------
    p : tuple of K floats
        The solution of the dual: shares of the classes.
    value : float
        The sum of h_i over the support at its own shares: its log-likelihood less C.
    gap : float
        How much more any other support of k features could have, at most.
    """

    p: tuple[float, ...]
    value: float
    gap: float


@dataclass(frozen=True)
class MultinomialCenters(Centers):
    """Sparse multinomial naive Bayes, ready to be solved for any k.

    Maximise the log-likelihood of counts where the shares of at most k features may differ between
    classes. Supports for different k need not be nested, so each k is solved on its own, from the
    class sums.

    Attributes
    ----------
    total : array of shape (K, m), float64
        Class sums.
    alpha : float
        Smoothing: added to each sum.
    mass : tuple of K floats
        B_c: the smoothed sums of each class over all features.
    tol : float
        How far the dual may be from its minimum, as a share of C.
    tied_likelihood : float, optional
        C: the log-likelihood with all features tied, where ``total`` lacks some of them.
    """

    ARRAYS: ClassVar[dict[str, tuple[str, ...]]] = {"total": ("class", "candidate")}
    nested: ClassVar[bool] = False
    scale: ClassVar[None] = None

    total: Array
    alpha: float
    mass: tuple[float, ...]
    tol: float
    tied_likelihood: float | None = None

    def restricted(self, columns: Array, ctx: Context | None = None) -> Self:
        tied = self._tied_likelihood(ctx or Context.of(self.backend))
        return replace(super().restricted(columns, ctx), tied_likelihood=tied)

    def smoothed(self, columns: Array) -> Array:
        """Smoothed class sums of some features, ascending: (K, d)."""
        total = self.total
        if columns.shape[0] < total.shape[1]:
            total = self.backend.xp.take(total, columns, axis=1)
        return total + self.alpha

    def select(self, k: Any, ctx: Context | None = None) -> MultinomialSelection:
        """The features for this k, with the gap that is left: Theorem 2 and its reconstruction.

        The dual gives psi(k), which no k features exceed, and a p. The k largest h_i(p) are the
        support, and where the gap says that it may not be the best, swaps at its edge are tried.
        The search starts at the shares of the classes whatever else was solved before, so that a
        path, another k of a fitted model and a fit to the same data give the same support.

        Parameters
        ----------
        k : int, float or "all"
        ctx : Context, optional
        """
        return next(self.select_each([k], ctx or Context.of(self.backend)))

    def select_each(self, ks: list[Any], ctx: Context) -> Iterator[MultinomialSelection]:
        h = cache(lambda: self._divergence(self._shares(), ctx))
        for k in ks:
            yield self._select(k, ctx, h)

    def _shares(self) -> list[float]:
        return [b / sum(self.mass) for b in self.mass]

    def _select(
        self, k: Any, ctx: Context, h_at_start: Callable[[], Array]
    ) -> MultinomialSelection:
        xp, m, p = self.backend.xp, self.total.shape[1], self._shares()
        count = resolve_k(k, m)
        if count == m:
            h, every = h_at_start(), self.backend.arange(m)
            return MultinomialSelection(every, h, tuple(p), to_float(xp.sum(h)), 0.0)
        columns, dual, found = self._search(count, p, ctx, h_at_start)
        support, gain = xp.take(columns, found.support), xp.take(dual.h, found.support)
        warn_of_no_gain(gain, count, m)
        # A feature alone has one share in each class: every support of one feature has the value 0.
        gap = max(dual.value - found.value, 0.0) if count > 1 else 0.0
        return MultinomialSelection(support, gain, tuple(dual.p), found.value, gap)

    def _search(
        self, k: int, p: list[float], ctx: Context, h_at_start: Callable[[], Array]
    ) -> tuple[Array, DualPoint, SupportValue]:
        """(candidates, solution of the dual, best support among the candidates)."""
        xp, screen = self.backend.xp, Screen(self.total, self.alpha, ctx)
        columns = screen.first(k, p)
        h = h_at_start() if columns.shape[0] == self.total.shape[1] else None

        def slack() -> float:
            return self.tol * abs(self._tied_likelihood(ctx))

        while True:
            f = self.smoothed(columns)
            dual = solve_dual(f, k, p, slack, h)
            wider, missed = screen.missed(columns, dual.h, k, dual.p)
            if not missed:
                break
            columns, p, h = wider, dual.p, None
        if wider is not columns:
            # The features that it adds are near the edge but below it: they serve the swaps.
            position, f = xp.searchsorted(wider, columns), self.smoothed(wider)
            supports = [xp.take(position, s) for s in dual.supports]
            dual = replace(dual, h=divergence(f, dual.p), supports=supports)
        return wider, dual, best_support(f, dual)

    def _divergence(self, p: list[float], ctx: Context) -> Array:
        h = self.backend.zeros(self.total.shape[1])

        def fill(part: slice) -> None:
            h[part] = divergence(self.total[:, part] + self.alpha, p)

        ctx.map_columns(fill, h.shape[0], len(p))
        return h

    def feature_scores(self, selection: Selection, ctx: Context | None = None) -> Array:
        """Relative entropies h_i at the solution of the dual: (m,)."""
        assert isinstance(selection, MultinomialSelection)
        return self._divergence(list(selection.p), ctx or Context.of(self.backend))

    def _tied_likelihood(self, ctx: Context) -> float:
        """C: the log-likelihood with all features tied, ``sum_i g_i log(g_i / S)``."""
        if self.tied_likelihood is not None:
            return self.tied_likelihood
        xp, total_mass = self.backend.xp, sum(self.mass)

        def part_of_sum(part: slice) -> Array:
            g = xp.sum(self.total[:, part] + self.alpha, axis=0)
            return xp.sum(g * xp.log(g / total_mass))

        return to_float(ctx.sum_columns(part_of_sum, *reversed(self.total.shape)))

    def objective(self, support: Array, ctx: Context | None = None) -> float:
        """The negative log-likelihood with the features of ``support`` free."""
        xp, f = self.backend.xp, self.smoothed(support)
        mass = to_floats(row_sums(f))
        h = divergence(f, [b / sum(mass) for b in mass])
        tied = self._tied_likelihood(ctx or Context.of(self.backend))
        return -(tied + to_float(xp.sum(h)))

    def centers_at(self, columns: Array) -> tuple[Array, Array]:
        """(theta of each class, tied theta) of the features of a support.

        ``theta_ci = (B / B_c) f_ci / S`` and ``tied_i = g_i / S``, where B_c is the mass of the
        support in class c, B their sum, and S the mass of all features in all classes.
        """
        xp, f = self.backend.xp, self.smoothed(columns)
        mass = row_sums(f)
        total_mass = sum(self.mass)
        return self._free(f, mass), xp.sum(f, axis=0) / total_mass

    def _free(self, f: Array, mass: Array) -> Array:
        # The shares first: where they are equal, as those of one feature, so are the results.
        return f / mass[:, None] * (self.backend.xp.sum(mass) / sum(self.mass))

    def log_theta(self, support: Array) -> Array:
        """Log shares of all features, free on the support and tied elsewhere: (K, m)."""
        xp, f = self.backend.xp, self.total + self.alpha
        mass = row_sums(self.smoothed(support))
        free = xp.log(self._free(f, mass))
        tied = xp.log(xp.sum(f, axis=0) / sum(self.mass))
        return xp.where(index_mask(support, f.shape[1]), free, tied)

    def likelihood_form(self, support: Array) -> LinearForm:
        """The log-likelihood of a sample in each class, without the multinomial coefficient."""
        coef = self.backend.xp.permute_dims(self.log_theta(support), (1, 0))
        return LinearForm(
            self.backend.zeros(coef.shape[0]), coef, self.backend.zeros(coef.shape[1])
        )

    def linear_form(self, support: Array, log_prior: list[float]) -> LinearForm:
        """The decision; for more than two classes each score is relative to the tied center."""
        xp, backend = self.backend.xp, self.backend
        free, tied = self.centers_at(support)
        if len(log_prior) == 2:
            slope = xp.log(free[1:, :]) - xp.log(free[:1, :])
            constant = backend.asarray([log_prior[1] - log_prior[0]])
        else:
            slope, constant = xp.log(free / tied), backend.asarray(log_prior)
        shift = backend.zeros(support.shape[0])
        return LinearForm(shift, xp.permute_dims(slope, (1, 0)), constant)


def log_ratios(f: Array) -> Array:
    """Logs of sums over those of all classes, (K, d); for two classes of 1 over 0, (1, d)."""
    xp = array_namespace(f)
    if f.shape[0] == 2:
        return xp.log(f[1:, :] / f[:1, :])
    return xp.log(f / xp.sum(f, axis=0))


def solve_multinomial(
    sums: ClassSums, ctx: Context, alpha: float, tol: float = DEFAULT_TOL
) -> MultinomialCenters:
    """Sparse multinomial naive Bayes from class sums, to be solved for each k.

    Raises
    ------
    ValueError
        For sums so large that the search would overflow.
    """
    m = sums.total.shape[1]
    mass = tuple(s + m * alpha for s in feature_sums(sums.total, ctx))
    most = _MOST_MASS * min(alpha, 1.0)
    if not sum(mass) <= most:
        raise ValueError(
            f"the values of X are too large: their sum is {sum(mass):g}, with alpha={alpha:g} it "
            f"may be at most {most:g}. Rescale X."
        )
    weight = tuple(sums.class_weight)
    return MultinomialCenters(sums.backend, weight, sums.total, alpha, mass, tol)


def check_tol(tol: Any) -> float:
    """The tolerance as a float: not negative; a ValueError for anything else."""
    value = as_number(tol)
    if not 0 <= value < math.inf:
        raise ValueError(f"tol={tol!r} is not valid: use a number that is not negative.")
    return value


@filled
def multinomial_nb(
    X: Any,
    y: Any,
    *,
    alpha: float = 1.0,
    tol: float = DEFAULT_TOL,
    n_classes: int | None = None,
    sample_weight: Any = None,
    device: str | None = None,
    memory_budget: int | str | None = None,
) -> MultinomialCenters:
    """Sparse multinomial naive Bayes of labelled data, ready to be solved for any k.

    Maximises the likelihood of counts under multinomial naive Bayes where at most k features may
    have shares that differ between classes: Theorems 2 and 3 of Askari, d'Aspremont & El Ghaoui
    [1]_, for any number of classes.

    Parameters
    ----------
    X : array or CSR/CSC matrix of shape (n, m)
        Of any library and any real type, not negative. Left as it is.
    tol : float, default=1e-9
        How far the bound may be from the least one, relative to the log-likelihood C.

    Returns
    -------
    MultinomialCenters
        Its ``select(k)`` gives the features for one k, with the gap that is left.

    Raises
    ------
    ValueError
        For NaN, infinity and negative values (named by feature and row), a class without weight,
        lengths that differ, a damaged sparse matrix.

    References
    ----------
    .. [1] A. Askari, A. d'Aspremont and L. El Ghaoui, "Naive Feature Selection: Sparsity in Naive
       Bayes", AISTATS 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from gpucenters.solvers import multinomial_nb
    >>> X = np.asarray([[3, 0, 1], [2, 1, 1], [0, 3, 1], [1, 2, 1]])
    >>> chosen = multinomial_nb(X, [0, 0, 1, 1]).select(2)
    >>> chosen.support, chosen.gap
    (array([0, 1]), 0.0)
    """
    alpha, tol = check_alpha(alpha), check_tol(tol)

    def solve(block: Block, samples: Samples, ctx: Context) -> MultinomialCenters:
        block = replace(block, transform=NotNegative("multinomial_nb"))
        sums = Recipe("class sums").of(block, samples, ctx)
        return solve_multinomial(sums, ctx, alpha, tol)

    return solve_from_data(solve, X, y, n_classes, sample_weight, device, memory_budget)
