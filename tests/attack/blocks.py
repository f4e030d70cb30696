"""The level of tests within blocks: 300 null simulations with donor effects to a problem.

Donors differ, and so do the shares of two groups in them, but no feature tells the groups of a
donor apart. At 5%, tests within blocks reject 2 to 8%, and those that know no blocks far more.
"""

from __future__ import annotations

import numpy as np

from gpucenters import SparseBernoulliNB, SparseGaussianNB, SparsePoissonNB, block_gains

from .report import Report

PROBLEMS = 12
SIMULATIONS, FEATURES = 300, 10
LEAST, MOST = 0.02, 0.08


def attack(rng: np.random.Generator, report: Report) -> None:
    kind = str(rng.choice(["gaussian", "poisson", "bernoulli"]))
    plain, within = [], []
    for _ in range(SIMULATIONS):
        n, donors = int(rng.integers(400, 800)), int(rng.integers(2, 9))
        donor = rng.integers(0, donors, n)
        group = (rng.random(n) < rng.permutation(np.linspace(0.15, 0.85, donors))[donor]).astype(
            int
        )
        effect = rng.standard_normal((donors, FEATURES))[donor]
        if kind == "gaussian":
            model, X = SparseGaussianNB(pooling=1), effect + rng.standard_normal((n, FEATURES))
        elif kind == "poisson":
            model = SparsePoissonNB(exposure=None)
            X = rng.poisson(5 * np.exp(0.3 * effect)).astype(np.float64)
        else:
            model = SparseBernoulliNB()
            X = (rng.random((n, FEATURES)) < 1 / (1 + np.exp(-0.7 * effect))).astype(np.float64)
        cells, codes = np.unique(2 * donor + group, return_inverse=True)
        statistics = model.statistics(X, codes)
        within += block_gains(model, statistics, cells % 2, cells // 2).pvalues.tolist()
        plain += model.fit(X, group).pvalues_.tolist()
    level, without = (float(np.mean(np.asarray(p) < 0.05)) for p in (within, plain))
    report.count(f"{kind} simulations", SIMULATIONS)
    if not LEAST <= level <= MOST:
        report.fail(f"{kind} level", f"{level:.3f} within blocks, {without:.3f} without")
    if without < 2 * MOST:
        report.fail(f"{kind} without blocks", f"{without:.3f}: no donor effects to withstand")
