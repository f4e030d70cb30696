"""Sample weights: their effect, their limits, and which are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_data import HALVES, KINDS, NORMAL, PLAIN, SOLVERS, Y, each_kind, fit_plain

from gpucenters import (
    L2CenterClassifier,
)
from gpucenters.solvers import l2_centers

BAD_WEIGHTS = {
    "negative": ([1, 1, -1, 1, 1], "(?i)negative.*sample_weight.*row 2: -1"),
    "NaN": ([1, 1, np.nan, 1, 1], "sample_weight.*NaN.*row 2"),
    "infinity": ([1, 1, 1, np.inf, 1], "sample_weight.*infinity.*row 3"),
    "too few": ([1, 1], "sample_weight.*2.*5"),
    "too many": ([1] * 6, "sample_weight.*6.*5"),
    "two columns": ([[1, 1]] * 5, "(?i)sample.weight.*1D"),
    "strings": (["a"] * 5, "sample_weight.*numbers"),
    "complex": ([1j] * 5, "sample_weight.*numbers"),
    "zeros": ([0] * 5, "left without weight|all sample weights are zero"),
}


@pytest.mark.parametrize("weights", list(BAD_WEIGHTS))
@each_kind
def test_fit_refuses_invalid_weights(kind: Any, weights: str, backend: Any) -> None:
    values, message = BAD_WEIGHTS[weights]
    X = backend.array(PLAIN)
    forms = [values, np.array(values)]
    if weights not in ("strings", "complex"):
        forms.append(backend.array(np.array(values)))
    for form in forms:
        with pytest.raises((TypeError, ValueError), match=message):
            kind().fit(X, Y, sample_weight=form)


@pytest.mark.parametrize("weights", [w for w in BAD_WEIGHTS if w != "zeros"])
def test_partial_fit_refuses_invalid_weights(weights: str) -> None:
    values, message = BAD_WEIGHTS[weights]
    with pytest.raises((TypeError, ValueError), match=message):
        L2CenterClassifier().partial_fit(PLAIN, Y, classes=[0, 1], sample_weight=values)


@pytest.mark.parametrize("weights", list(BAD_WEIGHTS))
@each_kind
def test_score_refuses_invalid_weights(kind: Any, weights: str) -> None:
    values, message = BAD_WEIGHTS[weights]
    with pytest.raises((TypeError, ValueError), match=message):
        fit_plain(kind()).score(PLAIN, Y, sample_weight=values)


@each_kind
def test_fit_names_a_class_without_weight(kind: Any, backend: Any) -> None:
    y = np.array(["a", "b", "c", "a", "b"])
    for X in backend.containers(PLAIN):
        with pytest.raises(ValueError, match=r"class c .*without weight"):
            kind().fit(X, y, sample_weight=[1, 1, 0, 1, 1])


SQUARE = [[0.0, 0.0], [0.0, 2.0], [2.0, 0.0], [2.0, 2.0]]


@pytest.mark.parametrize("solve", SOLVERS)
def test_solvers_name_a_class_without_weight(solve: Any, backend: Any) -> None:
    with pytest.raises(ValueError, match="class 1"):
        solve(backend.array(SQUARE), [0, 0, 1, 1], sample_weight=[1, 2, 0, 0])


@pytest.mark.parametrize("unit", [1e-90, 1e90])
@pytest.mark.parametrize("scale", [None, "std"])
@pytest.mark.parametrize("kind", KINDS)
def test_equal_weights_of_any_size_give_the_scores_of_unit_weights(
    kind: Any, scale: str | None, unit: float
) -> None:
    expected = kind(scale=scale).fit(NORMAL, HALVES)
    model = kind(scale=scale).fit(NORMAL, HALVES, sample_weight=np.full(40, unit))
    np.testing.assert_allclose(model.scores_, expected.scores_, rtol=1e-9)
    np.testing.assert_array_equal(model.ranking_, expected.ranking_)


@pytest.mark.parametrize("weight", [1e-110, 1e110, [10**400]])
def test_weights_out_of_range_are_refused(weight: Any) -> None:
    weights = [1.0] * 39 + (weight if isinstance(weight, list) else [weight])
    with pytest.raises(ValueError, match="sample_weight"):
        L2CenterClassifier().fit(NORMAL, HALVES, sample_weight=np.asarray(weights, dtype=object))


@pytest.mark.parametrize("weights", ["balanced", {0: 1, 1: 2}])
def test_class_weights_are_refused_as_sample_weights(weights: Any) -> None:
    with pytest.raises(TypeError, match="sample_weight must be an array"):
        L2CenterClassifier().fit(NORMAL, HALVES, sample_weight=weights)


def test_float32_weights_sum_exactly_beyond_2_to_the_24(backend: Any) -> None:
    weights = np.asarray([2**24, 1, 1, 2, 5], dtype=np.float32)
    y = np.asarray([0, 0, 0, 0, 1])
    for container in backend.containers(np.asarray([[1], [1], [1], [3], [0]]), (np.float32,)):
        centers = l2_centers(container, y, sample_weight=weights)
        assert centers.class_weight == (2**24 + 4, 5)
        assert backend.host(centers.total).tolist() == [[2**24 + 8], [0.0]]


@pytest.mark.parametrize("solve", SOLVERS)
def test_a_sample_of_weight_zero_changes_nothing(solve: Any, backend: Any) -> None:
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
