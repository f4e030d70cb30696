"""Every worked example of the mathematics, and every case that a naive formula gets wrong."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import exact
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from strategies import Problem, floats, modest, problems, quietly, storing

from gpucenters import L1CenterClassifier, L2CenterClassifier
from gpucenters.solvers import l1_centers, l2_centers, ranking_key, select

SOLVERS = [l2_centers, l1_centers]
MODELS = [L2CenterClassifier, L1CenterClassifier]
SQUARE = [[0.0, 0.0], [0.0, 2.0], [2.0, 0.0], [2.0, 2.0]]


def test_the_example_of_ties_selects_0_and_2(backend: Any) -> None:
    chosen = select(backend.array([3.0, 1.0, 3.0, 3.0, 2.0, 3.0]), 2)
    assert backend.host(chosen.support).tolist() == [0, 2]
    assert backend.host(chosen.ranking).tolist() == [0, 2]


@pytest.mark.parametrize("model", MODELS)
def test_the_middle_of_a_square_goes_to_the_first_class(model: Any, backend: Any) -> None:
    fitted = model().fit(backend.array(SQUARE), np.asarray([0, 0, 1, 1]))
    assert backend.host(fitted.decision_function(backend.array([[1.0, 1.0]]))).tolist() == [0.0]
    assert backend.host(fitted.predict(backend.array([[1.0, 1.0]]))).tolist() == [0]
    assert backend.host(fitted.scores_).tolist() == [2.0, 0.0]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("names", ["l2", "l1"])
def test_predictions_at_offset_1e8_are_those_of_exact_arithmetic(
    names: str, classes: int, backend: Any
) -> None:
    model, search, predict = {
        "l2": (L2CenterClassifier, exact.exact_l2, exact.predict_l2),
        "l1": (L1CenterClassifier, exact.exact_l1, exact.predict_l1),
    }[names]
    rng = np.random.default_rng(8)
    y = np.arange(24) % classes
    X = 1e8 + rng.standard_normal((24, 3)) + 0.5 * y[:, None]
    points = 1e8 + 0.5 + 2 * rng.standard_normal((1000, 3))
    truth = search(X, y, 3)
    expected = [predict(truth, point) for point in points]
    assert set(expected) == set(range(classes))
    fitted = model().fit(backend.array(X), y)
    assert backend.host(fitted.predict(backend.array(points))).tolist() == expected


@pytest.mark.parametrize("scale", ["std", "pooled"])
@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_a_constant_column_gains_nothing_in_any_unit(layout: str, scale: str, on_host: Any) -> None:
    n = 1_600_000
    y = np.zeros(n, dtype=np.int8)
    y[::10] = 1
    X = np.full((n, 1), 0.1)
    if layout == "csr":
        X = storing(on_host, X, np.ones((n, 1)))
    centers = l2_centers(X, y, scale=scale)
    assert centers.scale.tolist() == [1.0]
    rounding = n * 2.0**-52 * 0.1  # of a mean; second moments are made of its square
    assert 0 <= centers.gain[0] < rounding**2
    assert 0 <= centers.loss < rounding**2


def test_the_l1_gain_of_a_huge_pair_of_outliers_does_not_cancel(backend: Any) -> None:
    huge = 1e16
    X, y = np.asarray([[0.0], [0.0], [huge], [1.0], [1.0], [-huge]]), np.asarray([0, 0, 0, 1, 1, 1])
    containers = backend.containers(X)
    if backend.sparse is not None:
        containers.append(storing(backend, X, np.ones_like(X)))
    for container in containers:
        centers = l1_centers(container, y)
        np.testing.assert_allclose(backend.host(centers.gain), [1 / 3], rtol=1e-15)
        assert backend.host(centers.tied).tolist() == [0.5]
        assert backend.host(centers.free).tolist() == [[0.0], [1.0]]


THREES = [([1e4, 1e4 + 1, 1e4 + 2], np.float32), ([1e8, 1e8 + 1, 1e8 + 2], np.float64)]


@pytest.mark.parametrize(("values", "dtype"), THREES, ids=["float32", "float64"])
def test_three_large_neighbours_have_variance_two_thirds(
    values: list, dtype: Any, backend: Any
) -> None:
    X, y = np.asarray([[v] for v in values * 2]), np.asarray([0, 0, 0, 1, 1, 1])
    for container in backend.containers(X, (dtype,)):
        std, pooled = (l2_centers(container, y, scale=scale) for scale in ("std", "pooled"))
        np.testing.assert_allclose(backend.host(std.scale) ** 2, [2 / 3], rtol=1e-14)
        np.testing.assert_allclose(backend.host(pooled.scale) ** 2, [1.0], rtol=1e-14)
        assert std.loss == pytest.approx(2.0, rel=1e-14)
        assert backend.host(std.gain).tolist() == [0.0]


SPLITS = [c for r in range(6) for c in itertools.combinations(range(1, 6), r)]


@pytest.mark.parametrize("kinds", [("array",), ("csr",), ("array", "csr"), ("csr", "array")])
@pytest.mark.parametrize(("values", "dtype"), THREES, ids=["float32", "float64"])
def test_so_they_have_as_a_stream_of_any_split(
    values: list, dtype: Any, kinds: tuple, sparse_backend: Any
) -> None:
    X, y = np.asarray([[v] for v in values * 2]), np.asarray([0, 0, 1, 1, 0, 1])
    variance = floats(exact.variance(X, y, kind="pooled"))
    for cuts in SPLITS:
        model = L2CenterClassifier(scale="pooled")
        for number, part in enumerate(np.split(np.arange(6), cuts)):
            make = getattr(sparse_backend, kinds[number % len(kinds)])
            model.partial_fit(make(X[part], dtype), y[part], classes=[0, 1])
        found = sparse_backend.host(model.scale_) ** 2
        np.testing.assert_allclose(found, variance, rtol=1e-13, err_msg=str(cuts))


@pytest.mark.parametrize("scale", [None, "std"])
@pytest.mark.parametrize("order", [("array", "csr"), ("csr", "array")])
def test_dense_and_sparse_batches_mix_in_either_order(
    order: tuple, scale: Any, sparse_backend: Any
) -> None:
    X, y = np.arange(24.0).reshape(8, 3) % 5, np.arange(8) % 2
    X[:, 1] *= y
    model, whole = L2CenterClassifier(scale=scale), L2CenterClassifier(scale=scale)
    for kind, part in zip(order, (slice(0, 3), slice(3, 8)), strict=True):
        model.partial_fit(getattr(sparse_backend, kind)(X[part]), y[part], classes=[0, 1])
    whole.fit(sparse_backend.array(X), y)
    assert model.objective_ == pytest.approx(whole.objective_, rel=1e-13)
    np.testing.assert_allclose(
        sparse_backend.host(model.scores_), sparse_backend.host(whole.scores_), rtol=1e-13
    )


@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_a_class_that_fills_a_half_empty_column_keeps_its_variance(
    layout: str, sparse_backend: Any
) -> None:
    X, y = np.asarray([[1e8], [1e8 + 1], [1e8 + 2], [0], [0], [0]]), np.asarray([0, 0, 0, 1, 1, 1])
    assert floats(exact.variance(X, y, kind="pooled")).tolist() == [0.5]
    centers = l2_centers(getattr(sparse_backend, layout)(X), y, scale="pooled")
    np.testing.assert_allclose(sparse_backend.host(centers.scale) ** 2, [0.5], rtol=1e-12)


def test_an_indicator_of_a_class_has_no_variance_within_it(backend: Any) -> None:
    y = np.arange(100_000) % 4 // 3
    for container in backend.containers(0.1 * y[:, None]):
        centers = l2_centers(container, y, scale="pooled")
        assert backend.host(centers.scale).tolist() == [1.0]
        np.testing.assert_allclose(backend.host(centers.gain), [0.005], rtol=1e-12)


def test_the_example_of_medians_of_even_columns(backend: Any) -> None:
    X = [[0, -1, 2, 0], [0, 3, 4, 5], [1, 0, 0, 0], [0, 0, 6, 7]]
    for container in backend.containers(X, (np.float64, np.float32)):
        assert backend.host(l1_centers(container, [0] * 4).free).tolist() == [[0, 0, 3, 2.5]]
    for container in backend.containers([*X, *X]):
        centers = l1_centers(container, [0] * 4 + [1] * 4)
        assert backend.host(centers.free).tolist() == [[0, 0, 3, 2.5]] * 2
        assert backend.host(centers.tied).tolist() == [0, 0, 3, 2.5]
        assert backend.host(centers.gain).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("solve", SOLVERS)
def test_one_sample_a_class_is_its_own_center(solve: Any, backend: Any) -> None:
    X = [[0.0, 3.0, -1.0], [2.0, 3.0, 0.0], [7.0, 3.0, 1.0]]
    for container in backend.containers(X):
        centers = solve(container, [0, 1, 2])
        assert backend.host(centers.free).tolist() == X
        assert backend.host(centers.tied).tolist() == [3.0 if solve is l2_centers else 2.0, 3, 0]
        assert backend.host(centers.gain)[1] == 0.0
        assert centers.loss == 0.0


@pytest.mark.parametrize("model", MODELS)
def test_where_everything_ties_the_first_features_and_class_win(model: Any, backend: Any) -> None:
    X, y = np.full((6, 4), 0.1), np.asarray([0, 1, 2, 0, 1, 2])
    for container in backend.containers(X):
        fitted = quietly(model(k=2).fit, container, y)
        assert fitted.support_.tolist() == [0, 1]
        assert backend.host(fitted.scores_).tolist() == [0.0] * 4
        assert backend.host(fitted.predict(container)).tolist() == [0] * 6


@pytest.mark.parametrize(
    ("priors", "winner"),
    [("uniform", 0), ("empirical", 2), ([0.2, 0.4, 0.4], 1), ([0.2, 0.3, 0.5], 2)],
)
def test_where_all_centers_coincide_the_first_largest_prior_wins(
    priors: Any, winner: int, backend: Any
) -> None:
    rows = [[1.0, 0.3], [3.0, 0.7]]
    X, y = np.asarray(rows * 4), np.asarray([0, 0, 1, 1, 2, 2, 2, 2])
    points = [[0.0, 0.0], [2.0, 0.5], [1e8, -1e8]]
    for train, test in zip(backend.containers(X), backend.containers(points), strict=True):
        model = L2CenterClassifier(priors=priors).fit(train, y)
        assert backend.host(model.scores_).tolist() == [0.0, 0.0]
        assert backend.host(model.predict(test)).tolist() == [winner] * 3


def test_equal_means_of_unequal_classes_gain_exactly_nothing(backend: Any) -> None:
    assert (0.1 + 0.1 + 0.1) / 3 != 0.1
    y = np.repeat(np.arange(3), [10, 20, 30])
    column = np.arange(60) % 10 == 7  # a tenth of each class
    for container in backend.containers(column[:, None].astype(np.int64)):
        assert backend.host(l2_centers(container, y).gain).tolist() == [0.0]
        two = l2_centers(container, np.minimum(y, 1))
        assert backend.host(two.gain).tolist() == [0.0]


@given(problem=problems(classes=(2, 2)), offset=st.sampled_from([0, 10**3, 10**6]))
@modest(15)
def test_the_difference_of_two_means_is_exact_for_whole_numbers(
    problem: Problem, offset: int, backend: Any
) -> None:
    X = problem.X + offset
    truth = exact.exact_l2(X, problem.y, 1, problem.weights)
    for container in backend.containers(X):
        gain = backend.host(l2_centers(container, problem.y, sample_weight=problem.weights).gain)
        for found, expected in zip(gain.tolist(), truth.gain, strict=True):
            # Three roundings remain: the quotient, its square, and the sum of two halves.
            assert abs(Fraction(found) - expected) <= 3 * Fraction(1, 2**53) * expected


@given(problem=problems(), unit=st.sampled_from([1.0, 0.1, 1 / 3]))
@modest(15)
def test_the_l1_gain_is_exactly_zero_where_the_intervals_share_a_point(
    problem: Problem, unit: float, backend: Any
) -> None:
    X = problem.X * unit
    truth = exact.exact_l1(X, problem.y, 1, problem.weights)
    for container in backend.containers(X):
        centers = l1_centers(container, problem.y, sample_weight=problem.weights)
        gain, tied = backend.host(centers.gain), backend.host(centers.tied)
        for i in range(X.shape[1]):
            low, high = max(row[i] for row in truth.lo), min(row[i] for row in truth.hi)
            assert (gain[i] == 0.0) == (low <= high)
            if low <= high:
                assert tied[i] == 0.5 * float(low) + 0.5 * float(high)


@pytest.mark.parametrize("solve", SOLVERS)
@given(problem=problems())
@modest(8)
def test_minus_zero_is_zero(solve: Any, problem: Problem, backend: Any) -> None:
    plus = problem.X.astype(np.float64)
    minus = np.where(plus == 0, -0.0, plus)
    s = problem.weights
    expected = solve(backend.array(plus), problem.y, sample_weight=s)
    containers = [backend.array(minus), backend.array(minus, np.float32)]
    if backend.sparse is not None:
        containers.append(storing(backend, minus, np.ones_like(minus)))
    for container in containers:
        centers = solve(container, problem.y, sample_weight=s)
        for name in ("free", "tied", "gain"):
            ours, theirs = (backend.host(getattr(c, name)) for c in (centers, expected))
            np.testing.assert_allclose(ours, theirs, rtol=1e-14, atol=0, err_msg=name)


@pytest.mark.parametrize("model", MODELS)
def test_minus_zero_predicts_as_zero(model: Any, backend: Any) -> None:
    fitted = model().fit(backend.array([[-0.0], [0.0], [2.0], [2.0]]), np.asarray([0, 0, 1, 1]))
    points = np.asarray([[0.0], [-0.0], [1.0]])
    decision = backend.host(fitted.decision_function(backend.array(points)))
    assert decision[0] == decision[1] < 0
    assert backend.host(fitted.predict(backend.array(points))).tolist() == [0, 0, 0]


def test_float32_sums_go_on_beyond_2_to_the_24(backend: Any) -> None:
    big = 2.0**24
    X = np.asarray([[big], [1], [1], [1], [0], [0]])
    assert np.cumsum(X[:4].astype(np.float32))[-1] == big
    y = np.asarray([0, 0, 0, 0, 1, 1])
    for container in backend.containers(X, (np.float32,)):
        centers = l2_centers(container, y)
        assert backend.host(centers.total).tolist() == [[big + 3], [0.0]]
        assert backend.host(l1_centers(container, y).free).tolist() == [[1.0], [0.0]]


def test_weights_count_on_beyond_2_to_the_24(backend: Any) -> None:
    weights = np.asarray([2**24, 1, 1, 2, 5], dtype=np.float32)
    y = np.asarray([0, 0, 0, 0, 1])
    for container in backend.containers(np.asarray([[1], [1], [1], [3], [0]]), (np.float32,)):
        centers = l2_centers(container, y, sample_weight=weights)
        assert centers.class_weight == (2**24 + 4, 5)
        assert backend.host(centers.total).tolist() == [[2**24 + 8], [0.0]]


@pytest.mark.parametrize("solve", SOLVERS)
def test_a_sample_without_weight_may_hold_anything_finite(solve: Any, backend: Any) -> None:
    X = np.asarray([[0.0, 1.0], [1e9, -1e9], [2.0, 0.0], [5.0, 5.0]])
    y, weights = np.asarray([0, 0, 1, 1]), np.asarray([1, 0, 1, 1])
    kept = weights > 0
    for container, without in zip(backend.containers(X), backend.containers(X[kept]), strict=True):
        centers = solve(container, y, sample_weight=weights)
        expected = solve(without, y[kept])
        for name in ("free", "tied", "gain"):
            ours, theirs = (backend.host(getattr(c, name)) for c in (centers, expected))
            np.testing.assert_array_equal(ours, theirs, err_msg=name)
        assert centers.loss == pytest.approx(expected.loss, rel=1e-14)


@pytest.mark.parametrize("solve", SOLVERS)
def test_a_class_left_without_weight_is_named(solve: Any, backend: Any) -> None:
    with pytest.raises(ValueError, match="class 1"):
        solve(backend.array(SQUARE), [0, 0, 1, 1], sample_weight=[1, 2, 0, 0])


def _far_from_rounding(gain: Fraction) -> bool:
    """Whether a few units in the last place of float64 leave the 40 bits as they are."""
    slack = Fraction(1, 2**48)
    return exact.rounded(gain * (1 - slack)) == exact.rounded(gain * (1 + slack))


@pytest.mark.parametrize("names", ["l2", "l1"])
@given(
    column=arrays(np.float64, 16, elements=st.floats(0, 1, width=32).map(lambda x: x / 3)),
    classes=st.integers(2, 4),
    seed=st.integers(0, 2**32 - 1),
)
@modest(6)
def test_gains_equal_in_exact_arithmetic_tie_to_the_lower_index_in_any_row_order(
    names: str, column: np.ndarray, classes: int, seed: int, backend: Any
) -> None:
    solve, search = {
        "l2": (l2_centers, exact.exact_l2),
        "l1": (l1_centers, exact.exact_l1),
    }[names]
    rng, y = np.random.default_rng(seed), np.arange(16) % classes
    column = column + y
    gain = search(column[:, None], y, 1).gain[0]
    assume(_far_from_rounding(gain))
    X = np.empty((16, 6))
    for i, c in itertools.product(range(6), range(classes)):
        X[y == c, i] = rng.permutation(column[y == c])
    for container in backend.containers(X):
        chosen = select(solve(container, y), "all")
        assert backend.host(chosen.ranking).tolist() == list(range(6))
        assert backend.host(select(solve(container, y), 3).support).tolist() == [0, 1, 2]


def _significant_bits(x: float) -> int:
    n = abs(Fraction(x).numerator)
    return (n // (n & -n)).bit_length() if n else 0


EXTREMES = [0.0, 5e-324, 1e-323, 2.5e-310, 2.3e-308, 1e-300, 1.0, 1e300, 2.0**999, 1.1e301]


@given(gains=st.lists(st.sampled_from(EXTREMES) | st.floats(0, 1.7e308), min_size=1, max_size=20))
@modest(40)
def test_the_ranking_key_is_the_gain_in_40_bits_at_any_size(gains: list, backend: Any) -> None:
    keys = backend.host(ranking_key(backend.array(sorted(gains)))).tolist()
    for gain, key in zip(sorted(gains), keys, strict=True):
        assert _significant_bits(key) <= 40, (gain, key)
        assert abs(Fraction(key) - Fraction(gain)) <= Fraction(gain) / 2**40
    assert keys == sorted(keys)


@given(gains=st.lists(st.floats(0, 1.7976931348623157e308), min_size=1, max_size=20))
@modest(40)
def test_the_ranking_key_is_finite_and_keeps_the_order(gains: list, backend: Any) -> None:
    gains = sorted([*gains, 0.0, 5e-324, 2.0**1000, 1.7976931348623157e308])
    keys = backend.host(ranking_key(backend.array(gains)))
    assert np.all(np.isfinite(keys)) and np.all(np.diff(keys) >= 0)
    np.testing.assert_array_equal(keys > 0, np.asarray(gains) > 0)


def test_nan_and_infinity_are_errors_that_name_the_first_bad_feature(backend: Any) -> None:
    for value, word in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")):
        X = np.ones((4, 5))
        X[2, 3] = value
        for container in backend.containers(X):
            for solve in SOLVERS:
                with pytest.raises(ValueError, match=f"{word}.* feature 3 .*row 2"):
                    solve(container, [0, 0, 1, 1])


def test_squares_that_overflow_are_an_error_for_l2_alone(backend: Any) -> None:
    X = np.ones((4, 3))
    X[1, 2] = 1e200
    for container in backend.containers(X):
        with pytest.raises(ValueError, match=r"feature 2 .*row 1.*overflow"):
            l2_centers(container, [0, 0, 1, 1])
        assert backend.host(l1_centers(container, [0, 0, 1, 1]).gain).tolist()[:2] == [0.0, 0.0]


@pytest.mark.parametrize("solve", SOLVERS)
@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.uint64, np.bool_, object])
def test_other_types_of_numbers_are_widened(solve: Any, dtype: Any, on_host: Any) -> None:
    X, y = np.asarray([[0, 1, 1], [1, 0, 1], [1, 1, 0], [1, 1, 1]]), [0, 0, 1, 1]
    centers, expected = solve(on_host.array(X, dtype), y), solve(on_host.array(X, np.float64), y)
    assert centers.gain.dtype == np.float64
    np.testing.assert_array_equal(centers.gain, expected.gain)
    np.testing.assert_array_equal(centers.free, expected.free)
