"""Ranking of features between groups of cells."""

from __future__ import annotations

import numbers
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from ..estimators.base import FeatureSelector
from ..estimators.blocked import BlockGains, block_gains, block_model, rest_block_gains
from ..estimators.from_statistics import StatisticsClassifier
from ..estimators.gaussian import SparseGaussianNB
from ..estimators.permutation import permutation_gains
from ..statistics import ClassSums, Statistics
from .data import Blocks, Comparison, Source, class_statistics, compared
from .results import (
    Found,
    check_columns,
    expression,
    ranked,
    records,
    shares,
    warn_unless_logarithms,
    write,
)

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
    pts: bool = False,
    min_pct: float = 0.0,
    min_cells: int = 0,
    block: str | None = None,
    n_permutations: int | None = None,
    random_state: Any = None,
) -> None:
    """Rank the features that tell groups of cells apart, jointly and group by group.

    One pass over the data, which may be backed, or a Dask array (by `gpucenters.dask.fit`, with the
    current client): all models are solved from the statistics of the groups.
    ``scanpy.pl.rank_genes_groups(adata, key=key_added)``, the other plots of ranked genes and
    ``scanpy.get.rank_genes_groups_df`` read the result.

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
    pts : bool, default=False
        Whether to write the shares of cells in which a feature is not zero, counted in the same
        pass (a Dask array is read twice for them, and for the two filters below).
    min_pct : float, default=0.0
        Test only features that are not zero in this share of the cells of the group, or of those
        that it is compared with. Others come last, with the score 0 and the p-value 1, and
        adjusted p-values do not count them.
    min_cells : int, default=0
        The same with a number of cells. Both must hold of one of the two.
    block : str, optional
        A column of ``adata.obs`` that holds blocks: donors, batches. Groups are compared within
        each, so that differences between blocks count for nothing: see `gpucenters.block_gains`.
        Cells without a block are left out. The estimator must be the default,
        ``SparsePoissonNB`` or ``SparseBernoulliNB``.
    n_permutations : int, optional
        With a block: take p-values from so many permutations of the labels
        (`gpucenters.permutation_gains` of the model without blocks, for each group). Where each
        block is of one group, as donors are cases or controls, scores are those without blocks, and
        the labels of whole blocks are permuted; else those within the blocks. X must be in memory.
    random_state : int, RandomState or None, default=None
        For the permutations.

    Raises
    ------
    TypeError
        For an estimator that class statistics do not determine.
    ValueError
        For groups, columns or layers that are not there, groups that leave nothing to compare, in
        blocks or at all, and names that no file could hold. Nothing is written then.

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
    none, and ``pvals_adj``, adjusted by Benjamini & Hochberg; and ``params``. With ``pts``, the
    DataFrames ``pts`` and, with "rest", ``pts_rest``. With a block, the means of fold changes and
    the signs of scores are of centers that are standardised to the same blocks.

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
    model, key = _model(estimator), _key(key_added)
    count = None if n_genes is None else _whole("n_genes", n_genes, 1)
    least = _share("min_pct", min_pct), _whole("min_cells", min_cells, 0)
    if n_permutations is not None and block is None:
        raise ValueError("n_permutations permutes the labels of blocks: name a block.")
    source = Source.of(adata, layer, use_raw)
    positions, names = source.positions(), source.names
    found = compared(adata, groupby, groups, reference)
    if pts:
        check_columns([found.labels[c] for c in found.named])
    blocks = None
    if block is not None:
        blocks = Blocks.of(adata, block, groupby)
        found = blocks.kept(found)
    counted = bool(pts or any(least))
    is_permuted = n_permutations is not None
    statistics, joint, of_groups = _solved(model, source, found, blocks, is_permuted, counted)
    if blocks is not None and n_permutations is not None:
        pvalues = _permuted_pvalues(model, source, found, blocks, n_permutations, random_state)
        of_groups = {c: each._replace(pvalues=pvalues[c]) for c, each in of_groups.items()}
    base = None
    if not isinstance(statistics, ClassSums):
        base = adata.uns.get("log1p", {}).get("base") or np.e
        warn_unless_logarithms(statistics, base, type(model).__name__)
    expressed = expression(statistics, found) if counted else {}
    tables = {
        found.labels[c]: ranked(each, base, expressed[c].passes(*least) if any(least) else None)
        for c, each in of_groups.items()
    }
    entries: dict[str, Any] = {
        "params": {
            "groupby": groupby,
            "reference": str(reference),
            "method": type(model).__name__,
            "use_raw": source.use_raw,
            "layer": layer,
            "corr_method": "benjamini-hochberg",
            "block": block,
        },
        "classes": np.asarray(found.labels, dtype=object),
        **records(tables, names, count, rankby_abs),
    }
    if pts:
        entries |= shares(expressed, found, names)
    write(adata, key, entries, joint, positions)


def _solved(
    model: Any,
    source: Source,
    found: Comparison,
    blocks: Blocks | None,
    is_permuted: bool,
    counted: bool,
) -> tuple[Statistics, Found, dict[int, Found]]:
    """(statistics of the classes, what is found of all of them, and of each that is listed)."""
    whole = blocks is not None and blocks.are_of_one_group(found)
    if blocks is not None and whole and not is_permuted:
        raise ValueError(
            f"each block of {blocks.name!r} has cells of one group alone, so that nothing can be "
            "compared within blocks: they are the units. Use n_permutations=1000, for p-values by "
            "permuting the labels of whole blocks."
        )
    if blocks is not None and not whole:
        model = block_model(model)
        codes, cells = blocks.classes(found)
        parts = class_statistics(model, source, codes, len(cells), nonzero=counted)
        gain, of_groups = _found_within(model, found, parts, cells)
        statistics = parts.merge_classes(cells[:, 0].tolist())
        joint = Found.of_model(clone(model).fit_statistics(statistics), statistics)
        joint = joint._replace(gain=gain)
    else:
        statistics = class_statistics(
            model, source, found.codes, len(found.labels), nonzero=counted
        )
        of_groups = {
            c: Found.of_model(clone(model).fit_statistics(pair), pair)
            for c, pair in found.pairs(statistics)
        }
        joint = Found.of_model(clone(model).fit_statistics(statistics), statistics)
    return statistics, joint, of_groups


def _found_within(
    model: Any, found: Comparison, statistics: Statistics, cells: np.ndarray
) -> tuple[np.ndarray, dict[int, Found]]:
    """(gains of all groups, what is found of each listed one) within blocks.

    The statistics are of the groups of each block; ``cells``, (C, 2), has the group and the block
    of each of their classes.
    """
    groups = [found.labels[c] for c in cells[:, 0].tolist()]
    blocks = cells[:, 1].tolist()
    joint = block_gains(model, statistics, groups, blocks)
    listed = [found.labels[c] for c in found.listed]
    if found.reference is None:
        every = rest_block_gains(model, statistics, groups, blocks, listed)
    else:
        every = (
            _gains_of(model, statistics, groups, blocks, (found.labels[found.reference], name))
            for name in listed
        )
    pairs = zip(found.listed, every, strict=True)
    return joint.scores, {c: Found.of_blocks(gains) for c, gains in pairs}


def _gains_of(
    model: Any, statistics: Statistics, groups: list[str], blocks: list[int], pair: tuple[str, str]
) -> BlockGains:
    """The gains of a reference and a group."""
    chosen = [c for name in pair for c, group in enumerate(groups) if group == name]
    part = statistics.of_classes(chosen)
    return block_gains(model, part, [groups[c] for c in chosen], [blocks[c] for c in chosen])


def _permuted_pvalues(
    model: Any, source: Source, found: Comparison, blocks: Blocks, count: int, random_state: Any
) -> dict[int, np.ndarray]:
    """P-values of the model without blocks, of each class that is listed."""
    pvalues = {}
    permute = "groups" if blocks.are_of_one_group(found) else "within"
    for c in found.listed:
        kept = found.codes >= 0
        if found.reference is not None:
            kept = (found.codes == c) | (found.codes == found.reference)
        X, y = source.matrix(source.adata[kept]), found.codes[kept] == c
        gains = permutation_gains(
            model,
            *(X, y, count),
            groups=blocks.of_cell[kept],
            permute=permute,
            random_state=random_state,
        )
        pvalues[c] = gains.pvalues
    return pvalues


def _model(estimator: Any) -> Any:
    model = SparseGaussianNB(pooling=1.0) if estimator is None else clone(estimator)
    if not isinstance(model, StatisticsClassifier) or not isinstance(model, FeatureSelector):
        raise TypeError(
            "rank_features takes classifiers of gpucenters that class statistics determine and "
            f"that select features, such as SparseGaussianNB; got {type(model).__name__}."
        )
    if model.class_weight is not None:
        raise ValueError("rank_features counts each cell once: use class_weight=None.")
    every = {"k": "all", "threshold": None}
    return model.set_params(**{n: value for n, value in every.items() if hasattr(model, n)})


def _key(key: Any) -> str:
    if not isinstance(key, str) or key in ("", ".", "..") or "/" in key or "\0" in key:
        raise ValueError(
            f"key_added={key!r} is not valid: use a name for adata.uns, without a slash, which "
            "files could not hold."
        )
    return key


def _whole(name: str, value: Any, least: int) -> int:
    try:
        number = least - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise ValueError(f"{name}={value!r} is not valid: use an int >= {least}.")
    return number


def _share(name: str, value: Any) -> float:
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not number or not 0 <= float(value) <= 1:
        raise ValueError(f"{name}={value!r} is not valid: use a number from 0 to 1.")
    return float(value)
