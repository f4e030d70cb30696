"""Medians of each class and of all classes together, against exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import exact
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import (
    Problem,
    assert_close,
    assert_equal,
    floats,
    modest,
    problems,
    solution,
    storing,
)

from gpucenters.arrays.namespace import to_numpy
from gpucenters.reductions import dense_sorting
from gpucenters.reductions.sorted_columns import _tolerance
from gpucenters.reductions.sparse_sorting import perhaps_half
from gpucenters.solvers import l1_centers

LARGE = 10**6


def _expected(X: Any, y: Any, weights: Any = None) -> dict[str, np.ndarray]:
    truth = exact.exact_l1(X, y, 1, weights)
    loss = truth.objective - sum(g for i, g in enumerate(truth.gain) if i not in truth.support)
    return {
        "free": floats(truth.free),
        "tied": floats(truth.tied),
        "gain": floats(truth.gain),
        "loss": np.asarray(float(loss)),
    }


def _sized(rng: Any, classes: int) -> np.ndarray:
    """Codes of classes of unequal sizes from 1 to 40."""
    sizes = rng.integers(1, 41, size=classes)
    sizes[rng.integers(classes)] = 1
    sizes[rng.integers(classes)] = 40
    return rng.permutation(np.repeat(np.arange(classes), sizes))


def _values(rng: Any, y: np.ndarray) -> np.ndarray:
    """Columns of few values: plain, negative too, mostly zeros, without zeros, far apart."""
    n = len(y)
    X = np.empty((n, 5), dtype=np.int64)
    X[:, 0] = rng.integers(0, 30, size=n)
    X[:, 1] = rng.integers(-3, 4, size=n)
    X[:, 2] = rng.integers(-9, 10, size=n) * (rng.random(n) < 0.55)
    X[:, 3] = rng.integers(1, 6, size=n) * rng.choice([-1, 1], size=n)
    X[:, 4] = 10 * y + rng.integers(0, 4, size=n)
    return X


@pytest.mark.parametrize("classes", [2, 3, 7, 12])
def test_many_unequal_classes_equal_the_exact_oracle(classes: int, backend: Any) -> None:
    rng = np.random.default_rng(classes)
    for _ in range(2):
        y = _sized(rng, classes)
        X = _values(rng, y)
        expected = _expected(X, y)
        for container in backend.containers(X, (np.float64, np.int64)):
            assert_close(solution(l1_centers(container, y), backend), expected)


@pytest.mark.parametrize("classes", [2, 3, 12])
def test_weights_in_tenths_equal_the_oracle_of_their_decimals(classes: int, backend: Any) -> None:
    rng = np.random.default_rng(100 + classes)
    for _ in range(2):
        y = _sized(rng, classes)
        X, tenths = _values(rng, y), rng.integers(1, 10, size=len(y))
        expected = _expected(X, y, [Fraction(int(t), 10) for t in tenths])
        for container in backend.containers(X):
            centers = l1_centers(container, y, sample_weight=tenths / 10)
            assert_close(solution(centers, backend), expected)


@given(problem=problems(weighted=True), divisor=st.sampled_from([3, 7, 10, 49]))
@modest(15)
def test_small_problems_of_real_weights_equal_the_exact_oracle(
    problem: Problem, divisor: int, backend: Any
) -> None:
    X, y, weights = problem
    expected = _expected(X, y, [Fraction(int(w), divisor) for w in weights])
    for container in backend.containers(X):
        centers = l1_centers(container, y, sample_weight=weights / divisor)
        assert_close(solution(centers, backend), expected)


@pytest.mark.parametrize(("values", "median"), [([1, 2, 3], 2.5), ([3, 2, 1], 1.5)])
def test_weights_of_one_two_and_three_tenths_give_the_midpoint_of_a_tie(
    values: list, median: float, backend: Any
) -> None:
    weights = np.asarray([0.1, 0.2, 0.3])
    assert weights[0] + weights[1] != weights[2]
    X = np.asarray([[v, v - 2] for v in values])  # the second column has a zero
    for container in backend.containers(np.concatenate([X, X + 10])):
        centers = l1_centers(container, [0] * 3 + [1] * 3, sample_weight=np.tile(weights, 2))
        assert backend.host(centers.free).tolist() == [
            [median, median - 2],
            [median + 10, median + 8],
        ]
        middle = (max(values) + min(values) + 10) / 2  # between the two classes
        assert backend.host(centers.tied).tolist() == [middle, middle - 2]


def test_tied_center_of_classes_of_inexact_weights_is_the_midpoint(backend: Any) -> None:
    X = np.asarray([[0, -7], [0, -7], [10, 5], [10, 5], [0, -7], [10, 5]])
    y, weights = [0, 0, 1, 1, 2, 3], [0.1, 0.2, 0.7, 1 / 3, 1e-3, 123.456]
    for container in backend.containers(X):
        centers = l1_centers(container, y, sample_weight=weights)
        assert backend.host(centers.tied).tolist() == [5.0, -1.0]


@pytest.mark.parametrize("classes", [2, 4, 6])
def test_whole_weights_up_to_a_million_equal_the_exact_oracle(classes: int, backend: Any) -> None:
    rng = np.random.default_rng(200 + classes)
    for _ in range(2):
        y = _sized(rng, classes)
        X, weights = _values(rng, y), rng.integers(1, LARGE + 1, size=len(y))
        expected = _expected(X, y, weights)
        for container in backend.containers(X):
            centers = l1_centers(container, y, sample_weight=weights)
            overflows = 2 * classes * math.lcm(*map(int, centers.class_weight)) >= 2**63
            assert overflows == (classes > 2)
            assert_close(solution(centers, backend), expected)


def test_medians_tie_where_the_common_multiple_of_weights_overflows(backend: Any) -> None:
    w = np.asarray([999_983, 999_979, 999_961, 999_959])
    assert math.lcm(*w.tolist()) > 2**63
    # Two of the four classes lie to the left of zero and two to the right of it.
    X, y = np.asarray([[-3, 4], [-3, 4], [2, 8], [2, 8]]), np.arange(4)
    for container in backend.containers(X):
        centers = l1_centers(container, y, sample_weight=w)
        assert backend.host(centers.tied).tolist() == [-0.5, 6.0]
    # One class alone is split in halves, next to others of one value.
    X = np.asarray([[1], [3], [0], [9], [9]])
    weights = np.concatenate([[w[0], w[0]], w[1:]])
    for container in backend.containers(X):
        centers = l1_centers(container, [0, 0, 1, 2, 3], sample_weight=weights)
        assert backend.host(centers.free).tolist() == [[2.0], [0.0], [9.0], [9.0]]
        assert backend.host(centers.tied).tolist() == [6.0]


def test_a_weight_difference_of_one_decides_a_class_median(backend: Any) -> None:
    half = 2**51
    for extra, median in ((0, 2.0), (1, 1.0), (-1, 3.0)):
        weights = np.asarray([half + extra, half, 5, 7])
        X = np.asarray([[1.0, 0.0], [3.0, 2.0], [1.0, 1.0], [1.0, 1.0]])
        for container in backend.containers(X):
            centers = l1_centers(container, [0, 0, 1, 1], sample_weight=weights)
            assert backend.host(centers.free).tolist() == [[median, median - 1], [1.0, 1.0]]


def test_a_weight_difference_of_one_decides_a_joint_median(backend: Any) -> None:
    w = 4 * 10**14
    for extra, tied in ((0, 5.0), (1, 0.0), (-1, 10.0)):
        # Class 1 has about half of its weight at 0 and half at 10; class 0 is at 0, class 2 at 10.
        X = np.asarray([[0.0], [0.0], [10.0], [10.0]])
        weights = np.asarray([3, w + extra, w - extra, 7])
        for container in backend.containers(X):
            centers = l1_centers(container, [0, 1, 1, 2], sample_weight=weights)
            assert backend.host(centers.tied).tolist() == [tied]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_unit_weights_give_the_medians_of_numpy_to_the_bit(dtype: Any, backend: Any) -> None:
    rng = np.random.default_rng(3)
    for classes in (2, 5):
        y = _sized(rng, classes)
        X = rng.standard_normal((len(y), 6)).astype(dtype)
        X[:, 3:] *= rng.random((len(y), 3)) < [0.7, 0.5, 0.2]
        expected = [np.median(X[y == c].astype(np.float64), axis=0) for c in range(classes)]
        for container in backend.containers(X, (dtype,)):
            found = backend.host(l1_centers(container, y).free)
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("weight", [0.1, 1 / 3, 2, 1e-90, 1e90])
def test_equal_weights_give_the_centers_of_unit_weights(weight: float, backend: Any) -> None:
    rng = np.random.default_rng(4)
    y = _sized(rng, 3)
    X = _values(rng, y) / 7
    for container in backend.containers(X):
        expected = solution(l1_centers(container, y), backend)
        centers = l1_centers(container, y, sample_weight=np.full(len(y), weight))
        assert_equal(solution(centers, backend), expected | {"loss": np.asarray(centers.loss)})
        assert centers.loss == pytest.approx(expected["loss"], rel=1e-13)


ZERO_WEIGHTS = [[1, 0, 1], [0.7, 0, 0.7], [3, 0, 3]]


@pytest.mark.parametrize("weights", ZERO_WEIGHTS)
@pytest.mark.parametrize("hidden", [-1.0, 0.0, 4.0])
def test_class_median_ignores_the_value_of_a_row_of_weight_zero(
    weights: list, hidden: float, backend: Any
) -> None:
    X, other = np.asarray([[-2.0], [hidden], [10.0]]), np.asarray([[20.0], [20.0]])
    rows, y = np.concatenate([X, other]), [0, 0, 0, 1, 1]
    for rest in ([1, 1], [2, 0.5]):  # equal weights, and others
        for container in backend.containers(rows):
            centers = l1_centers(container, y, sample_weight=weights + rest)
            assert backend.host(centers.free).tolist() == [[4.0], [20.0]]


@pytest.mark.parametrize("first", [1, 0.7, 3])
@pytest.mark.parametrize("hidden", [-1.0, 0.0, 4.0])
def test_tied_median_ignores_the_value_of_a_row_of_weight_zero(
    first: float, hidden: float, backend: Any
) -> None:
    X, y = np.asarray([[-2.0], [hidden], [hidden], [10.0]]), [0, 0, 1, 1]
    for container in backend.containers(X):
        centers = l1_centers(container, y, sample_weight=[first, 0, 0, 1.0])
        assert backend.host(centers.free).tolist() == [[-2.0], [10.0]]
        assert backend.host(centers.tied).tolist() == [4.0]


@given(problem=problems(), share=st.sampled_from([0.0, 0.5, 1.0]), unit=st.sampled_from([1.0, 0.3]))
@modest(20)
def test_stored_zeros_give_the_centers_of_dense_zeros(
    problem: Problem, share: float, unit: float, sparse_backend: Any
) -> None:
    X, y, weights = problem
    s = None if weights is None else weights * unit
    stored = (X != 0) | (np.random.default_rng(5).random(X.shape) < share)
    found = l1_centers(storing(sparse_backend, X, stored), y, sample_weight=s)
    expected = l1_centers(sparse_backend.array(X), y, sample_weight=s)
    assert_close(solution(found, sparse_backend), solution(expected, sparse_backend))


@pytest.mark.parametrize("weighted", [False, True])
def test_full_columns_in_sparse_form_equal_the_exact_oracle(
    weighted: bool, sparse_backend: Any
) -> None:
    rng = np.random.default_rng(6)
    y = _sized(rng, 4)
    X = rng.integers(1, 9, size=(len(y), 4)) * rng.choice([-1, 1], size=(len(y), 4))
    weights = rng.integers(1, 9, size=len(y)) if weighted else None
    expected = _expected(X, y, weights)
    for container in (sparse_backend.csr(X), sparse_backend.csc(X)):
        centers = l1_centers(container, y, sample_weight=weights)
        assert_close(solution(centers, sparse_backend), expected)


def test_median_of_a_class_with_half_of_its_values_zero_is_the_midpoint(
    sparse_backend: Any,
) -> None:
    X = np.asarray([[0, 0, -2], [0, 0, -2], [3, 0, 0], [3, 3, 0], [1, 1, 1]])
    y = [0, 0, 0, 0, 1]
    for container in (sparse_backend.array(X), sparse_backend.csr(X), sparse_backend.csc(X)):
        centers = l1_centers(container, y)
        assert sparse_backend.host(centers.free).tolist() == [[1.5, 0.0, -1.0], [1.0, 1.0, 1.0]]


@pytest.mark.parametrize("weights", ["none", "whole", "real"])
def test_a_budget_of_one_column_gives_the_same_bits(weights: str, backend: Any) -> None:
    rng = np.random.default_rng(7)
    y = _sized(rng, 3)
    X = np.concatenate([_values(rng, y)[:, 2:], rng.standard_normal((len(y), 2))], axis=1)
    s = {
        "none": None,
        "whole": rng.integers(0, 5, size=len(y)),
        "real": rng.random(len(y)),
    }[weights]
    if weights == "whole":
        for c in range(3):
            s[np.flatnonzero(y == c)[0]] = 2
    for container in backend.containers(X):
        expected = solution(l1_centers(container, y, sample_weight=s, memory_budget="1GB"), backend)
        for budget in (1, 10_000):
            centers = l1_centers(container, y, sample_weight=s, memory_budget=budget)
            assert_equal(solution(centers, backend), expected)


@pytest.mark.parametrize("classes", [2, 9])
def test_bits_do_not_depend_on_how_values_below_a_bound_are_counted(
    classes: int, backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(classes)
    y = rng.permutation(np.arange(700) % classes)
    X = np.column_stack([_values(rng, y), rng.standard_normal((700, 3)) + y[:, None] % 2])
    found = []
    for most in (0, 2**20):  # by bisections, and by comparisons with every value
        monkeypatch.setattr(dense_sorting, "_FEW_VALUES", most)
        found.append(l1_centers(backend.array(X), y))
    for name in ("free", "tied", "gain"):
        one, other = (to_numpy(getattr(centers, name)) for centers in found)
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("values", ["ties", "normal", "outliers", "apart"])
def test_the_gain_of_long_columns_equals_its_definition(values: str, backend: Any) -> None:
    # In columns of hundreds of values, only those between the centers are summed.
    rng = np.random.default_rng(3)
    y = np.repeat([0, 1, 2], [300, 401, 520])
    X = {
        "ties": rng.integers(0, 4, (len(y), 6)) + (y == 1)[:, None],
        "normal": rng.standard_normal((len(y), 6)) + 0.3 * y[:, None],
        "outliers": rng.standard_cauchy((len(y), 6)) ** 3 + y[:, None],
        "apart": rng.standard_normal((len(y), 6)) + 100.0 * y[:, None],
    }[values].astype(np.float64)
    centers = l1_centers(backend.array(X), y)
    free, tied = backend.host(centers.free), backend.host(centers.tied)
    gain = np.zeros(6)
    for c in range(3):
        rows = X[y == c]
        # The definition, in exact arithmetic.
        for i in range(6):
            apart = [abs(Fraction(v) - Fraction(tied[i])) for v in rows[:, i]]
            near = [abs(Fraction(v) - Fraction(free[c, i])) for v in rows[:, i]]
            gain[i] += float((sum(apart) - sum(near)) / len(rows))
    np.testing.assert_allclose(backend.host(centers.gain), gain, rtol=1e-12, atol=1e-14)
    assert np.any(gain > 0)


def test_a_stored_weight_of_half_a_class_up_to_rounding_makes_a_midpoint(backend: Any) -> None:
    weights = np.asarray([0.1, 0.2, 0.3])
    assert 2 * weights[2] < weights.sum()  # by rounding
    X = np.asarray([0.0, 0.0, 4.0, 0.0, 0.0, 4.0])[:, None]
    for container in backend.containers(X):
        centers = l1_centers(container, [0] * 3 + [1] * 3, sample_weight=np.tile(weights, 2))
        assert backend.host(centers.free).tolist() == [[2.0], [2.0]]


def test_half_of_a_million_inexact_weights_is_half_of_their_sum() -> None:
    n, weight = 2**20, 0.1
    X = np.repeat([1.0, 3.0], n // 2)[:, None]
    assert abs(np.cumsum(np.full(n, weight))[-1] / (n * weight) - 1) > 1e-12
    weights = np.append(np.full(n, weight), 1.0)
    for values, median in ((X, 2.0), (-X, -2.0)):
        rows = np.append(values, [[0.0]], axis=0)
        centers = l1_centers(rows, np.arange(n + 1) // n, sample_weight=weights)
        assert centers.free[0, 0] == median


def test_joint_median_of_whole_weights_near_the_range_of_integers_is_exact(backend: Any) -> None:
    # Seven tenths of the joint weight are at 0; shares of the classes have no common factor.
    part, whole = 858_993_459, 2**31
    X, weights = np.asarray([[0.0], [0.0], [10.0]]), [float(whole - 1), part, whole - part]
    for container in backend.containers(X):
        centers = l1_centers(container, [0, 1, 1], sample_weight=weights)
        assert backend.host(centers.free).tolist() == [[0.0], [10.0]]
        assert backend.host(centers.tied).tolist() == [0.0]


@pytest.mark.parametrize(
    ("rows", "weight", "median"),
    [
        ((0, 1), None, 2.0),  # half of the smaller class
        ((0, 1, 2, 3), None, 4.0),  # few of all rows
        ((0,), [9.0] + [1.0] * 11, 4.0),  # one row with most of the weight of its class
    ],
)
def test_a_column_that_stores_few_entries_of_one_class_has_its_median(
    rows: tuple, weight: Any, median: float, sparse_backend: Any
) -> None:
    X = np.zeros((12, 1))
    X[list(rows)] = 4
    for container in (sparse_backend.csr(X), sparse_backend.csc(X)):
        centers = l1_centers(container, [0] * 4 + [1] * 8, sample_weight=weight)
        assert sparse_backend.host(centers.free).tolist() == [[median], [0.0]]


@pytest.mark.parametrize("n", [100, 10**9])
def test_a_column_that_counts_as_half_is_never_left_out_beforehand(n: int) -> None:
    """Whatever the number of samples, by which the tolerance of a half grows."""
    least = 1.0 - _tolerance(SimpleNamespace(count=[n]))  # type: ignore[arg-type]
    mass, weight = np.asarray([[0.1, 0.5 * least]]), np.ones(1)
    assert perhaps_half(mass, weight).tolist() == [False, True]
