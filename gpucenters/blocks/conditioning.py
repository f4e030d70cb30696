"""Where the sum of squares about the mean cannot be formed from raw sums."""

from __future__ import annotations

from typing import TypeVar

from ..arrays.typing import Array

#: Threshold on t^2 / (W q) above which q - t^2 / W is inaccurate: it is less than a tenth of q.
LARGEST_SHARE = 0.9

EXACT_INTEGERS = 2.0**53  # integers below it are exact in float64

Number = TypeVar("Number", float, Array)


def is_ill_conditioned(total: Number, square: Number, weight: Number) -> Number:
    """Whether sums of x and x^2 cancel when the sum of squares about the mean is formed.

    Parameters
    ----------
    total, square, weight : floats or arrays
        t, q and W: the weighted sums of x and x^2, and of the weights.

    Notes
    -----
    The union of two sets of samples has no ill-conditioned column that neither of them has, since
    ``(t1 + t2)^2 / (W1 + W2) <= t1^2 / W1 + t2^2 / W2``.
    """
    # In this form no product of extreme weights overflows. Without weight, 0 / 0 compares as false.
    return total * (total / weight) > LARGEST_SHARE * square
