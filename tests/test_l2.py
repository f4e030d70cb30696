"""Sparse l2 centers: gains and losses against exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import exact
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from strategies import Problem, modest, problems

from gpucenters import L2CenterClassifier
from gpucenters.solvers import l2_centers


def test_l2_gain_of_equal_means_is_exactly_zero(backend: Any) -> None:
    assert (0.1 + 0.1 + 0.1) / 3 != 0.1
    y = np.repeat(np.arange(3), [10, 20, 30])
    column = np.arange(60) % 10 == 7  # a tenth of each class
    for container in backend.containers(column[:, None].astype(np.int64)):
        assert backend.host(l2_centers(container, y).gain).tolist() == [0.0]
        two = l2_centers(container, np.minimum(y, 1))
        assert backend.host(two.gain).tolist() == [0.0]


@given(problem=problems(classes=(2, 2)), offset=st.sampled_from([0, 10**3, 10**6]))
@modest(15)
def test_l2_gain_of_two_classes_of_whole_numbers_has_three_roundings(
    problem: Problem, offset: int, backend: Any
) -> None:
    X = problem.X + offset
    truth = exact.exact_l2(X, problem.y, 1, problem.weights)
    for container in backend.containers(X):
        gain = backend.host(l2_centers(container, problem.y, sample_weight=problem.weights).gain)
        for found, expected in zip(gain.tolist(), truth.gain, strict=True):
            # Three roundings remain: the quotient, its square, and the sum of two halves.
            assert abs(Fraction(found) - expected) <= 3 * Fraction(1, 2**53) * expected


def test_l2_loss_of_a_large_offset_in_sparse_form_keeps_six_digits() -> None:
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((2000, 5))
    codes = np.arange(2000) % 2
    expected = l2_centers(Y, codes).loss
    for offset in (1e6, 1e8):
        found = l2_centers(scipy.sparse.csr_array(Y + offset), codes).loss
        assert found == pytest.approx(expected, rel=1e-6)


def test_l2_objective_sums_the_gains_that_are_not_selected() -> None:
    """The difference of all gains and the selected ones would cancel."""
    model = L2CenterClassifier(1).fit([[0, 0], [0, 2], [1e9, 1], [1e9, 3]], [0, 0, 1, 1])
    assert model.support_.tolist() == [0]
    assert model.objective_ == 2.5
