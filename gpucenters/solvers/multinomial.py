"""Sparse multinomial naive Bayes: Theorems 2 and 3 of Askari, d'Aspremont & El Ghaoui."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from ..arrays.convert import as_block
from ..arrays.devices import Place, resolve_place
from ..arrays.grid import chunk_size, ranges
from ..arrays.groups import check_every_class, group_rows
from ..arrays.ops import members, to_float, to_numpy
from ..arrays.reading import NotNegative
from ..arrays.threads import run
from ..arrays.typing import Array
from ..arrays.work import Work, carry_out
from .centers import Centers
from .class_sums import ClassSums, check_alpha, class_sums, feature_sums
from .divergence import divergence
from .duality import solve_dual
from .screening import Screen
from .selection import Selection, resolve_k, warn_of_no_gain
from .swaps import Primal, best_support

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

    def to(self, place: Place) -> MultinomialSelection:
        return replace(self, support=place.move(self.support), gain=place.move(self.gain))


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
    """

    total: Array
    alpha: float
    scale: ClassVar[None] = None

    @cached_property
    def mass(self) -> list[float]:
        """B_c of all features."""
        m = self.total.shape[1]
        mass = [s + m * self.alpha for s in feature_sums(self.total, self.place)]
        most = _MOST_MASS * min(self.alpha, 1.0)
        if not sum(mass) <= most:
            raise ValueError(
                f"the values of X are too large: their sum is {sum(mass):g}, with alpha="
                f"{self.alpha:g} it may be at most {most:g}. Rescale X."
            )
        return mass

    def _smoothed(self, columns: Array) -> Array:
        return self.place.xp.take(self.total, columns, axis=1) + self.alpha

    def select(self, k: Any, near: Selection | None = None) -> MultinomialSelection:
        """The features for this k, with the gap that is left.

        The dual gives psi(k), which no k features exceed, and a p. The k largest h_i(p) are the
        support, and where the gap says that it may not be the best, swaps at its edge are tried.

        Parameters
        ----------
        k : int, float or "all"
        near : MultinomialSelection, optional
            That of another k, from whose p the search starts.
        """
        xp, m = self.place.xp, self.total.shape[1]
        count = resolve_k(k, m)
        shares = [b / sum(self.mass) for b in self.mass]
        if count == m:
            h = self._divergence(shares)
            every = xp.arange(m, dtype=xp.int64, device=self.place.device)
            return MultinomialSelection(every, h, tuple(shares), to_float(xp.sum(h)), 0.0)
        start = list(near.p) if isinstance(near, MultinomialSelection) else shares
        columns, p, bound, found = self._search(count, start)
        support = xp.take(columns, found.support)
        gain = divergence(self._smoothed(support), p)
        positive = int(xp.count_nonzero(gain > 0))
        if positive < count:
            warn_of_no_gain(k, count, positive)
        gap = max(bound - found.value, 0.0)
        return MultinomialSelection(support, gain, tuple(p), found.value, gap)

    def _search(self, k: int, p: list[float]) -> tuple[Array, list[float], float, Primal]:
        """(candidates, p, bound, best support among the candidates)."""
        screen = Screen(self.total, self.alpha, self.place)
        columns = screen.first(k, p)
        while True:
            f = self._smoothed(columns)
            dual = solve_dual(f, k, p)
            wider, missed = screen.missed(columns, f, k, dual.p)
            if not missed:
                break
            columns, p = wider, dual.p
        # (What is left to add is near the edge, but below it: for swaps.)
        at = self.place.xp.searchsorted(wider, columns)
        f = self._smoothed(wider)
        supports = [self.place.xp.take(at, s) for s in dual.supports]
        h = divergence(f, dual.p)
        return wider, dual.p, dual.value, best_support(f, supports, h, dual.value)

    def _divergence(self, p: list[float]) -> Array:
        h = self.place.zeros(self.total.shape[1])

        def fill(cut: tuple[int, int]) -> None:
            h[cut[0] : cut[1]] = divergence(self.total[:, cut[0] : cut[1]] + self.alpha, p)

        for _ in run(fill, ranges(h.shape[0], chunk_size(self.place)), self.place):
            pass
        return h

    def scores(self, selection: Selection) -> Array:
        """h_i at the solution of the dual."""
        assert isinstance(selection, MultinomialSelection)
        return self._divergence(list(selection.p))

    @cached_property
    def constant(self) -> float:
        """C: the log-likelihood with all features tied."""
        xp, whole = self.place.xp, sum(self.mass)

        def part(cut: tuple[int, int]) -> Array:
            g = xp.sum(self.total[:, cut[0] : cut[1]] + self.alpha, axis=0)
            return xp.sum(g * xp.log(g / whole))

        cuts = ranges(self.total.shape[1], chunk_size(self.place))
        return to_float(xp.sum(xp.stack(list(run(part, cuts, self.place)))))

    def objective(self, support: Array) -> float:
        """The negative log-likelihood with the features of ``support`` free."""
        f = self._smoothed(support)
        mass = [float(b) for b in to_numpy(self.place.xp.sum(f, axis=1))]
        h = divergence(f, [b / sum(mass) for b in mass])
        return -(self.constant + to_float(self.place.xp.sum(h)))

    def at(self, columns: Array) -> tuple[Array, Array]:
        """(theta of each class, tied theta) of the features of a support."""
        xp, f = self.place.xp, self._smoothed(columns)
        mass = xp.sum(f, axis=1)
        whole = sum(self.mass)
        return f * (xp.sum(mass) / mass)[:, None] / whole, xp.sum(f, axis=0) / whole

    def log_theta(self, support: Array) -> Array:
        """Log shares of all features, free on the support and tied elsewhere: (K, m)."""
        xp, f = self.place.xp, self.total + self.alpha
        mass = xp.sum(self._smoothed(support), axis=1)
        free = xp.log(f * (xp.sum(mass) / mass)[:, None] / sum(self.mass))
        tied = xp.log(xp.sum(f, axis=0) / sum(self.mass))
        return xp.where(members(support, f.shape[1]), free, tied)

    def to(self, place: Place) -> MultinomialCenters:
        return replace(self, place=place, total=place.move(self.total))


