"""Decisions: the scores of a model with the features of one support free."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..arrays.context import Context
from ..arrays.functions import to_host
from ..arrays.typing import Array
from ..blocks.block import Block
from .close_scores import PairForm, compare_close_scores
from .linear_form import LinearForm, close_rows


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
        columns, (shift, coef, offset, rounding) = self.columns, self.form
        if columns.shape[0] == 0:
            block.check_finite(False, ctx)
            return ctx.backend.zeros((block.shape[0], offset.shape[0])) + offset
        if rounding is None:
            return block.product(columns, shift, coef, ctx) + offset
        assert self.pair_forms is not None
        scores, rows, bound = close_rows(self.form, block, columns, ctx)
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
    products = block.products([(d.columns, d.form.shift, d.form.coef) for d in decisions], ctx)
    return [x + d.form.offset for x, d in zip(products, decisions, strict=True)]


def _close(
    scores: list[Array], decisions: list[LinearDecision], block: Block, ctx: Context
) -> list[int]:
    """The decisions of two classes with a score that is perhaps within its rounding."""
    xp, bounds = ctx.backend.xp, [d.form.rounding for d in decisions if d.form.rounding is not None]
    if not bounds:
        return []
    columns = xp.unique_values(xp.concat([d.columns for d in decisions]))
    zeros = xp.zeros_like(columns, dtype=xp.float64)
    norms = block.product(columns, zeros, zeros[:, None], ctx, size=zeros + 1)[:, -1]
    doubtful = []
    for score, decision, (size, constant) in zip(scores, decisions, bounds, strict=True):
        most = xp.max(size) * norms + (xp.abs(decision.form.shift) @ size + constant)
        doubtful.append(xp.any(xp.abs(score[:, 0]) <= 2 * most))
    return [i for i, is_so in enumerate(to_host(xp.stack(doubtful)).tolist()) if is_so]
