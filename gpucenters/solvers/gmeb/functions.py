"""GMEB of arrays and class codes, without scikit-learn."""

from __future__ import annotations

from typing import Any

from ..._docstrings import filled
from ...arrays.context import Context
from ...arrays.functions import to_host
from ...blocks.block import Block
from ...blocks.samples import Samples
from ..entry import solve_from_data
from .hyperplanes import Hyperplanes, MarginProblems, Parameters
from .problem import Certificate, certificate


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
    parameters = Parameters(r_plus, r_plus if r_minus is None else r_minus, tol, max_iter)

    def solve(block: Block, samples: Samples, ctx: Context) -> Hyperplanes:
        return MarginProblems.of(block, samples, ctx).solve(parameters, ctx)[0]

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
            0, r_plus, r_plus if r_minus is None else r_minus
        )
        xp, rows = ctx.backend.xp, problem.data.rows
        given = ctx.backend.asarray(to_host(w)), ctx.backend.asarray(to_host(mu))
        weights, multipliers = (xp.astype(x, xp.float64) for x in given)
        if rows is not None:
            multipliers = xp.take(multipliers, ctx.backend.asarray(rows))
        return certificate(problem, weights, multipliers, ctx)

    return solve_from_data(task, X, y, 2, sample_weight, device, memory_budget)