def solve_multinomial(sums: ClassSums, alpha: float) -> MultinomialCenters:
    """Sparse multinomial naive Bayes from class sums, to be solved for each k.

    Parameters
    ----------
    sums : ClassSums
    alpha : float
        Positive.
    """
    return MultinomialCenters(sums.place, tuple(sums.weight), sums.total, alpha)


def multinomial_form(
    centers: MultinomialCenters, support: Array, log_prior: list[float]
) -> tuple[Array, Array, Array]:
    """The decision as (shift, coef, offset): score = (x[support] - shift) @ coef + offset.

    Of shapes (d,), (d, K) and (K,); for two classes (d, 1) and (1,): class 1 less class 0.
    """
    xp, place = centers.place.xp, centers.place
    log_theta = xp.log(centers.at(support)[0])
    if len(log_prior) == 2:
        slope = log_theta[1:, :] - log_theta[:1, :]
        constant = place.asarray([log_prior[1] - log_prior[0]])
    else:
        slope, constant = log_theta, place.asarray(log_prior)
    return place.zeros(support.shape[0]), xp.permute_dims(slope, (1, 0)), constant


def multinomial_nb(
    X: Any,
    y: Any,
    *,
    alpha: float = 1.0,
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
    y : array of integers of shape (n,)
        Classes 0..K-1.
    alpha : float, default=1.0
        Smoothing; below 1e-10 it counts as 1e-10.
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
    alpha = check_alpha(alpha)

    def solve(place: Place, work: Work) -> MultinomialCenters:
        block = replace(as_block(X, place), reading=NotNegative("multinomial_nb"))
        groups = group_rows(y, block.shape[0], place, n_classes=n_classes, weights=sample_weight)
        check_every_class(groups)
        return solve_multinomial(class_sums(block, groups, work), alpha)

    return carry_out(solve, resolve_place(device, X), memory_budget)
