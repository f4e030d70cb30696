"""Selection: the meaning of k, the ranking of gains, and the order of ties."""

from __future__ import annotations

import itertools
import re
from fractions import Fraction
from typing import Any

import exact
import numpy as np
import pytest
from exact import rounded
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from small_data import HALVES, NORMAL, PLAIN, Y, each_kind, fit_plain
from strategies import Problem, modest, problems, quietly

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    UninformativeFeaturesWarning,
)
from gpucenters.arrays import functions
from gpucenters.arrays.backend import backend_of
from gpucenters.arrays.context import Context
from gpucenters.arrays.functions import top_k
from gpucenters.solvers import l1_centers, l2_centers, ranking_key, resolve_k, select
from gpucenters.solvers.selection import nested_supports

MODELS = [L2CenterClassifier, L1CenterClassifier]


@pytest.mark.parametrize("one", [1, np.int64(1), np.uint8(1)])
def test_a_whole_k_is_a_number_of_features(one: Any) -> None:
    assert resolve_k(one, 100) == 1
    assert resolve_k(one * 7, 100) == 7


@pytest.mark.parametrize("one", [1.0, np.float64(1.0), np.float32(1.0)])
def test_k_of_one_point_zero_is_all_features(one: Any) -> None:
    assert resolve_k(one, 100) == 100


def test_k_all_is_all_features() -> None:
    assert resolve_k("all", 37) == 37


@pytest.mark.parametrize("m", [1, 3, 100])
def test_the_smallest_fraction_selects_one_feature(m: int) -> None:
    assert resolve_k(5e-324, m) == 1
    assert resolve_k(1e-9, m) == 1


def test_a_fraction_of_029_of_100_features_is_29() -> None:
    assert 0.29 * 100 < 29  # in floats
    assert resolve_k(0.29, 100) == 29


