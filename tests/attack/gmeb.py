"""GMEB against a conic solver, in every container, and its certificate for any multipliers."""

from __future__ import annotations

import numpy as np
from conic import optimum
from gmeb_problems import KINDS, draw
from test_gmeb import problem_of, solved

from .problems import put
from .report import Report

PROBLEMS = 1000
CHUNK = 100


def attack(rng: np.random.Generator, report: Report) -> None:
    """Check one random problem."""
    kind, seed = str(rng.choice(KINDS)), int(rng.integers(1000, 2**31))
    form = str(rng.choice(["C", "F", "csr_array", "csc_matrix"]))
    d = draw(kind, seed)
    problem = problem_of(put(d.X, form), d)
    found, scale = solved(problem, 1e-8), problem.scale
    # The conic solver needs features of one scale.
    varies = problem.p + problem.q > 0
    unit = np.where(varies, np.sqrt((problem.p + problem.q) / 2), 1.0)
    Z = np.where(varies, (d.X - problem.mean) / unit, 0.0)
    c = np.ones(len(d.y)) if d.weight is None else d.weight
    y = np.where(d.y, 1.0, -1.0)
    wanted = optimum(Z, y, c, problem.p / unit**2, problem.q / unit**2)
    report.count(kind)
    where = f"draw({kind!r}, {seed}) as {form}: "
    for what, value, most in (
        ("the objective of a conic solver", abs(found.objective - wanted) / scale, 1e-7),
        ("a bound above the objective", (found.bound - found.objective) / scale, 1e-12),
        ("the gap", (found.objective - found.bound) / scale, 1e-6),
        ("rounds", found.rounds, 12),
    ):
        if not value <= most:
            report.fail(f"{kind}: {what}", where + f"{value:.2e} > {most:g}")
