"""The dual problem (16) of Peleg & Meir word for word, by a conic solver."""

from __future__ import annotations

import clarabel
import numpy as np
import scipy.sparse


def optimum(
    X: np.ndarray, y: np.ndarray, c: np.ndarray, v_plus: np.ndarray, v_minus: np.ndarray
) -> float:
    """The largest 1'mu - mu_1 - mu_+ - mu_-, for R = 1.

    Subject to 0 <= mu <= c, y'mu = 0 and (sum_i y_i mu_i x_ij)^2 <= 4 mu_1 (mu_+ v_+j + mu_- v_-j).
    X is centred and of unit scale, as the solver needs.
    """
    n, d = X.shape
    sums = (y[:, None] * X).T
    cones = np.zeros((3 * d, n + 3))  # 4 a b >= s^2 as (a + b)^2 >= (a - b)^2 + s^2
    cones[0::3, n], cones[1::3, n] = -1, -1
    for column, v in ((n + 1, v_plus), (n + 2, v_minus)):
        cones[0::3, column], cones[1::3, column] = -v, v
    cones[2::3, :n] = -sums
    bounds = np.concatenate([-np.eye(n + 3), np.eye(n, n + 3)])
    balance = np.concatenate([y, np.zeros(3)])[None, :]
    rows = scipy.sparse.csc_matrix(np.concatenate([balance, bounds, cones]))
    right = np.concatenate([np.zeros(1 + n + 3), c, np.zeros(3 * d)])
    cost = np.concatenate([-np.ones(n), np.ones(3)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-9
    kinds = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(2 * n + 3)]
    kinds += [clarabel.SecondOrderConeT(3)] * d
    nothing = scipy.sparse.csc_matrix((n + 3, n + 3))
    found = clarabel.DefaultSolver(nothing, cost, rows, right, kinds, settings).solve()
    assert str(found.status) in ("Solved", "AlmostSolved")
    return -found.obj_val
