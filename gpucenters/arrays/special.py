"""Tails of distributions, on the host: p-values of statistics."""

from __future__ import annotations

import numpy as np
import scipy.special

from .namespace import to_numpy
from .typing import Array


def chi2_tail(x: Array, degrees: float | np.ndarray) -> np.ndarray:
    """The probability that a chi-squared variable is above each x."""
    return np.asarray(scipy.special.chdtrc(degrees, to_numpy(x)))


def f_tail(x: Array, numerator: float | np.ndarray, denominator: float) -> np.ndarray:
    """The probability that a variable of the F distribution is above each x."""
    return np.asarray(scipy.special.fdtrc(numerator, denominator, to_numpy(x)))
