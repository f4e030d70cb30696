"""partial_fit: classes, batches that fail, and batches of several kinds."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from bits import bits
from every_model import others
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold, learning_curve
from small_data import HALVES, NORMAL, PLAIN, Y, prediction_calls, quiet, with_value

from gpucenters import (
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    ShrunkenCentroidClassifier,
    SparseBernoulliNB,
    SparseGaussianNB,
    SparseMultinomialNB,
    SparsePoissonNB,
)


def test_the_first_batch_needs_classes() -> None:
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        L2CenterClassifier().partial_fit(PLAIN, Y)


@pytest.mark.parametrize("classes", [[1], [], ["a"]])
def test_partial_fit_refuses_fewer_than_two_classes(classes: list) -> None:
    with pytest.raises(ValueError, match=r"classes.*at least two"):
        L2CenterClassifier().partial_fit(PLAIN, Y, classes=classes)


def test_partial_fit_names_a_label_that_is_no_class(backend: Any) -> None:
    X = backend.array(PLAIN)
    with pytest.raises(ValueError, match=r"not among classes: \[7\]"):
        L2CenterClassifier().partial_fit(X, [0, 1, 7, 1, 0], classes=[0, 1])
    with pytest.raises(ValueError, match=r"not among classes: \['d'\]"):
        L2CenterClassifier().partial_fit(X, list("abdab"), classes=["a", "b", "c"])
    with pytest.raises(ValueError, match="not among classes"):
        L2CenterClassifier().partial_fit(X, list("ababa"), classes=[0, 1])


def test_every_method_names_the_classes_without_samples_where_one_class_was_met(
    backend: Any,
) -> None:
    X = backend.array(PLAIN)
    model = L2CenterClassifier().partial_fit(X, list("aaaaa"), classes=list("abd"))
    model.partial_fit(X, list("aaaad"), sample_weight=[1, 1, 1, 1, 0])
    calls = [*prediction_calls(model, X), model.transform, lambda X: model.score(X, list("ababa"))]
    calls += [lambda X: model.with_k(1), lambda X: model.get_support()]
    for call in calls:
        with pytest.raises(NotFittedError, match="no sample of class 'b', 'd' yet"):
            call(X)
    for name in ("support_", "coef_", "objective_"):
        assert not hasattr(model, name)


STREAMED = [
    L2CenterClassifier(k=2, priors="empirical"),
    L2CenterClassifier(k=2, scale="std", priors=[0.1, 0.2, 0.3, 0.4]),
    MahalanobisCenterClassifier(k=2, shrinkage=0.5),
    SparseBernoulliNB(k=2, binarize=1.0),
    SparseMultinomialNB(k=2, class_prior=[0.1, 0.2, 0.3, 0.4]),
    SparseMultinomialNB(k=2, fit_prior=False),
    SparsePoissonNB(k=2, scale="dispersion", class_prior=[0.1, 0.2, 0.3, 0.4]),
    SparseGaussianNB(k=2, priors=[0.1, 0.2, 0.3, 0.4]),
    ShrunkenCentroidClassifier(k=2),
]
STREAMED += others(STREAMED, "partial_fit", k=2)


def _given_priors_of(model: Any, met: list[int]) -> Any:
    """The model with the priors of some classes, divided by their sum."""
    for name in ("priors", "class_prior"):
        given = getattr(model, name, None)
        if isinstance(given, list):
            kept = np.asarray(given)[met]
            return clone(model).set_params(**{name: kept / kept.sum()})
    return clone(model)


@pytest.mark.parametrize("met", [[1, 3], [0, 1, 3]], ids=["two of four", "three of four"])
@pytest.mark.parametrize("model", STREAMED, ids=lambda m: type(m).__name__)
def test_a_stream_predicts_among_the_classes_met(model: Any, met: list, backend: Any) -> None:
    rng = np.random.default_rng(5)
    y = np.asarray(met)[np.arange(24) % len(met)]
    X = rng.poisson(1.0 + y[:, None] * np.asarray([1, 0, 2, 0, 0.5]), (24, 5)).astype(float)
    for held in backend.containers(X):
        stream = clone(model).partial_fit(held, y, classes=range(4))
        whole = _given_priors_of(model, met).fit(held, y)
        missing = ", ".join(str(c) for c in range(4) if c not in met)
        with pytest.warns(UserWarning, match=f"no sample of class {missing} yet"):
            found = backend.host(stream.decision_function(held))
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # one warning, not one a call
            predicted = backend.host(stream.predict(held))
            probabilities = backend.host(stream.predict_proba(held))
        others = [c for c in range(4) if c not in met]
        assert found.shape == (24, 4)
        assert np.all(found[:, others] == -np.inf) and np.all(probabilities[:, others] == 0)
        assert np.array_equal(predicted, backend.host(whole.predict(held)))
        if hasattr(model, "class_prior"):
            log_prior = backend.host(stream.class_log_prior_)
            np.testing.assert_allclose(log_prior[met], backend.host(whole.class_log_prior_))
            assert np.all(log_prior[others] == -np.inf)
        expected = backend.host(whole.predict_proba(held))
        np.testing.assert_allclose(probabilities[:, met], expected, rtol=1e-12)
        if hasattr(type(model), "coef_"):
            coef, intercept = backend.host(stream.coef_), backend.host(stream.intercept_)
            assert not coef[others].any() and np.all(intercept[others] == -np.inf)
            read = model.binarize < X if hasattr(model, "binarize") else X
            linear = read @ coef.T + intercept
            np.testing.assert_allclose(linear[:, met], found[:, met], rtol=1e-9, atol=1e-9)
        else:
            np.testing.assert_array_equal(stream.pvalues_, whole.pvalues_)
        centers = backend.host(stream.centers_)
        np.testing.assert_allclose(centers[met], backend.host(whole.centers_), rtol=1e-12)
        assert np.all(np.isfinite(centers)) and stream.objective_ == whole.objective_
        # Copies know it too, and the classes that come later are met as usual.
        of_one = [backend.host(m.with_k(1).predict(held)) for m in (stream, whole)]
        assert np.array_equal(*of_one)
        stream.partial_fit(held, np.arange(24) % 4)
        assert np.all(np.isfinite(backend.host(stream.decision_function(held))))


def test_learning_curves_on_sorted_labels_have_scores() -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.warns(UserWarning, match="no sample of class 2 yet"):
        _, _, scores = learning_curve(
            L2CenterClassifier(),
            X,
            y,
            train_sizes=[60, 120],  # the first 60 hold two of the three classes
            cv=KFold(5, shuffle=True, random_state=0),
            exploit_incremental_learning=True,
        )
    assert np.all(np.isfinite(scores))


FAILING = {
    "NaN": ({"X": with_value(np.nan)}, r"NaN in feature 2 \(first in row 3\)"),
    "infinity": ({"X": with_value(np.inf)}, r"infinity in feature 2 \(first in row 3\)"),
    "overflow": ({"X": with_value(1e200)}, r"feature 2 \(first in row 3\).* overflows float64"),
    "width": ({"X": PLAIN[:, :3]}, "X has 3 features, .* expecting 4"),
    "no rows": ({"X": PLAIN[:0], "y": Y[:0]}, r"0 sample\(s\) .*minimum of 1"),
    "label": ({"y": np.array([0, 1, 5, 0, 1])}, r"not among classes: \[5\]"),
    "length": ({"y": Y[:3]}, "X has 5, y has 3"),
    "classes": ({"classes": [0, 1, 2]}, r"classes=\[0, 1, 2\] is not the same .*\[0, 1\]"),
    "negative weight": (
        {"sample_weight": [1, 1, -1, 1, 1]},
        "Negative values .*`sample_weight`, first in row 2: -1",
    ),
    "NaN weight": (
        {"sample_weight": [1, 1, np.nan, 1, 1]},
        "sample_weight contains NaN or infinity, first in row 2",
    ),
}


def _state(model: Any, X: Any, backend: Any) -> list[np.ndarray]:
    arrays = [model.centers_, model.scores_, model.decision_function(X), model.predict(X)]
    host = [np.array(backend.host(a)) for a in arrays]
    return [*host, model.support_.copy(), np.array(model.objective_), model.classes_.copy()]


@pytest.mark.parametrize("failure", list(FAILING))
@pytest.mark.parametrize("scale", [None, "std"])
@pytest.mark.parametrize("form", ["array", "csr"])
def test_a_batch_that_fails_leaves_the_model_as_it_was(
    form: str, scale: Any, failure: str, backend: Any
) -> None:
    if form == "csr" and backend.sparse is None:
        form = "array"
    make = getattr(backend, form)
    X = make(PLAIN)
    model = L2CenterClassifier(k=2, scale=scale).partial_fit(X, Y, classes=[0, 1])
    untouched = copy.deepcopy(model)
    before = _state(copy.deepcopy(model), X, backend)
    changed, message = FAILING[failure]
    arguments = {"X": PLAIN, "y": Y, **changed}
    arguments["X"] = make(arguments["X"])
    with pytest.raises(ValueError, match=message):
        model.partial_fit(**arguments)
    for found, expected in zip(_state(model, X, backend), before, strict=True):
        np.testing.assert_array_equal(found, expected)
    # The next batch gives the same model as without the failed one.
    for one in (model, untouched):
        one.partial_fit(make(PLAIN[::-1].copy()), Y)
    for found, expected in zip(
        _state(model, X, backend), _state(untouched, X, backend), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("failure", [f for f in FAILING if f not in ("classes", "width")])
def test_a_first_batch_that_fails_leaves_the_model_unfitted(failure: str) -> None:
    model, (changed, message) = L2CenterClassifier(), FAILING[failure]
    with pytest.raises(ValueError, match=message):
        model.partial_fit(**{"X": PLAIN, "y": Y, "classes": [0, 1], **changed})
    with pytest.raises(NotFittedError, match="L2CenterClassifier instance is not fitted"):
        model.predict(PLAIN)
    narrow = PLAIN[:, :3]
    model.partial_fit(narrow, Y, classes=[0, 1])
    fresh = L2CenterClassifier().partial_fit(narrow, Y, classes=[0, 1])
    assert bits(model._fitted.statistics) == bits(fresh._fitted.statistics)
    np.testing.assert_array_equal(model.decision_function(narrow), fresh.decision_function(narrow))


@quiet
def test_batches_whose_sums_overflow_together_are_refused(backend: Any) -> None:
    X = np.array([[-1e154], [1e154]]) * 0.9

    def learn(make: Any) -> None:
        model = L2CenterClassifier()
        for sign in (1, -1, 1, -1):
            model.partial_fit(make(sign * X), [0, 1], classes=[0, 1])
        model.predict(make(X))

    for make in [backend.array, backend.csr] if backend.sparse else [backend.array]:
        with pytest.raises(ValueError, match="overflow"):
            learn(make)


def test_a_batch_whose_sum_overflows_leaves_the_statistics_bit_by_bit() -> None:
    for container in (np.asarray, scipy.sparse.csr_array):
        model = L2CenterClassifier().partial_fit(container(NORMAL), HALVES, classes=[0, 1])
        model.partial_fit(container(np.full((2, 6), 5e153)), [0, 1])
        expected = bits(model._fitted.statistics)
        with pytest.raises(ValueError, match="overflow float64"):
            model.partial_fit(container(np.full((2, 6), -5e153)), [0, 1])
        assert bits(model._fitted.statistics) == expected


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


def test_a_batch_with_a_parameter_that_cannot_be_kept_is_not_added() -> None:
    from gpucenters import MahalanobisCenterClassifier

    X, y = NORMAL, np.arange(len(NORMAL)) % 2
    model = MahalanobisCenterClassifier(shrinkage=0.1).partial_fit(X, y, classes=[0, 1])
    kept = bits(model._fitted.statistics)
    model.set_params(covariance=[[1, 2], [3]])
    with pytest.raises(ValueError, match="inhomogeneous"):
        model.partial_fit(X, y)
    assert bits(model._fitted.statistics) == kept


def test_feature_counts_that_were_handed_out_do_not_change_with_the_next_batch() -> None:
    from gpucenters import SparseMultinomialNB

    model = SparseMultinomialNB().partial_fit(abs(PLAIN), Y, classes=[0, 1])
    counts = model.feature_count_
    kept = np.array(counts)
    model.partial_fit(abs(PLAIN), Y)
    np.testing.assert_array_equal(counts, kept)
    np.testing.assert_array_equal(model.feature_count_, 2 * kept)
