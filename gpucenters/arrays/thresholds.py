"""How many of many numbers reach each of some thresholds."""

from __future__ import annotations

import numpy as np

from .namespace import array_namespace, is_numpy
from .typing import Array

_CELLS_PER_THRESHOLD = 2**7
_MOST_CELLS = 2**18
_BELOW_CELLS = 64  # one threshold in so many lies below the cells


class Thresholds:
    """Ascending thresholds, float64 and not negative.

    On the host a table tells the numbers apart that lie in cells without a threshold: a sort of all
    numbers, which a device does fast, takes several times as long. The bits of such numbers, read
    as integers, ascend as they do.

    Parameters
    ----------
    ascending : array of shape (m,), float64
    """

    def __init__(self, ascending: Array) -> None:
        self._ascending = ascending
        if not is_numpy(array_namespace(ascending)):
            return
        bits, m = (ascending + 0.0).view(np.int64), ascending.shape[0]
        cells = min(_MOST_CELLS, _CELLS_PER_THRESHOLD * m)
        self._base = bits[m // _BELOW_CELLS]
        self._shift = (int(bits[-1] - self._base) // cells).bit_length()
        held = np.bincount(self._cell(bits, cells), minlength=cells)
        below = np.cumsum(held) - held
        #: One more than how many thresholds the numbers of a cell reach; 0 where it does not tell.
        self._place = np.where(held > 0, 0, below + 1).astype(np.int32)

    def _cell(self, bits: np.ndarray, cells: int) -> np.ndarray:
        found = (bits - self._base) >> self._shift
        return np.clip(found, 0, cells - 1, out=found)

    def count(self, x: Array) -> Array:
        """How many of x are at or above each threshold: int64, (m,).

        Parameters
        ----------
        x : array of shape (n,), float64, not negative, without NaN
        """
        xp = array_namespace(x)
        found: Array | int = 0
        if is_numpy(xp):
            cell = self._cell((x + 0.0).view(np.int64), self._place.shape[0])
            place = np.take(self._place, cell)
            counts = np.bincount(place, minlength=self._ascending.shape[0] + 2)[1:]
            found = np.sum(counts) - np.cumsum(counts[:-1])
            x = x[place == 0]
        in_order = xp.sort(x, stable=False)
        return found + (in_order.shape[0] - xp.searchsorted(in_order, self._ascending))
