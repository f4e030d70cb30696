"""The scale of each feature: its value, and which scales are refused."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import exact
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.ensemble import AdaBoostClassifier
from sklearn.preprocessing import StandardScaler
from small_data import KINDS, PLAIN, Y, each_kind
from strategies import floats, storing

from gpucenters import L1CenterClassifier, L2CenterClassifier, MahalanobisCenterClassifier
from gpucenters.solvers import l1_centers, l2_centers


@pytest.mark.parametrize("scale", ["minmax", "STD", 3, True, ""], ids=repr)
@each_kind
def test_fit_refuses_an_invalid_scale(kind: Any, scale: Any) -> None:
    with pytest.raises(ValueError, match=f"scale={scale!r} is not valid.*'std'"):
        kind(scale=scale).fit(PLAIN, Y)


@each_kind
@pytest.mark.parametrize("weight", [None, [3, 5], [0.25, 0.25]], ids=repr)
def test_a_pooled_scale_needs_two_samples_in_a_class(kind: Any, weight: Any) -> None:
    with pytest.raises(ValueError, match=r"pooled.*each of the 2 classes has one sample"):
        kind(scale="pooled").fit(PLAIN[:2], Y[:2], sample_weight=weight)


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
    X, y = np.asarray([[1e6], [1e6 + 1], [1e6 + 2], [0], [0], [0]]), np.asarray([0, 0, 0, 1, 1, 1])
    assert floats(exact.variance(X, y, kind="pooled")).tolist() == [0.5]
    centers = l2_centers(getattr(sparse_backend, layout)(X), y, scale="pooled")
    np.testing.assert_allclose(sparse_backend.host(centers.scale) ** 2, [0.5], rtol=1e-12)


SEPARATES = pytest.mark.filterwarnings("ignore:.*constant up to rounding within each class")


def test_a_feature_that_is_constant_in_each_class_ranks_first(backend: Any) -> None:
    X, y = np.asarray([[0, 0], [0, 3], [1, 2.9], [1, 5.9]]), [0, 0, 1, 1]
    squared = floats(exact.variance(X, y, kind="pooled"))
    assert squared[0] == 4 * 2.0**-52 * 0.25
    for container in backend.containers(X):
        for kind in KINDS:
            model = kind(k=1, scale="pooled")
            with pytest.warns(UserWarning, match=r"pooled.*differ between classes: feature 0\. "):
                model.fit(container, y)
            assert model.support_.tolist() == [0]
            assert model.score(container, y) == 1.0
            np.testing.assert_allclose(backend.host(model.scale_) ** 2, squared, rtol=1e-12)
            # Tiny differences within a class leave the feature the best.
            near = X + np.asarray([[1e-6, 0], [0, 0], [0, 0], [0, 0]])
            assert kind(k=1, scale="pooled").fit(backend.array(near), y).support_.tolist() == [0]


@SEPARATES
@pytest.mark.parametrize("unit", [1.0, 0.1], ids=["integers", "fractions"])
def test_features_that_separate_two_classes_tie(unit: float, backend: Any) -> None:
    # Apart by 1 to 1e6 at offsets of up to 1e6: their quotients by the scale differ in the last
    # bits, and the index must decide.
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 37)
    offset, apart = rng.integers(-(10**6), 10**6, 30), 10 ** rng.integers(0, 7, 30)
    noise = rng.normal(size=(37, 2))
    X = np.hstack([noise, unit * (offset + apart * y[:, None]), noise])
    for container in backend.containers(X):
        for kind in KINDS:
            model = kind(k=30, scale="pooled").fit(container, y)
            assert len(set(backend.host(model.scores_)[2:-2].tolist())) == 1
            assert model.ranking_.tolist() == list(range(2, 32))
            assert model.with_k(4).support_.tolist() == [2, 3, 4, 5]


@SEPARATES
def test_features_that_separate_three_classes_rank_by_their_gain(backend: Any) -> None:
    y = np.repeat([0, 1, 2], [15, 10, 5])
    # The last two have the class means in different units.
    X = np.stack([np.random.default_rng(0).normal(size=30), y == 0, 7 * (y == 2), y == 2], axis=1)
    variance = exact.variance(X, y, kind="pooled")
    truth = exact.exact_l2(X, y, 3, scale_squared=variance)
    for container in backend.containers(X):
        model = L2CenterClassifier(k=3, scale="pooled").fit(container, y)
        gain = floats(truth.gain)
        np.testing.assert_allclose(backend.host(model.scores_), gain, rtol=1e-12)
        assert gain[2] > 1.5 * gain[1]
        assert model.ranking_.tolist() == [2, 3, 1]


def test_the_warning_names_the_first_three_features_that_separate_and_counts_the_others() -> None:
    y = np.arange(10) % 2
    X = np.stack([y, y, np.arange(10) % 3, 2 - y, np.full(10, 7), y + 5.5], axis=1)
    with pytest.warns(UserWarning, match=r"classes: features 0, 1, 3 and 1 more\."):
        centers = l2_centers(X, y, scale="pooled")
    assert centers.scale[4] == 1  # constant over all samples
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        l2_centers(X, y, scale="std")


@pytest.mark.parametrize("layout", ["array", "csr"])
def test_a_stream_finds_the_features_that_separate_from_all_batches(
    layout: str, sparse_backend: Any
) -> None:
    X, y = np.asarray([[0, 1], [3, 2], [0, 3], [3, 5]]), np.asarray([0, 1, 0, 1])
    model, make = L2CenterClassifier(k=1, scale="pooled"), getattr(sparse_backend, layout)
    # No class has two samples in a batch: what is missing is asked for with the solution.
    model.partial_fit(make(X[:2]), y[:2], classes=[0, 1])
    with pytest.raises(ValueError, match="one sample of positive weight"):
        model.get_feature_names_out()
    model.partial_fit(make(X[2:]), y[2:])
    with pytest.warns(UserWarning, match="differ between classes: feature 0"):
        found = sparse_backend.host(model.scale_)
    np.testing.assert_allclose(found**2, floats(exact.variance(X, y, kind="pooled")), rtol=1e-12)


@SEPARATES
def test_a_class_indicator_has_the_pooled_scale_of_rounding(backend: Any) -> None:
    y = np.arange(100_000) % 4 // 3
    floor = 100_000 * 2.0**-52 * 0.01 * 3 / 16
    for container in backend.containers(0.1 * y[:, None]):
        centers = l2_centers(container, y, scale="pooled")
        np.testing.assert_allclose(backend.host(centers.scale) ** 2, [floor], rtol=1e-10)
        np.testing.assert_allclose(backend.host(centers.gain), [0.005 / floor], rtol=1e-10)


WEIGHTS = [0.1, 0.2, 0.2, 0.4, 0.05, 0.05]


@each_kind
def test_weights_that_are_no_repetitions_divide_by_their_sum(kind: Any, backend: Any) -> None:
    X = np.asarray([[0, 1], [1, 0], [5, 1], [6, 2], [5, 3], [0, 0]])
    y, s = np.asarray([0, 0, 1, 1, 1, 0]), np.asarray(WEIGHTS)

    def within(weights: Any) -> np.ndarray:
        return np.sum(
            [
                np.sum(
                    weights[y == c]
                    * (X[y == c] - np.average(X[y == c], 0, weights[y == c])).T ** 2,
                    1,
                )
                for c in range(2)
            ],
            axis=0,
        )

    for factor, divisor in ((1, 1), (2, 2), (2.4, 2.4), (2.5, 0.5), (10, 8)):
        model, small = kind(scale="pooled"), divisor == factor
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            model.fit(backend.array(X), y, sample_weight=factor * s)
        assert [str(w.message)[:34] for w in seen] == ["scale='pooled': the sample weights"] * small
        expected = factor * within(s) / divisor
        np.testing.assert_allclose(backend.host(model.scale_) ** 2, expected, rtol=1e-12)


def test_a_stream_of_small_weights_takes_the_divisor_of_all_of_them(backend: Any) -> None:
    X, y = np.asarray([[0.0], [1], [2], [4]] * 3), np.asarray([0, 0, 1, 1] * 3)
    model, s = L2CenterClassifier(scale="pooled"), np.full(12, 0.25)
    for rows in (slice(0, 4), slice(4, 12)):  # the first batch has a weight of 1, all have 3
        model.partial_fit(backend.array(X[rows]), y[rows], [0, 1], s[rows])
    variance = exact.variance(X, y, s, "pooled")
    np.testing.assert_allclose(backend.host(model.scale_) ** 2, floats(variance), rtol=1e-12)


@pytest.mark.filterwarnings("ignore:.*too little for numbers of repetitions")
@pytest.mark.parametrize(
    "model",
    [
        L2CenterClassifier(scale="pooled"),
        L1CenterClassifier(scale="pooled"),
        MahalanobisCenterClassifier(),
        MahalanobisCenterClassifier(shrinkage="ledoit-wolf"),
        MahalanobisCenterClassifier(covariance="total"),
    ],
    ids=str,
)
def test_boosting_whose_weights_sum_to_one_works(model: Any) -> None:
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    boosted = AdaBoostClassifier(model, n_estimators=3).fit(X, y)
    # The first round has equal weights. Only the divisor and the amount of shrinkage may differ.
    first, alone = boosted.estimators_[0], clone(model).fit(X, y)
    assert first.score(X, y) == pytest.approx(alone.score(X, y), abs=0.02)
    assert boosted.score(X, y) > 0.95
    if isinstance(model, MahalanobisCenterClassifier):
        assert first.shrinkage_ == pytest.approx(alone.shrinkage_, rel=1e-9)


@pytest.mark.parametrize("scale", ["std", "pooled"])
@pytest.mark.parametrize("solve", [l1_centers, l2_centers], ids=["l1", "l2"])
def test_features_that_are_constant_up_to_rounding_have_no_gain(
    solve: Any, scale: str, backend: Any
) -> None:
    rng = np.random.default_rng(0)
    y, weights = np.arange(30) % 3, rng.random(30) + 0.1
    huge = 1.0000000001e69 * (1 + rng.integers(0, 2, 30) * 2.0**-52)
    X = np.stack([huge, rng.normal(size=30), np.full(30, 0.1), np.zeros(30)], axis=1)
    for container in backend.containers(X):
        gain = backend.host(solve(container, y, scale=scale, sample_weight=weights).gain)
        assert gain[1] > 0
        assert gain[[0, 2, 3]].tolist() == [0, 0, 0]
