"""Decisions that are linear in the features, and that of the least squared distance."""

from __future__ import annotations

from typing import NamedTuple

from ..arrays.backend import Backend
from ..arrays.typing import Array


class LinearForm(NamedTuple):
    """A decision that is linear in the features of the support.

    The scores are ``(x[support] - shift) @ coef + offset``. q is 1 for two classes (class 1 less
    class 0), else K.

    Attributes
    ----------
    shift : array of shape (d,)
    coef : array of shape (d, q)
    offset : array of shape (q,)
    """

    shift: Array
    coef: Array
    offset: Array


def squared_distance_form(
    free: Array,
    tied: Array,
    scale: Array | None,
    log_prior: list[float],
    backend: Backend,
    shift: Array,
) -> LinearForm:
    """The linear form of the classifier of the least squared distance to a center.

    The score of class c is minus the squared distance to its center, plus twice the log of its
    prior, plus a term common to all classes:

        score_c(x) = sum_i [2 a_ci (x_i - tied_i) - a_ci^2] / sigma_i^2 + 2 log pi_c,
        a_ci = free_ci - tied_i

    It is centred at the tied center: the textbook difference of squared norms flips predictions
    where features have large offsets.

    Parameters
    ----------
    free, tied : arrays of shapes (K, d) and (d,)
        Centers on the support.
    scale : array of shape (d,), or None
    log_prior : list of K floats
    backend : Backend
    shift : array
        That of the form.
    """
    xp = backend.xp
    difference = free - tied
    if free.shape[0] == 2:
        # The midpoint of two centers is the tied one, so that only the priors remain.
        slope = 2 * (free[1:, :] - free[:1, :])
        constant = backend.asarray([2 * (log_prior[1] - log_prior[0])])
    else:
        slope = 2 * difference
        square = difference * difference
        square = square if scale is None else square / (scale * scale)
        constant = 2 * backend.asarray(log_prior) - xp.sum(square, axis=1)
    if scale is not None:
        slope = slope / (scale * scale)
    return LinearForm(shift, xp.permute_dims(slope, (1, 0)), constant)
