"""The groups, the blocks and the matrix of an AnnData, and its statistics."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from ..estimators.fitted import FittedModel
from ..estimators.naive_bayes import SparseBernoulliNB
from ..statistics import Statistics


@dataclass(frozen=True)
class Comparison:
    """The groups that are compared, the cells of each, and what each is compared with.

    Attributes
    ----------
    labels : list of str
        The names of the classes, all different.
    codes : ndarray of shape (n_cells,)
        The class of each cell; -1 for cells that are left out.
    listed : list of int
        The classes for which features are ranked, in the order of their results.
    reference : int or None
        A class; None for all others.
    """

    labels: list[str]
    codes: np.ndarray
    listed: list[int]
    reference: int | None

    @property
    def named(self) -> list[int]:
        """The classes that the user names: those listed, and the reference."""
        return self.listed if self.reference is None else [*self.listed, self.reference]

    def pairs(self, statistics: Statistics) -> Iterator[tuple[int, Statistics]]:
        """(class, statistics of the reference and of the class) of each class that is listed."""
        if self.reference is None:
            for c, pair in enumerate(statistics.one_vs_rest()):
                if c in self.listed:
                    yield c, pair
            return
        for c in self.listed:
            pair = statistics.of_classes([self.reference, c])
            pair.classes = None
            yield c, pair


def compared(adata: Any, groupby: str, groups: Any, reference: Any) -> Comparison:
    """The comparison that a user asks for.

    Raises
    ------
    ValueError
        For columns and groups that are not there, that no file of scanpy's form can hold, or that
        leave nothing to compare.
    """
    names, of_cell = categories(adata, groupby)
    known = [str(name) for name in names]
    for name, text in zip(names, known, strict=True):
        if not text or "\0" in text:
            raise ValueError(
                f"the group {name!r} of {groupby!r} cannot be a field of a structured array, which "
                "scanpy's form needs: rename it by adata.obs[...].cat.rename_categories."
            )
    twice = [name for name in names if known.count(str(name)) > 1]
    if twice:
        raise ValueError(
            f"the groups {', '.join(map(repr, twice))} of {groupby!r} have one name as text: "
            "rename one of them."
        )
    if len(known) < 2:
        raise ValueError(
            f"{groupby!r} has {len(known)} group{'' if known else 's'}: {known}. There is nothing "
            "to compare it with."
        )
    listed, of = _listed(groups, known), None
    if not isinstance(reference, str) or reference != "rest":
        of = str(reference)
    for name in listed if of is None else [*listed, of]:
        if name not in known:
            raise ValueError(f"{name!r} is no group of {groupby!r}: these are {known[:20]}.")
    listed = [name for name in listed if name != of]
    if not listed:
        raise ValueError(f"the group {of!r} cannot be compared with itself: name other groups.")
    labels = [name for name in known if name in listed or name == of]
    others = [name for name in known if name not in labels]
    rest, has_rest = "rest", bool(others) and of is None
    while rest in known:
        rest += "_"
    code_of = {name: labels.index(name) for name in labels}
    code_of |= dict.fromkeys(others, len(labels) if has_rest else -1)
    codes = [labels.index(name) for name in listed]
    return Comparison(
        [*labels, rest] if has_rest else labels,
        np.asarray([code_of[name] for name in known] + [-1])[of_cell],
        sorted(codes) if of is None else codes,
        None if of is None else labels.index(of),
    )


def categories(adata: Any, column: str) -> tuple[list[Any], np.ndarray]:
    """(categories that occur in a column of ``adata.obs``, number of each cell's, -1 for none)."""
    if column not in adata.obs:
        raise ValueError(
            f"there is no column {column!r} in adata.obs; there are {list(adata.obs)[:20]}."
        )
    found = pd.Series(pd.Categorical(adata.obs[column])).cat.remove_unused_categories().cat
    return found.categories.tolist(), found.codes.to_numpy()


def _listed(groups: Any, known: list[str]) -> list[str]:
    if isinstance(groups, str) and groups == "all":
        return known
    if isinstance(groups, str | bytes) or not isinstance(groups, Iterable):
        raise ValueError(f"groups={groups!r} is not valid: use 'all' or a sequence of groups.")
    listed = list(dict.fromkeys(map(str, groups)))
    if not listed:
        raise ValueError("groups is empty: use 'all', or name one group at least.")
    return listed


@dataclass(frozen=True)
class Blocks:
    """The blocks that cells are in.

    Attributes
    ----------
    name : str
        The column of ``adata.obs``.
    of_cell : ndarray of shape (n_cells,)
        The number of each cell's block; -1 for none.
    """

    name: str
    of_cell: np.ndarray

    @classmethod
    def of(cls, adata: Any, block: Any, groupby: str) -> Blocks:
        """Those that a column of ``adata.obs`` holds."""
        if block == groupby:
            raise ValueError(f"block={block!r} is groupby too: blocks are donors or batches.")
        return cls(block, categories(adata, block)[1])

    def kept(self, found: Comparison) -> Comparison:
        """The comparison without cells that have no block."""
        codes = np.where(self.of_cell < 0, -1, found.codes)
        for c, label in enumerate(found.labels):
            if not np.any(codes == c):
                raise ValueError(f"no cell of the group {label!r} has a block in {self.name!r}.")
        return replace(found, codes=codes)

    def _cells(self, found: Comparison) -> tuple[np.ndarray, np.ndarray]:
        """(group and block of each class, class of each cell that is compared)."""
        kept = found.codes >= 0
        pairs = np.stack([found.codes[kept], self.of_cell[kept]], axis=1)
        cells, codes = np.unique(pairs, axis=0, return_inverse=True)
        return cells, codes.reshape(-1)

    def are_of_one_group(self, found: Comparison) -> bool:
        """Whether each block has cells of one group alone."""
        cells, _ = self._cells(found)
        return len(np.unique(cells[:, 1])) == len(cells)

    def classes(self, found: Comparison) -> tuple[np.ndarray, np.ndarray]:
        """(class of each cell, (group, block) of each class): the groups of each block.

        Raises
        ------
        ValueError
            For a listed group that no block has beside what it is compared with.
        """
        cells, codes = self._cells(found)
        groups, blocks = cells.T
        for c in found.listed:
            other = groups != c if found.reference is None else groups == found.reference
            if not np.isin(blocks[groups == c], blocks[other]).any():
                raise ValueError(
                    f"the group {found.labels[c]!r} is in no block of {self.name!r} beside what it "
                    "is compared with, so that nothing can be compared within blocks: leave it out."
                )
        of_cell = np.full(len(found.codes), -1)
        of_cell[found.codes >= 0] = codes
        return of_cell, cells


@dataclass(frozen=True)
class Source:
    """Which matrix of an AnnData is read.

    Attributes
    ----------
    adata : AnnData
    layer : str or None
    use_raw : bool
    """

    adata: Any
    layer: str | None
    use_raw: bool

    @classmethod
    def of(cls, adata: Any, layer: str | None, use_raw: bool | None) -> Source:
        """What a user asks for; raises a ValueError where it is not there."""
        if use_raw is None:
            use_raw = adata.raw is not None and layer is None
        if use_raw and layer is not None:
            raise ValueError("use_raw=True and layer= exclude each other.")
        if use_raw and adata.raw is None:
            raise ValueError("use_raw=True, but adata.raw is empty.")
        if layer is not None and layer not in adata.layers:
            raise ValueError(f"there is no layer {layer!r}; there are {sorted(adata.layers)}.")
        found = cls(adata, layer, bool(use_raw))
        if found.matrix(adata) is None:
            raise ValueError("adata.X is empty: name a layer.")
        return found

    @property
    def names(self) -> np.ndarray:
        """The names of the features."""
        of = self.adata.raw if self.use_raw else self.adata
        return np.asarray(of.var_names, dtype=object)

    def matrix(self, adata: Any) -> Any:
        """X, of this AnnData or of a view of it."""
        if self.layer is not None:
            return adata.layers[self.layer]
        return (adata.raw if self.use_raw else adata).X

    def positions(self) -> np.ndarray:
        """Where the features of adata are among those of X.

        Raises
        ------
        ValueError
            For features that ``adata.raw`` lacks or has more than once.
        """
        names, wanted = pd.Index(self.names), self.adata.var_names
        if names.equals(wanted):
            return np.arange(len(names))
        twice = names[names.duplicated() & names.isin(wanted)].unique().tolist()
        if twice:
            raise ValueError(
                f"adata.raw has features of one name, {', '.join(map(repr, twice[:5]))}, so that "
                "those of adata are not known among them: make the names of adata.raw unique, or "
                "use use_raw=False."
            )
        found = names.get_indexer(wanted)
        if np.any(found < 0):
            raise ValueError("adata.raw lacks features of adata: use use_raw=False.")
        return found


def class_statistics(
    model: Any, source: Source, codes: np.ndarray, n_classes: int, *, nonzero: bool
) -> Statistics:
    """The statistics of classes of cells, from one pass, which may count values other than zero.

    The codes, (n_cells,), are -1 for cells that are left out, which may hold anything.
    """
    options: dict[str, Any] = {"classes": range(n_classes), "nonzero": nonzero}
    kept = codes >= 0
    if _is_dask(source.matrix(source.adata)):
        some = source.adata if kept.all() else source.adata[kept]
        return _of_partitions(model, source.matrix(some), codes[kept], nonzero)

    def read(adata: Any, codes: np.ndarray, weight: np.ndarray | None) -> Statistics:
        X = source.matrix(adata)
        return model.statistics(X, codes, sample_weight=weight, **options)

    if kept.all():
        return read(source.adata, codes, None)
    try:
        return read(source.adata, np.where(kept, codes, 0), kept.astype(np.float64))
    except ValueError:
        # Those that are left out may hold what the model refuses: a copy of the others.
        rows = np.flatnonzero(kept)
    try:
        return read(source.adata[kept], codes[kept], None)
    except ValueError as error:  # with the number of the row among all cells
        said = re.sub(r"\brow (\d+)", lambda found: f"row {rows[int(found[1])]}", str(error))
        raise ValueError(said) from error


def _is_dask(X: Any) -> bool:
    """Whether X is a Dask array; Dask is not imported for that."""
    return hasattr(X, "__dask_graph__")


def _of_partitions(model: Any, X: Any, codes: np.ndarray, nonzero: bool) -> Statistics:
    """The statistics of a Dask array, whose partitions are read where they are."""
    from ..dask import fit

    statistics = FittedModel(fit(model, X, codes)).statistics("rank_features")
    if nonzero:  # in another pass: a fit on a cluster keeps what its model needs
        ones = X.map_blocks(_ones, dtype=X.dtype, meta=X._meta)
        counted = FittedModel(fit(SparseBernoulliNB(binarize=None), ones, codes))
        statistics = statistics.copy()
        statistics.nonzero = counted.statistics("rank_features").total
    return statistics


def _ones(part: Any) -> Any:
    """Ones where a block of an array or a sparse matrix is not zero."""
    return (part != 0).astype(part.dtype)
