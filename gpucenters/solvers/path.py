"""The scores of samples for every number of features at once: Remark 6 of the paper.

Scores of separable models are sums over the features of the support, and supports of different
sizes are nested. So sums over the features between one k and the next, added up, are the scores for
each k: X is read once. Rounding is bounded on the way: where it could change a prediction, the
caller is told, or classes are compared as in `close_scores`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from ..arrays.context import Context
from ..arrays.functions import (
    UNIT_ROUNDOFF,
    array_namespace,
    backend_of,
    index_mask,
    row_sums,
    to_float,
    to_host,
)
from ..arrays.typing import Array
from ..blocks import Block
from ..reductions.products import add_products, products
from ..reductions.segment_sums import segment_sums, segment_totals
from .centers import Centers, SparseCenters
from .close_scores import PairForm, compare_close_scores
from .decisions import of_priors
from .multinomial import MultinomialCenters, log_ratios
from .selection import Selection, nested_supports


class PathScores(NamedTuple):
    """Scores of n samples for each of S numbers of features.

    Attributes
    ----------
    scores : array of shape (q, S, n)
        One score a class; for two classes (q = 1) that of class 1 less that of class 0.
    relative : array of shape (q, S, n)
        Scores of which the largest of a sample may have been subtracted: see `close_scores`. The
        scores themselves where these were not asked for.
    bound : array of shape (S,)
        On the rounding of the scores.
    doubtful : array of bool of shape (S,)
        Where rounding may have changed a prediction, so that samples must be scored for this k.
    """

    scores: Array
    relative: Array
    bound: Array
    doubtful: Array


@dataclass(frozen=True)
class Path:
    """A solved model, ready to score samples for several k.

    Attributes
    ----------
    ks : list of S ints
        The numbers of features, ascending.
    scores : callable
        ``scores(block, ctx, relative)`` gives the `PathScores` of the rows of a block;
        ``relative``: also as probabilities need them.
    ranking : array, or None
        Features of which the first k are the support for each k.
    selections : sequence of Selection
        Where there is no ranking: those of each k, nested or not.
    in_parts : bool
        Whether some rows may be scored at a time: nothing is formed anew for each part.
    """

    ks: list[int]
    scores: Callable[[Block, Context, bool], PathScores]
    ranking: Array | None = None
    selections: Sequence[Selection] = ()
    in_parts: bool = True

    def support(self, number: int) -> Array:
        """The features of one k, ascending."""
        if self.ranking is None:
            return self.selections[number].support
        return array_namespace(self.ranking).sort(self.ranking[: self.ks[number]])

    def changes(self) -> Iterator[tuple[int, Array, int]]:
        """(number of the k, features, 1 or -1): what enters and leaves the support at each k."""
        if self.ranking is None:
            for s, chosen in enumerate(self.selections):
                yield s, chosen.support, 1
            for s, chosen in enumerate(self.selections[:-1]):
                yield s + 1, chosen.support, -1
        else:
            for s, (a, b) in enumerate(pairwise([0, *self.ks])):
                yield s, self.ranking[a:b], 1


def score_path(
    centers: Centers, ks: list[int], log_prior: list[float], block: Block, ctx: Context
) -> Path:
    """Prepare a solved model to score samples for several numbers of features.

    Parameters
    ----------
    centers : Centers
    ks : list of S ints, ascending, from 1 to m
    log_prior : list of K floats
        Zeros where the model has no priors.
    block : Block
        The samples, which may tell that no sum is rounded.
    ctx : Context
    """
    if isinstance(centers, SparseCenters):
        return _separable(centers, ks, log_prior, block, ctx)
    if isinstance(centers, MultinomialCenters):
        return _multinomial(centers, ks, log_prior, ctx)
    return _linear(centers, ks, log_prior, ctx)


# --- separable models --------------------------------------------------------------------------


def _separable(
    centers: SparseCenters, ks: list[int], log_prior: list[float], block: Block, ctx: Context
) -> Path:
    """The path of a model whose supports are the first k features of a ranking."""
    xp, cuts = centers.backend.xp, [0, *ks]
    ranking = nested_supports(centers.gain, ks, ctx)
    terms = centers.path_terms(ranking, log_prior, block, ctx)
    bound = centers.backend.zeros(1) + terms.offset_bound
    base = xp.concat([terms.offset, bound])[:, None]  # (q + 1, S), as the rate
    if terms.base is None:
        base = base + centers.backend.zeros((1, len(ks)))
    else:
        base = base + xp.cumulative_sum(segment_totals(terms.base, cuts), axis=1)
    rate = None
    if terms.rate is not None:
        rate = xp.cumulative_sum(segment_totals(terms.rate, cuts), axis=1)
    repeated = repeated_classes(terms.parameters, log_prior, cuts) if terms.parameters else []

    @cache
    def compared(s: int) -> tuple[Callable[[int, int], PairForm], Array]:
        """The comparisons of two classes for one k, and the features that they read."""
        support = xp.sort(ranking[: ks[s]])
        columns = support if terms.compared_columns is None else terms.compared_columns
        return cache(centers.pair_forms(support)), columns

    def compare(
        scores: Array, bound: Array, s: int, block: Block, ctx: Context, *, relative: bool
    ) -> None:
        at_k = xp.asarray(xp.permute_dims(scores[:, s, :], (1, 0)), copy=True)
        pairs, columns = compared(s)
        found = compare_close_scores(
            at_k, bound, pairs, log_prior, block, columns, ctx, relative=relative
        )
        scores[:, s, :] = xp.permute_dims(found, (1, 0))

    def scores(block: Block, ctx: Context, relative: bool) -> PathScores:
        read, more = (block, None) if terms.read is None else terms.read(block, ctx)
        found = segment_sums(read, terms.columns, cuts, terms.terms, ctx)
        _add_up(found)
        found += base[:, :, None]
        if rate is not None and terms.exposure is not None:
            found += rate[:, :, None] * terms.exposure(block, ctx)
        own, bound = found[:-1, :, :], found[-1, :, :]
        if more is not None:
            bound = bound + more
        plain = _path_scores(own, bound, repeated, compared=terms.compared)
        if not terms.compared:
            return plain
        others = xp.asarray(own, copy=True) if relative else own
        for s in to_host(xp.nonzero(plain.doubtful)[0]).tolist():
            compare(own, bound[s, :], s, block, ctx, relative=False)
            if relative:
                compare(others, bound[s, :], s, block, ctx, relative=True)
        return plain._replace(relative=others, doubtful=~xp.isfinite(plain.bound))

    return Path(ks, scores, ranking)


# --- multinomial naive Bayes -------------------------------------------------------------------
#
# A feature of the support adds ``x_i (a_i - b_k)`` to a score: a_i depends on the feature alone,
# and b_k on k alone. Supports need not be nested, but nearly all features stay once they have
# entered, so that the sums of x_i a_i and of x_i >= 0 are formed for all k as those of a
# separable model; the few others are added for each k.


@dataclass(frozen=True)
class _ShareTerms:
    """``x_i a_i`` for each of q scores, and x_i, which is not negative: see `Terms`."""

    coef: Array  # a: (q, d)
    at_zero: None = None

    @property
    def n_sums(self) -> int:
        return int(self.coef.shape[0]) + 1

    def of_columns(self, x: Array, part: slice) -> Array:
        xp = array_namespace(x)
        products = x @ xp.permute_dims(self.coef[:, part], (1, 0))
        return xp.concat([products, xp.sum(x, axis=1)[:, None]], axis=1)

    def beyond_zero(self, x: Array, position: Array) -> list[Array]:
        xp = array_namespace(x)
        found = [x * xp.take(self.coef[c, :], position) for c in range(self.coef.shape[0])]
        return [*found, x]


def _multinomial(
    centers: MultinomialCenters, ks: list[int], log_prior: list[float], ctx: Context
) -> Path:
    """The path of multinomial naive Bayes, of features that stay and others that leave again."""
    xp, backend = centers.backend.xp, centers.backend
    selections = list(centers.select_each(ks, ctx))
    staying, counts, passing, member = _sorted_out(
        [s.support for s in selections], centers.total.shape[1]
    )
    f = xp.take(centers.total, staying, axis=1) + centers.alpha
    f_passing = centers.smoothed(passing)
    terms, passing_coef = _ShareTerms(log_ratios(f)), log_ratios(f_passing)
    ones = xp.ones_like(passing_coef[:1, :])
    passing_coef = xp.permute_dims(xp.concat([passing_coef, ones]), (1, 0))
    # a and 1 where they are in the support, else 0: (u, q + 1, S).
    passing_coef = passing_coef[:, :, None] * member[:, None, :]
    mass = [row_sums(centers.smoothed(s.support)) for s in selections]
    log_mass = log_ratios(xp.stack(mass, axis=1))  # b: (q, S)
    # The rounding of the sums, and of the logarithms in either form of the coefficients: (S,) for
    # each unit of the values of the support, and a constant.
    largest = xp.max(xp.abs(log_mass), axis=0)
    for coef in (terms.coef, passing_coef):
        if 0 not in coef.shape:
            largest = largest + xp.max(xp.abs(coef))
    logs = 1 + math.log(sum(centers.mass) / centers.alpha)
    unit = 4 * UNIT_ROUNDOFF * ((ks[-1] + 16) * largest + 4 * logs)
    constant, repeated = 4 * of_priors(log_prior), []
    priors = log_prior
    if len(log_prior) == 2:
        priors = [log_prior[1] - log_prior[0]]
    else:
        # Equal at some k are classes that are so in the passing features of all k too.
        cuts = [0, *(passing.shape[0] + count for count in counts)]
        repeated = repeated_classes([xp.concat([f_passing, f], axis=1)], log_prior, cuts)
    offset = backend.asarray(priors)[:, None, None]

    def scores(block: Block, ctx: Context, relative: bool) -> PathScores:
        found = segment_sums(block, staying, [0, *counts], terms, ctx)
        _add_up(found)
        if passing.shape[0]:
            add_products(block, passing, passing_coef, found, ctx)
        own, bound = found[:-1, :, :], found[-1, :, :]
        own -= log_mass[:, :, None] * bound
        own += offset
        bound *= unit[:, None]
        bound += constant
        return _path_scores(own, bound, repeated)

    return Path(ks, scores, selections=selections)


def _sorted_out(supports: list[Array], m: int) -> tuple[Array, list[int], Array, Array]:
    """(features that stay, in the order of the k at which they enter; how many of them there are at
    each k; features that leave again, ascending; whether these are in the support at each k).
    """
    xp, last = array_namespace(supports[0]), len(supports)
    held = [index_mask(support, m) for support in supports]
    count = first = xp.zeros_like(held[0], dtype=xp.int64)
    for s in range(last - 1, -1, -1):
        count = count + xp.astype(held[s], xp.int64)
        first = xp.where(held[s], xp.full_like(first, s), first)
    stays = (count > 0) & (first + count == last)
    features = xp.nonzero(stays)[0]
    entered = xp.take(first, features)
    order = xp.argsort(entered, stable=True)
    at = backend_of(entered).arange(last)
    counts = xp.searchsorted(xp.take(entered, order), at, side="right")
    passing = xp.nonzero((count > 0) & ~stays)[0]
    member = [xp.astype(xp.take(mask, passing), xp.float64) for mask in held]
    return xp.take(features, order), to_host(counts).tolist(), passing, xp.stack(member, axis=1)


# --- models whose coefficients depend on k ----------------------------------------------------


def _linear(centers: Centers, ks: list[int], log_prior: list[float], ctx: Context) -> Path:
    """The path of a model that is solved for each k: the linear forms of all k in one product."""
    xp, selections, repeated = centers.backend.xp, list(centers.select_each(ks, ctx)), []
    forms = [centers.linear_form(chosen.support, log_prior) for chosen in selections]
    for s, form in enumerate(forms if len(log_prior) > 2 else []):
        coef = xp.permute_dims(form.coef, (1, 0))
        of_form = repeated_classes([coef], log_prior, [0, coef.shape[1]])
        repeated += [(c, s, first) for c, _, first in of_form]

    def scores(block: Block, ctx: Context, relative: bool) -> PathScores:
        # The scores of each k, and their bound.
        parts, bounds, offsets = [], [], []
        for chosen, form in zip(selections, forms, strict=True):
            unit = 4 * UNIT_ROUNDOFF * (form.coef.shape[0] + 16)
            parts.append((chosen.support, form.shift, form.coef))
            bounds.append(unit * xp.max(xp.abs(form.coef), axis=1))
            bound = 4 * UNIT_ROUNDOFF * xp.max(xp.abs(form.offset), keepdims=True)
            offsets.append(xp.concat([form.offset, bound]))
        found = xp.stack(products(block, parts, ctx, bound_coefs=bounds))
        found = xp.permute_dims(found + xp.stack(offsets)[:, None, :], (2, 0, 1))
        return _path_scores(found[:-1, :, :], found[-1, :, :], repeated)

    # The forms of all k would be put together for each part.
    return Path(ks, scores, selections=selections, in_parts=False)


# --- scores of all k, and where their rounding matters ----------------------------------------


def _add_up(found: Array) -> None:
    """Sums over segments (r, S, n) to those up to each cut, in place.

    Row by row: the library's cumulative sum goes against the order of memory.
    """
    for s in range(1, found.shape[1]):
        found[:, s, :] += found[:, s - 1, :]


def _path_scores(
    scores: Array, bound: Array, repeated: Sequence[tuple[int, int, int]], *, compared: bool = False
) -> PathScores:
    xp = array_namespace(scores)
    doubtful = xp.any(doubtful_scores(scores, bound, repeated, compared=compared), axis=1)
    return PathScores(scores, scores, xp.max(bound, axis=1), doubtful)


def doubtful_scores(
    scores: Array,
    bound: Array,
    repeated: Sequence[tuple[int, int, int]] = (),
    *,
    compared: bool = False,
) -> Array:
    """Where rounding may change the best class: (S, n), from (q, S, n) and the bounds (S, n).

    A score that is not finite is doubtful too. Where the bound is zero nothing was rounded, but for
    centers that are ``compared`` again: these may differ where their means are rounded to one.
    Classes that are ``repeated`` are in no doubt where their scores are those of the first of them:
    the last columns of a matrix product may be rounded in another way.
    """
    xp = array_namespace(scores)
    if scores.shape[0] == 1:
        size = xp.abs(scores[0, :, :])
        # One look at the scores is enough nearly always.
        if not backend_of(size).sync_is_expensive and to_float(xp.min(size)) > 2 * xp.max(bound):
            return xp.zeros_like(bound, dtype=xp.bool)
        close = size <= 2 * bound
    else:
        if repeated:
            scores = xp.asarray(scores, copy=True)
            least = xp.full_like(scores[0, 0, :], -float("inf"))
        for c, s, first in repeated:
            own = scores[c, s, :]
            scores[c, s, :] = xp.where(own == scores[first, s, :], least, own)
        reached = scores >= xp.max(scores, axis=0) - 2 * bound
        close = xp.sum(xp.astype(reached, xp.int64), axis=0) > 1
    return (close if compared else close & (bound > 0)) | ~xp.isfinite(bound)


def repeated_classes(
    parameters: list[Array], log_prior: list[float], cuts: list[int]
) -> list[tuple[int, int, int]]:
    """Classes that are equal to a lower one with the features up to a cut.

    Returns
    -------
    list of (class, number of the cut, the first class that is equal to it)
    """
    backend, k = backend_of(parameters[0]), len(log_prior)
    xp = backend.xp
    pairs = [(c, r) for c in range(k) for r in range(c) if log_prior[c] == log_prior[r]]
    found = []
    for s, (a, b) in enumerate(pairwise(cuts)):
        if pairs:
            c, r = (backend.asarray(of, dtype=xp.int64) for of in zip(*pairs, strict=True))
            differ = [
                xp.any(xp.take(p[:, a:b], c, axis=0) != xp.take(p[:, a:b], r, axis=0), axis=1)
                for p in parameters
            ]
            differs = to_host(xp.any(xp.stack(differ), axis=0)).tolist()
            pairs = [pair for pair, d in zip(pairs, differs, strict=True) if not d]
        first = dict(reversed(pairs))  # of each class the lowest one
        found += [(c, s, r) for c, r in first.items()]
    return found
