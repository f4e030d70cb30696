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

from ..arrays.context import Context
from ..arrays.functions import array_namespace, backend_of, index_mask, row_sums, to_host
from ..arrays.typing import Array
from ..blocks import Block
from ..reductions.products import add_products, products
from ..reductions.segment_sums import segment_sums, segment_totals
from .centers import Centers, SparseCenters
from .close_scores import UNIT_ROUNDOFF, PairForm, compare_close_scores
from .decisions import LinearForm, of_priors
from .multinomial import MultinomialCenters, log_ratios
from .path_scores import (
    Path,
    PathScores,
    PathTerms,
    SupportsOfEachK,
    doubtful_scores,
    repeated_classes,
)
from .selection import Selection, nested_supports

# The scores of sparse multinomial naive Bayes for every number of features.
#
# A feature of the support adds ``x_i (a_i - b_k)`` to a score: a_i depends on the feature alone,
# and b_k on k alone. Supports need not be nested, but nearly all features stay once they have
# entered, so that the sums of x_i a_i and of x_i >= 0 are formed for all k as those of a
# separable model; the few others are added for each k.


@dataclass(frozen=True)
class ShareTerms:
    """``x_i a_i`` for each of q scores, and x_i, which is not negative: see `Terms`.

    Attributes
    ----------
    coef : array of shape (q, d)
        a.
    """

    coef: Array
    at_zero: None = None

    @property
    def rows(self) -> int:
        """Q + 1."""
        return int(self.coef.shape[0]) + 1

    def of_columns(self, x: Array, part: slice) -> Array:
        """Products and sums of a run of features: see `Terms`."""
        xp = array_namespace(x)
        products = x @ xp.permute_dims(self.coef[:, part], (1, 0))
        return xp.concat([products, xp.sum(x, axis=1)[:, None]], axis=1)

    def beyond_zero(self, x: Array, position: Array) -> list[Array]:
        """Products and values: see `Terms`."""
        xp = array_namespace(x)
        found = [x * xp.take(self.coef[c, :], position) for c in range(self.coef.shape[0])]
        return [*found, x]


@dataclass(frozen=True)
class SharesPath(SupportsOfEachK):
    """The path of multinomial naive Bayes: see `Path`.

    Attributes
    ----------
    ks : list of S ints
    selections : list of Selection
    staying : array of int64 of shape (d,)
        The features that stay once they have entered, in the order of the k at which they do.
    counts : list of S ints
        How many of them there are at each k.
    terms : ShareTerms
        Of these features.
    passing : array of int64 of shape (u,), ascending
        Features that leave again.
    passing_coef : array of shape (u, q + 1, S)
        What they add for each unit of a value: a and 1 where they are in the support, else 0.
    log_mass : array of shape (q, S)
        b.
    offset : array of shape (q, 1, 1)
    unit : array of shape (S,)
        The bound on the rounding of a score for each unit of the values of the support,
    constant : float
        and what is added to it.
    repeated : list of tuple
        See `repeated_classes`.
    """

    ks: list[int]
    selections: Sequence[Selection]
    staying: Array
    counts: list[int]
    terms: ShareTerms
    passing: Array
    passing_coef: Array
    log_mass: Array
    offset: Array
    unit: Array
    constant: float
    repeated: list[tuple[int, int, int]]

    @classmethod
    def of(
        cls, centers: MultinomialCenters, ks: list[int], log_prior: list[float], ctx: Context
    ) -> SharesPath:
        """Solve for each k."""
        xp, backend = centers.backend.xp, centers.backend
        selections = list(centers.select_each(ks, ctx))
        staying, counts, passing, member = _sorted_out(
            [s.support for s in selections], centers.total.shape[1]
        )
        f = xp.take(centers.total, staying, axis=1) + centers.alpha
        f_passing = centers.smoothed(passing)
        terms, passing_coef = ShareTerms(log_ratios(f)), log_ratios(f_passing)
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
        return cls(
            ks,
            selections,
            staying,
            counts,
            terms,
            passing,
            passing_coef,
            log_mass,
            backend.asarray(offset)[:, None, None],
            unit,
            4 * of_priors(log_prior),
            repeated,
        )

    @property
    def in_parts(self) -> bool:
        """Whether to ask for some rows at a time."""
        return not backend_of(self.unit).sync_is_expensive

    def scores(self, block: Block, ctx: Context, *, relative: bool) -> PathScores:
        """The scores of the rows of a block."""
        xp = array_namespace(self.unit)
        found = segment_sums(block, self.staying, [0, *self.counts], self.terms, ctx)
        for s in range(1, found.shape[1]):
            found[:, s, :] += found[:, s - 1, :]
        if self.passing.shape[0]:
            add_products(block, self.passing, self.passing_coef, found, ctx)
        scores, bound = found[:-1, :, :], found[-1, :, :]
        scores -= self.log_mass[:, :, None] * bound
        scores += self.offset
        bound *= self.unit[:, None]
        bound += self.constant
        doubtful = xp.any(doubtful_scores(scores, bound, self.repeated), axis=1)
        return PathScores(scores, scores, xp.max(bound, axis=1), doubtful)


