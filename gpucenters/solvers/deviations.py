"""Class means relative to the mean of all samples, from class sums."""

from __future__ import annotations

from ..arrays.backend import Backend
from ..arrays.functions import array_namespace
from ..arrays.typing import Array
from .l2 import mean_differences
from .scaling import is_constant


def class_deviations(
    total: Array, weight: list[float] | tuple[float, ...], backend: Backend
) -> tuple[Array, Array]:
    """Class means less the mean of all samples, (K, b), and this mean, (b,).

    ``dev_c = q_c - sum_c p_c q_c`` with ``q_c = (W_0 T_c - W_c T_0) / (W_0 W_c)`` and ``p_c = W_c /
    W``: exactly 0 where the means of integer data are equal.

    Parameters
    ----------
    total : array of shape (K, b)
        Class sums T_c.
    weight : sequence of K floats
        W_c.
    backend : Backend
    """
    xp, delta = backend.xp, mean_differences(total, list(weight), backend)
    p = backend.asarray([w / sum(weight) for w in weight])[1:, None]
    mean = xp.sum(p * delta, axis=0, keepdims=True)
    deviation = xp.concat([-mean, delta - mean])
    return deviation, total[0, :] / weight[0] - deviation[0, :]


def zero_if_constant(variance: Array, size: Array, n: int) -> Array:
    """The variance of n values of some size, with 0 where it is that of rounding."""
    constant = is_constant(variance, size, n)
    return array_namespace(variance).where(constant, variance * 0, variance)
