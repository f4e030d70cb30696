"""Numbers that come as Python objects."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..arrays.namespace import to_numpy
from ..arrays.typing import Array


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
