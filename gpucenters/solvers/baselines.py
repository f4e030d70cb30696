"""Scores of features that sparse naive Bayes is compared with, from class sums of two classes."""

from __future__ import annotations

from ..arrays.ops import not_negative
from ..arrays.typing import Array
from .class_sums import ClassSums, feature_sums


def log_odds_ratio(documents: ClassSums, alpha: float) -> Array:
    """Log of the odds to have each feature in class 1, over those in class 0: shape (m,).

    Of Mladenic & Grobelnik, with P = (f_c + alpha) / (n_c + 2 alpha) over documents that have it.
    """
    xp = documents.place.xp
    weight = documents.place.asarray(documents.weight)[:, None]
    odds = xp.log(documents.total + alpha) - xp.log(not_negative(weight - documents.total) + alpha)
    return odds[1, :] - odds[0, :]


def log_share_ratio(counts: ClassSums, alpha: float) -> Array:
    """Log theta_1 - log theta_0 of plain multinomial naive Bayes: shape (m,)."""
    xp, total = counts.place.xp, counts.total
    mass = [s + alpha * total.shape[1] for s in feature_sums(total, counts.place)]
    return xp.log((total[1, :] + alpha) / mass[1]) - xp.log((total[0, :] + alpha) / mass[0])
