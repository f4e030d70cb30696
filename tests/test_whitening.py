"""What shrinkage="auto" makes of a singular covariance, and when it leaves a covariance alone."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from conftest import BACKENDS
from correlated import assert_same_model, attribute, correlated, residuals
from sklearn.base import clone
from sklearn.covariance import ledoit_wolf

from gpucenters import MahalanobisCenterClassifier
from gpucenters.reductions import scatter
from gpucenters.statistics import CrossMoments, cross_moments

AUTO, LEDOIT_WOLF = (
    MahalanobisCenterClassifier(),
    MahalanobisCenterClassifier(shrinkage="ledoit-wolf"),
)
EPS = 2.0**-52
SINGULAR = r"covariance of the 40 features is singular: its rank is 17\. .* Ledoit and Wolf"


def _wide() -> tuple[np.ndarray, np.ndarray]:
    X, y = correlated(3, 20, 40)
    X[np.abs(X) < 1] = 0
    return X, y


def _warned(call: Any, *arguments: Any, match: str = SINGULAR, **named: Any) -> Any:
    with pytest.warns(UserWarning, match=match):
        return call(*arguments, **named)


@pytest.mark.parametrize("covariance", ["pooled", "total"])
def test_auto_leaves_a_regular_covariance_and_reads_the_data_once(
    covariance: str, monkeypatch: pytest.MonkeyPatch, backend: Any
) -> None:
    def no_more(*_: Any) -> None:
        raise AssertionError("the data were read again")

    monkeypatch.setattr(CrossMoments, "add_higher_moments", no_more)
    X, y = correlated(3)
    for container in backend.containers(X):
        auto, plain = (
            MahalanobisCenterClassifier(k=3, covariance=covariance, shrinkage=s).fit(container, y)
            for s in ("auto", None)
        )
        assert auto._fitted.statistics.fourth_moment is None
        assert_same_model(auto, plain, backend, rtol=1e-15)
        assert auto.shrinkage_ == 0


@pytest.mark.parametrize("weighted", [False, True], ids=["unit", "weighted"])
@pytest.mark.parametrize("products", [False, True], ids=["rows", "sparse products"])
def test_auto_shrinks_a_singular_pooled_covariance_as_ledoit_wolf(
    products: bool, weighted: bool, monkeypatch: pytest.MonkeyPatch, backend: Any
) -> None:
    X, y = _wide()
    s = 1 + np.random.default_rng(0).integers(0, 3, 20) if weighted else np.ones(20, dtype=int)
    R = residuals(np.repeat(X, s, axis=0), np.repeat(y, s))
    S, amount = ledoit_wolf(R, assume_centered=True)
    if products:
        monkeypatch.setattr(scatter, "_COST_OF_PAIR", 1e-9)
        monkeypatch.setattr(scatter, "_COST_OF_NUMBER", 0)
        monkeypatch.setattr(scatter, "_STRIP_ENTRIES", 50)
    for container in backend.containers(X):
        expected = clone(LEDOIT_WOLF).fit(container, y, sample_weight=s)
        model = _warned(clone(AUTO).fit, container, y, sample_weight=s)
        assert_same_model(model, expected, backend)
        assert model.shrinkage_ == pytest.approx(amount, rel=1e-10)
        np.testing.assert_allclose(
            attribute(model, "covariance_", backend), S, rtol=1e-10, atol=1e-14
        )


def test_moments_that_are_read_later_keep_their_digits_at_large_offsets(backend: Any) -> None:
    X, y = _wide()
    X = np.round(X * 16) / 16
    expected = ledoit_wolf(residuals(X, y), assume_centered=True)[1]
    for container in backend.containers(X + 2.0**20):
        model = _warned(clone(AUTO).fit, container, y)
        assert model.shrinkage_ == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("layout", ["array", "csr"])
def test_streams_and_shards_keep_what_a_singular_covariance_needs(
    layout: str, sparse_backend: Any
) -> None:
    X, y = _wide()
    make = getattr(sparse_backend, layout)
    expected = clone(LEDOIT_WOLF).fit(make(X), y)
    parts = (slice(0, 5), slice(5, 12), slice(12, 20))
    stream, after_fit = clone(AUTO), _warned(clone(AUTO).fit, make(X[:12]), y[:12], match="rank is")
    shards = [AUTO.statistics(make(X[p]), y[p], classes=[0, 1, 2]) for p in parts]
    for p in parts:
        stream.partial_fit(make(X[p]), y[p], [0, 1, 2])
    after_fit.partial_fit(make(X[12:]), y[12:])
    merged = shards[0].merge(shards[1]).merge(shards[2])
    found = [stream, after_fit, _warned(clone(AUTO).fit_statistics, merged)]
    for model in found[:2]:
        _warned(lambda m: m.scores_, model)
    for model in found:
        assert_same_model(model, expected, sparse_backend)
    # The moments that the fit has read later serve a stream with "ledoit-wolf" too.
    switched = _warned(clone(AUTO).fit, make(X[:12]), y[:12], match="rank is")
    switched.set_params(shrinkage="ledoit-wolf").partial_fit(make(X[12:]), y[12:])
    assert_same_model(switched, expected, sparse_backend)
    # The solution is there: what is read from it warns no more.
    assert_same_model(stream.with_k(3), expected.with_k(3), sparse_backend)
    assert_same_model(pickle.loads(pickle.dumps(stream)), expected, sparse_backend)


def test_statistics_without_fourth_moments_take_the_least_shrinkage() -> None:
    X, y = correlated(3)
    plain = MahalanobisCenterClassifier(shrinkage=None)
    found = clone(AUTO).fit_statistics(plain.statistics(X, y))
    assert_same_model(found, clone(plain).fit(X, y), BACKENDS["numpy"], rtol=1e-15)
    X, y = _wide()
    message = "the least that makes it regular"
    found = _warned(clone(AUTO).fit_statistics, plain.statistics(X, y), match=message)
    assert 0 < found.shrinkage_ < 1e-10
    assert found.score(X, y) == 1
    # So does a stream that began without them.
    stream = clone(plain).partial_fit(X[:9], y[:9], [0, 1, 2]).set_params(shrinkage="auto")
    stream.partial_fit(X[9:], y[9:])
    shrinkage = _warned(lambda: stream.shrinkage_, match=message)
    assert shrinkage == pytest.approx(found.shrinkage_, rel=0.5)


def test_many_classes_stay_together_where_a_covariance_is_singular(
    monkeypatch: pytest.MonkeyPatch, backend: Any
) -> None:
    X, y = _wide()
    monkeypatch.setattr(cross_moments, "_MOST_APART", 0)
    for container in backend.containers(X):
        model = _warned(clone(AUTO).fit, container, y)
        assert model._fitted.statistics.scatter.shape == (2, 40, 40)
        assert_same_model(model, clone(LEDOIT_WOLF).fit(container, y), backend)


@pytest.mark.parametrize("top", [1.0, 1e-100, 1e100])
def test_the_least_shrinkage_of_a_given_covariance_is_the_least_that_is_not_refused(
    top: float, backend: Any
) -> None:
    X, y = correlated(2)
    X, S = X[:, :3], np.diag([1.0, 0, 3]) * top
    model = _warned(
        MahalanobisCenterClassifier(covariance=S).fit, backend.array(X), y, match="its rank is 2"
    )
    # (1 - s) 0 + s 4/3 > 3 eps ((1 - s) 3 + s 4/3)
    least = 9 * EPS / (9 * EPS + (1 - 3 * EPS) * 4 / 3)
    assert model.shrinkage_ == pytest.approx(least, rel=1e-5)
    same = clone(model).set_params(shrinkage=model.shrinkage_).fit(backend.array(X), y)
    np.testing.assert_array_equal(*(attribute(m, "scores_", backend) for m in (model, same)))
    with pytest.raises(ValueError, match="is singular"):
        same.set_params(shrinkage=least * (1 - 1e-4)).fit(backend.array(X), y)


def test_a_singular_total_covariance_is_shrunk_by_the_least_amount(backend: Any) -> None:
    X, y = correlated(2)
    X[:, 4] = X[:, 0] + X[:, 2]
    for container in backend.containers(X):
        model = MahalanobisCenterClassifier(covariance="total")
        _warned(model.fit, container, y, match="its rank is 4.*least that makes it regular")
        assert 0 < model.shrinkage_ < 1e-13
        np.testing.assert_allclose(
            attribute(model, "covariance_", backend), np.cov(X.T), rtol=1e-11
        )
        # The feature that depends on others decides nothing.
        less = clone(model).fit(backend.array(X[:, :4]), y)
        found, expected = (
            backend.host(m.decision_function(backend.array(x)))
            for m, x in ((model, X), (less, X[:, :4]))
        )
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_least_amount_helps_where_that_of_ledoit_and_wolf_is_too_little(backend: Any) -> None:
    # Residuals of one length in one direction: the amount of Ledoit and Wolf is zero.
    X, y = np.asarray([[1.0, 5], [-1, 5], [1, 6], [-1, 6]]), [0, 0, 1, 1]
    for container in backend.containers(X):
        model = _warned(
            clone(AUTO).fit,
            container,
            y,
            match=r"differ between classes: feature 1\. .*the least that makes it regular",
        )
        np.testing.assert_allclose(
            attribute(model, "covariance_", backend), np.diag([1, 2 * EPS]), rtol=1e-4, atol=1e-30
        )
        assert model.score(container, y) == 1
        assert model.with_k(1).support_.tolist() == [1]


@pytest.mark.parametrize("covariance", ["pooled", "total"])
@pytest.mark.parametrize("value", [0.1, 3.0])
def test_the_identity_takes_the_place_of_a_covariance_that_is_zero(
    covariance: str, value: float, backend: Any
) -> None:
    y = np.repeat([0, 1, 2], [3, 7, 11])
    X = np.full((21, 2), value)
    if covariance == "pooled":
        X = np.stack([value * y, value * (y == 1)], axis=1)
    for container in backend.containers(X):
        model = MahalanobisCenterClassifier(covariance=covariance)
        _warned(model.fit, container, y, match="is zero: all are constant .* identity")
        for name in ("covariance_", "transformation_"):
            np.testing.assert_array_equal(attribute(model, name, backend), np.eye(2))
        assert model.shrinkage_ == 1
        if covariance == "pooled":
            assert model.score(container, y) == 1
        with pytest.raises(ValueError, match=r"its rank is 0\. All are constant"):
            clone(model).set_params(shrinkage=None).fit(container, y)
    with pytest.raises(ValueError, match=r"its rank is 0\.$"):
        MahalanobisCenterClassifier(covariance=np.zeros((2, 2))).fit(backend.array(X), y)


@pytest.mark.parametrize("covariance", [[[1.0, 2.0], [2.0, 1.0]], [[-1.0, 0.0], [0.0, -2.0]]])
def test_auto_refuses_a_given_matrix_with_a_negative_eigenvalue(covariance: Any) -> None:
    X, y = correlated(2)
    with pytest.raises(ValueError, match="not positive definite"):
        MahalanobisCenterClassifier(covariance=covariance).fit(X[:, :2], y)


def test_fourth_moments_may_overflow_where_the_covariance_is_regular(backend: Any) -> None:
    X, y = correlated(2)
    wide, labels = _wide()
    for power in (260, 400):
        huge = X * 2.0**power
        stream = clone(AUTO).partial_fit(backend.array(huge[:30]), y[:30], [0, 1])
        stream.partial_fit(backend.array(huge[30:]), y[30:])
        fitted = clone(AUTO).fit(backend.array(huge), y)
        assert_same_model(stream, fitted, backend, rtol=1e-9)
    huge = backend.array(wide * 2.0**300)
    with pytest.raises(ValueError, match=r"fourth powers of X.* Rescale X"):
        clone(AUTO).fit(huge, labels)
    stream = clone(AUTO).partial_fit(huge, labels, [0, 1, 2])
    with pytest.raises(ValueError, match=r"fourth powers of X.* Rescale X"):
        stream.with_k(1)


def test_an_error_while_the_data_are_read_again_leaves_no_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt("in the middle")

    X, y = _wide()
    for data in (X, scipy.sparse.csr_array(X)):
        monkeypatch.setattr(cross_moments, "add_higher_moments", interrupted)
        model = clone(AUTO)
        with pytest.raises(KeyboardInterrupt, match="in the middle"):
            model.fit(data, y)
        assert not hasattr(model, "classes_")
        monkeypatch.undo()


def test_a_warning_comes_once_with_a_fit_and_names_the_line_of_the_caller() -> None:
    X, y = _wide()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model = clone(AUTO).fit(X, y)
        _ = model.covariance_, model.shrinkage_, model.with_k(2).scores_
        model.predict_proba(X)
    assert [w.filename for w in seen] == [__file__]
