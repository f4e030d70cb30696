"""The scores of samples for several numbers of features, and where their rounding matters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol

from ..arrays.context import Context
from ..arrays.functions import array_namespace, backend_of, to_float, to_host
from ..arrays.typing import Array
from ..blocks import Block
from ..reductions.segment_sums import LinearTerms, Terms
from .close_scores import UNIT_ROUNDOFF
from .decisions import FeatureForm, of_priors
from .selection import Selection


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


class Path(Protocol):
    """A solved model, ready to score samples for several k."""

    @property
    def ks(self) -> list[int]:
        """The numbers of features, ascending."""

    @property
    def in_parts(self) -> bool:
        """Whether it is faster to ask for the scores of some rows at a time, where X lives."""

    def support(self, number: int) -> Array:
        """The features of one k, ascending."""

    def scores(self, block: Block, ctx: Context, *, relative: bool) -> PathScores:
        """The scores of the rows of a block; ``relative``: also as probabilities need them."""

    def changes(self) -> Iterator[tuple[int, Array, int]]:
        """(number of the k, features, 1 or -1): what enters and leaves the support at each k."""


class SupportsOfEachK:
    """The supports of a `Path` that has a selection for each k, nested or not."""

    selections: Sequence[Selection]

    def support(self, number: int) -> Array:
        """The features of one k."""
        return self.selections[number].support

    def changes(self) -> Iterator[tuple[int, Array, int]]:
        """What enters and leaves at each k."""
        before = self.selections[0].support[:0]
        for s, chosen in enumerate(self.selections):
            yield s, chosen.support, 1
            yield s, before, -1
            before = chosen.support


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


# What each feature adds to the scores of a separable model.


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


def linear_terms(form: FeatureForm, columns: Array, log_prior: list[float]) -> PathTerms:
    """The terms of a linear decision.

    The bound holds for the rounding of sums over the features in any order.
    """
    xp = array_namespace(form.coef)
    coef, base, rows, d = form.coef, form.base, None, form.coef.shape[0]
    unit = 4 * UNIT_ROUNDOFF * (d + 16)
    if form.rounding is not None:
        size, constant = 2 * form.rounding.size, 2 * form.rounding.constant
        base_bound = xp.zeros_like(size)
    else:
        size, constant = unit * xp.max(xp.abs(coef), axis=1), 4 * of_priors(log_prior)
        base_bound = size if base is None else unit * xp.max(xp.abs(base), axis=0)
    if base is not None:
        rows = xp.concat([base, base_bound[None, :]])
    compared = form.rounding is not None
    parameters = []
    if coef.shape[1] > 1 and not compared:
        parameters = [xp.permute_dims(coef, (1, 0))] + ([] if base is None else [base])
    relative = unit if coef.shape[1] == 1 and form.rounding is None else None
    terms = LinearTerms(form.shift, coef, size, relative)
    return PathTerms(terms, columns, rows, form.offset, constant, parameters, compared)
