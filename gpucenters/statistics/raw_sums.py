"""Arithmetic of raw sums: weights, sums of x, and sums of x^2 over all features."""

from __future__ import annotations

from ..arrays.context import Context
from ..arrays.functions import row_sums, to_floats
from ..arrays.typing import Array
from ..reductions.moments import EXACT_INTEGERS, LARGEST_SHARE


def squared_norms(total: Array, ctx: Context) -> list[float]:
    """The squared norm of each row of a (K, m) array."""
    if total.shape[1] == 0:
        return [0.0] * total.shape[0]

    def squares(part: slice) -> Array:
        x = total[:, part]
        return row_sums(x * x)

    return to_floats(ctx.sum_columns(squares, total.shape[1], total.shape[0]))


def about_mean(squared_total: float, square: float, weight: float, count: int) -> float:
    """The sum of squares about the mean: ``q - t^2 / W``, exact for integers that are not large."""
    if count < 2:
        return 0.0 * square  # NaN and infinity stay
    if weight * square < EXACT_INTEGERS:
        return max((weight * square - squared_total) / weight, 0.0)
    return max(square - squared_total / weight, 0.0)


def are_well_conditioned(
    sums: list[tuple[float, float, float, int]], *, least: int, integers: bool
) -> bool:
    """Whether `about_mean` of raw sums loses few digits in every class, or none.

    Parameters
    ----------
    sums : list of (squared total, square, weight, count)
        Of each class.
    least : int
        Classes of fewer samples are left out: one sample has no scatter.
    integers : bool
        Whether values and weights are integers, whose sums are exact while they are not large.
    """
    if all(n < least or t2 <= LARGEST_SHARE * w * q for t2, q, w, n in sums):
        return True
    return integers and all(w * q < EXACT_INTEGERS for _, q, w, _ in sums)
