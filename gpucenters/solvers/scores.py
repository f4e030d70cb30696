"""Scores of new rows against sparse centers, written once for every model."""

from __future__ import annotations

import math

from ..arrays.convert import Block
from ..arrays.devices import Place
from ..arrays.typing import Array
from .centers import SparseCenters

_ROUNDING = 1e-5  # that float32 may leave in the sum of priors
_ACCEPTED = {
    "priors": "'uniform', 'empirical' or K numbers",
    "class_prior": "None or K numbers",
}


def linear_form(
    centers: SparseCenters, support: Array, log_prior: list[float]
) -> tuple[Array, Array, Array]:
    """The l2 decision as (shift, coef, offset): score = (x[support] - shift) @ coef + offset.

    The score of class c is minus the squared distance to its center, plus twice the log of its
    prior, plus a term common to all classes. It is centred at the tied center: the textbook
    difference of squared norms flips predictions where features have large offsets.

    Returns
    -------
    shift : array of shape (d,)
    coef : array of shape (d, K), or (d, 1) for two classes: class 1 less class 0
    offset : array of shape (K,) or (1,)
    """
    xp = centers.place.xp
    free, tied = centers.at(support)
    scale = None if centers.scale is None else xp.take(centers.scale, support)
    return tied, *slope_and_offset(free, tied, scale, log_prior, centers.place)


def slope_and_offset(
    free: Array, tied: Array, scale: Array | None, log_prior: list[float], place: Place
) -> tuple[Array, Array]:
    """(coef, offset) of `linear_form` from centers on the support."""
    xp = place.xp
    away = free - tied
    if free.shape[0] == 2:
        # The midpoint of two centers is the tied one, so that only the priors are left over.
        slope = 2 * (free[1:, :] - free[:1, :])
        constant = place.asarray([2 * (log_prior[1] - log_prior[0])])
    else:
        slope = 2 * away
        square = away * away if scale is None else away * away / (scale * scale)
        constant = 2 * place.asarray(log_prior) - xp.sum(square, axis=1)
    if scale is not None:
        slope = slope / (scale * scale)
    return xp.permute_dims(slope, (1, 0)), constant


def l1_scores(block: Block, centers: SparseCenters, support: Array) -> Array:
    """Minus the l1 distances to the centers: (n, K), or (n, 1) for two classes (1 less 0)."""
    xp = centers.place.xp
    theta, _ = centers.at(support)
    scale = None if centers.scale is None else xp.take(centers.scale, support)
    return block.l1_scores(support, theta, scale)


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
    if not all(0 < p <= 1 for p in values) or abs(sum(values) - 1) > _ROUNDING:
        raise ValueError(f"{name} must be positive and sum to 1, got {values}.")
    return values


def class_log_prior(fit_prior: bool, class_prior: object, weight: tuple[float, ...]) -> list[float]:
    """Log priors as naive Bayes has them: given, or W_c / sum W, or all equal."""
    k = len(weight)
    if class_prior is not None:
        return [math.log(p) for p in given_priors(class_prior, k, "class_prior")]
    return [math.log(w / sum(weight)) if fit_prior else -math.log(k) for w in weight]
