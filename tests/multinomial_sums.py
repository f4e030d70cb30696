"""Multinomial centers of class sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpucenters.arrays.backend import HOST
from gpucenters.arrays.context import Context
from gpucenters.solvers.multinomial import MultinomialCenters, solve_multinomial
from gpucenters.statistics import ClassSums, Recipe


def solved(total: Any, alpha: float, where: Any) -> MultinomialCenters:
    """Centers of class sums, each class of weight one."""
    k = total.shape[0]
    sums = ClassSums(where, Recipe("class sums"), [1.0] * k, [1] * k, total)
    return solve_multinomial(sums, Context.of(where), alpha)


def centers_of(total: np.ndarray, alpha: float = 1.0) -> MultinomialCenters:
    return solved(total, alpha, HOST)
