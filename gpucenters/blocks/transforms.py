"""Elementwise transforms of X that refuse some values."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..arrays.namespace import array_namespace, is_numpy
from ..arrays.typing import Array, Namespace


@dataclass(frozen=True)
class ValueTransform:
    """An elementwise transform of X. Refused values become NaN, which propagates to sums.

    So values are checked in the pass that reads them anyway, and without waiting for a device: only
    a sum that is not finite starts the search for the row (`check_values`).
    """

    def __call__(self, x: Array) -> Array:
        raise NotImplementedError

    def why_not(self, value: float) -> str:
        """Why a value is refused: a sentence without the position of the value and the stop."""
        raise NotImplementedError

    def __str__(self) -> str:
        """The values that it gives."""
        raise NotImplementedError


@dataclass(frozen=True)
class NotNegative(ValueTransform):
    """Values as they are; negative ones are refused, in the name of the ``caller``."""

    caller: str = field(compare=False)

    def __call__(self, x: Array) -> Array:
        xp = array_namespace(x)
        if xp.isdtype(x.dtype, ("unsigned integer", "bool")):
            return x
        # On the host a check costs less than a copy; on a device it would synchronise.
        if is_numpy(xp) and not (x.size and xp.min(x) < 0):
            return x
        return _nan_unless(x >= 0, x, xp)

    def why_not(self, value: float) -> str:
        return (
            f"Negative values in data passed to {self.caller}, which takes counts or other "
            f"amounts: {value!r}"
        )

    def __str__(self) -> str:
        return "values that are not negative"


@dataclass(frozen=True)
class Binarized(ValueTransform):
    """1 above a threshold, else 0; with ``threshold=None`` values must be 0 or 1 already."""

    caller: str = field(compare=False)
    threshold: float | None

    def __call__(self, x: Array) -> Array:
        xp = array_namespace(x)
        if self.threshold is None:
            return _nan_unless((x == 0) | (x == 1), x, xp)
        above = x > self.threshold
        if not xp.isdtype(x.dtype, "real floating"):
            return above
        # x - x is 0, or NaN where x is not finite.
        return xp.astype(above, x.dtype) + (x - x)

    def why_not(self, value: float) -> str:
        return (
            f"{self.caller}(binarize=None) takes values that are 0 or 1 already, but X holds "
            f"{value!r}"
        )

    def __str__(self) -> str:
        if self.threshold is None:
            return "values that are 0 or 1 already"
        return f"values binarized at {self.threshold!r}"


@dataclass(frozen=True)
class Magnitude(ValueTransform):
    """Absolute values."""

    def __call__(self, x: Array) -> Array:
        xp = array_namespace(x)
        if xp.isdtype(x.dtype, ("unsigned integer", "bool")):
            return x
        if not xp.isdtype(x.dtype, "real floating"):  # the least integer has no absolute value
            x = xp.astype(x, xp.float64)
        return xp.abs(x)

    def __str__(self) -> str:
        return "absolute values"


@dataclass(frozen=True)
class Squared(ValueTransform):
    """Squares, float64."""

    def __call__(self, x: Array) -> Array:
        xp = array_namespace(x)
        x = xp.astype(x, xp.float64)
        return x * x

    def __str__(self) -> str:
        return "squares"


def _nan_unless(good: Array, x: Array, xp: Namespace) -> Array:
    """``x`` where it is good, else NaN."""
    if not xp.isdtype(x.dtype, "real floating"):
        x = xp.astype(x, xp.float64)
    return xp.where(good, x, x + float("nan"))
