"""Priors, and the linear form of models with squared distances."""

from __future__ import annotations

import math

from ..arrays.backend import Backend
from ..arrays.typing import Array
from .centers import LinearForm

_PRIOR_SUM_ERROR = 1e-5  # that float32 may leave in the sum of priors
_ACCEPTED = {
    "priors": "'uniform', 'empirical' or K numbers",
    "class_prior": "None or K numbers",
}


def squared_distance_form(
    free: Array,
    tied: Array,
    scale: Array | None,
    log_prior: list[float],
    backend: Backend,
    shift: Array,
) -> LinearForm:
    """The linear form of the classifier of the least squared distance to a center.

    The score of class c is minus the squared distance to its center, plus twice the log of its
    prior, plus a term common to all classes:

        score_c(x) = sum_i [2 a_ci (x_i - tied_i) - a_ci^2] / sigma_i^2 + 2 log pi_c,
        a_ci = free_ci - tied_i

    It is centred at the tied center: the textbook difference of squared norms flips predictions
    where features have large offsets.

    Parameters
    ----------
    free, tied : arrays of shapes (K, d) and (d,)
        Centers on the support.
    scale : array of shape (d,), or None
    log_prior : list of K floats
    backend : Backend
    shift : array
        That of the form.
    """
    xp = backend.xp
    away = free - tied
    if free.shape[0] == 2:
        # The midpoint of two centers is the tied one, so that only the priors remain.
        slope = 2 * (free[1:, :] - free[:1, :])
        constant = backend.asarray([2 * (log_prior[1] - log_prior[0])])
    else:
        slope = 2 * away
        square = away * away if scale is None else away * away / (scale * scale)
        constant = 2 * backend.asarray(log_prior) - xp.sum(square, axis=1)
    if scale is not None:
        slope = slope / (scale * scale)
    return LinearForm(shift, xp.permute_dims(slope, (1, 0)), constant)


def log_priors(priors: object, weight: tuple[float, ...]) -> list[float]:
    """Log priors of the classes.

    Parameters
    ----------
    priors : {"uniform", "empirical"} or sequence of K positive numbers that sum to 1
        Uniform priors change nothing and are dropped (zeros). "empirical" is W_c / sum W.
    weight : tuple of K floats

    Raises
    ------
    ValueError
        For anything else.
    """
    k = len(weight)
    if isinstance(priors, str):
        if priors == "uniform":
            return [0.0] * k
        if priors == "empirical":
            return [math.log(w / sum(weight)) for w in weight]
        raise ValueError(
            f"priors={priors!r} is not valid: use 'uniform', 'empirical' or K numbers."
        )
    values = given_priors(priors, k, "priors")
    return [0.0] * k if len(set(values)) == 1 else [math.log(p) for p in values]


def given_priors(priors: object, k: int, name: str) -> list[float]:
    """K priors that a user gave as a sequence; a ValueError that calls them ``name`` if wrong."""
    if isinstance(priors, dict | set | frozenset):
        raise ValueError(f"{name} must be in the order of classes_: a list or an array.")
    try:
        values = [float(p) for p in priors]  # type: ignore[attr-defined]
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}={priors!r} is not valid: use {_ACCEPTED[name]}.") from error
    if len(values) != k:
        raise ValueError(f"{name} has {len(values)} entries, but there are {k} classes.")
    if not all(0 < p <= 1 for p in values) or abs(sum(values) - 1) > _PRIOR_SUM_ERROR:
        raise ValueError(f"{name} must be positive and sum to 1, got {values}.")
    return values


def class_log_prior(fit_prior: bool, class_prior: object, weight: tuple[float, ...]) -> list[float]:
    """Log priors as naive Bayes has them: given, or W_c / sum W, or all equal."""
    k = len(weight)
    if class_prior is not None:
        return [math.log(p) for p in given_priors(class_prior, k, "class_prior")]
    return [math.log(w / sum(weight)) if fit_prior else -math.log(k) for w in weight]
