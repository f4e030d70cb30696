"""The covariance of Mahalanobis centers: pooled, total or given, and shrunk."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

from ..arrays.backend import Backend
from ..arrays.functions import to_host
from ..arrays.linalg import gram
from ..arrays.namespace import is_sparse
from ..arrays.typing import Array
from ..statistics.cross_moments import CrossMoments
from .scaling import variance_divisor

_ASYMMETRY = 1e-10  # share of the largest entry by which S and its transpose may differ


def check_covariance(covariance: Any, shrinkage: Any) -> None:
    """Raise a ValueError for parameters that are wrong whatever the data are."""
    if isinstance(covariance, str) and covariance not in ("pooled", "total"):
        raise ValueError(
            f"covariance={covariance!r} is not valid: use 'pooled', 'total' or a matrix."
        )
    if covariance is None:
        raise ValueError("covariance=None is not valid: use 'pooled', 'total' or a matrix.")
    if isinstance(shrinkage, str):
        valid = shrinkage in ("auto", "ledoit-wolf")
    else:
        number = isinstance(shrinkage, numbers.Real) and not isinstance(shrinkage, bool)
        valid = shrinkage is None or (number and 0 <= shrinkage <= 1)
    if not valid:
        raise ValueError(
            f"shrinkage={shrinkage!r} is not valid: use 'auto', None, a number in [0, 1] or "
            "'ledoit-wolf'."
        )
    if is_named(shrinkage, "ledoit-wolf") and not is_named(covariance, "pooled"):
        raise ValueError(
            "shrinkage='ledoit-wolf' is estimated from the residuals within the classes: it needs "
            "covariance='pooled'."
        )


def is_named(parameter: Any, name: str) -> bool:
    """Whether a parameter, which may be an array, is this string."""
    return isinstance(parameter, str) and parameter == name


def given_covariance(covariance: Any, n_features: int, backend: Backend) -> Array:
    """A covariance that the user gave, as float64 on ``backend``; raises unless it is symmetric."""
    xp, wanted = (
        backend.xp,
        "covariance must be 'pooled', 'total' or a dense matrix of real numbers",
    )
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
    """The covariance S, (m, m).

    Parameters
    ----------
    moments : CrossMoments
    covariance : {"pooled", "total"} or array of shape (m, m)
        Within the classes, over all samples, or given.
    shrinkage : Shrinkage
    """
    xp, backend, amount = moments.backend.xp, moments.backend, shrinkage.amount
    S = undivided(moments, covariance) / shrinkage.divisor
    if amount == 0:
        return S
    identity = xp.eye(S.shape[0], dtype=xp.float64, device=backend.device)
    return (1 - amount) * S + (amount * shrinkage.target) * identity


def undivided(moments: CrossMoments, covariance: Any) -> Array:
    """The matrix which the covariance is a part of: (m, m).

    The scatter within the classes, that of all samples, or the given covariance.
    """
    if not isinstance(covariance, str):
        return given_covariance(covariance, moments.shape[1], moments.backend)
    within = moments.within()
    return within if covariance == "pooled" else within + _between(moments)


def covariance_divisor(moments: CrossMoments, covariance: Any) -> float:
    """What `undivided` is divided by: sum W_c - K or sum W_c - 1 (see `variance_divisor`), or 1."""
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
