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
from typing import ClassVar, NamedTuple

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
from .decisions import LinearForm, PathTerms, of_priors
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
    """A solved model, ready to score samples for several k: here with a selection for each.

    Attributes
    ----------
    ks : list of S ints
        The numbers of features, ascending.
    selections : sequence of S selections
        Their features, nested or not; none where a ranking has those of every k.
    """

    #: Whether some rows may be scored at a time: nothing is formed anew for each part.
    in_parts: ClassVar[bool] = True

    ks: list[int]
    selections: Sequence[Selection]

    def support(self, number: int) -> Array:
        """The features of one k, ascending."""
        return self.selections[number].support

    def changes(self) -> Iterator[tuple[int, Array, int]]:
        """(number of the k, features, 1 or -1): what enters and leaves the support at each k."""
        before = self.selections[0].support[:0]
        for s, chosen in enumerate(self.selections):
            yield s, chosen.support, 1
            yield s, before, -1
            before = chosen.support

    def scores(self, block: Block, ctx: Context, *, relative: bool) -> PathScores:
        """The scores of the rows of a block; ``relative``: also as probabilities need them."""
        raise NotImplementedError


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


@dataclass(frozen=True)
class _SeparablePath(Path):
    """The path of a model whose supports are the first k features of a ranking."""

    log_prior: list[float]
    ranking: Array
    terms: PathTerms
    base: Array  # (q + 1, S)
    rate: Array | None  # (q + 1, S)
    repeated: list[tuple[int, int, int]]
    pair_forms: Callable[[int], Callable[[int, int], PairForm]]

    def support(self, number: int) -> Array:
        return array_namespace(self.ranking).sort(self.ranking[: self.ks[number]])

    def changes(self) -> Iterator[tuple[int, Array, int]]:
        for s, (a, b) in enumerate(pairwise([0, *self.ks])):
            yield s, self.ranking[a:b], 1

    def scores(self, block: Block, ctx: Context, *, relative: bool) -> PathScores:
        xp, terms = array_namespace(self.base), self.terms
        read, more = (block, None) if terms.read is None else terms.read(block, ctx)
        found = segment_sums(read, terms.columns, [0, *self.ks], terms.terms, ctx)
        _add_up(found)
        found += self.base[:, :, None]
        if self.rate is not None and terms.exposure is not None:
            found += self.rate[:, :, None] * terms.exposure(block, ctx)
        scores, bound = found[:-1, :, :], found[-1, :, :]
        if more is not None:
            bound = bound + more
        plain = _path_scores(scores, bound, self.repeated, compared=terms.compared)
        if not terms.compared:
            return plain
        others = xp.asarray(scores, copy=True) if relative else scores
        for s in to_host(xp.nonzero(plain.doubtful)[0]).tolist():
            self._compare(scores, bound[s, :], s, block, ctx, relative=False)
            if relative:
                self._compare(others, bound[s, :], s, block, ctx, relative=True)
        return plain._replace(relative=others, doubtful=~xp.isfinite(plain.bound))

    def _compare(
        self, scores: Array, bound: Array, s: int, block: Block, ctx: Context, *, relative: bool
    ) -> None:
        xp, columns = array_namespace(scores), self.terms.compared_columns
        columns = self.support(s) if columns is None else columns
        at_k = xp.asarray(xp.permute_dims(scores[:, s, :], (1, 0)), copy=True)
        pairs, prior = self.pair_forms(s), self.log_prior
        found = compare_close_scores(
            at_k, bound, pairs, prior, block, columns, ctx, relative=relative
        )
        scores[:, s, :] = xp.permute_dims(found, (1, 0))


def _separable(
    centers: SparseCenters, ks: list[int], log_prior: list[float], block: Block, ctx: Context
) -> _SeparablePath:
    xp, cuts = centers.backend.xp, [0, *ks]
    ranking = nested_supports(centers.gain, ks, ctx)
    terms = centers.path_terms(ranking, log_prior, block, ctx)
    bound = centers.backend.zeros(1) + terms.offset_bound
    base = xp.concat([terms.offset, bound])[:, None]
    if terms.base is None:
        base = base + centers.backend.zeros((1, len(ks)))
    else:
        base = base + xp.cumulative_sum(segment_totals(terms.base, cuts), axis=1)
    rate = None
    if terms.rate is not None:
        rate = xp.cumulative_sum(segment_totals(terms.rate, cuts), axis=1)
    repeated = repeated_classes(terms.parameters, log_prior, cuts) if terms.parameters else []

    @cache
    def pair_forms(s: int) -> Callable[[int, int], PairForm]:
        return cache(centers.pair_forms(xp.sort(ranking[: ks[s]])))

    return _SeparablePath(ks, (), log_prior, ranking, terms, base, rate, repeated, pair_forms)


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
    def rows(self) -> int:
        return int(self.coef.shape[0]) + 1

    def of_columns(self, x: Array, part: slice) -> Array:
        xp = array_namespace(x)
        products = x @ xp.permute_dims(self.coef[:, part], (1, 0))
        return xp.concat([products, xp.sum(x, axis=1)[:, None]], axis=1)

    def beyond_zero(self, x: Array, position: Array) -> list[Array]:
        xp = array_namespace(x)
        found = [x * xp.take(self.coef[c, :], position) for c in range(self.coef.shape[0])]
        return [*found, x]


