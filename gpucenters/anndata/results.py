"""What is said of each feature, and its place in an AnnData."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

from ..arrays.functions import to_host
from ..estimators.blocked import BlockGains
from ..estimators.fitted import FittedModel
from ..estimators.permutation import benjamini_hochberg
from ..solvers.selection import ranking_key, warn
from ..statistics import ClassSums, Statistics
from .data import Comparison

_TYPES = {"names": "O", "scores": "f4", "logfoldchanges": "f4", "pvals": "f8", "pvals_adj": "f8"}
_TINY = 1e-9  # added to both means, as scanpy does
_LARGEST_LOG = 50.0  # no logarithm of a count, of any unit, is so large


class Found(NamedTuple):
    """What a model says of each feature.

    Attributes
    ----------
    gain, pvalues : ndarrays of shape (m,)
    centers : ndarray of shape (K, m)
    means : ndarray of shape (K, m)
        For fold changes.
    """

    gain: np.ndarray
    pvalues: np.ndarray
    centers: np.ndarray
    means: np.ndarray

    @classmethod
    def of_model(cls, model: Any, statistics: Statistics) -> Self:
        """By a model that is fitted to these statistics; it need not select all features."""
        gain, fitted, m = to_host(model.scores_), FittedModel(model), model.n_features_in_
        pvalues = np.array(getattr(model, "pvalues_", np.full(m, np.nan)))
        held = fitted.centers
        centers = fitted.run(lambda ctx: held.centers_at(ctx.backend.arange(m))[0])
        return cls(gain, pvalues, to_host(centers), class_means(statistics))

    @classmethod
    def of_blocks(cls, gains: BlockGains) -> Self:
        """Within blocks."""
        return cls(gains.scores, gains.pvalues, gains.centers, gains.centers)

    @property
    def rank(self) -> np.ndarray:
        """The rank of each feature, from 1 for the largest gain (ties: lower index first)."""
        rank = np.empty(len(self.gain), dtype=np.int64)
        order = np.argsort(-ranking_key(self.gain), kind="stable")
        rank[order] = np.arange(1, len(rank) + 1)
        return rank


def class_means(statistics: Statistics) -> np.ndarray:
    """Means of the classes, on the host: (K, m)."""
    return to_host(statistics.total) / np.asarray(statistics.class_weight)[:, None]


def warn_unless_logarithms(statistics: Statistics, base: float, name: str) -> None:
    """Warn of values that are no logarithms, where fold changes are taken from logarithms."""
    if isinstance(statistics, ClassSums):
        return
    total = to_host(statistics.total)
    counts = np.any(total) and np.all(total >= 0) and np.array_equal(total, np.rint(total))
    if counts or np.any(class_means(statistics) * np.log(base) > _LARGEST_LOG):
        what = "the values look like counts" if counts else "some means are too large for that"
        warn(
            f"rank_features takes the values for logarithms of normalised counts with {name}, and "
            f"{what}: fold changes are wrong then. Take logarithms (scanpy.pp.log1p), or rank "
            "counts with estimator=SparsePoissonNB()."
        )


def log_fold_changes(means: np.ndarray, base: float | None) -> np.ndarray:
    """Logarithms to base 2 of the ratio of two means, (2, m); with a base, means of logarithms."""
    large = np.zeros(means.shape[1], dtype=bool)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        if base is not None:
            logs = means * np.log(base)
            means, large = np.expm1(logs), np.any(logs > _LARGEST_LOG, axis=0)
        change = np.log2((means[1] + _TINY) / (means[0] + _TINY))
        if large.any():  # their ratio may leave float64
            logs = np.where(logs > _LARGEST_LOG, logs / np.log(2), np.log2(means + _TINY))
            change[large] = (logs[1] - logs[0])[large]
    return change


class Expressed(NamedTuple):
    """In how many cells of the reference and of a group each feature is other than zero.

    Attributes
    ----------
    cells : ndarray of shape (2, m)
    share : ndarray of shape (2, m)
        Of the cells of each.
    """

    cells: np.ndarray
    share: np.ndarray

    def passes(self, min_pct: float, min_cells: int) -> np.ndarray:
        """Which features are expressed by enough cells of the group or of the reference: (m,)."""
        return np.any((self.share >= min_pct) & (self.cells >= min_cells), axis=0)


def expression(statistics: Statistics, found: Comparison) -> dict[int, Expressed]:
    """Of each class that is listed, from the counts of all classes."""
    count, weight = to_host(statistics.nonzero), np.asarray(statistics.class_weight)
    expressed = {}
    for c in found.listed:
        of = [
            c != d if found.reference is None else d == found.reference for d in range(len(count))
        ]
        cells = np.stack([count[of].sum(axis=0), count[c]])
        size = np.asarray([weight[of].sum(), weight[c]])
        expressed[c] = Expressed(cells, cells / size[:, None])
    return expressed


def ranked(
    found: Found, base: float | None, tested: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """What is listed of each feature, from a model of a reference and a group.

    The values are logarithms to a base, or none. Features that are not tested, (m,), have the score
    0 and the p-value 1, and do not count for adjusted ones.
    """
    down = found.centers[1] < found.centers[0]
    scores, pvalues = np.where(down, -found.gain, found.gain), found.pvalues
    tested = np.ones(len(scores), dtype=bool) if tested is None else tested
    of_tests = np.ones(len(scores))
    of_tests[tested] = benjamini_hochberg(pvalues[tested])
    return {
        "scores": np.where(tested, scores, 0.0),
        "logfoldchanges": log_fold_changes(found.means, base),
        "pvals": np.where(tested, pvalues, 1.0),
        "pvals_adj": of_tests,
        "tested": tested,
    }


def records(
    tables: Mapping[str, Mapping[str, np.ndarray]],
    names: np.ndarray,
    count: int | None,
    by_abs: bool,
) -> dict[str, np.ndarray]:
    """What `ranked` says of each group, as structured arrays with a field for each group.

    The first ``count`` features are listed, by the score or by its absolute value.
    """
    listed: dict[str, list[np.ndarray]] = {name: [] for name in _TYPES}
    for columns in tables.values():
        size = np.abs(columns["scores"]) if by_abs else columns["scores"]
        order = np.lexsort((-size, ~columns["tested"]))[:count]
        for name in _TYPES:
            listed[name].append((names if name == "names" else columns[name])[order])
    return {
        name: np.rec.fromarrays(values, dtype=[(label, _TYPES[name]) for label in tables])
        for name, values in listed.items()
    }


def check_columns(labels: list[str]) -> None:
    """Raise a ValueError for a name that no column of a DataFrame in a file can have."""
    for label in labels:
        if "/" in label or label in ("_index", ".", ".."):
            raise ValueError(
                f"pts=True makes a DataFrame with a column {label!r}, which files cannot hold: "
                "rename the group, or use pts=False (min_pct and min_cells need no pts)."
            )


def shares(
    expressed: Mapping[int, Expressed], found: Comparison, names: np.ndarray
) -> dict[str, pd.DataFrame]:
    """The shares of cells that express a feature, as scanpy has them; ``names`` are (m,)."""
    groups = {found.labels[c]: e.share[1] for c, e in expressed.items()}
    rest = {found.labels[c]: e.share[0] for c, e in expressed.items()}
    if found.reference is None:
        return {"pts": pd.DataFrame(groups, names), "pts_rest": pd.DataFrame(rest, names)}
    groups[found.labels[found.reference]] = next(iter(rest.values()))
    return {"pts": pd.DataFrame(groups, names)}


def write(
    adata: Any, key: str, entries: dict[str, Any], joint: Found, positions: np.ndarray
) -> None:
    """Put results that are all there into their places; ``positions`` are of adata's features."""
    adata.varm[f"{key}_centers"] = joint.centers.T[positions]
    adata.var[f"{key}_gain"] = joint.gain[positions]
    adata.var[f"{key}_rank"] = joint.rank[positions]
    adata.uns[key] = entries
