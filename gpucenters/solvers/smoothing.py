"""The smoothing parameter of naive Bayes models."""

from __future__ import annotations

import math
import numbers
from typing import Any

_LEAST_ALPHA = 1e-10  # as scikit-learn: alpha = 0 would give logarithms of zero
_MOST_ALPHA = 1e100  # beyond it products of smoothed sums overflow


def check_alpha(alpha: Any) -> float:
    """``alpha`` as a float, at least 1e-10; raises for anything but a number from 0 to 1e100."""
    try:
        number = isinstance(alpha, numbers.Real) and not isinstance(alpha, bool)
        value = float(alpha) if number else math.nan
    except OverflowError:
        value = math.nan
    if not 0 <= value <= _MOST_ALPHA:
        raise ValueError(
            f"alpha={alpha!r} is not valid: use one number from 0 to {_MOST_ALPHA:g}, the same for "
            "every feature."
        )
    return max(value, _LEAST_ALPHA)
