"""Scores of features to compare sparse naive Bayes with, from class sums of two classes."""

from __future__ import annotations

from ..arrays.context import Context
from ..arrays.functions import clip_negative
from ..arrays.typing import Array
from ..statistics.class_sums import ClassSums, feature_sums


def log_odds_ratio(documents: ClassSums, alpha: float) -> Array:
    """Log of the odds to have each feature in class 1, over those in class 0: shape (m,).

    Of Mladenic & Grobelnik, with P = (f_c + alpha) / (n_c + 2 alpha) over documents that have it.
    """
    xp = documents.backend.xp
    weight = documents.backend.asarray(documents.class_weight)[:, None]
    odds = xp.log(documents.total + alpha) - xp.log(clip_negative(weight - documents.total) + alpha)
    return odds[1, :] - odds[0, :]


def log_share_ratio(counts: ClassSums, ctx: Context, alpha: float) -> Array:
    """Log theta_1 - log theta_0 of plain multinomial naive Bayes: shape (m,)."""
    xp, total = counts.backend.xp, counts.total
    mass = [s + alpha * total.shape[1] for s in feature_sums(total, ctx)]
    return xp.log((total[1, :] + alpha) / mass[1]) - xp.log((total[0, :] + alpha) / mass[0])
