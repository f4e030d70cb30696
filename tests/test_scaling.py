"""The scale of each feature: its value, and which scales are refused."""

from __future__ import annotations

import itertools
from typing import Any

import exact
import numpy as np
import pytest
from small_data import PLAIN, Y, each_kind
from strategies import floats, storing

from gpucenters import L2CenterClassifier
from gpucenters.solvers import l2_centers


@pytest.mark.parametrize("scale", ["minmax", "STD", 3, True, ""], ids=repr)
@each_kind
def test_fit_refuses_an_invalid_scale(kind: Any, scale: Any) -> None:
    with pytest.raises(ValueError, match=f"scale={scale!r} is not valid.*'std'"):
        kind(scale=scale).fit(PLAIN, Y)


@each_kind
def test_a_pooled_scale_needs_more_weight_than_classes(kind: Any) -> None:
    with pytest.raises(ValueError, match=r"pooled.*sum to 2.*2 classes"):
        kind(scale="pooled").fit(PLAIN[:2], Y[:2])


@pytest.mark.parametrize("scale", ["std", "pooled"])
@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_the_scaled_gain_of_a_constant_column_is_below_rounding(
    layout: str, scale: str, on_host: Any
) -> None:
    n = 1_600_000
    y = np.zeros(n, dtype=np.int8)
    y[::10] = 1
    X = np.full((n, 1), 0.1)
    if layout == "csr":
        X = storing(on_host, X, np.ones((n, 1)))
    centers = l2_centers(X, y, scale=scale)
    assert centers.scale.tolist() == [1.0]
    rounding = n * 2.0**-52 * 0.1  # of a mean; a second moment is of the order of its square
    assert 0 <= centers.gain[0] < rounding**2
    assert 0 <= centers.loss < rounding**2


THREES = [([1e4, 1e4 + 1, 1e4 + 2], np.float32), ([1e8, 1e8 + 1, 1e8 + 2], np.float64)]


@pytest.mark.parametrize(("values", "dtype"), THREES, ids=["float32", "float64"])
def test_the_variance_of_large_neighbouring_values_is_exact(
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
def test_the_pooled_variance_of_a_stream_is_exact_for_every_split(
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


@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_the_pooled_variance_of_a_column_stored_in_one_class_is_exact(
    layout: str, sparse_backend: Any
) -> None:
    X, y = np.asarray([[1e8], [1e8 + 1], [1e8 + 2], [0], [0], [0]]), np.asarray([0, 0, 0, 1, 1, 1])
    assert floats(exact.variance(X, y, kind="pooled")).tolist() == [0.5]
    centers = l2_centers(getattr(sparse_backend, layout)(X), y, scale="pooled")
    np.testing.assert_allclose(sparse_backend.host(centers.scale) ** 2, [0.5], rtol=1e-12)


def test_a_class_indicator_has_no_pooled_variance_and_scale_one(backend: Any) -> None:
    y = np.arange(100_000) % 4 // 3
    for container in backend.containers(0.1 * y[:, None]):
        centers = l2_centers(container, y, scale="pooled")
        assert backend.host(centers.scale).tolist() == [1.0]
        np.testing.assert_allclose(backend.host(centers.gain), [0.005], rtol=1e-12)
