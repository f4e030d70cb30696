"""The samples of a block in two classes, and the products with X that a margin classifier needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays.backend import Backend
from ..arrays.cached import cached_property
from ..arrays.context import Context
from ..arrays.namespace import to_numpy
from ..arrays.typing import Array
from .accumulators import RawSums
from .block import Block
from .samples import Samples
from .working_columns import WorkingColumns


@dataclass(frozen=True)
class TwoClasses:
    """The samples of positive weight: class +1 and class -1.

    Attributes
    ----------
    block : Block
    codes : ndarray of shape (n,), uint8
        1 for class +1, 0 for class -1; of all rows of the block, on the host.
    rows : ndarray of shape (l,), int64, or None
        The rows of positive weight; None for all.
    host_weight : ndarray of shape (l,), float64
    """

    block: Block
    codes: np.ndarray
    rows: np.ndarray | None
    host_weight: np.ndarray

    @classmethod
    def of(cls, block: Block, samples: Samples, positive: int) -> TwoClasses:
        """One class of the samples against all others."""
        codes = (samples.codes == positive).astype(np.uint8)
        weight, rows = samples.sample_weight, None
        if weight is None:
            weight = np.ones(len(codes))
        elif not np.all(weight):
            rows = np.flatnonzero(weight)
            weight = weight[rows]
        return cls(block, codes, rows, weight)

    @property
    def backend(self) -> Backend:
        """That of the block."""
        return self.block.backend

    @cached_property
    def weight(self) -> Array:
        """The sample weights: (l,), on the backend."""
        return self.backend.asarray(self.host_weight)

    @cached_property
    def sign(self) -> Array:
        """+1.0 or -1.0: (l,), on the backend."""
        codes = self.codes if self.rows is None else self.codes[self.rows]
        return self.backend.asarray(2.0 * codes - 1.0)

    def signed_sums(self, mu: Array, ctx: Context) -> Array:
        """``X.T @ (sign * mu)`` for mu >= 0: float64, (m,). One pass over X."""
        weight = to_numpy(mu)
        if self.rows is not None:
            weight = np.zeros(len(self.codes))
            weight[self.rows] = to_numpy(mu)
        total = self.backend.zeros((2, self.block.shape[1]))
        self.block.add_sums(Samples(self.backend, self.codes, weight, 2), RawSums(total), ctx)
        return total[1, :] - total[0, :]

    def columns(self, columns: Array, shift: Array, scale: Array, ctx: Context) -> WorkingColumns:
        """``(X[:, columns] - shift) / scale`` of the samples of positive weight."""
        return self.block.working_columns(columns, shift, scale, self.rows, ctx)
