"""Decisions with class priors, and those that are linear in the features of the support."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arrays.context import Context
from ..arrays.namespace import to_numpy
from ..arrays.typing import Array
from ..blocks.block import Block
from ..solvers.centers import Centers
from ..solvers.close_scores import compare_close_scores
from ..solvers.linear_form import LinearForm, close_rows
from ..solvers.priors import log_priors
from ..solvers.selection import Selection
from ._base import CenterClassifier, Classifier, read_only
from ._fitted import learned


class LinearClassifier(Classifier):
    """Scores, coefficients and intercept of a model that has a linear form."""

    _linear = True

    def _form_columns(self) -> Array:
        """The features of X that the form reads, ascending, where the model lives."""
        raise NotImplementedError

    def _log_prior_of_met(self) -> list[float]:
        """Log priors of the classes, as the form takes them."""
        raise NotImplementedError

    def _form(self) -> LinearForm:
        """The decision for the support."""

        def make(centers: Centers, selection: Selection, ctx: Context) -> LinearForm:
            return centers.linear_form(selection.support, self._log_prior_of_met())

        return self._cached("form", make)

    def _prepare(self) -> None:
        self._form()

    def _scores(self, block: Block, ctx: Context, *, relative: bool) -> Array:
        form = self._form()
        return block.product(self._form_columns(), form.shift, form.coef, ctx) + form.offset

    @staticmethod
    def _binary_scores(models: Sequence[Any], block: Block, ctx: Context) -> list[Array]:
        if any(type(model)._scores not in _OF_FORM for model in models):
            return Classifier._binary_scores(models, block, ctx)
        forms = [model._form() for model in models]
        parts = [
            (model._form_columns(), form.shift, form.coef)
            for model, form in zip(models, forms, strict=True)
        ]
        products = block.products(parts, ctx)
        found = [(x + f.offset)[:, 0] for x, f in zip(products, forms, strict=True)]
        for i in _close_scores(found, parts, forms, block, ctx):
            found[i] = models[i]._scores(block, ctx, relative=False)[:, 0]
        return found

    def _wide_form(self) -> tuple[Array, Array]:
        """(coefficients of all features, constants)."""

        def widen(centers: Centers, selection: Selection, ctx: Context) -> tuple[Array, Array]:
            shift, coef, offset, _ = form
            xp = ctx.backend.xp
            coef_ = self._widened(xp.permute_dims(coef, (1, 0)), ctx)
            intercept = offset - shift @ coef
            if self._fitted.met is not None:
                if coef_.shape[0] == 1:
                    coef_ = xp.concat([-coef_ / 2, coef_ / 2])
                    intercept = xp.concat([-intercept / 2, intercept / 2])
                coef_ = self._of_every_class(coef_, xp.zeros_like(coef_[0, :]))
                intercept = self._of_every_class(intercept, xp.zeros_like(intercept[0]) - math.inf)
            return read_only(coef_), read_only(intercept)

        form = self._form()
        return self._cached("wide form", widen)

    def _widened(self, narrow: Array, ctx: Context) -> Array:
        """(q, m) from the (q, d) of the features that the form reads, with zeros for the others."""
        xp, columns = ctx.backend.xp, to_numpy(self._form_columns())
        source = np.zeros(self.n_features_in_, dtype=np.int64)
        source[columns] = np.arange(1, len(columns) + 1)
        wide = xp.concat([ctx.backend.zeros((narrow.shape[0], 1)), narrow], axis=1)
        return xp.take(wide, ctx.backend.asarray(source), axis=1)

    @learned
    def coef_(self) -> Array:
        """Coefficients of the decision, zero for features that it does not read."""
        return self._wide_form()[0]

    @learned
    def intercept_(self) -> Array:
        """Constants of the decision."""
        return self._wide_form()[1]


class LinearDecision(CenterClassifier, LinearClassifier):
    """Linear decisions of centers, with priors."""

    def _form_columns(self) -> Array:
        """The features of X that the form reads, ascending, where the model lives."""
        return self._read_columns(self._selection().support)

    def _read_columns(self, support: Array) -> Array:
        """The features of X that the form of a support reads."""
        return support

    def _scores_of_supports(
        self, supports: list[Array], block: Block, ctx: Context
    ) -> Array | None:
        xp, centers, prior = ctx.backend.xp, self._centers(), self._log_prior_of_met()
        forms = [centers.linear_form(support, prior) for support in supports]
        if any(form.rounding is not None for form in forms):
            return None
        parts = [
            (self._read_columns(support), form.shift, form.coef)
            for support, form in zip(supports, forms, strict=True)
        ]
        products = block.products(parts, ctx)
        found = [x + form.offset for x, form in zip(products, forms, strict=True)]
        return xp.permute_dims(xp.stack(found), (2, 0, 1))


class NearestCenterDecision(LinearDecision):
    """Linear decisions of nearest class means, with a ``priors`` parameter."""

    priors: Any
    _per_score = 0.5

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.priors, str):
            log_priors(self.priors, (1.0, 1.0))

    def _priors(self, params: dict[str, Any], weight: tuple[float, ...]) -> list[float]:
        return log_priors(params["priors"], weight)

    def _scores(self, block: Block, ctx: Context, *, relative: bool) -> Array:
        form, columns = self._form(), self._form_columns()
        if form.rounding is None:
            return super()._scores(block, ctx, relative=relative)
        scores, rows, bound = close_rows(form, block, columns, ctx)
        pair_forms = self._centers().pair_forms(self._selection().support)
        prior = self._log_prior_of_met()
        return compare_close_scores(
            scores, bound, pair_forms, prior, block, columns, ctx, relative=relative, rows=rows
        )


def _close_scores(
    scores: list[Array],
    parts: list[tuple[Array, Array, Array]],
    forms: list[LinearForm],
    block: Block,
    ctx: Context,
) -> list[int]:
    """The decisions of two classes with a score that is perhaps within its rounding."""
    xp, bounds = ctx.backend.xp, [form.rounding for form in forms if form.rounding is not None]
    if not bounds:
        return []
    columns = xp.unique_values(xp.concat([columns for columns, _, _ in parts]))
    zeros = xp.zeros_like(columns, dtype=xp.float64)
    norms = block.product(columns, zeros, zeros[:, None], ctx, size=zeros + 1)[:, -1]
    doubtful = []
    for score, (_, shift, _), (size, constant) in zip(scores, parts, bounds, strict=True):
        most = xp.max(size) * norms + (xp.abs(shift) @ size + constant)
        doubtful.append(xp.any(xp.abs(score) <= 2 * most))
    return [i for i, is_so in enumerate(to_numpy(xp.stack(doubtful)).tolist()) if is_so]


#: The methods that score with the linear form and, where scores are close, by comparisons.
_OF_FORM = (LinearClassifier._scores, NearestCenterDecision._scores)
