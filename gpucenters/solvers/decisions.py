"""Decisions: scores of rows from centers, of one support or of many, and their probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ..arrays.backend import Backend
from ..arrays.context import Context
from ..arrays.functions import UNIT_ROUNDOFF, array_namespace, backend_of, row_sums, to_host
from ..arrays.typing import Array
from ..blocks import Block
from ..blocks.padded_rows import padded_rows
from ..reductions.products import product, product_and_bound, products
from ..reductions.segment_sums import LinearTerms, Terms
from .close_scores import PairForm, Rounding, compare_close_scores

# One row in so many: from there on a second product with all rows takes less time than to gather
# those where rounding may decide.
_MANY_ROWS = 16
# A difference of logarithms that the rounding of a division, to 2^-53 of each quotient, leaves.
_LEAST_GAP = 2.0**-51


class LinearForm(NamedTuple):
    """A decision that is linear in d features of X.

    The scores are ``(x - shift) @ coef + offset``, and the sum of ``base``. q is 1 for two classes
    (class 1 less class 0), else K.

    Attributes
    ----------
    shift : array of shape (d,)
    coef : array of shape (d, q)
    offset : array of shape (q,)
    base : array of shape (q, d), or None for zeros
        What each feature adds whatever its value is.
    rounding : Rounding, optional
        A bound on the rounding of the scores, where close ones are to be compared again. Of all d
        features: with fewer it is less.
    """

    shift: Array
    coef: Array
    offset: Array
    base: Array | None = None
    rounding: Rounding | None = None

    def summed(self) -> LinearForm:
        """The same decision, with the base in the offset."""
        if self.base is None:
            return self
        return self._replace(offset=row_sums(self.base) + self.offset, base=None)


def squared_distance_form(
    free: Array, tied: Array, scale: Array | None, log_prior: list[float], backend: Backend
) -> LinearForm:
    """The linear form of the classifier of the least squared distance to a center.

    The score of class c is minus the squared distance to its center, plus twice the log of its
    prior, plus a term common to all classes:

        score_c(x) = sum_i [2 a_ci (x_i - tied_i) - a_ci^2] / sigma_i^2 + 2 log pi_c,
        a_ci = free_ci - tied_i

    It is centred at the tied center: the textbook difference of squared norms flips predictions
    where features have large offsets. ``free`` (K, d), ``tied`` (d,) and ``scale`` (d,) are those
    of the support.
    """
    xp, (k, d) = backend.xp, free.shape
    unit = xp.ones_like(tied) if scale is None else scale * scale
    difference, base = free - tied, None
    if k == 2:
        # The midpoint of two centers is the tied one, so that only the priors remain.
        slope = 2 * (free[1:, :] - free[:1, :])
        constant = backend.asarray([2 * (log_prior[1] - log_prior[0])])
    else:
        slope = 2 * difference
        base = -(difference * difference / unit)
        constant = 2 * backend.asarray(log_prior)
    coef = xp.permute_dims(slope / unit, (1, 0))
    # The rounding of the centers, of their differences, and of the sum over d features, to the
    # first order.
    theta, a = xp.max(xp.abs(free), axis=0), xp.max(xp.abs(difference), axis=0)
    size, square = (2 * (d + 8) * a + 8 * theta) / unit, a * (8 * theta + (d + 8) * a) / unit
    bound = UNIT_ROUNDOFF * xp.sum(square) + of_priors(log_prior)
    return LinearForm(tied, coef, constant, base, Rounding(UNIT_ROUNDOFF * size, bound))


def of_priors(log_prior: list[float]) -> float:
    """A bound on the rounding that the priors bring into a score: none where they cancel."""
    if len(log_prior) == 2 and log_prior[0] == log_prior[1]:
        return 0.0
    return 16 * UNIT_ROUNDOFF * max(abs(p) for p in log_prior if p > -math.inf)


# --- decisions ---------------------------------------------------------------------------------


class Decision(Protocol):
    """What tells the classes apart, without the model that it is of."""

    def scores(self, block: Block, ctx: Context, *, relative: bool) -> Array:
        """(n, K) scores, larger is better; (n, 1) for two classes: class 1 less class 0.

        ``relative``: a row of scores may have its largest score subtracted.
        """


@dataclass(frozen=True)
class LinearDecision:
    """A decision that is linear in some features of X.

    Attributes
    ----------
    columns : array of shape (d,)
        The features that the form reads, ascending.
    form : LinearForm
    log_prior : list of K floats
    pair_forms : callable, or None
        Makes the comparisons of two classes, where the form has a rounding.
    """

    columns: Array
    form: LinearForm
    log_prior: list[float]
    pair_forms: Callable[[], Callable[[int, int], PairForm]] | None = None

    def scores(self, block: Block, ctx: Context, *, relative: bool) -> Array:
        """Scores of the rows: see `Decision`. Close ones are compared in twice the precision."""
        columns, form = self.columns, self.form
        if columns.shape[0] == 0:
            block.check_finite(False, ctx)
            return ctx.backend.zeros((block.shape[0], form.offset.shape[0])) + form.offset
        if form.rounding is None:
            return product(block, columns, form.shift, form.coef, ctx) + form.offset
        assert self.pair_forms is not None
        scores, rows, bound = _close_rows(form, form.rounding, block, columns, ctx)
        pairs, prior = self.pair_forms(), self.log_prior
        return compare_close_scores(
            scores, bound, pairs, prior, block, columns, ctx, relative=relative, rows=rows
        )


def scores_of_each(decisions: Sequence[Decision], block: Block, ctx: Context) -> list[Array]:
    """The scores of several decisions of two classes: of linear ones in one pass over X."""
    linear = [d for d in decisions if isinstance(d, LinearDecision) and d.columns.shape[0]]
    if len(linear) < len(decisions):
        return [d.scores(block, ctx, relative=False) for d in decisions]
    found = _products(linear, block, ctx)
    for i in _close(found, linear, block, ctx):
        found[i] = linear[i].scores(block, ctx, relative=False)
    return found


def scores_of_supports(decisions: Sequence[Decision], block: Block, ctx: Context) -> Array | None:
    """The scores of several decisions of one model, (q, S, n); None for one at a time."""
    linear = [d for d in decisions if isinstance(d, LinearDecision) and d.form.rounding is None]
    if len(linear) < len(decisions):
        return None
    xp = ctx.backend.xp
    return xp.permute_dims(xp.stack(_products(linear, block, ctx)), (2, 0, 1))


def _products(decisions: list[LinearDecision], block: Block, ctx: Context) -> list[Array]:
    found = products(block, [(d.columns, d.form.shift, d.form.coef) for d in decisions], ctx)
    return [x + d.form.offset for x, d in zip(found, decisions, strict=True)]


def _close(
    scores: list[Array], decisions: list[LinearDecision], block: Block, ctx: Context
) -> list[int]:
    """The decisions of two classes with a score that is perhaps within its rounding."""
    xp, bounds = ctx.backend.xp, [d.form.rounding for d in decisions if d.form.rounding is not None]
    if not bounds:
        return []
    columns = xp.unique_values(xp.concat([d.columns for d in decisions]))
    zeros = xp.zeros_like(columns, dtype=xp.float64)
    norms = product(block, columns, zeros, zeros[:, None], ctx, bound_coef=zeros + 1)[:, -1]
    doubtful = []
    for score, decision, (coef, constant) in zip(scores, decisions, bounds, strict=True):
        most = xp.max(coef) * norms + (xp.abs(decision.form.shift) @ coef + constant)
        doubtful.append(xp.any(xp.abs(score[:, 0]) <= 2 * most))
    return [i for i, is_so in enumerate(to_host(xp.stack(doubtful)).tolist()) if is_so]


def _close_rows(
    form: LinearForm, rounding: Rounding, block: Block, columns: Array, ctx: Context
) -> tuple[Array, Array, Array]:
    """Scores (n, q), the rows (r,) where rounding may decide, and bounds on it there (r,).

    A bound that costs little clears nearly all rows.
    """
    xp, (coef, constant) = ctx.backend.xp, rounding
    found, most = product_and_bound(block, columns, form.shift, form.coef, coef, ctx)
    scores = found + form.offset
    rows = xp.nonzero(_difference(scores) <= 2 * (most + constant))[0]
    if _MANY_ROWS * rows.shape[0] > block.shape[0]:
        found = product(block, columns, form.shift, form.coef, ctx, bound_coef=coef)
        return scores, rows, xp.take(found[:, -1], rows) + constant
    sums = [xp.zeros_like(found[:0, 0])]
    for x, at in padded_rows(block, rows, columns, ctx):
        if at is None:
            sums.append(xp.abs(x - form.shift) @ coef)
        else:
            of_stored = xp.sum(xp.abs(x) * xp.take(coef, at), axis=1)
            sums.append(of_stored + xp.abs(form.shift) @ coef)
    return scores, rows, xp.concat(sums) + constant


def _difference(scores: Array) -> Array:
    """How far the best score of each row is above the second: (n,)."""
    xp = array_namespace(scores)
    if scores.shape[1] == 1:
        return xp.abs(scores[:, 0])
    best = xp.argmax(scores, axis=1)[:, None]
    others = backend_of(scores).arange(scores.shape[1])[None, :] != best
    low = xp.full_like(scores, -math.inf)
    return xp.max(scores, axis=1) - xp.max(xp.where(others, scores, low), axis=1)


# --- what each feature adds to the scores, from which those of every support are summed ---------


class PathTerms(NamedTuple):
    """The scores of a separable model as sums over d ranked features.

    Attributes
    ----------
    terms : Terms
        What a feature adds to the q scores of a sample, and to the bound on their rounding.
    columns : array of shape (d,)
        The features that ``terms`` read.
    base : array of shape (q + 1, d), or None for zeros
        What a feature adds whatever the sample is.
    offset : array of shape (q,)
    offset_bound : array of no dimension, or float
    parameters : list of arrays of shape (K, d)
        Classes whose parameters are equal have equal scores, to the bit. Empty for two classes.
    compared : bool
        Whether close scores are compared again: see `close_scores`.
    compared_columns : array, optional
        The features of X that these comparisons read; by default those of the support.
    read : callable, optional
        From rows of X to the block that ``terms`` read and a further bound of each row.
    rate : array of shape (q + 1, d), optional
        What a feature adds for each unit of the exposure of a sample.
    exposure : callable, optional
        From rows of X to their exposures.
    """

    terms: Terms
    columns: Array
    base: Array | None
    offset: Array
    offset_bound: Array | float
    parameters: list[Array]
    compared: bool = False
    compared_columns: Array | None = None
    read: Callable[[Block, Context], tuple[Block, Array]] | None = None
    rate: Array | None = None
    exposure: Callable[[Block, Context], Array] | None = None


def linear_terms(form: LinearForm, columns: Array, log_prior: list[float]) -> PathTerms:
    """The terms of a linear decision.

    The bound holds for the rounding of sums over the features in any order.
    """
    xp = array_namespace(form.coef)
    coef, base, (d, q), compared = form.coef, form.base, form.coef.shape, form.rounding is not None
    unit = 4 * UNIT_ROUNDOFF * (d + 16)
    if form.rounding is not None:
        size, constant = 2 * form.rounding.coef, 2 * form.rounding.constant
        base_bound = xp.zeros_like(size)
    else:
        size, constant = unit * xp.max(xp.abs(coef), axis=1), 4 * of_priors(log_prior)
        base_bound = size if base is None else unit * xp.max(xp.abs(base), axis=0)
    parameters = []
    if q > 1 and not compared:
        parameters = [xp.permute_dims(coef, (1, 0))] + ([] if base is None else [base])
    if base is not None:
        base = xp.concat([base, base_bound[None, :]])
    relative = unit if q == 1 and not compared else None
    terms = LinearTerms(form.shift, coef, size, relative)
    return PathTerms(terms, columns, base, form.offset, constant, parameters, compared)


# --- probabilities from scores, for models whose score is a multiple of a log density.


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