@dataclass(frozen=True)
class _MultinomialPath(Path):
    """The path of multinomial naive Bayes, of d features that stay and u that leave again."""

    staying: Array  # int64, (d,): in the order of the k at which they enter
    counts: list[int]  # S: how many of them there are at each k
    terms: _ShareTerms  # of these
    passing: Array  # int64, (u,), ascending
    passing_coef: Array  # (u, q + 1, S): a and 1 where they are in the support, else 0
    log_mass: Array  # b: (q, S)
    offset: Array  # (q, 1, 1)
    unit: Array  # (S,): the bound on rounding for each unit of the values of the support,
    constant: float  # and what is added to it
    repeated: list[tuple[int, int, int]]

    def scores(self, block: Block, ctx: Context, *, relative: bool) -> PathScores:
        found = segment_sums(block, self.staying, [0, *self.counts], self.terms, ctx)
        _add_up(found)
        if self.passing.shape[0]:
            add_products(block, self.passing, self.passing_coef, found, ctx)
        scores, bound = found[:-1, :, :], found[-1, :, :]
        scores -= self.log_mass[:, :, None] * bound
        scores += self.offset
        bound *= self.unit[:, None]
        bound += self.constant
        return _path_scores(scores, bound, self.repeated)


def _multinomial(
    centers: MultinomialCenters, ks: list[int], log_prior: list[float], ctx: Context
) -> _MultinomialPath:
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
    passing_coef = passing_coef[:, :, None] * member[:, None, :]
    mass = [row_sums(centers.smoothed(s.support)) for s in selections]
    log_mass = log_ratios(xp.stack(mass, axis=1))
    # The rounding of the sums, and of the logarithms in either form of the coefficients.
    largest = xp.max(xp.abs(log_mass), axis=0)
    for coef in (terms.coef, passing_coef):
        if 0 not in coef.shape:
            largest = largest + xp.max(xp.abs(coef))
    logs = 1 + math.log(sum(centers.mass) / centers.alpha)
    unit = 4 * UNIT_ROUNDOFF * ((ks[-1] + 16) * largest + 4 * logs)
    offset, repeated = log_prior, []
    if len(log_prior) == 2:
        offset = [log_prior[1] - log_prior[0]]
    else:
        # Equal at some k are classes that are so in the passing features of all k too.
        cuts = [0, *(passing.shape[0] + count for count in counts)]
        repeated = repeated_classes([xp.concat([f_passing, f], axis=1)], log_prior, cuts)
    parts = staying, counts, terms, passing, passing_coef, log_mass
    offset = backend.asarray(offset)[:, None, None]
    constant = 4 * of_priors(log_prior)
    return _MultinomialPath(ks, selections, *parts, offset, unit, constant, repeated)


def _sorted_out(supports: list[Array], m: int) -> tuple[Array, list[int], Array, Array]:
    """(staying, counts, passing, whether these are in the support at each k): as in the path."""
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


@dataclass(frozen=True)
class _LinearPath(Path):
    """The path of a model that is solved for each k: the linear forms of all k in one product."""

    in_parts: ClassVar[bool] = False  # the forms of all k would be put together for each part

    forms: list[LinearForm]
    repeated: list[tuple[int, int, int]]

    def scores(self, block: Block, ctx: Context, *, relative: bool) -> PathScores:
        xp = block.backend.xp
        # The scores of each k, and their bound.
        parts, sizes, offsets = [], [], []
        for chosen, form in zip(self.selections, self.forms, strict=True):
            unit = 4 * UNIT_ROUNDOFF * (form.coef.shape[0] + 16)
            parts.append((chosen.support, form.shift, form.coef))
            sizes.append(unit * xp.max(xp.abs(form.coef), axis=1))
            bound = 4 * UNIT_ROUNDOFF * xp.max(xp.abs(form.offset), keepdims=True)
            offsets.append(xp.concat([form.offset, bound]))
        found = xp.stack(products(block, parts, ctx, sizes=sizes)) + xp.stack(offsets)[:, None, :]
        found = xp.permute_dims(found, (2, 0, 1))
        return _path_scores(found[:-1, :, :], found[-1, :, :], self.repeated)


def _linear(centers: Centers, ks: list[int], log_prior: list[float], ctx: Context) -> _LinearPath:
    selections, repeated = list(centers.select_each(ks, ctx)), []
    forms = [centers.linear_form(chosen.support, log_prior) for chosen in selections]
    for s, form in enumerate(forms if len(log_prior) > 2 else []):
        coef = array_namespace(form.coef).permute_dims(form.coef, (1, 0))
        of_form = repeated_classes([coef], log_prior, [0, coef.shape[1]])
        repeated += [(c, s, first) for c, _, first in of_form]
    return _LinearPath(ks, selections, forms, repeated)


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
    xp, k = array_namespace(parameters[0]), len(log_prior)
    pairs = [(c, r) for c in range(k) for r in range(c) if log_prior[c] == log_prior[r]]
    found = []
    for s, (a, b) in enumerate(pairwise(cuts)):
        if pairs:
            c, r = (_index(which, parameters[0]) for which in zip(*pairs, strict=True))
            differ = [
                xp.any(xp.take(p[:, a:b], c, axis=0) != xp.take(p[:, a:b], r, axis=0), axis=1)
                for p in parameters
            ]
            differs = to_host(xp.any(xp.stack(differ), axis=0)).tolist()
            pairs = [pair for pair, d in zip(pairs, differs, strict=True) if not d]
        first = dict(reversed(pairs))  # of each class the lowest one
        found += [(c, s, r) for c, r in first.items()]
    return found


def _index(values: object, like: Array) -> Array:
    return backend_of(like).asarray(values, dtype=array_namespace(like).int64)
