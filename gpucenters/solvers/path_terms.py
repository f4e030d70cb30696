"""What each feature adds to the scores of a separable model."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..arrays.context import Context
from ..arrays.functions import array_namespace
from ..arrays.typing import Array
from ..blocks.block import Block
from ..blocks.segment_terms import LinearTerms, Terms
from .close_scores import UNIT_ROUNDOFF
from .decisions import FeatureForm, of_priors


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
