"""What is said of each feature, and its place in an AnnData."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from ..arrays.functions import to_host
from ..estimators.permutation import adjusted
from ..solvers.selection import ranking_key, warn
from ..statistics import ClassSums, Statistics

_TYPES = {"names": "O", "scores": "f4", "logfoldchanges": "f4", "pvals": "f8", "pvals_adj": "f8"}
_TINY = 1e-9  # added to both means, as scanpy does
_LARGEST_LOG = 50.0  # no logarithm of a count, of any unit, is so large


class JointResult(NamedTuple):
    """What the model of all groups says of each feature.

    Attributes
    ----------
    gain, rank : ndarrays of shape (m,)
    centers : ndarray of shape (m, K)
    """

    gain: np.ndarray
    rank: np.ndarray
    centers: np.ndarray

    @classmethod
    def of(cls, model: Any) -> Self:
        """From a fitted model, which need not select all features."""
        gain = to_host(model.scores_)
        rank = np.empty(len(gain), dtype=np.int64)
        rank[np.argsort(-ranking_key(gain), kind="stable")] = np.arange(1, len(gain) + 1)
        return cls(gain, rank, _centers(model).T)

    def at(self, positions: np.ndarray) -> Self:
        """Of some features."""
        return type(self)(*(values[positions] for values in self))


def _centers(model: Any) -> np.ndarray:
    """The centers of all features, on the host: (K, m)."""
    held, m = model._centers(), model.n_features_in_
    return to_host(model._run(lambda ctx: held.centers_at(ctx.backend.arange(m))[0]))


def ranked(model: Any, pair: Statistics, base: float) -> dict[str, np.ndarray]:
    """What is said of each feature by the model of a reference and a group."""
    centers, gain = _centers(model), to_host(model.scores_)
    pvalues = np.array(getattr(model, "pvalues_", np.full(len(gain), np.nan)))
    return {
        "scores": np.where(centers[1] < centers[0], -gain, gain),
        "logfoldchanges": _log_fold_changes(pair, base),
        "pvals": pvalues,
        "pvals_adj": adjusted(pvalues),
    }


def _means(statistics: Statistics) -> np.ndarray:
    return to_host(statistics.total) / np.asarray(statistics.class_weight)[:, None]


def _log_fold_changes(pair: Statistics, base: float) -> np.ndarray:
    """Logarithms to base 2 of the ratio of two means, which may be those of logarithms."""
    means, large = _means(pair), np.zeros(pair.shape[1], dtype=bool)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        if not isinstance(pair, ClassSums):
            logs = means * np.log(base)
            means, large = np.expm1(logs), np.any(logs > _LARGEST_LOG, axis=0)
        change = np.log2((means[1] + _TINY) / (means[0] + _TINY))
        if large.any():  # their ratio may leave float64
            logs = np.where(logs > _LARGEST_LOG, logs / np.log(2), np.log2(means + _TINY))
            change[large] = (logs[1] - logs[0])[large]
    return change


def warn_unless_logarithms(statistics: Statistics, base: float, name: str) -> None:
    """Warn of values that are no logarithms, where fold changes are taken from logarithms."""
    if isinstance(statistics, ClassSums):
        return
    total = to_host(statistics.total)
    counts = np.any(total) and np.all(total >= 0) and np.array_equal(total, np.rint(total))
    if counts or np.any(_means(statistics) * np.log(base) > _LARGEST_LOG):
        what = "the values look like counts" if counts else "some means are too large for that"
        warn(
            f"rank_features takes the values for logarithms of normalised counts with {name}, and "
            f"{what}: fold changes are wrong then. Take logarithms (scanpy.pp.log1p), or rank "
            "counts with estimator=SparsePoissonNB()."
        )


def records(
    tables: Mapping[str, Mapping[str, np.ndarray]],
    names: np.ndarray,
    count: int | None,
    by_abs: bool,
) -> dict[str, np.ndarray]:
    """What is listed of each group, as structured arrays with a field for each group.

    Parameters
    ----------
    tables : dict of dicts of ndarrays of shape (m,)
        Of each group what `ranked` says.
    names : ndarray of shape (m,)
    count : int or None
        How many features are listed.
    by_abs : bool
        Whether they are listed by the absolute value of the score.
    """
    listed: dict[str, list[np.ndarray]] = {name: [] for name in _TYPES}
    for columns in tables.values():
        size = np.abs(columns["scores"]) if by_abs else columns["scores"]
        order = np.argsort(-size, kind="stable")[:count]
        for name, values in {"names": names, **columns}.items():
            listed[name].append(values[order])
    return {
        name: np.rec.fromarrays(values, dtype=[(label, _TYPES[name]) for label in tables])
        for name, values in listed.items()
    }


def write(
    adata: Any,
    key: str,
    params: dict[str, Any],
    tables: dict[str, Any],
    joint: JointResult,
) -> None:
    """Put results that are all there into their places."""
    adata.varm[f"{key}_centers"] = joint.centers
    adata.var[f"{key}_gain"], adata.var[f"{key}_rank"] = joint.gain, joint.rank
    adata.uns[key] = {"params": params, **tables}
