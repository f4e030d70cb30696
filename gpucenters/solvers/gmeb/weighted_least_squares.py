"""Systems with the matrix of a weighted ridge regression with an intercept.

Most features of a wide problem hardly matter to it: their ridge is large. Those that do are
factorised, and the method of conjugate gradients does the rest.
"""

from __future__ import annotations

from collections.abc import Callable

from ...arrays.backend import Backend
from ...arrays.functions import to_float
from ...arrays.linalg import factorised
from ...arrays.typing import Array
from ...blocks.working_columns import WorkingColumns

_FEW = 300  # features that are all factorised
_MATTERS = 1.0  # the least share of a feature's curvature to its ridge to be factorised
_TOL = 1e-4  # in the norm of the matrix; what is left is in the residual of the next step
_MOST_ITERATIONS = 300
_RIDGE = 1e-13  # relative: equal columns leave directions without curvature


def weighted_least_squares(
    columns: WorkingColumns, weight: Array, ridge: Array, backend: Backend
) -> Callable[[Array], Array]:
    """``solve(b)`` for [Z 1]' diag(weight) [Z 1] + diag(ridge, 0), b of shape (d + 1,).

    Parameters
    ----------
    columns : WorkingColumns
        Z: (n, d).
    weight : array of shape (n,), positive
    ridge : array of shape (d,), positive
    backend : Backend
    """
    xp, d = backend.xp, ridge.shape[0]
    cross, last = columns.transposed_product(weight), backend.zeros(1)
    all_matter = d <= _FEW
    if all_matter:
        squares, matters = ridge, xp.ones_like(ridge, dtype=xp.bool)
    else:
        squares = columns.squares(weight)
        matters = squares > _MATTERS * ridge
    chosen = xp.nonzero(matters)[0]
    few, added = chosen.shape[0], xp.concat([xp.take(ridge, chosen), last])
    matrix = backend.zeros((few + 1, few + 1))
    if few:
        part = columns if all_matter else columns.take(chosen)
        matrix[:few, :few] = part.gram(weight)
        matrix[:few, few] = matrix[few, :few] = xp.take(cross, chosen)
    matrix[few, few] = xp.sum(weight)
    unit = 1 / xp.sqrt(xp.linalg.diagonal(matrix) + added)
    matrix *= unit[:, None]
    matrix *= unit
    eye = xp.eye(few + 1, dtype=xp.float64, device=backend.device)
    matrix += eye * (added * unit * unit + _RIDGE)
    factor = factorised(matrix, backend)
    # Where a feature, or the intercept, is in the factorised part; the others have the diagonal.
    inside = xp.concat([matters, xp.ones_like(last, dtype=xp.bool)])
    at, chosen = xp.cumulative_sum(xp.astype(inside, xp.int64)) - 1, xp.nonzero(inside)[0]
    at = xp.where(inside, at, xp.zeros_like(at))
    inverse = xp.concat([1 / (ridge + squares), last])

    def product(z: Array) -> Array:
        w, offset = z[:-1], z[-1]
        v = weight * (columns.product(w) + offset)
        return xp.concat([columns.transposed_product(v) + ridge * w, xp.reshape(xp.sum(v), (1,))])

    def preconditioned(b: Array) -> Array:
        if all_matter:
            return unit * factor(unit * b)
        solved = unit * factor(unit * xp.take(b, chosen))
        return xp.where(inside, xp.take(solved, at), inverse * b)

    def solve(b: Array) -> Array:
        x = preconditioned(b)
        size = _TOL * _TOL * to_float(b @ x)
        residual = b - product(x)
        step = z = preconditioned(residual)
        left = to_float(residual @ z)
        for _ in range(_MOST_ITERATIONS):
            image = product(step)
            bend = to_float(step @ image)
            if not (left > 0 and bend > 0):  # as far as rounding allows
                break
            x = x + (left / bend) * step
            residual = residual - (left / bend) * image
            z = preconditioned(residual)
            before, left = left, to_float(residual @ z)
            if left <= size:
                break
            step = z + (left / before) * step
        return x

    return solve
