"""Metamorphic properties: transformed problems have the transformed solution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import BACKENDS
from hypothesis import given
from hypothesis import strategies as st
from strategies import Problem, assert_close, assert_equal, modest, problems, quietly, solution

from gpucenters import L1CenterClassifier, L2CenterClassifier
from gpucenters.solvers import l1_centers, l2_centers, select

SOLVERS = {"l2": l2_centers, "l1": l1_centers}
MODELS = {"l2": L2CenterClassifier, "l1": L1CenterClassifier}
norms = pytest.mark.parametrize("norm", ["l2", "l1"])
scales = pytest.mark.parametrize("scale", [None, "std", "pooled"])
# Small problems have features that separate the classes.
pytestmark = pytest.mark.filterwarnings("ignore:.*constant up to rounding within each class")
layouts = st.sampled_from(["array", "csr", "csc"])


def _make(backend: Any, layout: str, X: Any, dtype: Any = np.float64) -> Any:
    """X in a layout, or as a plain array where the library has no sparse matrices."""
    return getattr(backend, "array" if backend.sparse is None else layout)(X, dtype)


def _permutation(data: Any, size: int) -> np.ndarray:
    return np.asarray(data.draw(st.permutations(range(size))))


def _pooled_is_defined(problem: Problem) -> bool:
    return np.count_nonzero(problem.weight) > problem.y.max() + 1


def _enough(problem: Problem, scale: str | None) -> Problem:
    """The problem, repeated where pooled variances would have no degrees of freedom."""
    if scale != "pooled" or _pooled_is_defined(problem):
        return problem
    weights = None if problem.weights is None else np.tile(problem.weights, 2)
    return Problem(np.tile(problem.X, (2, 1)), np.tile(problem.y, 2), weights)


def _scaled_alike(scale: str | None, X: Any, y: Any, weights: Any) -> np.ndarray:
    """Features whose scale weights and repetitions give alike.

    The pooled scale of the others, constant in each class, is that of the rounding of n samples.
    """
    if scale != "pooled":
        return np.ones(X.shape[1], dtype=bool)
    ranges = [np.ptp(X[(y == c) & (weights > 0)], axis=0) for c in range(y.max() + 1)]
    return np.any(ranges, axis=0)


@norms
@given(problem=problems(), data=st.data(), layout=layouts)
@modest(8)
def test_permuting_rows_leaves_the_solution(
    norm: str, problem: Problem, data: Any, layout: str, backend: Any
) -> None:
    X, y, weights = problem
    order = _permutation(data, len(y))
    s = None if weights is None else weights[order]
    expected = SOLVERS[norm](_make(backend, layout, X), y, sample_weight=weights)
    found = SOLVERS[norm](_make(backend, layout, X[order]), y[order], sample_weight=s)
    assert_close(solution(found, backend), solution(expected, backend))
    ours, theirs = (backend.host(select(c, "all").ranking) for c in (found, expected))
    assert ours.tolist() == theirs.tolist()
    if norm == "l2":
        np.testing.assert_array_equal(backend.host(found.gain), backend.host(expected.gain))


@norms
@given(problem=problems(), data=st.data(), layout=layouts)
@modest(8)
def test_permuting_features_permutes_the_solution(
    norm: str, problem: Problem, data: Any, layout: str, backend: Any
) -> None:
    X, y, weights = problem
    order = _permutation(data, X.shape[1])
    whole = solution(SOLVERS[norm](_make(backend, layout, X), y, sample_weight=weights), backend)
    expected = {name: whole[name][..., order] for name in ("free", "tied", "gain")}
    centers = SOLVERS[norm](_make(backend, layout, X[:, order]), y, sample_weight=weights)
    found = solution(centers, backend)
    assert_close(found, expected | {"loss": whole["loss"]})
    np.testing.assert_array_equal(found["free"], expected["free"])


@norms
@given(problem=problems(), data=st.data(), layout=layouts)
@modest(8)
def test_permuting_classes_permutes_the_centers(
    norm: str, problem: Problem, data: Any, layout: str, backend: Any
) -> None:
    X, y, weights = problem
    new = _permutation(data, int(y.max()) + 1)
    container = _make(backend, layout, X)
    expected = SOLVERS[norm](container, y, sample_weight=weights)
    found = SOLVERS[norm](container, new[y], sample_weight=weights)
    np.testing.assert_array_equal(backend.host(found.free)[new], backend.host(expected.free))
    pair = [solution(c, backend) for c in (found, expected)]
    assert_close(pair[0], pair[1] | {"free": pair[0]["free"]})
    ours, theirs = (backend.host(select(c, "all").ranking) for c in (found, expected))
    assert ours.tolist() == theirs.tolist()


@norms
@given(problem=problems(classes=(2, 2)), layout=layouts)
@modest(5)
def test_swapping_two_classes_negates_the_decision(
    norm: str, problem: Problem, layout: str, backend: Any
) -> None:
    X, y, weights = problem
    container = _make(backend, layout, X)
    one = MODELS[norm]().fit(container, y, sample_weight=weights)
    other = MODELS[norm]().fit(container, 1 - y, sample_weight=weights)
    np.testing.assert_allclose(
        backend.host(one.decision_function(container)),
        -backend.host(other.decision_function(container)),
        rtol=1e-12,
        atol=1e-12,
    )


@norms
@pytest.mark.parametrize("scale", [None, "std"])
@given(problem=problems(), data=st.data(), layout=layouts)
@modest(5)
def test_scaling_a_feature_by_a_power_of_two_scales_its_centers_and_gain_alone(
    norm: str, scale: str | None, problem: Problem, data: Any, layout: str, backend: Any
) -> None:
    X, y, weights = problem
    i, power = data.draw(st.integers(0, X.shape[1] - 1)), data.draw(st.integers(-20, 20))
    factors = np.ones(X.shape[1])
    factors[i] = 2.0**power
    before, after = (
        solution(
            SOLVERS[norm](_make(backend, layout, x), y, sample_weight=weights, scale=scale),
            backend,
        )
        for x in (X, X * factors)
    )
    exponent = 0 if scale else {"l2": 2, "l1": 1}[norm]
    expected = {
        "free": before["free"] * factors,
        "tied": before["tied"] * factors,
        "gain": before["gain"] * factors**exponent,
    }
    assert_equal(after, expected)


@norms
@given(problem=problems(), shift=st.integers(-1000, 1000), layout=layouts)
@modest(8)
def test_shifting_all_features_moves_the_centers_and_leaves_the_gains(
    norm: str, problem: Problem, shift: int, layout: str, backend: Any
) -> None:
    X, y, weights = problem
    before, after = (
        SOLVERS[norm](_make(backend, layout, x), y, sample_weight=weights) for x in (X, X + shift)
    )
    before, after = solution(before, backend), solution(after, backend)
    close = {"rtol": 1e-12, "atol": 1e-10}
    np.testing.assert_allclose(after["free"], before["free"] + shift, **close)
    np.testing.assert_allclose(after["tied"], before["tied"] + shift, **close)
    np.testing.assert_allclose(after["gain"], before["gain"], **close)
    if norm == "l1" or y.max() == 1:  # only the last division rounds
        np.testing.assert_allclose(after["gain"], before["gain"], rtol=1e-15)
    np.testing.assert_array_equal(after["gain"] == 0, before["gain"] == 0)
    np.testing.assert_allclose(after["loss"], before["loss"], rtol=1e-9, atol=1e-7)


@norms
@scales
@given(problem=problems(weighted=True), layout=layouts)
@modest(5)
def test_a_whole_weight_equals_as_many_repetitions(
    norm: str, scale: str | None, problem: Problem, layout: str, backend: Any
) -> None:
    X, y, weights = _enough(problem, scale)
    times = np.repeat(np.arange(len(y)), weights)
    container = _make(backend, layout, X)
    found = SOLVERS[norm](container, y, sample_weight=weights, scale=scale)
    expected = SOLVERS[norm](_make(backend, layout, X[times]), y[times], scale=scale)
    scaled = _scaled_alike(scale, X, y, weights)
    pair = [solution(c, backend) for c in (found, expected)]
    assert_close(*({**s, "gain": s["gain"][scaled]} for s in pair))
    if scale:
        ours, theirs = (backend.host(c.scale)[scaled] for c in (found, expected))
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@norms
@scales
@given(problem=problems(), layout=layouts)
@modest(5)
def test_duplicating_all_samples_equals_doubling_all_weights(
    norm: str, scale: str | None, problem: Problem, layout: str, backend: Any
) -> None:
    X, y, _ = problem = _enough(problem, scale)
    s = problem.weight
    container, twice = (_make(backend, layout, x) for x in (X, np.concatenate([X, X])))
    found = SOLVERS[norm](twice, np.tile(y, 2), sample_weight=np.tile(s, 2), scale=scale)
    expected = SOLVERS[norm](container, y, sample_weight=2 * s, scale=scale)
    scaled = _scaled_alike(scale, X, y, s)
    pair = [solution(c, backend) for c in (found, expected)]
    assert_close(*({**s, "gain": s["gain"][scaled]} for s in pair))


@norms
@scales
@given(problem=problems(weighted=True), layout=layouts)
@modest(5)
def test_a_weight_of_zero_equals_leaving_the_sample_out(
    norm: str, scale: str | None, problem: Problem, layout: str, backend: Any
) -> None:
    X, y, weights = _enough(problem, scale)
    kept = weights > 0
    X[~kept] += 5  # any finite value
    found, expected = (
        SOLVERS[norm](_make(backend, layout, X[r]), y[r], sample_weight=weights[r], scale=scale)
        for r in (slice(None), kept)
    )
    assert_close(solution(found, backend), solution(expected, backend))


@norms
@scales
@given(problem=problems(), unit=st.sampled_from([1.0, 0.7]))
@modest(5)
def test_dense_csr_and_csc_agree(
    norm: str, scale: str | None, problem: Problem, unit: float, sparse_backend: Any
) -> None:
    X, y, weights = _enough(problem, scale)
    found = []
    for container in sparse_backend.containers(X * unit):
        centers = SOLVERS[norm](container, y, sample_weight=weights, scale=scale)
        found.append(solution(centers, sparse_backend))
        model = MODELS[norm](scale=scale).fit(container, y, sample_weight=weights)
        found[-1]["decision"] = sparse_backend.host(model.decision_function(container))
    assert_close(found[1], found[0])
    assert_close(found[2], found[0])


@given(problem=problems(), data=st.data(), layout=layouts)
@modest(12)
def test_any_batches_in_any_order_give_the_bits_of_one_fit(
    problem: Problem, data: Any, layout: str, backend: Any
) -> None:
    X, y, weights = problem
    n = len(y)
    cuts = sorted(data.draw(st.sets(st.integers(1, n - 1))))
    batches = data.draw(st.permutations(np.split(_permutation(data, n), cuts)))
    model = L2CenterClassifier()
    for rows in batches:
        s = None if weights is None else weights[rows]
        model.partial_fit(
            _make(backend, layout, X[rows]), y[rows], range(int(y.max()) + 1), sample_weight=s
        )
    whole = L2CenterClassifier().fit(_make(backend, layout, X), y, sample_weight=weights)
    for name in ("scores_", "centers_"):
        ours, theirs = (backend.host(getattr(m, name)) for m in (model, whole))
        np.testing.assert_array_equal(ours, theirs, err_msg=name)
    assert model.ranking_.tolist() == whole.ranking_.tolist()
    assert model.support_.tolist() == whole.support_.tolist()
    assert model.objective_ == pytest.approx(whole.objective_, rel=1e-12, abs=1e-12)
    if layout != "array" and backend.sparse is not None:  # raw sums add exactly
        assert model.objective_ == whole.objective_


@pytest.mark.parametrize("scale", ["std", "pooled"])
@given(problem=problems(), data=st.data(), layout=layouts)
@modest(5)
def test_any_batches_give_the_scale_of_one_fit(
    scale: str, problem: Problem, data: Any, layout: str, backend: Any
) -> None:
    X, y, weights = _enough(problem, scale)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(y) - 1))))
    model = L2CenterClassifier(scale=scale)
    for rows in np.split(_permutation(data, len(y)), cuts):
        s = None if weights is None else weights[rows]
        model.partial_fit(
            _make(backend, layout, X[rows]), y[rows], range(int(y.max()) + 1), sample_weight=s
        )
    whole = L2CenterClassifier(scale=scale)
    whole.fit(_make(backend, layout, X), y, sample_weight=weights)
    for name in ("scale_", "scores_"):
        ours, theirs = (backend.host(getattr(m, name)) for m in (model, whole))
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14, err_msg=name)


def _loss(problem: Problem, centers: np.ndarray, scale: Any, power: int) -> float:
    """The objective by its definition, from the data."""
    divisor = 1.0 if scale is None else scale**power
    away = np.sum(np.abs(problem.X - centers[problem.y]) ** power / divisor, axis=1)
    classes = range(int(problem.y.max()) + 1)
    return sum(np.average(away[problem.y == c], weights=problem.weight[problem.y == c])
               for c in classes)  # fmt: skip


@norms
@scales
@given(problem=problems(), layout=layouts)
@modest(5)
def test_the_objective_is_the_loss_of_the_centers_and_falls_in_k(
    norm: str, scale: str | None, problem: Problem, layout: str, backend: Any
) -> None:
    X, y, weights = problem = _enough(problem, scale)
    container = _make(backend, layout, X)
    model = MODELS[norm](scale=scale).fit(container, y, sample_weight=weights)
    tied = backend.host(SOLVERS[norm](container, y, sample_weight=weights, scale=scale).tied)
    sigma = None if scale is None else backend.host(model.scale_)
    objectives = []
    for k in range(1, X.shape[1] + 1):
        at = quietly(model.with_k, k)
        centers = np.tile(tied, (int(y.max()) + 1, 1))
        centers[:, at.support_] = backend.host(at.centers_)
        expected = _loss(problem, centers, sigma, {"l2": 2, "l1": 1}[norm])
        assert at.objective_ == pytest.approx(expected, rel=1e-11, abs=1e-11)
        objectives.append(at.objective_)
    assert objectives == sorted(objectives, reverse=True)


@norms
@given(
    seed=st.integers(0, 2**32 - 1),
    classes=st.integers(2, 5),
    offset=st.sampled_from([0.0, 0.1, 1e8]),
    layout=layouts,
)
@modest(8)
def test_gains_are_never_negative(
    norm: str, seed: int, classes: int, offset: float, layout: str, backend: Any
) -> None:
    rng = np.random.default_rng(seed)
    X = (
        offset
        + 0.1 * rng.integers(0, 3, size=(20, 4))
        + [0.0, 1e-9, 0.0, 1e-5] * rng.random((20, 4))
    )
    y, weights = np.arange(20) % classes, rng.random(20)
    for s in (None, weights):
        centers = SOLVERS[norm](_make(backend, layout, X), y, sample_weight=s)
        assert np.all(backend.host(centers.gain) >= 0)
        assert centers.loss >= 0


@norms
@given(problem=problems(), layout=layouts)
@modest(5)
def test_with_k_equals_a_fresh_fit_for_every_k(
    norm: str, problem: Problem, layout: str, backend: Any
) -> None:
    X, y, weights = problem
    container = _make(backend, layout, X)
    model = MODELS[norm]().fit(container, y, sample_weight=weights)
    for k in [*range(1, X.shape[1] + 1), 0.5, "all"]:
        fresh = quietly(MODELS[norm](k=k).fit, container, y, sample_weight=weights)
        copy = quietly(model.with_k, k)
        assert copy.k == k and model.k == "all"
        assert copy.support_.tolist() == fresh.support_.tolist()
        assert copy.ranking_.tolist() == fresh.ranking_.tolist()
        backend.assert_same(*(backend.array([m.objective_]) for m in (copy, fresh)))
        for ours, theirs in (
            (copy.centers_, fresh.centers_),
            (copy.decision_function(container), fresh.decision_function(container)),
            (copy.predict(container), fresh.predict(container)),
        ):
            backend.assert_same(ours, theirs)


@norms
@scales
@given(seed=st.integers(0, 2**32 - 1), layout=layouts)
@modest(5)
def test_float32_gives_the_bits_of_the_same_values_in_float64(
    norm: str, scale: str | None, seed: int, layout: str, backend: Any
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((15, 4)).astype(np.float32) + np.float32(100) * (
        rng.random((15, 4)) < 0.5
    )
    y, weights = np.arange(15) % 3, [None, rng.integers(1, 4, size=15)][seed % 2]
    narrow, wide = (_make(backend, layout, X.astype(d), d) for d in (np.float32, np.float64))
    found, expected = (
        SOLVERS[norm](x, y, sample_weight=weights, scale=scale) for x in (narrow, wide)
    )
    found, expected = solution(found, backend), solution(expected, backend)
    for name, value in expected.items():
        backend.assert_same(backend.array(found[name]), backend.array(value))
    model = MODELS[norm](scale=scale).fit(wide, y, sample_weight=weights)
    backend.assert_same(model.decision_function(narrow), model.decision_function(wide))


CONTAINERS = [
    (name, layout)
    for name, backend in BACKENDS.items()
    for layout in (["array"] if backend.sparse is None else ["array", "csr", "csc"])
]


@norms
@scales
@pytest.mark.parametrize(("backend", "layout"), CONTAINERS, indirect=["backend"])
def test_the_memory_budget_changes_no_bit(
    norm: str, scale: str | None, layout: str, backend: Any
) -> None:
    rng = np.random.default_rng(9)
    X = rng.standard_normal((60, 9)) * (rng.random((60, 9)) < [0.3, 0.6, 0.95] * 3)
    y, weights = np.arange(60) % 4, rng.random(60)
    container = _make(backend, layout, X)
    found = []
    for budget in (1, 30_000, "1GB", None):
        model = MODELS[norm](scale=scale, memory_budget=budget)
        model.fit(container, y, sample_weight=weights)
        found.append(
            {
                "gain": backend.host(model.scores_),
                "free": backend.host(model.centers_),
                "decision": backend.host(model.decision_function(container)),
                "objective": np.asarray(model.objective_),
                "ranking": model.ranking_,
            }
        )
    for other in found[1:]:
        assert_equal(other, found[0])
