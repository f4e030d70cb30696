"""float32 under ``-ftz=true``, which CuPy adds to the compilation of each kernel.

Operations and conversions take subnormal numbers for zero and give zero for them. Copies, sorts and
what works on float64 keep them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

_LEAST = np.finfo(np.float32).tiny


def flushed(value: Any) -> Any:
    """`value`, with zeros of the same sign in place of subnormal float32."""
    if not isinstance(value, np.ndarray | np.float32) or value.dtype != np.float32:
        return value
    is_subnormal = (np.abs(value) < _LEAST) & (value != 0)
    return np.where(is_subnormal, value * np.float32(0), value) if is_subnormal.any() else value


def flushing(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy as a kernel of CuPy computes it."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = function(*map(flushed, args), **kwargs)
        for each in result if isinstance(result, tuple) else [result]:
            zeroed = flushed(each)
            if zeroed is not each and isinstance(each, np.ndarray):
                each[...] = zeroed
        return result

    return call
