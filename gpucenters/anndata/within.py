"""Comparisons of groups of cells within blocks: donors, batches or sites."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..estimators.blocked import block_gains, rest_block_gains
from ..estimators.permutation import permutation_gains
from ..statistics import Statistics
from .data import Comparison, Source, categories
from .results import Found


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


def found_within(
    model: Any, found: Comparison, statistics: Statistics, cells: np.ndarray
) -> tuple[np.ndarray, dict[int, Found]]:
    """(gains of all groups, what is found of each listed one) within blocks.

    Parameters
    ----------
    model : classifier
    found : Comparison
    statistics : Statistics
        Of the groups of each block.
    cells : ndarray of shape (C, 2)
        (group, block) of each of their classes.
    """
    groups = [found.labels[c] for c in cells[:, 0].tolist()]
    blocks = cells[:, 1].tolist()
    joint = block_gains(model, statistics, groups, blocks)
    listed = [found.labels[c] for c in found.listed]
    if found.reference is None:
        every = rest_block_gains(model, statistics, groups, blocks, listed)
    else:
        every = _against(model, statistics, groups, blocks, listed, found.labels[found.reference])
    pairs = zip(found.listed, every, strict=True)
    return joint.scores, {c: Found.of_blocks(gains) for c, gains in pairs}


def _against(
    model: Any,
    statistics: Statistics,
    groups: list[str],
    blocks: list[int],
    listed: list[str],
    reference: str,
) -> Iterator[Any]:
    for name in listed:
        chosen = [c for of in (reference, name) for c, group in enumerate(groups) if group == of]
        part = statistics.of_classes(chosen)
        yield block_gains(model, part, [groups[c] for c in chosen], [blocks[c] for c in chosen])


@dataclass(frozen=True)
class Permutations:
    """Permutations of the labels of whole blocks, or within blocks of several groups.

    Attributes
    ----------
    blocks : Blocks
    count : int
    random_state : int, RandomState or None
    """

    blocks: Blocks
    count: int
    random_state: Any

    def pvalues(self, model: Any, source: Source, found: Comparison) -> dict[int, np.ndarray]:
        """P-values of the model without blocks, of each class that is listed."""
        pvalues = {}
        permute = "groups" if self.blocks.are_of_one_group(found) else "within"
        for c in found.listed:
            kept = found.codes >= 0
            if found.reference is not None:
                kept = (found.codes == c) | (found.codes == found.reference)
            X, y = source.matrix(source.adata[kept]), found.codes[kept] == c
            of, seed = self.blocks.of_cell[kept], self.random_state
            gains = permutation_gains(
                model, X, y, self.count, groups=of, permute=permute, random_state=seed
            )
            pvalues[c] = gains.pvalues
        return pvalues
