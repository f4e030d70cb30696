"""What a hostile reader of the first version found, so that it stays mended."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from bits import bits
from sklearn.base import clone

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    SparseBernoulliNB,
    SparseMultinomialNB,
    odds_ratio,
    thresholded_multinomial,
)
from gpucenters.solvers import l2_centers, select

rng = np.random.default_rng(0)
X = rng.standard_normal((40, 6))
X[20:, 2] += 3
y = np.repeat([0, 1], 20)
KINDS = [L2CenterClassifier, L1CenterClassifier]


def _lil(damage: Any) -> Any:
    Q = scipy.sparse.lil_matrix(X)
    damage(Q)
    return Q


DAMAGED = {
    "lil values": lambda: _lil(lambda Q: Q.data[0].extend([1.0] * 1000)),
    "lil columns": lambda: _lil(lambda Q: Q.rows[0].append(1)),
    "lil outside": lambda: _lil(lambda Q: Q.rows[0].__setitem__(0, 6)),
    "dia": lambda: _with(scipy.sparse.dia_matrix(X), "data", lambda d: d[:2]),
    "bsr narrow": lambda: _with(
        scipy.sparse.bsr_matrix(X, blocksize=(2, 2)), "data", lambda d: d[:, :, :0]
    ),
    "bsr wide": lambda: _with(
        scipy.sparse.bsr_matrix(X, blocksize=(2, 2)), "data", lambda d: d[:, :, [0] * 5]
    ),
    "csr list": lambda: _with(scipy.sparse.csr_matrix(X), "data", lambda d: d.tolist()),
    "csr none": lambda: _with(scipy.sparse.csr_matrix(X), "indices", lambda d: None),
    "csr 2d": lambda: _with(scipy.sparse.csr_matrix(X), "data", lambda d: d[:, None]),
    "coo": lambda: _with(scipy.sparse.coo_matrix(X), "data", lambda d: d[:-1]),
}


def _with(Q: Any, name: str, change: Any) -> Any:
    setattr(Q, name, change(getattr(Q, name)))
    return Q


@pytest.mark.parametrize("name", list(DAMAGED))
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_matrix_of_any_format_is_refused(kind: Any, name: str) -> None:
    with pytest.raises((ValueError, TypeError), match=r"damaged|no array|one dimension|values\."):
        kind().fit(DAMAGED[name](), y)


@pytest.mark.parametrize("width", [2, 9])
@pytest.mark.parametrize("kind", KINDS)
def test_a_failed_fit_leaves_the_fitted_model(kind: Any, width: int) -> None:
    model = kind(k=3).fit(X, y)
    expected = model.decision_function(X)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((4, width), np.nan), [0, 1, 0, 1])
    assert model.n_features_in_ == 6
    np.testing.assert_array_equal(model.decision_function(X), expected)
    with pytest.raises(ValueError, match="features"):
        model.predict(np.zeros((2, width)))


def test_parameters_set_after_the_fit_do_not_change_the_model() -> None:
    model = L2CenterClassifier(priors="empirical").fit(X[:30], y[:30])
    expected = model.decision_function(X)
    model.set_params(priors=[0.9, 0.1], k=1)
    np.testing.assert_array_equal(model.decision_function(X), expected)
    np.testing.assert_allclose(X @ model.coef_[0] + model.intercept_, expected, atol=1e-9)
    with pytest.raises(ValueError, match=r"scale='std' is not the same"):
        model.set_params(scale="std").partial_fit(X, y)
    with pytest.raises(ValueError, match="k=0"):
        model.set_params(scale=None, k=0).partial_fit(X, y)


def test_a_copy_does_not_change_with_the_original() -> None:
    model = L2CenterClassifier(k=3).fit(X, y)
    twin = copy.copy(model)
    expected = twin.decision_function(X)
    model.partial_fit(5 * X, 1 - y)
    np.testing.assert_array_equal(twin.decision_function(X), expected)
    np.testing.assert_array_equal(twin.with_k(3).decision_function(X), expected)


@pytest.mark.parametrize("name", ["support_", "ranking_", "scores_", "centers_", "scale_"])
def test_fitted_arrays_cannot_be_written_to(name: str) -> None:
    model = L2CenterClassifier(k=3, scale="std").fit(X, y)
    with pytest.raises(ValueError, match="read-only"):
        getattr(model, name)[...] = 0


def test_a_batch_that_overflows_with_the_others_is_refused() -> None:
    for container in (np.asarray, scipy.sparse.csr_array):
        model = L2CenterClassifier().partial_fit(container(X), y, classes=[0, 1])
        model.partial_fit(container(np.full((2, 6), 5e153)), [0, 1])
        expected = bits(model._fitted.statistics)
        with pytest.raises(ValueError, match="overflow float64"):
            model.partial_fit(container(np.full((2, 6), -5e153)), [0, 1])
        assert bits(model._fitted.statistics) == expected


@pytest.mark.parametrize("unit", [1e-90, 1e90])
@pytest.mark.parametrize("scale", [None, "std"])
@pytest.mark.parametrize("kind", KINDS)
def test_light_and_heavy_weights_change_nothing(kind: Any, scale: str | None, unit: float) -> None:
    expected = kind(scale=scale).fit(X, y)
    model = kind(scale=scale).fit(X, y, sample_weight=np.full(40, unit))
    np.testing.assert_allclose(model.scores_, expected.scores_, rtol=1e-9)
    np.testing.assert_array_equal(model.ranking_, expected.ranking_)


@pytest.mark.parametrize("weight", [1e-110, 1e110, [10**400]])
def test_absurd_weights_are_refused(weight: Any) -> None:
    weights = [1.0] * 39 + (weight if isinstance(weight, list) else [weight])
    with pytest.raises(ValueError, match="sample_weight"):
        L2CenterClassifier().fit(X, y, sample_weight=np.asarray(weights, dtype=object))


def test_the_objective_of_dense_data_in_sparse_form() -> None:
    Y = rng.standard_normal((2000, 5))
    codes = np.arange(2000) % 2
    expected = l2_centers(Y, codes).loss
    for offset in (1e6, 1e8):
        found = l2_centers(scipy.sparse.csr_array(Y + offset), codes).loss
        assert found == pytest.approx(expected, rel=1e-6)


def test_log_probabilities_never_contradict_predict() -> None:
    model = L2CenterClassifier().fit(np.repeat(np.eye(60), 2, axis=0), np.repeat(np.arange(60), 2))
    Q = 0.3 + rng.standard_normal((200, 60)) * 1e-16 * rng.integers(0, 5, (200, 1))
    predicted = model.predict(Q)
    np.testing.assert_array_equal(model.predict_log_proba(Q).argmax(axis=1), predicted)
    np.testing.assert_array_equal(model.predict_proba(Q).argmax(axis=1), predicted)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_left_out_must_still_be_a_number(kind: Any) -> None:
    Q, s = X.copy(), np.ones(40)
    Q[3, 1], s[3] = np.nan, 0
    for container in (Q, scipy.sparse.csr_array(Q)):
        with pytest.raises(ValueError, match="NaN in feature 1"):
            kind().fit(container, y, sample_weight=s)


def test_transform_refuses_nan_in_every_container() -> None:
    Q = X.copy()
    Q[3, 1] = np.nan
    for container in (np.asarray, scipy.sparse.csr_array, scipy.sparse.csc_array):
        model = L2CenterClassifier(k=2).fit(container(X), y)
        with pytest.raises(ValueError, match=r"NaN in feature 1 \(first in row 3\)"):
            model.transform(container(Q))


def test_a_data_frame_with_sparse_columns_stays_sparse() -> None:
    frame = pd.DataFrame.sparse.from_spmatrix(scipy.sparse.csr_matrix(np.round(X)))
    frame.columns = list("abcdef")
    model = L2CenterClassifier(k=2).fit(frame, y)
    plain = L2CenterClassifier(k=2).fit(np.round(X), y)
    np.testing.assert_array_equal(model.support_, plain.support_)
    np.testing.assert_array_equal(model.predict(frame), plain.predict(np.round(X)))
    assert model.feature_names_in_.tolist() == list("abcdef")


@pytest.mark.parametrize(
    "names",
    [
        np.asarray([2**64 - 2, 2**64 - 1], dtype=np.uint64),
        np.asarray([-128, 127], dtype=np.int8),
        np.asarray([-(2**63), 2**63 - 1]),
        np.asarray(["2020-01-01", "2021-01-01"], dtype="M8[D]"),
    ],
    ids=str,
)
def test_extreme_labels(names: np.ndarray) -> None:
    model = L2CenterClassifier().fit(X, names[y])
    assert model.classes_.tolist() == names.tolist()
    assert model.predict(X).dtype == names.dtype
    assert model.score(X, names[y]) == L2CenterClassifier().fit(X, y).score(X, y)


def test_many_labels_are_not_taken_for_a_regression() -> None:
    # (Warnings are errors here.)
    Q = rng.standard_normal((300, 3))
    for names in (np.arange(30).astype(str), np.arange(30) * 1.0, np.arange(30) * 10**6):
        model = L2CenterClassifier().fit(Q, names[np.arange(300) % 30])
        np.testing.assert_array_equal(model.classes_, np.sort(names))


def test_a_missing_time_is_no_label() -> None:
    times = np.asarray(["2020-01-01", "NaT"], dtype="M8[D]")
    with pytest.raises(ValueError, match="NaT"):
        L2CenterClassifier().fit(X, times[y])


@pytest.mark.parametrize("gain", [[np.nan, 1, 2], [np.inf, 1, np.inf]])
def test_a_gain_that_is_no_number_cannot_be_ranked(gain: list) -> None:
    with pytest.raises(ValueError, match="NaN or infinity"):
        select(np.asarray(gain), 1)


def test_select_takes_any_real_gain() -> None:
    assert select(np.asarray([3, 1, 4], dtype=np.float32), 2).support.tolist() == [0, 2]
    assert select(np.asarray([3, 1, 4]), 1).support.tolist() == [2]


@pytest.mark.parametrize(
    ("n_classes", "error", "message"),
    [
        (0, ValueError, "n_classes=0 is not a number of classes"),
        (2.7, TypeError, "'float' object cannot be interpreted as an integer"),
        ("two", TypeError, "'str' object cannot be interpreted as an integer"),
    ],
)
def test_solver_with_an_invalid_n_classes_raises(
    n_classes: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        l2_centers(X, y, n_classes=n_classes)


def test_a_huge_k_warns_once_and_says_the_width() -> None:
    with pytest.warns(UserWarning, match="greater than n_features=6") as seen:
        L2CenterClassifier(k=2**63).fit(X, y)
    assert len([w for w in seen if "n_features" in str(w.message)]) == 1


@pytest.mark.parametrize(
    ("model", "word"),
    [
        (L2CenterClassifier(priors={0.4: 0, 0.6: 1}), "priors"),
        (L2CenterClassifier(scale=np.asarray(["std"])), "scale"),
        (L2CenterClassifier(memory_budget="9" * 400 + "GB"), "memory_budget"),
    ],
    ids=["priors", "scale", "budget"],
)
def test_parameters_of_the_wrong_kind(model: Any, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        model.fit(X, y)


@pytest.mark.parametrize("weights", ["balanced", {0: 1, 1: 2}])
def test_class_weights_are_not_sample_weights(weights: Any) -> None:
    with pytest.raises(TypeError, match="sample_weight must be an array"):
        L2CenterClassifier().fit(X, y, sample_weight=weights)


PRIORS = [
    (L2CenterClassifier(k=2), "priors"),
    (MahalanobisCenterClassifier(k=2), "priors"),
    (SparseBernoulliNB(k=2), "class_prior"),
    (SparseMultinomialNB(k=2), "class_prior"),
]
three = np.arange(40) % 3
COUNTS = rng.poisson(1.0, (40, 6))


@pytest.mark.parametrize(("model", "name"), PRIORS, ids=lambda value: str(value))
def test_priors_are_those_at_the_fit(model: Any, name: str) -> None:
    given = np.asarray([0.2, 0.3, 0.5])
    expected = clone(model).set_params(**{name: given.copy()}).fit(COUNTS, three)
    for fit in (
        lambda m: m.fit(COUNTS, three),
        lambda m: m.partial_fit(COUNTS, three, classes=[0, 1, 2]),
    ):
        found = fit(clone(model).set_params(**{name: given}))
        given[:] = [0.8, 0.1, 0.1]
        np.testing.assert_allclose(
            found.with_k(2).predict_proba(COUNTS), expected.predict_proba(COUNTS), rtol=1e-12
        )
        given[:] = [0.2, 0.3, 0.5]


@pytest.mark.parametrize(("model", "name"), PRIORS, ids=lambda value: str(value))
def test_priors_may_be_rounded_but_not_without_order(model: Any, name: str) -> None:
    narrow = (np.bincount(three) / np.float32(40)).astype(np.float32)
    found = clone(model).set_params(**{name: narrow}).fit(COUNTS, three)
    exact = clone(model).set_params(**{name: np.bincount(three) / 40}).fit(COUNTS, three)
    np.testing.assert_allclose(
        found.predict_proba(COUNTS), exact.predict_proba(COUNTS), rtol=1e-6, atol=1e-12
    )
    for wrong in ({0: 0.2, 1: 0.3, 2: 0.5}, {0.25: 1, 0.3: 2, 0.45: 3}, {0.2, 0.3, 0.5}):
        with pytest.raises(ValueError, match=f"{name} must be in the order of classes_"):
            clone(model).set_params(**{name: wrong}).fit(COUNTS, three)


def _in_parts(parts: list, dtype: Any) -> scipy.sparse.csr_matrix:
    """A matrix whose first cell is stored in parts."""
    A = scipy.sparse.csr_matrix((6, 2), dtype=dtype)
    A.data = np.asarray([*parts, 1, 1, 1, 1, 1], dtype=dtype)
    n = len(parts)
    A.indices = np.asarray([0] * n + [1, 1, 0, 1, 0], dtype=np.int32)
    A.indptr = np.asarray([0, n, n + 1, n + 2, n + 3, n + 4, n + 5], dtype=np.int32)
    return A


@pytest.mark.parametrize(
    ("parts", "dtype"),
    [([1, 1, 1], bool), ([100, 100, 100], np.int8), ([200, 100], np.uint8), ([5, -2], float)],
)
@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_parts_of_a_cell_are_read_alike_everywhere(parts: list, dtype: Any, layout: str) -> None:
    A, labels = _in_parts(parts, dtype), [0, 1, 1, 0, 1, 0]
    if layout == "csc":
        dense, entries = A.toarray(), A.tocoo()
        order = np.argsort(entries.col, kind="stable")
        A = scipy.sparse.csc_matrix((6, 2), dtype=dtype)
        A.data, A.indices = entries.data[order], entries.row[order].astype(np.int32)
        A.indptr = np.searchsorted(entries.col[order], [0, 1, 2]).astype(np.int32)
        np.testing.assert_array_equal(A.toarray(), dense)
    for model in (
        L2CenterClassifier(),
        L1CenterClassifier(),
        MahalanobisCenterClassifier(shrinkage=0.5),
        SparseBernoulliNB(),
        SparseMultinomialNB(),
    ):
        model.fit(COUNTS[:6, :2] + 0.0, labels)
        wanted = A.toarray().astype(float)
        if isinstance(model, SparseMultinomialNB) and (wanted < 0).any():
            continue
        np.testing.assert_allclose(
            model.decision_function(A), model.decision_function(wanted), rtol=1e-12
        )
        if isinstance(model, MahalanobisCenterClassifier):
            np.testing.assert_allclose(model.transform(A), model.transform(wanted), rtol=1e-12)


@pytest.mark.parametrize("scale", [None, "std"])
@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_array])
def test_squares_that_underflow_are_an_error(scale: Any, container: Any) -> None:
    Q = X + 2 * y[:, None]
    expected = L2CenterClassifier(k=2, scale=scale).fit(container(Q), y)
    found = L2CenterClassifier(k=2, scale=scale).fit(container(Q * 2.0**-400), y)
    assert found.support_.tolist() == expected.support_.tolist()
    with pytest.raises(ValueError, match="too small: their squares underflow"):
        L2CenterClassifier(k=2, scale=scale).fit(container(Q * 1e-165), y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for constant in (0.0, 5.0):
            model = L2CenterClassifier(k=2, scale=scale).fit(container(0 * Q + constant), y)
            assert model.scores_.tolist() == [0.0] * 6
            assert model.objective_ == 0.0


@pytest.mark.parametrize(
    "model",
    [L2CenterClassifier(), L1CenterClassifier(), *(m for m, _ in PRIORS[1:])],
    ids=str,
)
def test_what_a_fit_found_cannot_be_written_to(model: Any) -> None:
    model.fit(COUNTS, y)
    names = [n for n in dir(model) if n.endswith("_") and not n.startswith("_")]
    arrays = {n: getattr(model, n) for n in names if isinstance(getattr(model, n), np.ndarray)}
    assert {"classes_", "support_", "scores_", "centers_"} <= set(arrays)
    assert not [n for n, a in arrays.items() if a.flags.writeable]


@pytest.mark.parametrize("score", [odds_ratio, thresholded_multinomial])
def test_scores_take_frames_as_the_models_do(score: Any) -> None:
    frame = pd.DataFrame(COUNTS)
    expected = score(COUNTS, y)
    np.testing.assert_array_equal(score(frame.astype("Int64"), y), expected)
    np.testing.assert_array_equal(score(frame.astype(pd.SparseDtype(int, 0)), y), expected)
    with pytest.raises(ValueError, match="NaN in feature"):
        score(frame.astype("Int64").mask(frame == 3), y)


def test_warnings_are_of_the_line_that_called() -> None:
    model = L2CenterClassifier().fit(X, y)
    for call in (
        lambda: L2CenterClassifier(k=9).fit(X, y),
        lambda: L2CenterClassifier(k=2).fit(0 * X, y),
        lambda: SparseMultinomialNB(k=3).fit(0 * COUNTS + 1, y),
        lambda: model.with_k(9),
        lambda: select(np.zeros(3), 2),
    ):
        with pytest.warns(UserWarning, match="k=") as seen:
            call()
        assert {w.filename for w in seen} == {__file__}


def test_parameters_of_naive_bayes_and_memory() -> None:
    for wrong in ("no", 1, None):
        with pytest.raises(ValueError, match="fit_prior="):
            SparseBernoulliNB(fit_prior=wrong).fit(COUNTS, y)
    for alpha in (10**400, np.True_, [1.0], "1"):
        with pytest.raises(ValueError, match="alpha="):
            SparseMultinomialNB(alpha=alpha).fit(COUNTS, y)
    L2CenterClassifier(memory_budget=2e9).fit(X, y)
    for budget in (0.5, "0.1b", float("inf"), float("nan"), True):
        with pytest.raises(ValueError, match="memory_budget="):
            L2CenterClassifier(memory_budget=budget).fit(X, y)
    for gain in (np.asarray([[1.0, 2.0]]), np.asarray([1j, 2.0])):
        with pytest.raises(ValueError, match="gain must be m real numbers"):
            select(gain, 1)
