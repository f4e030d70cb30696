"""Class labels of the same samples in many permutations."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..arrays.namespace import array_namespace
from ..arrays.typing import Array
from .samples import Samples


@dataclass(frozen=True, eq=False)
class Labels:
    """Class codes of n samples in p permutations of the observed labels.

    Attributes
    ----------
    codes : array of integers of shape (n, p)
        On the backend of the samples.
    samples : Samples
        One of the permutations, without weights: each has as many samples of each class.
    """

    codes: Array
    samples: Samples
    _indicators: dict[int, Array] = field(default_factory=dict, repr=False)

    @property
    def count(self) -> int:
        """How many permutations there are."""
        return self.codes.shape[1]

    def indicator(self, c: int) -> Array:
        """1.0 where a sample is in class c: (n, p), float64. Formed once."""
        if c not in self._indicators:
            xp = array_namespace(self.codes)
            self._indicators[c] = xp.astype(self.codes == c, xp.float64)
        return self._indicators[c]
