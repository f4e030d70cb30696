"""The covariance of Mahalanobis centers: pooled, total or given, and shrunk."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..arrays.backend import Backend
from ..arrays.functions import EPS, to_floats, to_host
from ..arrays.linalg import gram
from ..arrays.namespace import is_sparse
from ..arrays.typing import Array
from ..statistics.cross_moments import CrossMoments
from .scaling import (
    are_repetitions,
    first_features,
    scale_of_sums,
    variance_divisor,
    variance_over_all,
)
from .selection import warn
from .user_input import as_number

# A share of the largest entry by which S and its transpose may differ: sums of float64 in another
# order differ by less.
_ASYMMETRY = 1e-10
# A fourth power of X. Below it digits are lost to underflow, which begins at 2^-1022 = 2e-308.
_LEAST_FOURTH = 1e-280


def check_covariance(covariance: Any, shrinkage: Any) -> None:
    """Raise a ValueError for parameters that are wrong whatever the data are."""
    unknown = isinstance(covariance, str) and covariance not in ("pooled", "total")
    if covariance is None or unknown:
        raise ValueError(
            f"covariance={covariance!r} is not valid: use 'pooled', 'total' or a matrix."
        )
    named = isinstance(shrinkage, str) and shrinkage in ("auto", "ledoit-wolf")
    if shrinkage is not None and not named and not 0 <= as_number(shrinkage) <= 1:
        raise ValueError(
            f"shrinkage={shrinkage!r} is not valid: use 'auto', None, a number in [0, 1] or "
            "'ledoit-wolf'."
        )
    if named and shrinkage == "ledoit-wolf" and not is_pooled(covariance):
        raise ValueError(
            "shrinkage='ledoit-wolf' is estimated from the residuals within the classes: it needs "
            "covariance='pooled'."
        )


def is_pooled(covariance: Any) -> bool:
    """Whether this is the covariance within the classes, and no other one or a matrix."""
    return isinstance(covariance, str) and covariance == "pooled"


def given_covariance(covariance: Any, n_features: int, backend: Backend) -> Array:
    """A covariance that the user gave, as float64 on ``backend``; raises unless it is symmetric."""
    xp = backend.xp
    wanted = "covariance must be 'pooled', 'total' or a dense matrix of real numbers"
    if is_sparse(covariance):
        raise ValueError(f"{wanted}, got a sparse one: use covariance.toarray().")
    given = to_host(covariance)
    if given.dtype.kind == "c":
        raise ValueError(f"{wanted}, got one of {given.dtype}.")
    try:
        S = backend.asarray(given.astype("float64"))
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{wanted}.") from error
    if S.shape != (n_features, n_features):
        raise ValueError(
            f"covariance has shape {tuple(S.shape)}, but X has {n_features} features: it must be "
            f"{(n_features, n_features)}."
        )
    if not bool(xp.all(xp.isfinite(S))):
        raise ValueError("covariance contains NaN or infinity.")
    uneven = xp.abs(S - xp.matrix_transpose(S))
    bad = xp.nonzero(uneven > _ASYMMETRY * xp.max(xp.abs(S)))
    if bad[0].shape[0]:
        i, j = int(bad[0][0]), int(bad[1][0])
        raise ValueError(
            f"covariance is not symmetric: entry ({i}, {j}) is {float(S[i, j])!r}, entry "
            f"({j}, {i}) is {float(S[j, i])!r}."
        )
    return S / 2 + xp.matrix_transpose(S) / 2


@dataclass(frozen=True)
class Shrinkage:
    """How a covariance S is made of a matrix R: (1 - amount) R / divisor + amount target I.

    Attributes
    ----------
    amount : float in [0, 1]
    target : float
        tr(R / divisor) / m; 1 where that is 0.
    divisor : float
    """

    amount: float
    target: float
    divisor: float


def covariance_matrix(moments: CrossMoments, covariance: Any, shrinkage: Shrinkage) -> Array:
    """The covariance S, (m, m): within the classes, over all samples or given, and shrunk."""
    xp, backend, amount = moments.backend.xp, moments.backend, shrinkage.amount
    S = _undivided(moments, covariance) / shrinkage.divisor
    if amount == 0:
        return S
    identity = xp.eye(S.shape[0], dtype=xp.float64, device=backend.device)
    return (1 - amount) * S + (amount * shrinkage.target) * identity


def _undivided(moments: CrossMoments, covariance: Any) -> Array:
    """The scatter within the classes, that of all samples, or the given covariance: (m, m)."""
    if not isinstance(covariance, str):
        return given_covariance(covariance, moments.shape[1], moments.backend)
    within = moments.within()
    return within if covariance == "pooled" else within + _between(moments)


def _divisor(moments: CrossMoments, covariance: Any) -> float:
    """What `_undivided` is divided by: sum W_c - K or sum W_c - 1 (`variance_divisor`), or 1."""
    weight = moments.class_weight
    if not isinstance(covariance, str):
        return 1.0
    if covariance == "total":
        return variance_divisor(weight, 1, "covariance='total'")
    # Where each class has one sample there is nothing to divide.
    if max(moments.count) < 2:
        return sum(weight)
    return variance_divisor(weight, len(weight), "covariance='pooled'")


def _between(moments: CrossMoments) -> Array:
    """The scatter of the class means about the mean of all samples."""
    backend, xp = moments.backend, moments.backend.xp
    w = backend.asarray(moments.class_weight)[:, None]
    means = moments.total / w
    centred = means - means[:1, :]
    centred = centred - xp.sum(w * centred, axis=0) / sum(moments.class_weight)
    return gram(centred * xp.sqrt(w), backend)


# The inverse root of a covariance, and how far the covariance is shrunk to have one.


class Whitening(NamedTuple):
    """The symmetric inverse root of a covariance, and what it was made of.

    Attributes
    ----------
    root : array of shape (m, m), float64
        S^(-1/2), symmetric and positive definite. (Any other root turns the features, and so
        selects others.)
    values : array of shape (m,), float64
        Eigenvalues of S, ascending.
    vectors : array of shape (m, m), float64
        Their eigenvectors, as columns.
    shrinkage : Shrinkage
        How S was made.
    """

    root: Array
    values: Array
    vectors: Array
    shrinkage: Shrinkage


def whitening(
    moments: CrossMoments,
    covariance: Any,
    shrinkage: float | str | None,
    read_again: Callable[[], None] | None = None,
) -> Whitening:
    """The symmetric inverse root of the covariance of some moments.

    Every amount of shrinkage leaves the eigenvectors as they are, so one decomposition serves all.

    Parameters
    ----------
    moments : CrossMoments
    covariance : {"pooled", "total"} or array of shape (m, m)
        Within the classes with divisor sum W_c - K, over all samples with divisor sum W_c - 1, or
        given.
    shrinkage : float in [0, 1], "ledoit-wolf", "auto" or None
        (1 - s) S + s tr(S) / m I. "ledoit-wolf" chooses s from the residuals within the classes,
        and S is then divided by sum W_c, as in `sklearn.covariance.ledoit_wolf`. "auto" shrinks a
        singular S only, with a warning: as "ledoit-wolf" does where S is pooled and moments have
        fourth moments, and by the least s that makes S regular elsewhere, or where that is more.
        With "auto" S is the identity where it would be zero.
    read_again : callable, optional
        Adds third and fourth moments to ``moments``.

    Raises
    ------
    ValueError
        Where S is singular: its smallest eigenvalue is at most m eps times the largest. The error
        names the rank and the remedy. Where a given S has a negative eigenvalue.
    """
    backend, xp, m = moments.backend, moments.backend.xp, moments.shape[1]
    given, automatic = not isinstance(covariance, str), shrinkage == "auto"
    estimated = shrinkage == "ledoit-wolf"
    divisor = sum(moments.class_weight) if estimated else _divisor(moments, covariance)
    spectrum, vectors = xp.linalg.eigh(_undivided(moments, covariance) / divisor)
    values = to_floats(spectrum)
    if given and values[0] < -m * EPS * max(values[-1], 0.0):
        raise ValueError(
            f"covariance is not positive definite: its smallest eigenvalue is {values[0]:g}."
        )
    if values[-1] <= 0 or (not given and _is_zero(moments, covariance)):
        made, values = _identity(moments, covariance, automatic=automatic), [1.0] * m
    else:
        amount = _ledoit_wolf(values, moments) if estimated else 0.0
        if isinstance(shrinkage, numbers.Real):
            amount = float(shrinkage)
        made = Shrinkage(amount, sum(values) / m, divisor)
        shrunk = _shrink(values, made)
        if _rank(shrunk) < m:
            why = _describe(shrunk, moments, covariance)
            if not automatic:
                remedy = "a larger number" if amount else "a number in (0, 1]"
                raise ValueError(
                    f"{why} Use shrinkage='auto' or {remedy}, bring the features to one scale, or "
                    "drop some."
                )
            made, shrunk = _regularize(values, divisor, moments, covariance, read_again, why)
        values = shrunk
    spectrum = backend.asarray(values)
    if made.amount == 1:
        vectors = xp.eye(m, dtype=xp.float64, device=backend.device)
    # As the product of a matrix with its own transpose it is symmetric to the bit.
    fourth_root = xp.matrix_transpose(vectors / xp.sqrt(xp.sqrt(spectrum)))
    return Whitening(gram(fourth_root, backend), spectrum, vectors, made)


def _shrink(values: list[float], made: Shrinkage) -> list[float]:
    """The eigenvalues of S from those of the matrix that is shrunk."""
    return [(1 - made.amount) * v + made.amount * made.target for v in values]


def _rank(values: list[float]) -> int:
    """The rank up to rounding of a covariance of these eigenvalues, ascending."""
    return sum(v > len(values) * EPS * values[-1] for v in values)


def _is_zero(moments: CrossMoments, covariance: str) -> bool:
    """Whether no feature varies by more than the rounding of its means.

    A bound as wide as that of scales would take steps of few units in the last place for rounding.
    """
    xp, weight, within = moments.backend.xp, moments.class_weight, moments.within_squares()
    variance, mean, means = variance_over_all(moments.total, within, weight, moments.backend)
    size = xp.abs(mean)
    if covariance == "pooled":
        variance, size = within / sum(weight), xp.max(xp.abs(means), axis=0)
    return bool(xp.all(variance <= (EPS * size) ** 2))


def _identity(moments: CrossMoments, covariance: Any, *, automatic: bool) -> Shrinkage:
    """The shrinkage that makes the identity of a covariance that is zero, for "auto" alone."""
    what = f"the covariance of the {moments.shape[1]} features is"
    if not isinstance(covariance, str):
        raise ValueError(f"{what} singular: its rank is 0.")
    where = "in each class" if covariance == "pooled" else "over all samples"
    if not automatic:
        raise ValueError(f"{what} singular: its rank is 0. All are constant {where}.")
    warn(f"{what} zero: all are constant {where}. The identity takes its place.")
    return Shrinkage(1.0, 1.0, 1.0)


def _describe(values: list[float], moments: CrossMoments, covariance: Any) -> str:
    """That a covariance of these eigenvalues is singular, its rank, and why."""
    what = f"the covariance of the {len(values)} features is singular: its rank is {_rank(values)}."
    if not isinstance(covariance, str):
        return what
    if covariance == "pooled":
        within, weight = moments.within_squares()[None, :], sum(moments.class_weight)
        found = scale_of_sums(moments.total, within, moments, "pooled", weight)
        if which := first_features(found.separates):
            return (
                f"{what} Some are constant within each class but differ between classes: {which}."
            )
    return (
        f"{what} Features are constant or depend on each other, their scales lie far apart, or the "
        "samples are too few."
    )


def _regularize(
    values: list[float],
    divisor: float,
    moments: CrossMoments,
    covariance: Any,
    read_again: Callable[[], None] | None,
    why: str,
) -> tuple[Shrinkage, list[float]]:
    """The shrinkage that "auto" takes for a singular covariance, and the eigenvalues of S.

    ``values`` are those before any shrinkage; the warning begins with ``why``.
    """
    amount, how = 0.0, "the least that makes it regular"
    if is_pooled(covariance):
        if moments.fourth_moment is None and read_again is not None:
            read_again()
        if moments.fourth_moment is not None:
            total = sum(moments.class_weight)
            values, divisor = [v * (divisor / total) for v in values], total
            amount = _ledoit_wolf(values, moments)
    least = _least_amount(values)
    if amount > least:
        how = "the amount of Ledoit and Wolf"
    made = Shrinkage(max(amount, least), sum(values) / len(values), divisor)
    warn(
        f"{why} It is shrunk to a multiple of the identity by {made.amount:.3g}, {how}. Set "
        "shrinkage to choose the amount."
    )
    return made, _shrink(values, made)


def _least_amount(values: list[float]) -> float:
    """The least amount of shrinkage that makes a singular covariance of these eigenvalues regular.

    With r = m eps and the mean t of the eigenvalues, that above which
    ``(1 - s) v_1 + s t > r ((1 - s) v_m + s t)``.
    """
    m, r = len(values), len(values) * EPS
    lacking = r * values[-1] - values[0]
    # A little more, so that rounding does not undo it.
    return min(1.0, lacking / (lacking + (1 - r) * sum(values) / m) * (1 + 1e-6))


def _ledoit_wolf(values: list[float], moments: CrossMoments) -> float:
    """The amount of shrinkage of Ledoit & Wolf (2004), for residuals within the classes.

    Their estimate needs the residuals r as ``sum |r|^4``, and their covariance, here divided by the
    sum of weights, as its trace and squared norm, which the eigenvalues tell.
    """
    assert moments.fourth_moment is not None
    m, weight = len(values), moments.class_weight
    if m == 1:
        return 0.0
    mean = sum(values) / m
    delta = sum((v - mean) * (v - mean) for v in values) / m
    fourth = sum(to_floats(moments.fourth_moment))
    if not math.isfinite(delta) or not fourth < math.inf or mean * mean < _LEAST_FOURTH:
        raise ValueError(
            "the Ledoit-Wolf shrinkage takes fourth powers of X, and these leave float64: its "
            "values are too large or too small. Rescale X."
        )
    # Weights that are no numbers of repetitions do not tell how many samples there are.
    samples = sum(weight) if are_repetitions(weight, len(weight)) else sum(moments.count)
    noise = fourth / sum(weight) - sum(v * v for v in values)
    beta = min(max(noise / (m * samples), 0.0), delta)
    return beta / delta if beta else 0.0
