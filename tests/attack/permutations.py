"""P-values of permuted labels against exact arithmetic on all label vectors."""

from __future__ import annotations

import numpy as np
from permutation_problems import CONTAINERS, differences, draw

from .report import Report

PROBLEMS = 20_000


def attack(rng: np.random.Generator, report: Report) -> None:
    model, X, y, more = draw(rng)
    container = CONTAINERS[rng.integers(len(CONTAINERS))]
    report.count(f"{type(model).__name__}, scale={getattr(model, 'scale', None)}")
    for line in differences(model, X, y, more, container(X)):
        text = (
            "import numpy as np, scipy.sparse; from numpy import array, float32",
            "from gpucenters import *",
            f"X = np.array({X.tolist()}, {X.dtype.name!r})",
            f"permutation_gains({model!r}, {container.__name__}(X), {y!r}, **{more!r})",
        )
        report.fail(f"{type(model).__name__}, {line.split()[0]}", *text, f"# {line}")
