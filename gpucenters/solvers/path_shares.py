"""The scores of sparse multinomial naive Bayes for every number of features.

A feature of the support adds ``x_i (a_i - b_k)`` to a score: a_i depends on the feature alone, and
b_k on k alone. Supports need not be nested, but nearly all features stay once they have entered, so
that the sums of x_i a_i and of x_i >= 0 are formed for all k as those of a separable model; the few
others are added for each k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..arrays.context import Context
from ..arrays.functions import array_namespace, backend_of, index_mask, row_sums, to_host
from ..arrays.typing import Array
from ..blocks.block import Block
from .close_scores import UNIT_ROUNDOFF
from .linear_form import of_priors
from .multinomial import MultinomialCenters, log_ratios
from .path_scores import PathScores, SupportsOfEachK, doubtful_scores, repeated_classes
from .selection import Selection


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
        found = block.segment_sums(self.staying, [0, *self.counts], self.terms, ctx)
        for s in range(1, found.shape[1]):
            found[:, s, :] += found[:, s - 1, :]
        if self.passing.shape[0]:
            block.add_products(self.passing, self.passing_coef, found, ctx)
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
