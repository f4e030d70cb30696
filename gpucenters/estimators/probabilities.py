"""Probabilities from scores, for models whose score is a multiple of a log density."""

from __future__ import annotations

from ..arrays.namespace import array_namespace
from ..arrays.typing import Array

_LEAST_GAP = 2.0**-51  # a difference of logarithms that the rounding of a division leaves


def log_softmax(scores: Array, factor: float) -> Array:
    """Log of softmax(factor * scores): (n, K) from (n, K), or from (n, 1) for two classes."""
    z = _gaps(scores, factor)
    xp = array_namespace(z)
    best = -xp.log(xp.sum(xp.exp(z), axis=1, keepdims=True))
    # Rounding must not raise another class to the best one here either.
    below = best - xp.abs(best) * _LEAST_GAP
    return xp.where(z < 0, xp.minimum(z + best, below), z + best)


def softmax(scores: Array, factor: float) -> Array:
    """Softmax of factor * scores: (n, K) from (n, K), or from (n, 1) for two classes."""
    z = _gaps(scores, factor)
    xp = array_namespace(z)
    e = xp.exp(z)
    return e / xp.sum(e, axis=1, keepdims=True)


def one_vs_rest(scores: Array, factor: float) -> Array:
    """Probabilities of classes by a binary model each, divided by their sum: (n, K) from (n, K).

    That of the model of class c is ``1 / (1 + exp(-factor * score_c))``. Formed from logarithms,
    so that neither the smallest nor the largest ones become equal.
    """
    xp, z = array_namespace(scores), factor * scores
    log = xp.minimum(z, xp.zeros_like(z)) - xp.log1p(xp.exp(-xp.abs(z)))
    z = log - xp.max(log, axis=1, keepdims=True)
    below = scores < xp.max(scores, axis=1, keepdims=True)
    e = xp.exp(xp.where(below, xp.minimum(z, xp.zeros_like(z) - _LEAST_GAP), xp.zeros_like(z)))
    return e / xp.sum(e, axis=1, keepdims=True)


def _gaps(scores: Array, factor: float) -> Array:
    """``factor`` times the distance of each score to the largest of its row: (n, K), <= 0.

    A class whose score is not the largest stays below it even where rounding would make the
    probabilities equal, so that they never contradict `predict`. (Of equal scores both `predict`
    and argmax take the first.)
    """
    xp = array_namespace(scores)
    if scores.shape[1] == 1:
        scores = xp.concat([xp.zeros_like(scores), scores], axis=1)
    z = factor * (scores - xp.max(scores, axis=1, keepdims=True))
    return xp.where(z < 0, xp.minimum(z, xp.zeros_like(z) - _LEAST_GAP), z)
