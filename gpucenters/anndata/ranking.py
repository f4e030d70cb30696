"""Ranking of features between groups of cells."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from ..estimators import SparseGaussianNB
from ..estimators._selector import FeatureSelector
from ..estimators._statistics import StatisticsClassifier
from .comparison import compared
from .data import Source, class_statistics
from .results import JointResult, ranked, records, warn_unless_logarithms, write

__all__ = ["rank_features"]


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
        The column of ``adata.obs`` that holds the groups. Cells without one are left out, and may
        hold anything.
    estimator : classifier, default=None
        A model that class statistics determine and that selects features; its k, or threshold,
        does not matter. None is ``SparseGaussianNB(pooling=1)``, one variance for all groups, for
        logarithms of normalised counts. Models of counts, as ``SparsePoissonNB``, take counts.
    groups : "all" or sequence, default="all"
        The groups to rank features for, by their names as text.
    reference : "rest" or a group, default="rest"
        What each group is compared with: all other cells (also where a group has that name), or
        those of one group.
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
        For groups, columns or layers that are not there, groups that leave nothing to compare, and
        names that no file could hold. Nothing is written then.

    Warns
    -----
    UserWarning
        Where a model that is not of counts gets values that look like counts.

    Notes
    -----
    Of the model of all groups that are compared (with "rest", the cells of no listed group are one
    group more): ``adata.var[key_added + "_gain"]``, the gain of each feature,
    ``adata.var[key_added + "_rank"]``, from 1 for the best, and
    ``adata.varm[key_added + "_centers"]``, the centers, a column for each group, whose names are
    ``adata.uns[key_added]["classes"]``. Features that only ``adata.raw`` has are not among them.

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
    model, key, count = _model(estimator), _key(key_added), _count(n_genes)
    source = Source.of(adata, layer, use_raw)
    positions, names = source.positions(), source.names
    found = compared(adata, groupby, groups, reference)
    statistics = class_statistics(model, source, found.codes, len(found.labels))
    base = adata.uns.get("log1p", {}).get("base") or np.e
    warn_unless_logarithms(statistics, base, type(model).__name__)
    joint = JointResult.of(clone(model).fit_statistics(statistics))
    tables = {
        found.labels[c]: ranked(clone(model).fit_statistics(pair), pair, base)
        for c, pair in found.pairs(statistics)
    }
    params = {
        "groupby": groupby,
        "reference": str(reference),
        "method": type(model).__name__,
        "use_raw": source.use_raw,
        "layer": layer,
        "corr_method": "benjamini-hochberg",
    }
    listed = records(tables, names, count, rankby_abs)
    listed["classes"] = np.asarray(found.labels, dtype=object)
    write(adata, key, params, listed, joint.at(positions))


def _model(estimator: Any) -> Any:
    model = SparseGaussianNB(pooling=1.0) if estimator is None else clone(estimator)
    if not isinstance(model, StatisticsClassifier) or not isinstance(model, FeatureSelector):
        raise TypeError(
            "rank_features takes classifiers of gpucenters that class statistics determine and "
            f"that select features, such as SparseGaussianNB; got {type(model).__name__}."
        )
    every = {"k": "all", "threshold": None}
    return model.set_params(**{n: value for n, value in every.items() if hasattr(model, n)})


def _key(key: Any) -> str:
    if not isinstance(key, str) or key in ("", ".", "..") or "/" in key or "\0" in key:
        raise ValueError(
            f"key_added={key!r} is not valid: use a name for adata.uns, without a slash, which "
            "files could not hold."
        )
    return key


def _count(n_genes: Any) -> int | None:
    if n_genes is None:
        return None
    try:
        count = 0 if isinstance(n_genes, bool) else operator.index(n_genes)
    except TypeError:
        count = 0
    if count < 1:
        raise ValueError(f"n_genes={n_genes!r} is not valid: use an int >= 1, or None for all.")
    return count
