"""GMEB's decisions for all classes, and the problems that they solve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from ..._docstrings import filled
from ...arrays.context import Context
from ...arrays.functions import array_namespace, to_host
from ...arrays.linalg import one_blas_thread
from ...arrays.typing import Array
from ...blocks import Block
from ...blocks.samples import Samples
from ...reductions.working_columns import TwoClasses
from ...statistics.recipe import Recipe
from ..centers import Centers
from ..decisions import Decision, LinearDecision, LinearForm
from ..scaling import is_constant, variance_over_all
from ..selection import Selection
from ..user_input import solve_from_data
from .problem import Certificate, Problem, certificate
from .working_set import Solution, solve


@dataclass(frozen=True)
class Hyperplanes(Centers):
    """GMEB's decision for two classes (q = 1), or one for each class against the rest (q = K).

    The decision is ``(x[columns] - mean) @ w.T + offset``.

    Attributes
    ----------
    columns : array of int64 of shape (d,)
        The features with a weight in some decision, ascending.
    w, sigma : arrays of shape (q, d), float64
    mean : array of shape (d,), float64
    offset : array of shape (q,), float64
    t, omega, loss, bound, multiplier : tuples of q floats
        As in `Solution`; the loss is its objective.
    scale : tuple of q floats
        The loss of w = 0.
    rounds : tuple of q ints
    """

    ARRAYS: ClassVar[dict[str, tuple[str, ...]]] = {
        "columns": ("column",),
        "w": ("decision", "column"),
        "sigma": ("decision", "column"),
        "mean": ("column",),
        "offset": ("decision",),
    }
    for_every_k: ClassVar[bool] = False
    nested: ClassVar[bool] = False

    columns: Array
    w: Array
    sigma: Array
    mean: Array
    offset: Array
    t: tuple[float, ...]
    omega: tuple[float, ...]
    loss: tuple[float, ...]
    bound: tuple[float, ...]
    multiplier: tuple[float, ...]
    scale: tuple[float, ...]
    rounds: tuple[int, ...]

    def decision(self, support: Array, log_prior: list[float]) -> Decision:
        """The decision, which reads all ``columns``."""
        form = LinearForm(self.mean, self.backend.xp.permute_dims(self.w, (1, 0)), self.offset)
        return LinearDecision(self.columns, form, log_prior)

    def selected(self, threshold: float) -> Selection:
        """The features with a weight that, or whose ratio to the largest, is at least this."""
        xp = self.backend.xp
        size = xp.abs(self.w)
        if self.columns.shape[0] == 0:
            return Selection(self.columns, size[0, :])
        relative = size / xp.max(size, axis=1, keepdims=True)  # 0 / 0 compares as false
        chosen = xp.any((size >= threshold) | (relative >= threshold), axis=0)
        return Selection(self.columns[chosen], xp.max(size, axis=0)[chosen])


@dataclass(frozen=True)
class MarginProblems:
    """The problem of each class against the rest, or for two classes that of the second one."""

    block: Block
    samples: Samples
    mean: Array  # of all samples: (m,)
    # Sums of squares of each class about this mean; exactly zero for constant features.
    squares: Array  # (K, m)

    @classmethod
    def of(cls, block: Block, samples: Samples, ctx: Context) -> Self:
        """From data. They are read once, twice where raw sums of sparse data cancel.

        Raises
        ------
        ValueError
            For values that are not finite, or too large to be squared.
        """
        xp, backend = ctx.backend.xp, ctx.backend
        moments = Recipe("class moments", per_feature=True).of(block, samples, ctx)
        k, m = moments.shape
        w, n = backend.asarray(moments.class_weight)[:, None], sum(moments.count)
        mean, squares = backend.zeros(m), backend.zeros((k, m))

        def fill(part: slice) -> None:
            centred = moments.centred_at(part)
            within = xp.sum(centred, axis=0)
            variance, middle, means = variance_over_all(
                moments.total[:, part], within, moments.class_weight, backend
            )
            about = centred + w * (means - middle) ** 2
            constant = is_constant(variance, xp.abs(middle), n)
            mean[part] = middle
            squares[:, part] = xp.where(constant, xp.zeros_like(about), about)

        ctx.map_columns(fill, m, k)
        return cls(block, samples, mean, squares)

    def problem(self, c: int, r_plus: float, r_minus: float) -> Problem:
        """The problem of class c against the rest."""
        weight = self.samples.class_weight
        others = [d for d in range(len(weight)) if d != c]
        rest = self.squares[others[0], :]
        for d in others[1:]:
            rest = rest + self.squares[d, :]
        return Problem(
            TwoClasses.of(self.block, self.samples, c),
            self.mean,
            self.squares[c, :] / (weight[c] * r_plus),
            rest / (sum(weight[d] for d in others) * r_minus),
            math.sqrt(2 / (1 / r_plus + 1 / r_minus)),
        )

    def solve(
        self,
        r_plus: float,
        r_minus: float,
        tol: float,
        max_rounds: int,
        ctx: Context,
        starts: Sequence[Array] | None = None,
    ) -> tuple[Hyperplanes, list[Array]]:
        """The solution, and the last working set of each problem: starts for bounds nearby.

        The parameters are those of `gmeb_hyperplanes`.
        """
        classes = [1] if self.samples.n_classes == 2 else range(self.samples.n_classes)
        before = [None] * len(classes) if starts is None else starts
        with one_blas_thread(ctx.backend):
            solutions = [
                solve(self.problem(c, r_plus, r_minus), tol, max_rounds, ctx, start)
                for c, start in zip(classes, before, strict=True)
            ]
        return self._joined(solutions), [s.working for s in solutions]

    def _joined(self, solutions: list[Solution]) -> Hyperplanes:
        """The solutions of all problems, on the features that any of them has."""
        backend, xp = self.block.backend, self.block.backend.xp
        columns = xp.unique_values(xp.concat([s.columns for s in solutions]))
        return Hyperplanes(
            backend,
            tuple(self.samples.class_weight),
            columns=columns,
            w=xp.stack([_placed(s.w, s.columns, columns) for s in solutions]),
            sigma=xp.stack([_placed(s.sigma, s.columns, columns) for s in solutions]),
            mean=xp.take(self.mean, columns),
            offset=backend.asarray([s.offset for s in solutions]),
            t=tuple(s.t for s in solutions),
            omega=tuple(s.omega for s in solutions),
            loss=tuple(s.objective for s in solutions),
            bound=tuple(s.bound for s in solutions),
            multiplier=tuple(s.multiplier for s in solutions),
            scale=tuple(s.scale for s in solutions),
            rounds=tuple(s.rounds for s in solutions),
        )


def _placed(values: Array, columns: Array, among: Array) -> Array:
    """The values of some columns among more of them (both ascending), with zeros for the others."""
    xp = array_namespace(values)
    if values.shape[0] == among.shape[0]:
        return values
    if values.shape[0] == 0:
        return xp.zeros_like(xp.astype(among, xp.float64))
    at = xp.searchsorted(columns, among)
    at = xp.where(at < columns.shape[0], at, xp.zeros_like(at))
    found = xp.take(values, at)
    return xp.where(xp.take(columns, at) == among, found, xp.zeros_like(found))


# GMEB of arrays and class codes, without scikit-learn.


@filled
def gmeb_hyperplanes(
    X: Any,
    y: Any,
    *,
    r_plus: float = 4.0,
    r_minus: float | None = None,
    tol: float = 1e-6,
    max_iter: int = 50,
    n_classes: int | None = None,
    sample_weight: Any = None,
    device: str | None = None,
    memory_budget: int | str | None = None,
) -> Hyperplanes:
    """The globally best scaled margin classifier: see `~gpucenters.GMEBClassifier`.

    Parameters
    ----------
    y : array of integers of shape (n,)
        Class codes 0..K-1; 1 is class +1.
    r_plus, r_minus : float, positive
        The largest second moments of the decision in class +1 and in class -1, by default equal.
    tol : float
        The gap to reach, relative to the loss of w = 0.
    max_iter : int
        Rounds, each with one pass over X.

    Returns
    -------
    Hyperplanes

    Examples
    --------
    >>> import numpy as np
    >>> from gpucenters.solvers import gmeb_hyperplanes
    >>> X, y = np.asarray([[-2.0], [-2], [1], [3]]), [0, 0, 1, 1]
    >>> found = gmeb_hyperplanes(X, y, r_plus=1.25, r_minus=16.0)
    >>> round(float(found.w[0, 0]), 5), round(found.loss[0], 5), round(found.multiplier[0], 5)
    (0.5, 0.5, 1.5)
    """
    bounds = r_plus, r_plus if r_minus is None else r_minus

    def solve(block: Block, samples: Samples, ctx: Context) -> Hyperplanes:
        return MarginProblems.of(block, samples, ctx).solve(*bounds, tol, max_iter, ctx)[0]

    return solve_from_data(solve, X, y, n_classes, sample_weight, device, memory_budget)


@filled
def gmeb_certificate(
    X: Any,
    y: Any,
    w: Any,
    mu: Any,
    *,
    r_plus: float = 4.0,
    r_minus: float | None = None,
    sample_weight: Any = None,
    device: str | None = None,
    memory_budget: int | str | None = None,
) -> Certificate:
    """How far any weights are from the optimum of GMEB at most, by any multipliers.

    Both are made feasible first. X is read twice: for its moments, and for X'(y mu).

    Parameters
    ----------
    y : array of integers of shape (n,)
        0 or 1; 1 is class +1.
    w : array of shape (m,)
    mu : array of shape (n,)
    r_plus, r_minus : float, positive
        As in `gmeb_hyperplanes`.
    sample_weight : array of shape (n,), optional
    device : {None, "cpu", "cuda", "cuda:N", "auto"}, default=None
    memory_budget : int or str, optional

    Returns
    -------
    Certificate
        With ``objective``, ``dual.bound`` and ``gap``.

    Examples
    --------
    >>> import numpy as np
    >>> from gpucenters.solvers import gmeb_certificate
    >>> X, y = np.asarray([[-2.0], [-2], [1], [3]]), [0, 0, 1, 1]
    >>> found = gmeb_certificate(X, y, [0.5], [0.5, 0.5, 1, 0], r_plus=1.25, r_minus=16.0)
    >>> found.objective, found.dual.bound, found.gap
    (0.5, 0.5, 0.0)
    """

    def task(block: Block, samples: Samples, ctx: Context) -> Certificate:
        problem = MarginProblems.of(block, samples, ctx).problem(
            1, r_plus, r_plus if r_minus is None else r_minus
        )
        xp, rows = ctx.backend.xp, problem.data.rows
        given = ctx.backend.asarray(to_host(w)), ctx.backend.asarray(to_host(mu))
        weights, multipliers = (xp.astype(x, xp.float64) for x in given)
        if rows is not None:
            multipliers = xp.take(multipliers, ctx.backend.asarray(rows))
        return certificate(problem, weights, multipliers, ctx)

    return solve_from_data(task, X, y, 2, sample_weight, device, memory_budget)
