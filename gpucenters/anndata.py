"""Features of single-cell data that tell groups of cells apart, in the form of scanpy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from .arrays.functions import to_host
from .estimators import SparseGaussianNB
from .estimators._selector import FeatureSelector
from .estimators._statistics import StatisticsClassifier
from .estimators.permutation import adjusted
from .statistics import Statistics
from .statistics.class_sums import ClassSums

__all__ = ["rank_features"]

_TYPES = {"names": "O", "scores": "f4", "logfoldchanges": "f4", "pvals": "f8", "pvals_adj": "f8"}
_TINY = 1e-9  # added to both means, as scanpy does


def rank_features(
    adata: Any,
    groupby: str,
    *,
    estimator: Any = None,
    groups: str | Sequence[Any] = "all",
    reference: Any = "rest",
    layer: str | None = None,
    use_raw: bool | None = None,
    n_genes: int | None = None,
    key_added: str = "rank_features",
    rankby_abs: bool = False,
) -> None:
    """Rank the features that tell groups of cells apart, jointly and group by group.

    One pass over the data, which may be backed: all models are solved from the statistics of the
    groups. ``scanpy.pl.rank_genes_groups(adata, key=key_added)``, the other plots of ranked genes
    and ``scanpy.get.rank_genes_groups_df`` read the result.

    Parameters
    ----------
    adata : AnnData
        Gets the results: see Notes.
    groupby : str
        The column of ``adata.obs`` that holds the groups. Cells without one are left out.
    estimator : classifier, default=None
        A model that class statistics determine and that selects features; its k does not matter.
        None is ``SparseGaussianNB(pooling=1)``, one variance for all groups, for logarithms of
        normalised counts. Models of counts, as
        ``SparsePoissonNB``, take counts.
    groups : "all" or sequence, default="all"
        The groups to rank features for.
    reference : "rest" or a group, default="rest"
        What each group is compared with: all other cells, or those of one group.
    layer : str, optional
        The layer to read, in place of X.
    use_raw : bool, optional
        Whether to read ``adata.raw``; by default where it is there and no layer is named.
    n_genes : int, optional
        How many features are listed for each group; by default all.
    key_added : str, default="rank_features"
    rankby_abs : bool, default=False
        List by the absolute value of the score: features that are low in a group count too.

    Raises
    ------
    TypeError
        For an estimator that class statistics do not determine.
    ValueError
        For groups, columns or layers that are not there.

    Notes
    -----
    Of the model of all groups that are compared (with "rest", the cells of no listed group are one
    group more): ``adata.var[key_added + "_gain"]``, the gain of each feature,
    ``adata.var[key_added + "_rank"]``, from 1 for the best, and
    ``adata.varm[key_added + "_centers"]``, the centers, a column for each group. Features that only
    ``adata.raw`` has are not among them.

    ``adata.uns[key_added]`` has for each group, as records: ``names``; ``scores``, the gain of the
    model of this group and the reference, negative where the group has the smaller center;
    ``logfoldchanges``, logarithms to base 2 of the ratio of the means, taken back by ``expm1``
    unless the model is of counts; ``pvals``, of likelihood-ratio tests, NaN where the model has
    none, and ``pvals_adj``, adjusted by Benjamini & Hochberg; and ``params``.

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> from gpucenters.anndata import rank_features
    >>> cells = anndata.AnnData(np.log1p([[3.0, 0, 1], [4, 0, 0], [0, 2, 1], [1, 3, 0]]))
    >>> cells.obs["type"] = ["a", "a", "b", "b"]
    >>> rank_features(cells, "type")
    >>> cells.uns["rank_features"]["names"]["a"].tolist()
    ['0', '2', '1']
    >>> cells.var["rank_features_rank"].tolist()
    [2, 1, 3]
    """
    model = _model(estimator)
    X, names, use_raw = _values(adata, layer, use_raw)
    found = _compared(adata, groupby, groups, reference)
    statistics = model.statistics(
        X, found.codes, classes=range(len(found.labels)), sample_weight=found.weight
    )
    joint = clone(model).fit_statistics(statistics)
    base = adata.uns.get("log1p", {}).get("base") or np.e
    tables: dict[str, dict[str, np.ndarray]] = {name: {} for name in _TYPES}
    for label, pair in found.pairs(statistics):
        columns = _of_pair(clone(model).fit_statistics(pair), pair, base)
        size = np.abs(columns["scores"]) if rankby_abs else columns["scores"]
        order = np.argsort(-size, kind="stable")[:n_genes]
        for name, values in {"names": names, **columns}.items():
            tables[name][label] = values[order]
    params = {
        "groupby": groupby,
        "reference": str(reference),
        "method": type(model).__name__,
        "use_raw": use_raw,
        "layer": layer,
        "corr_method": "benjamini-hochberg",
    }
    records = {
        name: np.rec.fromarrays(
            list(table.values()), dtype=[(label, _TYPES[name]) for label in table]
        )
        for name, table in tables.items()
    }
    adata.uns[key_added] = {"params": params, **records}
    _write_joint(adata, joint, names, found.labels, key_added, use_raw)


def _model(estimator: Any) -> Any:
    model = SparseGaussianNB(pooling=1.0) if estimator is None else clone(estimator)
    if not isinstance(model, StatisticsClassifier) or not isinstance(model, FeatureSelector):
        raise TypeError(
            "rank_features takes classifiers of gpucenters that class statistics determine and "
            f"that select features, such as SparseGaussianNB; got {type(model).__name__}."
        )
    return model.set_params(k="all")


def _values(adata: Any, layer: str | None, use_raw: bool | None) -> tuple[Any, np.ndarray, bool]:
    """(X, names of its features, whether they are of ``adata.raw``)."""
    if use_raw is None:
        use_raw = adata.raw is not None and layer is None
    if use_raw and layer is not None:
        raise ValueError("use_raw=True and layer= exclude each other.")
    if use_raw and adata.raw is None:
        raise ValueError("use_raw=True, but adata.raw is empty.")
    if layer is not None and layer not in adata.layers:
        raise ValueError(f"there is no layer {layer!r}; there are {sorted(adata.layers)}.")
    of = adata.raw if use_raw else adata
    X = of.X if layer is None else adata.layers[layer]
    if X is None:
        raise ValueError("adata.X is empty: name a layer.")
    return X, np.asarray(of.var_names, dtype=object), bool(use_raw)


@dataclass(frozen=True)
class _Compared:
    """The groups that are compared, the cells of each, and what each is compared with.

    Attributes
    ----------
    labels : list of str
        The names of the classes.
    codes : ndarray of shape (n_cells,)
    weight : ndarray of shape (n_cells,), or None
        0 for cells that are left out.
    listed : list of int
        The classes for which features are ranked.
    reference : int or None
        A class; None for all others.
    """

    labels: list[str]
    codes: np.ndarray
    weight: np.ndarray | None
    listed: list[int]
    reference: int | None

    def pairs(self, statistics: Statistics) -> Iterator[tuple[str, Statistics]]:
        """(name, statistics of the reference and of the group) of each group that is listed."""
        if self.reference is None:
            for c, pair in enumerate(statistics.one_vs_rest()):
                if c in self.listed:
                    yield self.labels[c], pair
            return
        for c in self.listed:
            pair = statistics.of_classes([self.reference, c])
            pair.classes = None
            yield self.labels[c], pair


def _compared(adata: Any, groupby: str, groups: Any, reference: Any) -> _Compared:
    if groupby not in adata.obs:
        raise ValueError(
            f"there is no column {groupby!r} in adata.obs; there are {list(adata.obs)[:20]}."
        )
    column = pd.Series(pd.Categorical(adata.obs[groupby])).cat.remove_unused_categories()
    known = [str(category) for category in column.cat.categories]
    if isinstance(groups, str) and groups != "all":
        raise ValueError(f"groups={groups!r} is not valid: use 'all' or a sequence of groups.")
    listed = known if isinstance(groups, str) else list(dict.fromkeys(map(str, groups)))
    of = None if isinstance(reference, str) and reference == "rest" else str(reference)
    for name in listed if of is None else [*listed, of]:
        if name not in known:
            raise ValueError(f"{name!r} is no group of {groupby!r}: these are {known[:20]}.")
    listed = [name for name in listed if name != of]
    labels = [name for name in known if name in listed or name == of]
    others = [name for name in known if name not in labels]
    rest = ["rest"] if others and of is None else []
    code_of = {name: labels.index(name) for name in labels}
    code_of |= dict.fromkeys(others, len(labels) if rest else -1)
    codes = np.asarray([code_of[name] for name in known] + [-1])[column.cat.codes]
    left_out = codes < 0
    weight = (~left_out).astype(np.float64) if left_out.any() else None
    return _Compared(
        labels + rest,
        np.where(left_out, 0, codes),
        weight,
        [labels.index(name) for name in listed],
        None if of is None else labels.index(of),
    )


def _of_pair(model: Any, pair: Statistics, base: float) -> dict[str, np.ndarray]:
    """What is said of each feature by the model of a reference and a group."""
    centers, gain = to_host(model.centers_), to_host(model.scores_)
    pvalues = np.array(getattr(model, "pvalues_", np.full(len(gain), np.nan)))
    means = to_host(pair.total) / np.asarray(pair.class_weight)[:, None]
    if not isinstance(pair, ClassSums):
        means = np.expm1(means * np.log(base))
    with np.errstate(invalid="ignore", divide="ignore"):
        change = np.log2((means[1] + _TINY) / (means[0] + _TINY))
    return {
        "scores": np.where(centers[1] < centers[0], -gain, gain),
        "logfoldchanges": change,
        "pvals": pvalues,
        "pvals_adj": adjusted(pvalues),
    }


def _write_joint(
    adata: Any, joint: Any, names: np.ndarray, labels: list[str], key: str, use_raw: bool
) -> None:
    rank = np.empty(len(names), dtype=np.int64)
    rank[joint.ranking_] = np.arange(1, len(names) + 1)
    gain, centers = to_host(joint.scores_), to_host(joint.centers_).T
    index = np.arange(len(names))
    if use_raw:
        index = pd.Index(names).get_indexer(adata.var_names)
        if np.any(index < 0):
            raise ValueError("adata.raw lacks features of adata: use use_raw=False.")
    adata.var[f"{key}_gain"], adata.var[f"{key}_rank"] = gain[index], rank[index]
    adata.varm[f"{key}_centers"] = pd.DataFrame(
        centers[index], index=adata.var_names, columns=labels
    )
