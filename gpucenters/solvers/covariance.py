"""The covariance of Mahalanobis centers: pooled, total or given, shrunk, and its inverse root."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any

from ..arrays.backend import Backend
from ..arrays.functions import array_namespace, to_float, to_host
from ..arrays.linalg import gram
from ..arrays.namespace import is_sparse
from ..arrays.typing import Array
from ..statistics.cross_moments import CrossMoments

_EPS = 2.0**-52
_LEAST_FOURTH = 1e-280  # fourth powers below it have lost digits to underflow
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
        if shrinkage != "ledoit-wolf":
            raise ValueError(
                f"shrinkage={shrinkage!r} is not valid: use None, a number in [0, 1] or "
                "'ledoit-wolf'."
            )
        if not isinstance(covariance, str) or covariance != "pooled":
            raise ValueError(
                "shrinkage='ledoit-wolf' is estimated from the residuals within the classes: it "
                "needs covariance='pooled'."
            )
    elif shrinkage is not None and (
        isinstance(shrinkage, bool)
        or not isinstance(shrinkage, numbers.Real)
        or not 0 <= shrinkage <= 1  # type: ignore[operator]
    ):
        raise ValueError(
            f"shrinkage={shrinkage!r} is not valid: use None, a number in [0, 1] or 'ledoit-wolf'."
        )


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


def covariance_matrix(
    moments: CrossMoments, covariance: Any, shrinkage: float | str | None
) -> tuple[Array, float]:
    """The covariance S, (m, m), and how far it was shrunk to a multiple of the identity.

    Parameters
    ----------
    moments : CrossMoments
        With third and fourth moments for "ledoit-wolf".
    covariance : {"pooled", "total"} or array of shape (m, m)
        Within the classes with divisor sum W_c - K, over all samples with divisor sum W_c - 1, or
        given.
    shrinkage : float in [0, 1], "ledoit-wolf" or None
        (1 - s) S + s tr(S) / m I. "ledoit-wolf" chooses s from the residuals within the classes,
        and S is then divided by sum W_c, as in `sklearn.covariance.ledoit_wolf`.
    """
    backend, xp = moments.backend, moments.backend.xp
    m, total_weight = moments.shape[1], sum(moments.class_weight)
    if isinstance(shrinkage, str):
        S = moments.within() / total_weight
        amount = _ledoit_wolf(moments, S)
    else:
        amount = 0.0 if shrinkage is None else float(shrinkage)
        if not isinstance(covariance, str):
            S = given_covariance(covariance, m, backend)
        else:
            fewer = len(moments.class_weight) if covariance == "pooled" else 1
            if total_weight - fewer <= 0:
                raise ValueError(
                    f"covariance={covariance!r} needs a weight of more than {fewer} in all: the "
                    f"weights sum to {total_weight:g}."
                )
            S = moments.within()
            if covariance == "total":
                S = S + _between(moments)
            S = S / (total_weight - fewer)
    if amount:
        target = amount * (xp.linalg.trace(S) / m)
        S = (1 - amount) * S + target * xp.eye(m, dtype=xp.float64, device=backend.device)
    return S, amount


def _between(moments: CrossMoments) -> Array:
    """The scatter of the class means about the mean of all samples."""
    backend, xp = moments.backend, moments.backend.xp
    w = backend.asarray(moments.class_weight)[:, None]
    means = moments.total / w
    centred = means - means[:1, :]
    centred = centred - xp.sum(w * centred, axis=0) / sum(moments.class_weight)
    return gram(centred * xp.sqrt(w), backend)


def _ledoit_wolf(moments: CrossMoments, S: Array) -> float:
    """The amount of shrinkage of Ledoit & Wolf (2004), where the residuals have the covariance S.

    Their estimate needs the residuals as ``sum |r|^4`` alone, which moments tell.
    """
    assert moments.fourth_moment is not None
    backend, xp = moments.backend, moments.backend.xp
    m, total_weight = moments.shape[1], sum(moments.class_weight)
    if m == 1:
        return 0.0
    mu = xp.linalg.trace(S) / m
    off = S - mu * xp.eye(m, dtype=xp.float64, device=backend.device)
    delta = to_float(xp.sum(off * off)) / m
    fourth = to_float(mu * mu)
    if (
        not math.isfinite(delta)
        or not to_float(xp.sum(moments.fourth_moment)) < math.inf
        or (fourth < _LEAST_FOURTH and to_float(mu) > 0)
    ):
        raise ValueError(
            "shrinkage='ledoit-wolf' takes fourth powers of X, and these leave float64: its values "
            "are too large or too small. Rescale X."
        )
    noise = to_float(xp.sum(moments.fourth_moment)) / total_weight - to_float(xp.sum(S * S))
    beta = min(max(noise / (m * total_weight), 0.0), delta)
    return beta / delta if beta else 0.0


@dataclass(frozen=True)
class Whitening:
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
    """

    root: Array
    values: Array
    vectors: Array


def whitening(S: Array, backend: Backend, *, given: bool = False) -> Whitening:
    """The symmetric inverse root of a covariance.

    Parameters
    ----------
    S : array of shape (m, m), float64, symmetric
    backend : Backend
    given : bool
        Whether the user gave it, for the words of the error.

    Raises
    ------
    ValueError
        Where the smallest eigenvalue is at most m eps times the largest: the error names the rank
        and the remedy.
    """
    xp, m = array_namespace(S), S.shape[0]
    values, vectors = xp.linalg.eigh(S)
    largest, smallest = to_float(values[-1]), to_float(values[0])
    least = m * _EPS * largest
    if given and smallest < -max(least, 0.0):
        raise ValueError(
            f"covariance is not positive definite: its smallest eigenvalue is {smallest:g}."
        )
    if not smallest > least:
        rank = int(xp.count_nonzero(values > max(least, 0.0)))
        what = f"the covariance of the {m} features is singular: its rank is {rank}"
        if largest == 0:  # which no shrinkage mends
            raise ValueError(f"{what}." + ("" if given else " All are constant in each class."))
        reason, remedy = "", "a number in (0, 1]"
        if not given:
            reason = (
                " Features are constant or depend on each other, their scales lie far apart, or "
                "the samples are too few."
            )
            remedy += ", or 'ledoit-wolf'"
        raise ValueError(
            f"{what}.{reason} Use shrinkage ({remedy}), bring the features to one scale, or drop "
            "some."
        )
    # As the product of a matrix with its own transpose it is symmetric to the bit.
    fourth_root = xp.matrix_transpose(vectors / xp.sqrt(xp.sqrt(values)))
    return Whitening(gram(fourth_root, backend), values, vectors)
