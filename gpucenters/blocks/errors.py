"""Bad values of X: what is wrong, where, and what to do."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NoReturn

import numpy as np

from ..arrays.namespace import to_numpy
from ..arrays.typing import Array, Namespace

LARGEST_SQUARABLE = 1e154  # the square of anything larger may overflow float64


def first_bad(values: Array, squares: bool, xp: Namespace) -> tuple[int, ...] | None:
    """The position of the first value that is not finite (or too large to square), or None."""
    values = xp.astype(values, xp.float64)
    good = xp.abs(values) <= LARGEST_SQUARABLE if squares else xp.isfinite(values)
    if bool(xp.all(good)):
        return None
    return tuple(int(i[0]) for i in xp.nonzero(~good))


def raise_bad_value(value: float, feature: int, row: int) -> NoReturn:
    """Raise the ValueError for one bad value of X."""
    where = f"in feature {feature} (first in row {row})"
    if math.isnan(value):
        raise ValueError(f"Input X contains NaN {where}. Impute or drop missing values first.")
    if math.isinf(value):
        raise ValueError(f"Input X contains infinity {where}.")
    raise ValueError(
        f"Input X contains {value!r} {where}: its square, or a sum of squares, overflows float64. "
        "Rescale the feature."
    )


def raise_overflow(feature: int) -> NoReturn:
    """Raise the ValueError for a feature whose sums overflow."""
    raise ValueError(
        f"the values of feature {feature} are too large: their sums overflow float64. "
        "Rescale the feature."
    )


def as_float64(part: Array, first_row: int, columns: Iterable[int]) -> np.ndarray:
    """Objects as float64.

    Raises
    ------
    TypeError, ValueError
        That name the feature and the row of the first object that is no number.
    """
    objects = to_numpy(part)
    try:
        return objects.astype("float64")
    except (TypeError, ValueError, OverflowError) as error:
        for row, line in enumerate(objects):
            for column, value in zip(columns, line, strict=True):
                try:
                    float(value)
                except OverflowError:
                    raise ValueError(
                        f"X holds a number in feature {column}, row {first_row + row}, that "
                        "float64 cannot hold."
                    ) from error
                except (TypeError, ValueError):
                    raise type(error)(
                        f"X holds {value!r} in feature {column}, row {first_row + row}, which is "
                        "no number: argument must be a string or a number that float() takes."
                    ) from error
        raise
