"""Classes whose scores rounding cannot tell apart, compared again two at a time.

The product that gives the scores is centred between all classes. So a class that lies far away
brings its distance into every score, and the difference of two others may be less than the rounding
of either. The few rows that this concerns are scored again between those classes alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from ..arrays.context import Context
from ..arrays.double_double import (
    Double,
    add,
    multiply,
    negative,
    total,
    two_product,
)
from ..arrays.functions import UNIT_ROUNDOFF, array_namespace, backend_of, index_mask, to_host
from ..arrays.typing import Array
from ..blocks import Block
from ..blocks.padded_rows import padded_rows

# A difference of scores: the least number that no device flushes to zero.
_LEAST = 2.0**-1022


class Rounding(NamedTuple):
    """A bound on the rounding of scores: ``sum_i |x_i - shift_i| coef_i + constant``.

    Attributes
    ----------
    coef : array of shape (d,)
    constant : array of no dimension
    """

    coef: Array
    constant: Array


class PairForm(NamedTuple):
    """By how much the score of one class exceeds that of another: ``(x slope - constant) / unit``.

    Attributes
    ----------
    slope : Double of shape (d,)
    constant : Double of no dimension
    unit : float
    """

    slope: Double
    constant: Double
    unit: float


def pair_form(
    sums: Array,
    weight: tuple[float, ...],
    pair: tuple[int, int],
    metric: Callable[[Double], Double],
) -> PairForm:
    """The comparison of the squared distances of x to the means of classes c and r.

    With ``delta = mean_c - mean_r`` and the metric A, score_c(x) - score_r(x) is ``(2 x - mean_c -
    mean_r) A delta``. It is formed from the class sums, (K, d), whose products with the weights are
    exact for integers, in twice the precision. ``metric`` is the product of A with a vector, (d,).
    """
    # Weights and sums of a class are divided by one power of two, so that no product overflows.
    (wc, ec), (wr, er) = (math.frexp(weight[c]) for c in pair)
    c, r = pair
    of_c = two_product(sums[c, :] * math.ldexp(1.0, -ec), wr)
    of_r = two_product(sums[r, :] * math.ldexp(1.0, -er), wc)
    direction = metric(add(of_c, negative(of_r)))
    both = two_product(wc, wr)
    slope = multiply(Double(2 * both.high, 2 * both.low), direction)
    constant = total(multiply(add(of_c, of_r), direction))
    return PairForm(slope, constant, both.high * both.high)


def compare_close_scores(
    scores: Array,
    bound: Array,
    form_of: Callable[[int, int], PairForm],
    log_prior: list[float],
    block: Block,
    columns: Array,
    ctx: Context,
    *,
    relative: bool,
    rows: Array | None = None,
) -> Array:
    """The scores, with those of the best classes of a row in their true order.

    Parameters
    ----------
    scores : array of shape (n, K), or (n, 1): of two classes, that of class 1 less that of class 0
    bound : array of shape (n,), or (r,)
        On the rounding of the score of each class of a row.
    form_of : callable
        The `PairForm` of two classes.
    log_prior : list of K floats
    block, columns : Block and array of shape (d,)
        X, and its features that the scores read.
    relative : bool
        Whether the scores of the rows that were compared again are less the best of the row, as is
        enough for probabilities: near a large score their differences are rounding.
    rows : array of shape (r,), optional
        The rows that may be close; by default all.
    """
    xp = array_namespace(scores)

    def compared(c: int, r: int, some: Array) -> Array:
        form, found = form_of(c, r), backend_of(scores).zeros(())
        if bool(xp.any(form.slope.high != 0)):  # else the centers are the same for every x
            some = some if rows is None else xp.take(rows, some)
            parts = padded_rows(block, some, columns, ctx)
            found = xp.concat([_gap(values, at, form) for values, at in parts])
        return found + 2 * (log_prior[c] - log_prior[r])

    if rows is None:
        return _in_true_order(scores, bound, compared, relative=relative)
    if rows.shape[0]:
        part = _in_true_order(xp.take(scores, rows, axis=0), bound, compared, relative=relative)
        scores[index_mask(rows, scores.shape[0])] = part
    return scores


def _in_true_order(
    scores: Array,
    bound: Array,
    compared: Callable[[int, int, Array], Array],
    *,
    relative: bool,
) -> Array:
    """`compare_close_scores` of all rows.

    ``compared(c, r, rows)`` is by how much the score of class c exceeds that of class r.
    """
    xp, backend = array_namespace(scores), backend_of(scores)
    zero = backend.zeros(())
    bound = xp.where(xp.isfinite(bound), bound, xp.zeros_like(bound))[:, None]
    if scores.shape[1] == 1:
        doubtful = (xp.abs(scores) <= 2 * bound)[:, 0]
        rows = xp.nonzero(doubtful)[0]
        if rows.shape[0]:
            gap = xp.zeros_like(bound[doubtful]) + xp.reshape(compared(1, 0, rows), (-1, 1))
            scores[doubtful] = xp.where(xp.isnan(gap), scores[doubtful], gap)
        return scores
    best = xp.max(scores, axis=1, keepdims=True)
    close = scores >= best - 2 * bound
    doubtful = xp.sum(xp.astype(close, xp.int64), axis=1) > 1
    rows = xp.nonzero(doubtful)[0]
    if rows.shape[0] == 0:
        return scores
    close, taken, best = (xp.take(a, rows, axis=0) for a in (close, scores, best))

    def excess(c: int, others: Array, of: Array) -> Array:
        """By how much the score of class c exceeds that of another class, in the rows ``of``."""
        found = xp.zeros_like(taken[:, 0])
        for r in to_host(xp.unique_values(others[of])).tolist():
            pair = of & (others == r)
            gap, rounded = compared(c, r, rows[pair]), taken[:, c] - taken[:, r]
            # Twice the precision has a smaller range: where it is left, the scores stay.
            found[pair] = xp.where(xp.isnan(gap), rounded[pair], gap)
        return found

    # Each close class is compared with the best one of those before it: which scores are rounded
    # how, and which classes beside the best ones are close, does not change the winner.
    candidates = to_host(xp.nonzero(xp.any(close, axis=0))[0]).tolist()
    winner = xp.argmax(xp.astype(close, xp.int64), axis=1)
    rival, gap = xp.zeros_like(close, dtype=xp.int64) - 1, xp.zeros_like(taken)
    for c in candidates:
        later = close[:, c] & (winner < c)
        found = excess(c, winner, later)
        rival[:, c], gap[:, c] = xp.where(later, winner, rival[:, c]), found
        winner = xp.where(later & (found > 0), xp.full_like(winner, c), winner)
    # Then those that were compared with another one, and not by the winner, with the winner.
    beaten, by = (xp.take_along_axis(a, winner[:, None], axis=1)[:, 0] for a in (rival, gap))
    for c in candidates:
        known = xp.where(beaten == c, -by, gap[:, c])
        of = close[:, c] & (winner != c) & (beaten != c) & (rival[:, c] != winner)
        known = xp.where(of, excess(c, winner, of), known)
        # Not above the winner, whatever is rounded, and below it where a tie would be the first's.
        most = xp.where(winner > c, zero - _LEAST, zero)
        gap[:, c] = xp.where(winner == c, zero, xp.minimum(known, most))
    if relative:
        found = xp.where(close, gap, xp.minimum(taken - best, zero))
    else:
        # Below the best one even where the sum is rounded to it.
        below = xp.minimum(best + gap, best - xp.abs(best) * (2 * UNIT_ROUNDOFF))
        found = xp.where(close, xp.where(gap < 0, below, best), taken)
    scores[doubtful] = found
    return scores


def _gap(values: Array, positions: Array | None, form: PairForm) -> Array:
    """By how much the score of one class exceeds that of another, of some rows."""
    xp = array_namespace(values)
    slope = form.slope
    if positions is not None:
        flat = xp.reshape(positions, (-1,))
        slope = Double(*(xp.reshape(xp.take(s, flat), positions.shape) for s in slope))
    found = total(multiply(Double(values, xp.zeros_like(values)), slope))
    found = add(found, negative(form.constant))
    return (found.high + found.low) / form.unit
