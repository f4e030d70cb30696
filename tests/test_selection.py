"""Which k features: what k means, and how ties are settled."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from exact import rounded
from hypothesis import given
from hypothesis import strategies as st
from strategies import Problem, modest, problems, quietly

from gpucenters import L1CenterClassifier, L2CenterClassifier
from gpucenters.arrays import numpy_cupy, portable
from gpucenters.arrays.namespace import array_namespace
from gpucenters.solvers import l1_centers, l2_centers, resolve_k, select

MODELS = [L2CenterClassifier, L1CenterClassifier]


@pytest.mark.parametrize("one", [1, np.int64(1), np.uint8(1)])
def test_a_whole_number_is_a_number_of_features(one: Any) -> None:
    assert resolve_k(one, 100) == 1
    assert resolve_k(one * 7, 100) == 7


@pytest.mark.parametrize("one", [1.0, np.float64(1.0), np.float32(1.0)])
def test_one_point_zero_is_all_features(one: Any) -> None:
    assert resolve_k(one, 100) == 100


def test_all_is_all_features() -> None:
    assert resolve_k("all", 37) == 37


@pytest.mark.parametrize("m", [1, 3, 100])
def test_the_smallest_fraction_is_one_feature(m: int) -> None:
    assert resolve_k(5e-324, m) == 1
    assert resolve_k(1e-9, m) == 1


def test_029_of_100_is_29() -> None:
    assert 0.29 * 100 < 29  # in floats
    assert resolve_k(0.29, 100) == 29


def test_each_percentage_is_rounded_down_as_in_exact_arithmetic() -> None:
    for m in [*range(1, 210), 1000, 12345, 10**6, 12_082_555, 10**9]:
        assert [resolve_k(j / 100, m) for j in range(1, 101)] == [
            max(1, j * m // 100) for j in range(1, 101)
        ]


def test_j_out_of_m_is_j() -> None:
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
def test_anything_else_is_an_error_that_shows_it(k: Any) -> None:
    with pytest.raises(ValueError, match="is not valid"):
        resolve_k(k, 100)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("k", WRONG, ids=repr)
def test_models_refuse_a_wrong_k(model: Any, k: Any, on_host: Any) -> None:
    X = on_host.array([[0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(ValueError, match="is not valid"):
        model(k=k).fit(X, [0, 1])
    with pytest.raises(ValueError, match="is not valid"):
        model().fit(X, [0, 1]).with_k(k)


def test_more_than_there_are_warns_and_means_all(backend: Any) -> None:
    with pytest.warns(UserWarning, match="k=4 is greater than n_features=3"):
        assert resolve_k(4, 3) == 3
    with pytest.warns(UserWarning, match="k=4 is greater than n_features=3"):
        chosen = select(backend.array([1.0, 2.0, 3.0]), 4)
    assert backend.host(chosen.support).tolist() == [0, 1, 2]


@pytest.mark.parametrize("k", [3, 4, 0.75])
def test_more_than_the_positive_gains_warns_with_their_number(k: Any, backend: Any) -> None:
    gain = backend.array([0.0, 2.0, 0.0, 1.0])
    with pytest.warns(UserWarning, match="only 2 have a positive gain"):
        chosen = select(gain, k)
    assert chosen.support.shape == (resolve_k(k, 4),)


def test_one_feature_of_none_with_positive_gain_warns(backend: Any) -> None:
    with pytest.warns(UserWarning, match="only 0 have a positive gain"):
        select(backend.array([0.0, 0.0]), 1)


def test_all_or_few_enough_do_not_warn(backend: Any) -> None:
    gain = backend.array([0.0, 2.0, 0.0, 1.0])
    for k in ("all", 1, 2, 0.5):
        select(gain, k)  # a warning would be an error


@pytest.mark.parametrize("model", MODELS)
def test_fit_and_with_k_warn_with_the_number(model: Any, backend: Any) -> None:
    X, y = backend.array([[0.0, 0.0, 1.0], [1.0, 0.0, 1.0]]), np.asarray([0, 1])
    with pytest.warns(UserWarning, match="only 1 have a positive gain"):
        model(k=2).fit(X, y)
    fitted = model().fit(X, y)
    with pytest.warns(UserWarning, match="only 1 have a positive gain"):
        fitted.with_k(2)


# Each but the largest stands beside another that is equal to it in 40 bits.
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


@pytest.mark.parametrize("kind", ["spread", "few values", "mostly zero", "rising", "falling"])
def test_the_k_largest_of_many_are_those_of_a_full_sort(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Long lists are first thinned out by what a sample says, whatever their ties.
    monkeypatch.setattr(numpy_cupy, "_SAMPLED_FROM", 256)
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
            found = numpy_cupy.top_k(key, k, array_namespace(key))
            assert found.dtype == np.int64
            np.testing.assert_array_equal(found, portable.top_k(key, k, array_namespace(key)))
