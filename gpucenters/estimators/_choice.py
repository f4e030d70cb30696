"""Rules that choose one of several models by their scores on the test samples of each fold."""

from __future__ import annotations

from typing import Any

import numpy as np

RULES = ("best", "one-standard-error")
_ROUNDING = 1e-12  # of the largest score: means of equal scores in another order differ by less


def check_rule(rule: Any) -> None:
    """Raise a ValueError unless it is the name of a rule."""
    if not isinstance(rule, str) or rule not in RULES:
        raise ValueError(f"rule={rule!r} is not valid: use {' or '.join(map(repr, RULES))}.")


def choose(scores: np.ndarray, rule: str, size: np.ndarray | None = None) -> int:
    """The smallest model that a rule lets pass.

    Parameters
    ----------
    scores : ndarray of shape (n_models, n_folds)
        Larger is better.
    rule : {"best", "one-standard-error"}
        "best" lets the best mean score pass, and those that differ from it by rounding alone. The
        other rule lets pass what is within one standard error of it: of the mean over the folds of
        the model that "best" chooses, with the divisor ``n_folds - 1`` of variances.
    size : ndarray of shape (n_models,), optional
        By default the models are in ascending order. Of equal sizes the first one is taken.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        Where all means are NaN.
    """
    check_rule(rule)
    means, n = scores.mean(axis=1), scores.shape[1]
    if np.all(np.isnan(means)):
        raise ValueError("all mean scores are NaN: none of the models is the best one.")
    size = np.arange(len(means)) if size is None else size
    top = int(np.nanargmax(means))

    def smallest(allowed: float) -> int:
        passing = np.flatnonzero(means >= means[top] - allowed)
        return int(passing[np.argmin(size[passing])])

    if not np.all(np.isfinite(scores[top])):
        return smallest(0.0)
    rounding = _ROUNDING * float(np.max(np.abs(scores[top])))
    best = smallest(rounding)
    if rule == "best" or n == 1:
        return best
    return smallest(rounding + float(scores[best].std(ddof=1)) / np.sqrt(n))
