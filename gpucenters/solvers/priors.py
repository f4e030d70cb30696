"""Smoothing of counts, and priors of classes."""

from __future__ import annotations

import math
import numbers
from typing import Any

_LEAST_ALPHA = 1e-10  # as scikit-learn: alpha = 0 would give logarithms of zero
_MOST_ALPHA = 1e100  # beyond it products of smoothed sums overflow
_PRIOR_SUM_ERROR = 1e-5  # that float32 may leave in the sum of priors
_ACCEPTED = {
    "priors": "'uniform', 'empirical' or K numbers",
    "class_prior": "None or K numbers",
}


# The smoothing parameter of naive Bayes models.


def real_number(value: Any) -> float:
    """A number as a float; NaN for what is no number, or one beyond float64."""
    try:
        number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        return float(value) if number else math.nan
    except OverflowError:
        return math.nan


def check_alpha(alpha: Any) -> float:
    """``alpha`` as a float, at least 1e-10; raises for anything but a number from 0 to 1e100."""
    value = real_number(alpha)
    if not 0 <= value <= _MOST_ALPHA:
        raise ValueError(
            f"alpha={alpha!r} is not valid: use one number from 0 to {_MOST_ALPHA:g}, the same for "
            "every feature."
        )
    return max(value, _LEAST_ALPHA)


def log_priors(priors: object, weight: tuple[float, ...]) -> list[float]:
    """Log priors of the classes.

    Parameters
    ----------
    priors : {"uniform", "empirical"} or sequence of K positive numbers that sum to 1
        Uniform priors change nothing and are dropped (zeros). "empirical" is W_c / sum W.
    weight : tuple of K floats
        A class without weight has the prior 0, and given ones of the others are divided by their
        sum.

    Raises
    ------
    ValueError
        For anything else.
    """
    k = len(weight)
    if isinstance(priors, str):
        if priors == "uniform":
            return [_log(w > 0) for w in weight]
        if priors == "empirical":
            return [_log(w / sum(weight)) for w in weight]
        raise ValueError(
            f"priors={priors!r} is not valid: use 'uniform', 'empirical' or K numbers."
        )
    values = given_priors(priors, k, "priors")
    if len(set(values)) == 1:
        return [_log(w > 0) for w in weight]
    return _of_those_with_weight(values, weight)


def _log(p: float) -> float:
    return math.log(p) if p > 0 else -math.inf


def _of_those_with_weight(values: list[float], weight: tuple[float, ...]) -> list[float]:
    if all(weight):
        return [math.log(p) for p in values]
    rest = sum(p for p, w in zip(values, weight, strict=True) if w > 0)
    return [_log(p / rest if w > 0 else 0.0) for p, w in zip(values, weight, strict=True)]


def given_priors(priors: object, k: int, name: str) -> list[float]:
    """K priors that a user gave as a sequence; a ValueError that calls them ``name`` if wrong."""
    if isinstance(priors, dict | set | frozenset):
        raise ValueError(f"{name} must be in the order of classes_: a list or an array.")
    try:
        values = [float(p) for p in priors]  # type: ignore[attr-defined]
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name}={priors!r} is not valid: use {_ACCEPTED[name]}.") from error
    if len(values) != k:
        raise ValueError(f"{name} has {len(values)} entries, but there are {k} classes.")
    if not all(0 < p <= 1 for p in values) or abs(sum(values) - 1) > _PRIOR_SUM_ERROR:
        raise ValueError(
            f"{name} must be positive and sum to 1, got {values}, whose sum is {sum(values):.10g}."
        )
    return values


def check_priors(priors: object) -> None:
    """Raise for a name that is none, before the classes are known."""
    if isinstance(priors, str):
        log_priors(priors, (1.0, 1.0))


def class_log_prior(fit_prior: bool, class_prior: object, weight: tuple[float, ...]) -> list[float]:
    """Log priors as naive Bayes has them: given, or W_c / sum W, or all equal."""
    if class_prior is not None:
        values = given_priors(class_prior, len(weight), "class_prior")
        return _of_those_with_weight(values, weight)
    if not fit_prior:
        met = sum(w > 0 for w in weight)
        return [-math.log(met) if w > 0 else -math.inf for w in weight]
    return [_log(w / sum(weight)) for w in weight]
