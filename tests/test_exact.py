"""The exact oracle: worked examples, and checks that share none of its code."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from exact import (
    decision_l1,
    decision_l2,
    exact_l1,
    exact_l2,
    predict_l1,
    predict_l2,
    random_problem,
    rounded,
    select,
    variance,
)

BOTH = pytest.mark.parametrize("power", [1, 2])


def solve(power, X, y, k, weights=None, divisor=None):
    return (exact_l1 if power == 1 else exact_l2)(X, y, k, weights, divisor)


def problems(count, seed=0, **kinds):
    rng = np.random.default_rng(seed)
    return (random_problem(rng, **kinds) for _ in range(count))


def total_loss(power, X, y, weights, theta):
    """The objective by its definition, sample by sample."""
    weights = np.ones(len(y), dtype=int) if weights is None else weights
    total = Fraction(0)
    for row, c, s in zip(X.tolist(), y.tolist(), weights.tolist(), strict=True):
        share = Fraction(s, int(weights[y == c].sum()))
        total += share * sum(abs(x - t) ** power for x, t in zip(row, theta[c], strict=True))
    return total


def test_equal_gains_take_the_lower_index():
    gains = [3, 1, 3, 3, 2, 3]
    exact = exact_l1([[0] * 6, gains], [0, 1], 2)
    assert exact.gain == gains
    assert exact.support == select(gains, 2) == (0, 2)
    assert select(gains, 5) == (0, 2, 3, 4, 5)
    assert select([0, 0, 0], 2) == (0, 1)


def test_ranking_key_has_40_bits():
    assert rounded(Fraction(0)) == 0
    assert rounded(Fraction(3, 4)) == Fraction(3, 4)
    assert rounded(1 + Fraction(1, 2**39)) == 1 + Fraction(1, 2**39)
    assert rounded(1 + Fraction(1, 2**41)) == 1
    assert select([1, 1 + Fraction(1, 2**41), 1 + Fraction(1, 2**39)], 2) == (0, 2)
    for g in np.random.default_rng(0).lognormal(sigma=20, size=1000):
        c = g * (2**13 + 1)
        assert rounded(Fraction(g)) == c - (c - g)


@BOTH
def test_a_sample_between_the_centers_goes_to_the_first_class(power):
    exact = solve(power, [[0, 0], [0, 2], [2, 0], [2, 2]], [0, 0, 1, 1], 1)
    assert exact.support == (0,)
    assert exact.centers == [[0, 1], [2, 1]]
    predict, decide = (predict_l1, decision_l1) if power == 1 else (predict_l2, decision_l2)
    assert predict(exact, [1, 1]) == 0
    assert decide(exact, [1, 1]) == 0
    assert predict(exact, [1.25, 1]) == 1


def test_l1_centers_of_even_columns_are_midpoints():
    X = [[0, -1, 2, 0], [0, 3, 4, 5], [1, 0, 0, 0], [0, 0, 6, 7]]
    exact = exact_l1(X + X, [0] * 4 + [1] * 4, 1)
    assert exact.free[0] == exact.free[1] == exact.tied == [0, 0, 3, 2.5]
    assert exact.gain == [0] * 4
    assert exact.lo[0] == [0, 0, 2, 0]
    assert exact.hi[0] == [0, 0, 4, 5]


def test_intervals_that_meet_have_no_gain():
    exact = exact_l1([[0], [4], [3], [9]], [0, 0, 1, 1], 1)
    assert exact.free == [[2], [6]]
    assert exact.gain == [0]
    assert exact.tied == [3.5]


def test_l1_gain_beside_huge_values():
    B = 10**16
    exact = exact_l1([[0], [0], [B], [1], [1], [-B]], [0, 0, 0, 1, 1, 1], 1)
    assert exact.gain == [Fraction(1, 3)]
    assert exact.tied == [0.5]


def test_two_class_l2_gain_is_half_the_squared_difference():
    for X, y, weights, k in problems(100, classes=2):
        exact = exact_l2(X, y, k, weights)
        assert exact.gain == [(b - a) ** 2 / 2 for a, b in zip(*exact.free, strict=True)]
        assert exact.tied == [(a + b) / 2 for a, b in zip(*exact.free, strict=True)]


def test_l2_tied_center_is_the_mean_of_the_means():
    exact = exact_l2([[0], [0], [0], [3], [6]], [0, 0, 0, 1, 2], 1)
    assert exact.tied == [3]
    assert exact.gain == [18]


@BOTH
def test_against_numpy_with_weights_as_repetitions(power):
    center = np.median if power == 1 else np.mean
    for X, y, weights, k in problems(100, seed=1):
        exact = solve(power, X, y, k, weights)
        times = np.ones(len(y), dtype=int) if weights is None else weights
        for c, free in enumerate(exact.free):
            rows = np.repeat(X[y == c], times[y == c], axis=0)
            np.testing.assert_allclose(np.array(free, dtype=float), center(rows, axis=0))
        copies = solve(power, np.repeat(X, times, axis=0), np.repeat(y, times), k)
        assert copies == exact


@BOTH
def test_no_feasible_centers_have_a_smaller_loss(power):
    rng = np.random.default_rng(2)
    for X, y, weights, k in problems(100, seed=2):
        exact = solve(power, X, y, k, weights)
        assert exact.objective == total_loss(power, X, y, weights, exact.centers)
        K, m = len(exact.free), X.shape[1]
        assert len(exact.support) == k
        assert sum(len({row[i] for row in exact.centers}) > 1 for i in range(m)) <= k
        for _ in range(10):
            support = rng.choice(m, size=k, replace=False)
            theta = [list(exact.tied) for _ in range(K)]
            moved = [list(exact.tied) for _ in range(K)]
            for i in range(m):
                shift = Fraction(int(rng.integers(-4, 5)), 6)
                for c in range(K):
                    if i in support:
                        theta[c][i] = exact.free[c][i]
                        moved[c][i] = Fraction(int(rng.integers(-12, 13)), 2)
                    else:
                        moved[c][i] += shift
            assert total_loss(power, X, y, weights, theta) >= exact.objective
            assert total_loss(power, X, y, weights, moved) >= exact.objective


@BOTH
def test_objective_falls_by_the_gains(power):
    for X, y, weights, _ in problems(50, seed=3):
        path = [solve(power, X, y, k, weights) for k in range(1, X.shape[1] + 1)]
        gains = sorted(path[0].gain, reverse=True)
        steps = [a.objective - b.objective for a, b in pairwise(path)]
        assert steps == gains[1:]
        assert solve(power, X, y, 99, weights) == path[-1]


@BOTH
def test_decision_agrees_with_the_distances_over_all_features(power):
    predict, decide = (predict_l1, decision_l1) if power == 1 else (predict_l2, decision_l2)
    for X, y, weights, k in problems(100, seed=4):
        exact = solve(power, X, y, k, weights, variance(X, y, weights))
        for x in X:
            scores = decide(exact, x)
            scores = scores if isinstance(scores, list) else [0, scores]
            assert predict(exact, x) == scores.index(max(scores))


def test_l2_scores_centred_at_the_tied_center():
    for X, y, weights, k in problems(50, seed=5, classes=3):
        exact = exact_l2(X, y, k, weights, variance(X, y, weights))
        x = X[0].tolist()
        for row, score in zip(exact.centers, decision_l2(exact, x), strict=True):
            terms = [
                (2 * (row[i] - t) * (x[i] - t) - (row[i] - t) ** 2) / exact.divisor[i]
                for i, t in enumerate(exact.tied)
            ]
            assert score == sum(terms)


def test_priors_shift_decisions_and_predictions():
    same = exact_l2([[1], [1], [1]], [0, 1, 1], 1)
    assert predict_l2(same, [5]) == 0
    assert predict_l2(same, [5], priors=[1 / 3, 2 / 3]) == 1
    assert predict_l2(same, [5], priors=[0.5, 0.5]) == 0
    assert decision_l2(same, [5], priors=[0.2, 0.8]) == pytest.approx(2 * np.log(4))
    three = exact_l2([[0], [1], [2]], [0, 1, 2], 1)
    priors = [0.5, 0.25, 0.25]
    assert decision_l2(three, [1]) == [-1, 0, -1]
    assert decision_l2(three, [1], priors) == pytest.approx([-1, 0, -1] + 2 * np.log(priors))
    assert predict_l2(three, [0.75]) == 1
    assert predict_l2(three, [0.75], priors) == 0


def test_variance_equals_worked_examples():
    X, y = [[0, 7, 1], [2, 7, 1], [4, 7, 3], [6, 7, 3]], [0, 0, 1, 1]
    assert variance(X, y) == [5, 1, 1]
    assert variance(X, y, kind="pooled") == [2, 1, 4 * Fraction(1, 2**52)]
    assert variance(X, y, [1, 1, 0, 2])[0] == Fraction(27, 4)  # of 0, 2, 6, 6
    assert variance(X, y, [1, 1, 1, 3], kind="pooled")[0] == Fraction(5, 4)
    assert variance([[10000], [10001], [10002]], [0, 0, 1]) == [Fraction(2, 3)]
    assert variance([[0], [2], [4]], [0, 0, 1], [0.5, 0.5, 1], "pooled") == [Fraction(1, 2)]
    with pytest.raises(ValueError, match="one sample in each class"):
        variance([[0], [1]], [0, 1], kind="pooled")


@BOTH
def test_scale_divides_the_loss(power):
    X, y = np.array([[0, 0], [0, 0], [4, 3], [4, 3]]), [0, 0, 1, 1]
    assert solve(power, X, y, 1).support == (0,)
    exact = solve(power, X, y, 1, divisor=[4.0, Fraction(1, 2)])
    assert exact.support == (1,)
    assert exact.tied == [2, 1.5]
    assert exact.gain == ([1, 6] if power == 1 else [2, 9])
    assert exact.objective == exact.gain[0]


@BOTH
def test_input_kinds_are_read_exactly(power):
    X, y = [[0, 1], [3, -2], [2, 5]], [0, 1, 1]
    exact = solve(power, X, y, 1)
    for dtype in (np.int8, np.float16, np.float32, np.float64, object):
        assert solve(power, np.array(X, dtype=dtype), np.array(y), 1) == exact
    assert solve(power, [[0.1], [0.1]], [0, 1], 1).tied == [Fraction(0.1)]
    with pytest.raises(ValueError, match="class"):
        solve(power, X, y, 1, [0, 1, 1])


def test_random_problems_are_varied():
    seen = set()
    for X, y, weights, k in problems(1000, seed=6):
        K = y.max() + 1
        assert all((y == c).any() for c in range(K))
        for exact in (exact_l1(X, y, k, weights), exact_l2(X, y, k, weights)):
            positive = [g for g in exact.gain if g]
            seen |= {("gain", bool(g)) for g in exact.gain}
            seen |= {("tie", len(set(positive)) < len(positive)), ("partial", k < X.shape[1])}
        seen |= {("classes", K), ("weighted", weights is not None), ("negative", (X < 0).any())}
    assert len(seen) == 12
