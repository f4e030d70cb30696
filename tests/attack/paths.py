"""The path of every model, its `with_k` and its search against a refit of each k and each fold.

Tie-rich data in every container, folds of all kinds, weights and scorers.
"""

from __future__ import annotations

import numpy as np
from path_problems import MODELS, problem_differences

from .report import Report

PROBLEMS = 1000


def attack(rng: np.random.Generator, report: Report) -> None:
    kind = MODELS[rng.integers(len(MODELS))]
    report.count(kind.__name__)
    for difference in problem_differences(rng, kind):
        report.count("comparisons")
        if difference:
            report.fail(f"{kind.__name__}: {difference.split(':')[0]}", f"# {difference}")
