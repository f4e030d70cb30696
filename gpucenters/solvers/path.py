"""The scores of samples for every number of features at once: Remark 6 of the paper.

Scores of separable models are sums over the features of the support, and supports of different
sizes are nested. So sums over the features between one k and the next, added up, are the scores for
each k: X is read once. Rounding is bounded on the way: where it could change a prediction, the
caller is told, or classes are compared as in `close_scores`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from ..arrays.context import Context
from ..arrays.functions import array_namespace, to_host
from ..arrays.typing import Array
from ..blocks.block import Block
from ..blocks.segment_terms import segment_totals
from .centers import Centers, SparseCenters
from .close_scores import UNIT_ROUNDOFF, PairForm, compare_close_scores
from .decisions import LinearForm
from .multinomial import MultinomialCenters
from .path_scores import (
    Path,
    PathScores,
    SupportsOfEachK,
    doubtful_scores,
    repeated_classes,
)
from .path_shares import SharesPath
from .path_terms import PathTerms
from .selection import Selection, nested_supports


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
        found = read.segment_sums(terms.columns, [0, *self.ks], terms.terms, ctx)
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
        products = block.products(parts, ctx, sizes=sizes)
        found = xp.stack(products) + xp.stack(offsets)[:, None, :]
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
