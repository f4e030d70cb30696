"""What a model reads in place of each value of X, chunk by chunk, and the values it refuses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .namespace import array_namespace, is_numpy
from .typing import Array, Namespace


@dataclass(frozen=True)
class Reading:
    """What values are read as. One that is refused becomes NaN, so that it shows in any sum.

    So values are looked at in the pass that reads them anyway, and without waiting for a device:
    only a bad sum starts the search for its row (`why_not`).

    Attributes
    ----------
    reader : str
        Who reads, for the errors.
    """

    reader: str

    def __call__(self, x: Array) -> Array:
        raise NotImplementedError

    def why_not(self, value: float) -> str:
        """Why a value is refused: a sentence that ends before the place of the value."""
        raise NotImplementedError


@dataclass(frozen=True)
class NotNegative(Reading):
    """Values as they are; negative ones are refused."""

    def __call__(self, x: Array) -> Array:
        xp = array_namespace(x)
        if xp.isdtype(x.dtype, ("unsigned integer", "bool")):
            return x
        # (On the host a look costs less than a copy; a device would have to be waited for.)
        if is_numpy(xp) and not np.any(x < 0):
            return x
        return _only(x, x >= 0, xp)

    def why_not(self, value: float) -> str:
        return (
            f"Negative values in data passed to {self.reader}, which takes counts or other "
            f"amounts: {value!r}"
        )


@dataclass(frozen=True)
class Binarized(Reading):
    """1 above a threshold, else 0; with ``threshold=None`` values must be 0 or 1 already."""

    threshold: float | None

    def __call__(self, x: Array) -> Array:
        xp = array_namespace(x)
        if self.threshold is None:
            return _only(x, (x == 0) | (x == 1), xp)
        above = x > self.threshold
        if not xp.isdtype(x.dtype, "real floating"):
            return above
        # (The difference is 0, or NaN where the value is not finite.)
        return xp.astype(above, x.dtype) + (x - x)

    def why_not(self, value: float) -> str:
        return (
            f"{self.reader}(binarize=None) takes values that are 0 or 1 already, but X holds "
            f"{value!r}"
        )


def _only(x: Array, good: Array, xp: Namespace) -> Array:
    """``x`` where it is good, else NaN."""
    if not xp.isdtype(x.dtype, "real floating"):
        x = xp.astype(x, xp.float64)
    return xp.where(good, x, x + float("nan"))


def refuse(reading: Reading, value: Any, feature: int, row: int) -> None:
    """Raise the ValueError for one value that a model does not take."""
    raise ValueError(f"{reading.why_not(float(value))} in feature {feature} (first in row {row}).")