def test_each_percentage_is_rounded_down_as_in_exact_arithmetic() -> None:
    for m in [*range(1, 210), 1000, 12345, 10**6, 12_082_555, 10**9]:
        assert [resolve_k(j / 100, m) for j in range(1, 101)] == [
            max(1, j * m // 100) for j in range(1, 101)
        ]


def test_a_fraction_of_j_over_m_is_j_features() -> None:
    for m in range(1, 200):
        assert [resolve_k(j / m, m) for j in range(1, m + 1)] == list(range(1, m + 1))


WRONG = [
    True,
    False,
    np.True_,
    0,
    -1,
    np.int64(0),
    0.0,
    -0.5,
    1.0000001,
    1.5,
    20.0,
    float("nan"),
    float("inf"),
    "ALL",
    "",
    "10",
    b"all",
    None,
    [1],
    1j,
]


@pytest.mark.parametrize("k", WRONG, ids=repr)
def test_resolve_k_refuses_an_invalid_k(k: Any) -> None:
    with pytest.raises(ValueError, match="is not valid"):
        resolve_k(k, 100)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("k", WRONG, ids=repr)
def test_fit_and_with_k_refuse_an_invalid_k(model: Any, k: Any, on_host: Any) -> None:
    X = on_host.array([[0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(ValueError, match="is not valid"):
        model(k=k).fit(X, [0, 1])
    with pytest.raises(ValueError, match="is not valid"):
        model().fit(X, [0, 1]).with_k(k)


def test_a_k_above_n_features_warns_and_selects_all(backend: Any) -> None:
    with pytest.warns(UserWarning, match="k=4 is greater than n_features=3"):
        assert resolve_k(4, 3) == 3
    with pytest.warns(UserWarning, match="k=4 is greater than n_features=3"):
        chosen = select(backend.array([1.0, 2.0, 3.0]), 4)
    assert backend.host(chosen.support).tolist() == [0, 1, 2]


@pytest.mark.parametrize("k", [3, 4, 0.75])
def test_a_k_above_the_number_of_positive_gains_warns(k: Any, backend: Any) -> None:
    gain = backend.array([0.0, 2.0, 0.0, 1.0])
    with pytest.warns(
        UninformativeFeaturesWarning, match="more features than have a positive gain"
    ):
        chosen = select(gain, k)
    expected = {3: [0, 1, 3], 4: [0, 1, 2, 3], 0.75: [0, 1, 3]}[k]
    assert backend.host(chosen.support).tolist() == expected


def test_one_feature_of_none_with_positive_gain_warns(backend: Any) -> None:
    with pytest.warns(
        UninformativeFeaturesWarning, match="none of the .* features has a positive gain"
    ):
        select(backend.array([0.0, 0.0]), 1)


def test_a_k_up_to_the_positive_gains_does_not_warn(backend: Any) -> None:
    gain = backend.array([0.0, 2.0, 0.0, 1.0])
    for k in ("all", 1, 2, 0.5):
        select(gain, k)  # a warning is an error in tests


@pytest.mark.parametrize("model", MODELS)
def test_fit_and_with_k_above_the_number_of_positive_gains_warn(model: Any, backend: Any) -> None:
    X, y = backend.array([[0.0, 0.0, 1.0], [1.0, 0.0, 1.0]]), np.asarray([0, 1])
    with pytest.warns(
        UninformativeFeaturesWarning, match="more features than have a positive gain"
    ):
        model(k=2).fit(X, y)
    fitted = model().fit(X, y)
    with pytest.warns(
        UninformativeFeaturesWarning, match="more features than have a positive gain"
    ):
        fitted.with_k(2)


# Most of these are pairs of gains that are equal in 40 bits.
GAINS = [0.0, 0.1, float(np.nextafter(0.1, 1)), 1.0, 1.0 + 2**-50, 3.0, 3.0 - 2**-50, 7e300]


@given(
    gain=st.lists(st.sampled_from(GAINS) | st.floats(0, 10), min_size=1, max_size=30),
    data=st.data(),
)
@modest(60)
def test_equals_a_plain_sort_of_rounded_gains(gain: list, data: Any, backend: Any) -> None:
    k = data.draw(st.integers(1, len(gain)))
    order = sorted(range(len(gain)), key=lambda i: (-rounded(Fraction(gain[i])), i))[:k]
    chosen = quietly(select, backend.array(gain), k)
    assert backend.host(chosen.ranking).tolist() == order
    assert backend.host(chosen.support).tolist() == sorted(order)


@pytest.mark.parametrize("m", [1, 2, 1000])
def test_equal_gains_go_to_the_lower_indices(m: int, backend: Any) -> None:
    gain = backend.array(np.full(m, 0.1))
    for k in {1, m // 2 or 1, m}:
        chosen = select(gain, k)
        assert backend.host(chosen.support).tolist() == list(range(k))
        assert backend.host(chosen.ranking).tolist() == list(range(k))


@pytest.mark.parametrize("solve", [l2_centers, l1_centers])
@given(problem=problems())
@modest(20)
def test_supports_are_nested_and_rankings_are_prefixes(
    solve: Any, problem: Problem, backend: Any
) -> None:
    centers = solve(backend.array(problem.X), problem.y, sample_weight=problem.weights)
    m = problem.X.shape[1]
    ranking = backend.host(select(centers, "all").ranking).tolist()
    assert sorted(ranking) == list(range(m))
    for k in range(1, m + 1):
        chosen = quietly(select, centers, k)
        assert backend.host(chosen.ranking).tolist() == ranking[:k]
        assert backend.host(chosen.support).tolist() == sorted(ranking[:k])


def test_the_ranking_is_by_descending_gain_and_then_by_index(backend: Any) -> None:
    chosen = select(backend.array([1.0, 5.0, 0.5, 5.0, 2.0]), "all")
    assert backend.host(chosen.ranking).tolist() == [1, 3, 4, 0, 2]
    assert backend.host(chosen.support).tolist() == [0, 1, 2, 3, 4]
    backend.check(chosen.support)


def _by_sort(key: np.ndarray, k: int) -> np.ndarray:
    return np.sort(np.argsort(-key, kind="stable")[:k])


@pytest.mark.parametrize("kind", ["spread", "few values", "mostly zero", "rising", "falling"])
def test_the_k_largest_of_many_are_those_of_a_full_sort(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A sample of a long list gives a bound, and only the keys above it are sorted.
    monkeypatch.setattr(functions, "_SAMPLED_FROM", 256)
    rng = np.random.default_rng(5)
    for _ in range(40):
        m = int(rng.integers(256, 3000))
        key = {
            "spread": rng.exponential(size=m) ** 4,
            "few values": np.floor(3 * rng.exponential(size=m)),
            "mostly zero": np.where(rng.random(m) < 0.01, rng.random(m), 0.0),
            "rising": np.arange(m) / m,
            "falling": -np.arange(m) / m,
        }[kind]
        for k in (1, 2, m // 40, m // 16, m // 16 + 1, m // 2):
            found = top_k(key, k)
            assert found.dtype == np.int64
            np.testing.assert_array_equal(found, _by_sort(key, k))
            for near in (key[found].min(), 1.01 * key[found].min(), 0.0, 1e300):
                np.testing.assert_array_equal(top_k(key, k, near), found)


def test_nearly_all_features_of_many_are_those_of_a_full_sort(backend: Any) -> None:
    m, values = 50_000, np.random.default_rng(3).permutation(50_000) / 3.0
    for left_out in (1, 7, 300):
        found = backend.host(select(backend.array(values), m - left_out).support)
        np.testing.assert_array_equal(found, np.flatnonzero(values >= np.sort(values)[left_out]))


@pytest.mark.parametrize("value", [0.0, 1.0])  # that most have: below the k-th largest, or that
def test_the_k_largest_where_most_are_equal_take_no_partition_of_all(
    value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # NumPy's takes thirty times as long there.
    rng, m = np.random.default_rng(5), 2**17
    key = np.where(rng.random(m) < 0.8, value, value + rng.random(m))
    sizes = []
    partition = np.partition
    monkeypatch.setattr(np, "partition", lambda x, n: (sizes.append(len(x)), partition(x, n))[1])
    k = m // 4 if value else m // 8
    np.testing.assert_array_equal(top_k(key, k), _by_sort(key, k))
    assert max(sizes, default=0) <= m // 2


def test_select_two_of_four_equal_gains_takes_the_lower_indices(backend: Any) -> None:
    chosen = select(backend.array([3.0, 1.0, 3.0, 3.0, 2.0, 3.0]), 2)
    assert backend.host(chosen.support).tolist() == [0, 2]
    assert backend.host(chosen.ranking).tolist() == [0, 2]


def _far_from_rounding(gain: Fraction) -> bool:
    """Whether a change of a few units in the last place leaves the 40-bit key."""
    slack = Fraction(1, 2**48)
    return exact.rounded(gain * (1 - slack)) == exact.rounded(gain * (1 + slack))


@pytest.mark.parametrize("names", ["l2", "l1"])
@given(
    column=arrays(np.float64, 16, elements=st.floats(0, 1, width=32).map(lambda x: x / 3)),
    classes=st.integers(2, 4),
    seed=st.integers(0, 2**32 - 1),
)
@modest(6)
def test_gains_equal_in_exact_arithmetic_rank_by_index_in_any_row_order(
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
def test_the_ranking_key_is_the_gain_rounded_to_40_bits(gains: list, backend: Any) -> None:
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


@pytest.mark.parametrize("gain", [[np.nan, 1, 2], [np.inf, 1, np.inf]])
def test_select_refuses_nan_and_infinite_gains(gain: list) -> None:
    with pytest.raises(ValueError, match="NaN or infinity"):
        select(np.asarray(gain), 1)


def test_select_accepts_float32_and_integer_gains() -> None:
    assert select(np.asarray([3, 1, 4], dtype=np.float32), 2).support.tolist() == [0, 2]
    assert select(np.asarray([3, 1, 4]), 1).support.tolist() == [2]


@pytest.mark.parametrize(
    "k", [0, -1, 1.5, np.nan, np.inf, 0.0, True, np.True_, "most", None, [2]], ids=repr
)
@each_kind
def test_every_method_that_takes_k_refuses_an_invalid_k(kind: Any, k: Any) -> None:
    calls = [lambda: kind(k=k).fit(PLAIN, Y), lambda: fit_plain(kind()).with_k(k)]
    if kind is L2CenterClassifier:
        calls.append(lambda: kind(k=k).partial_fit(PLAIN, Y, classes=[0, 1]))
    for call in calls:
        with pytest.raises(ValueError, match=re.escape(f"k={k!r} is not valid")):
            call()


def test_k_above_n_features_selects_all_with_a_warning(backend: Any) -> None:
    X = backend.array(PLAIN)
    with pytest.warns(UserWarning, match="k=9 is greater than n_features=4"):
        model = L2CenterClassifier(k=9).fit(X, Y)
    assert model.support_.tolist() == [0, 1, 2, 3]


@each_kind
def test_fit_with_k_above_the_number_of_positive_gains_warns(kind: Any) -> None:
    X = np.column_stack([Y, np.ones(5), np.ones(5)])
    with pytest.warns(
        UninformativeFeaturesWarning, match="more features than have a positive gain"
    ):
        model = kind(k=2).fit(X, Y)
    assert model.support_.tolist() == [0, 1]


def test_a_huge_k_warns_once_and_says_the_width() -> None:
    with pytest.warns(UserWarning, match="greater than n_features=6") as seen:
        L2CenterClassifier(k=2**63).fit(NORMAL, HALVES)
    assert len([w for w in seen if "n_features" in str(w.message)]) == 1


@pytest.mark.parametrize("gain", [[[1.0, 2.0]], [1j, 2.0]], ids=["two dimensions", "complex"])
def test_select_refuses_gains_that_are_not_a_list_of_real_numbers(gain: list) -> None:
    with pytest.raises(ValueError, match="gain must be m real numbers"):
        select(np.asarray(gain), 1)


@pytest.mark.parametrize("seed", range(6))
def test_nested_supports_are_those_of_each_k(seed: int, backend: Any) -> None:
    rng = np.random.default_rng(seed)
    m = int(rng.integers(3, 60))
    gain = rng.integers(1, int(rng.integers(3, 30)), m) / 7.0
    for count in (1, 2, 5, m):
        for last in (m, int(rng.integers(1, m + 1))):
            ks = sorted({*rng.integers(1, last + 1, count).tolist(), last})
            held = backend.array(gain)
            found = backend.host(nested_supports(held, ks, Context.of(backend_of(held))))
            for a, b in itertools.pairwise([0, *ks]):
                expected = backend.host(select(held, b).support)
                np.testing.assert_array_equal(np.sort(found[:b]), expected)
                np.testing.assert_array_equal(found[a:b], np.sort(found[a:b]))