def _sorted_out(supports: list[Array], m: int) -> tuple[Array, list[int], Array, Array]:
    """(staying, counts, passing, whether these are in the support at each k): see `SharesPath`."""
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

    Returns
    -------
    Path
    """
    if isinstance(centers, SparseCenters):
        return _separable(centers, ks, log_prior, block, ctx)
    if isinstance(centers, MultinomialCenters):
        return SharesPath.of(centers, ks, log_prior, ctx)
    return _Forms.of(centers, ks, log_prior, ctx)


# --- separable models --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Separable:
    """The path of a model whose supports are the first k features of a ranking."""

    centers: SparseCenters
    ks: list[int]
    log_prior: list[float]
    ranking: Array
    terms: PathTerms
    base: Array  # (q + 1, S)
    rate: Array | None  # (q + 1, S)
    repeated: list[tuple[int, int, int]]
    pair_forms: Callable[[int], Callable[[int, int], PairForm]]

    @property
    def in_parts(self) -> bool:
        return not self.centers.backend.sync_is_expensive

    def changes(self) -> Iterator[tuple[int, Array, int]]:
        for s, (a, b) in enumerate(pairwise([0, *self.ks])):
            yield s, self.ranking[a:b], 1

    def support(self, number: int) -> Array:
        return array_namespace(self.ranking).sort(self.ranking[: self.ks[number]])

    def scores(self, block: Block, ctx: Context, *, relative: bool) -> PathScores:
        xp, terms = array_namespace(self.base), self.terms
        read, more = (block, None) if terms.read is None else terms.read(block, ctx)
        found = segment_sums(read, terms.columns, [0, *self.ks], terms.terms, ctx)
        # Row by row, in place: the library's cumulative sum goes against the order of memory.
        for s in range(1, found.shape[1]):
            found[:, s, :] += found[:, s - 1, :]
        found += self.base[:, :, None]
        if self.rate is not None and terms.exposure is not None:
            found += self.rate[:, :, None] * terms.exposure(block, ctx)
        scores, bound = found[:-1, :, :], found[-1, :, :]
        if more is not None:
            bound = bound + more
        close = doubtful_scores(scores, bound, self.repeated, compared=terms.compared)
        doubtful, most = xp.any(close, axis=1), xp.max(bound, axis=1)
        if not terms.compared:
            return PathScores(scores, scores, most, doubtful)
        others = xp.asarray(scores, copy=True) if relative else scores
        for s in to_host(xp.nonzero(doubtful)[0]).tolist():
            self._compare(scores, bound[s, :], s, block, ctx, relative=False)
            if relative:
                self._compare(others, bound[s, :], s, block, ctx, relative=True)
        return PathScores(scores, others, most, ~xp.isfinite(most))

    def _compare(
        self, scores: Array, bound: Array, s: int, block: Block, ctx: Context, *, relative: bool
    ) -> None:
        xp, terms = array_namespace(scores), self.terms
        columns = terms.compared_columns
        if columns is None:
            columns = self.support(s)
        at_k = xp.asarray(xp.permute_dims(scores[:, s, :], (1, 0)), copy=True)
        found = compare_close_scores(
            at_k,
            bound,
            self.pair_forms(s),
            self.log_prior,
            block,
            columns,
            ctx,
            relative=relative,
        )
        scores[:, s, :] = xp.permute_dims(found, (1, 0))


def _separable(
    centers: SparseCenters, ks: list[int], log_prior: list[float], block: Block, ctx: Context
) -> _Separable:
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

    return _Separable(centers, ks, log_prior, ranking, terms, base, rate, repeated, pair_forms)


# --- models whose coefficients depend on k ----------------------------------------------------


@dataclass(frozen=True)
class _Forms(SupportsOfEachK):
    """The path of a model that is solved for each k: the linear forms of all k in one product."""

    ks: list[int]
    selections: list[Selection]
    forms: list[LinearForm]
    log_prior: list[float]

    @classmethod
    def of(cls, centers: Centers, ks: list[int], log_prior: list[float], ctx: Context) -> _Forms:
        selections = list(centers.select_each(ks, ctx))
        forms = [centers.linear_form(chosen.support, log_prior) for chosen in selections]
        return cls(ks, selections, forms, log_prior)

    @property
    def in_parts(self) -> bool:
        return False  # the forms of all k would be put together for each part

    def scores(self, block: Block, ctx: Context, *, relative: bool) -> PathScores:
        xp, q = block.backend.xp, self.forms[0].coef.shape[1]
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
        scores, bound, repeated = found[:-1, :, :], found[-1, :, :], []
        for s, form in enumerate(self.forms if q > 1 else []):
            coef = xp.permute_dims(form.coef, (1, 0))
            of_form = repeated_classes([coef], self.log_prior, [0, coef.shape[1]])
            repeated += [(c, s, first) for c, _, first in of_form]
        return PathScores(
            scores,
            scores,
            xp.max(bound, axis=1),
            xp.any(doubtful_scores(scores, bound, repeated), axis=1),
        )
