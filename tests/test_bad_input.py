"""What is wrong is refused with a sentence that says what and where; nothing returns NaN."""

from __future__ import annotations

import copy
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from bits import bits
from conftest import BACKENDS
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from gpucenters import DeviceUnavailableError, L1CenterClassifier, L2CenterClassifier

MODELS = [L2CenterClassifier(), L2CenterClassifier(scale="std"), L1CenterClassifier()]
KINDS = [L2CenterClassifier, L1CenterClassifier]
PLAIN = np.array([[0.0, 1, 0, 2], [1, 0, 5, 2], [0, 3, 1, 9], [4, 4, 0, 1], [2, 0, 7, 0]])
Y = np.array([0, 1, 0, 1, 1])


def _name(value: Any) -> str | None:
    if isinstance(value, L2CenterClassifier | L1CenterClassifier):
        return type(value).__name__[:2].lower() + ("-scale" if value.scale else "")
    return getattr(value, "__name__", None)


each_model = pytest.mark.parametrize("model", MODELS, ids=_name)
each_kind = pytest.mark.parametrize("kind", KINDS, ids=_name)
# The stand-in for CuPy computes with NumPy, which warns where CUDA is silent.
quiet = pytest.mark.filterwarnings("ignore:.* encountered in:RuntimeWarning")


def _fitted(model: Any, backend: Any = None) -> Any:
    X = PLAIN if backend is None else backend.array(PLAIN)
    return clone(model).fit(X, Y)


def _containers(values: np.ndarray, backend: Any) -> list[Any]:
    with np.errstate(invalid="ignore"):
        return backend.containers(values)


def _calls(model: Any, X: Any) -> list[Any]:
    """Everything of a fitted model that takes X alone."""
    names = ["predict", "decision_function", "predict_proba", "predict_log_proba"]
    return [getattr(model, name) for name in names if hasattr(model, name)]


# --- values ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")]
)
@each_model
def test_values_that_are_not_finite_are_named_at_fit(
    model: Any, value: float, word: str, backend: Any
) -> None:
    plain = PLAIN.copy()
    plain[3, 2] = value
    for X in _containers(plain, backend):
        with pytest.raises(ValueError, match=rf"{word} in feature 2 \(first in row 3\)"):
            clone(model).fit(X, Y)
        if hasattr(model, "partial_fit"):
            with pytest.raises(ValueError, match=rf"{word} in feature 2 \(first in row 3\)"):
                clone(model).partial_fit(X, Y, classes=[0, 1])


@pytest.mark.parametrize(
    ("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")]
)
@each_model
def test_values_that_are_not_finite_are_named_at_prediction(
    model: Any, value: float, word: str, backend: Any
) -> None:
    plain = PLAIN.copy()
    plain[3, 2] = value
    for good, X in zip(_containers(PLAIN, backend), _containers(plain, backend), strict=True):
        fitted = clone(model).fit(good, Y)
        for call in _calls(fitted, X):
            with pytest.raises(ValueError, match=rf"{word} in feature 2 \(first in row 3\)"):
                call(X)
        with pytest.raises(ValueError, match=word):
            fitted.score(X, Y)


@quiet
@pytest.mark.parametrize("both", [[np.inf, -np.inf], [np.nan, np.inf]])
@each_model
def test_infinities_that_cancel_are_found(model: Any, both: list[float], backend: Any) -> None:
    plain = PLAIN.copy()
    plain[[1, 3], 0] = both
    for X in _containers(plain, backend):
        with pytest.raises(ValueError, match="in feature 0"):
            clone(model).fit(X, Y)


@each_model
def test_values_that_are_not_finite_are_found_among_many(model: Any, on_host: Any) -> None:
    X = np.ones((3000, 400), dtype=np.float32)
    X[2999, 399] = np.nan
    for container in (X, np.asfortranarray(X), scipy.sparse.csr_array(X)):
        with pytest.raises(ValueError, match=r"NaN in feature 399 \(first in row 2999\)"):
            clone(model).fit(container, np.arange(3000) % 2)


@pytest.mark.parametrize("value", [1e160, -1e200, 1.7e308])
@pytest.mark.parametrize("model", MODELS[:2], ids=_name)
def test_values_whose_squares_overflow_are_named(model: Any, value: float, backend: Any) -> None:
    plain = PLAIN.copy()
    plain[3, 2] = value
    for X in _containers(plain, backend):
        with pytest.raises(ValueError, match=r"in feature 2 \(first in row 3\).*overflow"):
            clone(model).fit(X, Y)
        with pytest.raises(ValueError, match=r"in feature 2 \(first in row 3\).*overflow"):
            clone(model).partial_fit(X, Y, classes=[0, 1])


def test_a_large_constant_whose_square_overflows_is_named(backend: Any) -> None:
    plain = PLAIN.copy()
    plain[:, 1] = 1e200
    for X in _containers(plain, backend):
        with pytest.raises(ValueError, match=r"feature 1 .*overflow"):
            L2CenterClassifier().fit(X, Y)


def test_l1_takes_values_whose_squares_overflow(backend: Any) -> None:
    plain = PLAIN.copy()
    plain[3, 2] = 1e200
    plain[:, 0] = [-1e200, 1e200, -1e200, 1e200, 1e200]
    for X in _containers(plain, backend):
        model = L1CenterClassifier(k=1).fit(X, Y)
        assert model.support_.tolist() == [0]
        assert backend.host(model.centers_).tolist() == [[-1e200], [1e200]]
        assert backend.host(model.predict(X)).tolist() == Y.tolist()
        assert np.isfinite(model.objective_)


@quiet
def test_l1_names_the_feature_whose_sums_overflow(backend: Any) -> None:
    plain = PLAIN.copy()
    plain[:, 2] = [1.7e308, -1.7e308, -1.7e308, 1.7e308, -1.7e308]
    for X in _containers(plain, backend):
        with pytest.raises(ValueError, match=r"feature 2 .*overflow"):
            L1CenterClassifier().fit(X, Y)


def test_a_scale_needs_squares_for_l1_too(backend: Any) -> None:
    plain = PLAIN.copy()
    plain[3, 2] = 1e200
    for X in _containers(plain, backend):
        with pytest.raises(ValueError, match=r"feature 2 .*overflow"):
            L1CenterClassifier(scale="std").fit(X, Y)


@quiet
@pytest.mark.parametrize("model", [L2CenterClassifier(), L1CenterClassifier()], ids=_name)
def test_scores_that_overflow_name_the_row(model: Any, backend: Any) -> None:
    plain = np.array([[-1e100, -1e100], [1e100, 1e100]])
    if isinstance(model, L1CenterClassifier):
        plain = np.array([[-1.0, -1.0], [1.0, 1.0], [0.0, 0.0]])
    fitted = clone(model).fit(backend.array(plain), range(len(plain)))
    far = backend.array([[0.0, 0.0], [1.7e308, 1.7e308]])
    with pytest.raises(ValueError, match="row 1"):
        fitted.predict(far)


@each_kind
def test_a_long_double_beyond_float64_is_infinity(kind: Any) -> None:
    X = PLAIN.astype(np.longdouble)
    X[3, 2] = np.finfo(np.longdouble).max
    if np.finfo(np.longdouble).max == np.finfo(np.float64).max:
        pytest.skip("long double is no longer than double on this system")
    with pytest.raises(ValueError, match="in feature 2"):
        kind().fit(X, Y)


HARD = {
    "constant": np.full((6, 3), 0.1),
    "zeros": np.zeros((6, 3)),
    "tiny": 5e-324 * np.arange(18.0).reshape(6, 3),
    "small": 1e-160 * np.arange(18.0).reshape(6, 3),
    "large": 1e150 * np.arange(18.0).reshape(6, 3),
    "one outlier": np.vstack([np.zeros((5, 3)), [1e150, -1e150, 1e-150]]),
    "both ends": np.array([[1e150, -1e150, 1e-300]] * 3 + [[-1e150, 1e150, -1e-300]] * 3),
    "large offset": 1e15 + np.arange(18.0).reshape(6, 3),
}


@pytest.mark.parametrize("labels", [[0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2]], ids=["two", "three"])
@pytest.mark.parametrize("scale", [None, "std", "pooled"])
@pytest.mark.parametrize("data", list(HARD))
@each_kind
def test_no_result_is_nan(
    kind: Any, data: str, scale: Any, labels: list[int], backend: Any
) -> None:
    underflows = data == "tiny" or (data == "small" and scale is None)
    for X in backend.containers(HARD[data]):
        if kind is L2CenterClassifier and underflows:
            with pytest.raises(ValueError, match="too small: their squares underflow"):
                kind(scale=scale).fit(X, labels)
            continue
        model = kind(scale=scale).fit(X, labels)
        assert np.isfinite(model.objective_)
        arrays = [model.centers_, model.scores_, model.scale_]
        arrays += [call(X) for call in _calls(model, X)]
        if kind is L2CenterClassifier:
            arrays += [model.coef_, model.intercept_]
        for array in arrays:
            assert array is None or np.all(np.isfinite(backend.host(array)))
        assert np.all(backend.host(model.scores_) >= 0)


# --- shapes and types of X ---------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(0, 4), (5, 0), (0, 0)])
@each_kind
def test_empty_data_are_refused(kind: Any, shape: tuple[int, int], backend: Any) -> None:
    what = "sample" if shape[0] == 0 else "feature"
    for X in backend.containers(np.zeros(shape)):
        with pytest.raises(ValueError, match=rf"0 {what}\(s\).*minimum of 1"):
            kind().fit(X, Y[: shape[0]])


@each_kind
def test_predicting_no_rows_is_refused(kind: Any, backend: Any) -> None:
    for X in backend.containers(np.zeros((0, 4))):
        with pytest.raises(ValueError, match=r"0 sample\(s\)"):
            _fitted(kind(), backend).predict(X)


@pytest.mark.parametrize("shape", [(5,), (5, 4, 1), ()])
@each_kind
def test_other_than_two_dimensions_are_refused(
    kind: Any, shape: tuple[int, ...], backend: Any
) -> None:
    X = backend.array(np.ones(shape))
    expected = "scalar|0D" if shape == () else f"{len(shape)}D|dim {len(shape)}"
    with pytest.raises(ValueError, match=expected):
        kind().fit(X, Y)
    with pytest.raises(ValueError, match=expected):
        _fitted(kind(), backend).predict(X)


@each_kind
def test_a_sparse_array_of_one_dimension_is_refused(kind: Any) -> None:
    with pytest.raises(ValueError, match="2D sparse matrix, got 1D"):
        kind().fit(scipy.sparse.coo_array(np.ones(5)), Y)


@each_kind
def test_complex_data_are_refused(kind: Any, backend: Any) -> None:
    for X in backend.containers(PLAIN, (np.complex128, np.complex64)):
        with pytest.raises(ValueError, match="Complex data not supported"):
            kind().fit(X, Y)
    with pytest.raises(ValueError, match="Complex data not supported"):
        _fitted(kind(), backend).predict(X)


@pytest.mark.parametrize("dtype", ["U", "S", "M8[s]", "m8[s]"])
@each_kind
def test_values_that_are_no_numbers_are_refused(kind: Any, dtype: str) -> None:
    X = PLAIN.astype(np.int64).astype(dtype)
    with pytest.raises((TypeError, ValueError), match=r"real numbers|numeric|dtype"):
        kind().fit(X, Y)
    with pytest.raises((TypeError, ValueError), match=r"real numbers|numeric|dtype"):
        _fitted(kind()).predict(X)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("pear", "X holds 'pear' in feature 2, row 3, which is no number"),
        ((1, 2), r"X holds \(1, 2\) in feature 2, row 3, which is no number"),
        (None, r"NaN in feature 2 \(first in row 3\)"),
    ],
    ids=["string", "tuple", "None"],
)
@each_kind
def test_an_object_that_is_no_number_is_named_by_value_row_and_feature(
    kind: Any, value: Any, message: str
) -> None:
    X = PLAIN.astype(object)
    X[3, 2] = value
    for call in (lambda: kind().fit(X, Y), lambda: _fitted(kind()).predict(X)):
        with pytest.raises(ValueError, match=message):
            call()


@each_kind
def test_the_row_of_an_object_is_counted_from_the_first_row_of_all(kind: Any) -> None:
    X = np.ones((70_000, 20), dtype=object)
    X[69_999, 0] = "pear"
    with pytest.raises((TypeError, ValueError), match="row 69999"):
        kind().fit(X, np.arange(70_000) % 2)


@each_kind
def test_another_width_is_refused(kind: Any, backend: Any) -> None:
    model = _fitted(kind(), backend)
    for width in (3, 5):
        for X in backend.containers(np.ones((2, width))):
            for call in [*_calls(model, X), model.transform]:
                with pytest.raises(ValueError, match=f"{width} features.*expecting 4"):
                    call(X)


@each_kind
def test_other_feature_names_are_refused(kind: Any) -> None:
    frame = pd.DataFrame(PLAIN, columns=["a", "b", "c", "d"])
    model = kind().fit(frame, Y)
    for call in [*_calls(model, frame), model.transform]:
        with pytest.raises(ValueError, match=r"(?s)feature names.*\bz\b"):
            call(frame.rename(columns={"b": "z"}))
        with pytest.raises(ValueError, match=r"(?i)feature names must be in the same order"):
            call(frame[["b", "a", "c", "d"]])


# --- damaged sparse matrices -------------------------------------------------------------------


def _set(name: str, at: int, value: int) -> Any:
    def damage(X: Any) -> None:
        getattr(X, name)[at] = value

    return damage


def _cut(name: str) -> Any:
    def damage(X: Any) -> None:
        setattr(X, name, getattr(X, name)[:-2])

    return damage


DAMAGE = {
    "indptr falls": (_set("indptr", 2, 0), "indptr.*falls"),
    "indptr is negative": (_set("indptr", 1, -3), "indptr.*(falls|negative)"),
    "indptr starts late": (_set("indptr", 0, 1), "indptr.*from 1"),
    "indptr starts before 0": (_set("indptr", 0, -1), "indptr.*from -1"),
    "indptr ends beyond the data": (_set("indptr", -1, 10_000), "indptr.*10000"),
    "indptr jumps beyond the data": (_set("indptr", 2, 10_000), "indptr.*falls"),
    "indptr is short": (_cut("indptr"), "indptr.*shape"),
    "data are short": (_cut("data"), "indices for.*values|indptr.*stored"),
    "indices are short": (_cut("indices"), "indptr.*stored|indices for.*values"),
    "an index is negative": (_set("indices", 3, -1), "indices.*entry 3 is -1"),
    "an index is m": (_set("indices", 3, 5), "indices.*entry 3 is 5"),
    "an index is huge": (_set("indices", 3, 2**31 - 1), "indices.*entry 3 is 2147483647"),
    "the last index is bad": (_set("indices", -1, 99), "indices.*is 99"),
}


def _damaged(name: str, layout: str, backend: Any, dtype: Any = np.float64) -> Any:
    X = getattr(backend.sparse, f"{layout}_matrix")(backend.csr(PLAIN, dtype))
    if backend.name == "numpy":
        X = X.copy()
    DAMAGE[name][0](X)
    return X


@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize("damage", list(DAMAGE))
@each_kind
def test_a_damaged_sparse_matrix_is_refused(
    kind: Any, damage: str, layout: str, sparse_backend: Any
) -> None:
    message = f"(?i){DAMAGE[damage][1]}"
    X = _damaged(damage, layout, sparse_backend)
    with pytest.raises(ValueError, match=message):
        kind().fit(X, Y)
    model = kind().fit(sparse_backend.csr(PLAIN), Y)
    for call in [*_calls(model, X), model.transform]:
        with pytest.raises(ValueError, match=message):
            call(X)
    if kind is L2CenterClassifier:
        with pytest.raises(ValueError, match=message):
            kind().partial_fit(X, Y, classes=[0, 1])


@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_damage_is_found_in_indices_of_either_width(layout: str, index: str) -> None:
    X = getattr(scipy.sparse, f"{layout}_array")(PLAIN)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    X.indices[4] = -(2**31)
    with pytest.raises(ValueError, match="entry 4 is -2147483648"):
        L2CenterClassifier().fit(X, Y)


@pytest.mark.parametrize(("axis", "size"), [("row", 5), ("col", 4)])
@pytest.mark.parametrize("bad", ["negative", "too large"])
@each_kind
def test_a_damaged_coo_matrix_is_refused(
    kind: Any, bad: str, axis: str, size: int, sparse_backend: Any
) -> None:
    X = sparse_backend.csr(PLAIN).tocoo().copy()
    getattr(X, axis)[3] = -1 if bad == "negative" else size
    with pytest.raises(ValueError, match=f"{axis} of the COO matrix .*entry 3"):
        kind().fit(X, Y)
    with pytest.raises(ValueError, match=f"{axis} of the COO matrix .*entry 3"):
        kind().fit(sparse_backend.csr(PLAIN), Y).predict(X)


def test_a_coo_matrix_of_unequal_parts_is_refused() -> None:
    X = scipy.sparse.coo_matrix(PLAIN)
    X.data = X.data[:-1]
    with pytest.raises(ValueError, match=r"COO matrix of shape .* differ in length"):
        L2CenterClassifier().fit(X, Y)


@pytest.mark.parametrize("bad", [-1, 2, 2**31 - 1])
def test_a_damaged_bsr_matrix_is_refused(bad: int) -> None:
    X = scipy.sparse.bsr_array(np.ones((4, 4)), blocksize=(2, 2))
    X.indices[1] = bad
    with pytest.raises(ValueError, match=f"BSR matrix .*entry 1 is {bad}"):
        L2CenterClassifier().fit(X, [0, 1, 0, 1])


# --- labels ------------------------------------------------------------------------------------


@pytest.mark.parametrize("y", [[3] * 5, ["only"] * 5, [True] * 5])
@each_kind
def test_a_single_class_is_refused(kind: Any, y: list, backend: Any) -> None:
    with pytest.raises(ValueError, match=f"at least two classes.*1 class.*{y[0]}"):
        kind().fit(backend.array(PLAIN), y)


@each_kind
def test_a_class_without_weight_is_named(kind: Any, backend: Any) -> None:
    y = np.array(["a", "b", "c", "a", "b"])
    for X in backend.containers(PLAIN):
        with pytest.raises(ValueError, match=r"class c .*without weight"):
            kind().fit(X, y, sample_weight=[1, 1, 0, 1, 1])


@pytest.mark.parametrize("length", [0, 4, 6])
@each_kind
def test_labels_of_another_length_are_refused(kind: Any, length: int, backend: Any) -> None:
    y = np.arange(length) % 2
    X = backend.array(PLAIN)
    for call in (kind().fit, _fitted(kind(), backend).score):
        with pytest.raises(ValueError, match=f"X has 5, y has {length}"):
            call(X, y)
    with pytest.raises(ValueError, match="X has 5, y has"):
        L2CenterClassifier().partial_fit(X, y, classes=[0, 1])


BAD_LABELS = {
    "continuous": (np.array([0.5, 1.5, 0.25, 1.0, 2.0]), "continuous"),
    "NaN": (np.array([0.0, 1.0, np.nan, 1.0, 0.0]), "y .*NaN|NaN.* y"),
    "infinity": (np.array([0.0, 1.0, np.inf, 1.0, 0.0]), "y .*infinity|infinity.* y"),
    "NaN among objects": (np.array([0.0, 1.0, np.nan, 1.0, 0.0], dtype=object), "y |label"),
    "NaN among strings": (np.array(["a", "b", np.nan, "a", "b"], dtype=object), "y holds labels"),
    "None among strings": (np.array(["a", "b", None, "a", "b"], dtype=object), "y holds labels"),
    "None among numbers": (np.array([0, 1, None, 1, 0], dtype=object), "y holds labels"),
    "None alone": (np.array([None] * 5), "y |label|class"),
    "no labels": (None, "requires y"),
    "mixed types": (np.array(["a", 1, "a", 1, 2], dtype=object), "y holds labels"),
    "missing in a Series": (pd.Series([0, 1, None, 1, 0], dtype="Int64"), "y |label|NaN|NA"),
    "two columns": (np.ones((5, 2)), "1d array|shape"),
    "sparse": (scipy.sparse.csr_matrix(np.ones((5, 1))), "(?i)y |sparse"),
}


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")  # by scikit-learn
@pytest.mark.parametrize("labels", list(BAD_LABELS))
@each_kind
def test_bad_labels_are_refused(kind: Any, labels: str) -> None:
    y, message = BAD_LABELS[labels]
    with pytest.raises((TypeError, ValueError), match=message):
        kind().fit(PLAIN, y)


# --- weights -----------------------------------------------------------------------------------

BAD_WEIGHTS = {
    "negative": ([1, 1, -1, 1, 1], "(?i)negative.*sample_weight.*row 2: -1"),
    "NaN": ([1, 1, np.nan, 1, 1], "sample_weight.*NaN.*row 2"),
    "infinity": ([1, 1, 1, np.inf, 1], "sample_weight.*infinity.*row 3"),
    "too few": ([1, 1], "sample_weight.*2.*5"),
    "too many": ([1] * 6, "sample_weight.*6.*5"),
    "two columns": ([[1, 1]] * 5, "(?i)sample.weight.*1D"),
    "strings": (["a"] * 5, "sample_weight.*numbers"),
    "complex": ([1j] * 5, "sample_weight.*numbers"),
    "zeros": ([0] * 5, "weight"),
}


@pytest.mark.parametrize("weights", list(BAD_WEIGHTS))
@each_kind
def test_bad_weights_are_refused(kind: Any, weights: str, backend: Any) -> None:
    values, message = BAD_WEIGHTS[weights]
    X = backend.array(PLAIN)
    forms = [values, np.array(values)]
    if weights not in ("strings", "complex"):
        forms.append(backend.array(np.array(values)))
    for form in forms:
        with pytest.raises((TypeError, ValueError), match=message):
            kind().fit(X, Y, sample_weight=form)


@pytest.mark.parametrize("weights", [w for w in BAD_WEIGHTS if w != "zeros"])
def test_bad_weights_are_refused_batch_by_batch(weights: str) -> None:
    values, message = BAD_WEIGHTS[weights]
    with pytest.raises((TypeError, ValueError), match=message):
        L2CenterClassifier().partial_fit(PLAIN, Y, classes=[0, 1], sample_weight=values)


@pytest.mark.parametrize("weights", list(BAD_WEIGHTS))
@each_kind
def test_bad_weights_are_refused_by_score(kind: Any, weights: str) -> None:
    with pytest.raises((TypeError, ValueError), match=r"(?i)weight"):
        _fitted(kind()).score(PLAIN, Y, sample_weight=BAD_WEIGHTS[weights][0])


# --- parameters --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "k", [0, -1, 1.5, np.nan, np.inf, 0.0, True, np.True_, "most", None, [2]], ids=repr
)
@each_kind
def test_a_bad_k_is_refused(kind: Any, k: Any) -> None:
    calls = [lambda: kind(k=k).fit(PLAIN, Y), lambda: _fitted(kind()).with_k(k)]
    if kind is L2CenterClassifier:
        calls.append(lambda: kind(k=k).partial_fit(PLAIN, Y, classes=[0, 1]))
    for call in calls:
        with pytest.raises(ValueError, match=re.escape(f"k={k!r} is not valid")):
            call()


def test_more_features_than_there_are_means_all_with_a_warning(backend: Any) -> None:
    X = backend.array(PLAIN)
    with pytest.warns(UserWarning, match="k=9 is greater than n_features=4"):
        model = L2CenterClassifier(k=9).fit(X, Y)
    assert model.support_.tolist() == [0, 1, 2, 3]


@each_kind
def test_features_that_tell_nothing_apart_are_counted_in_a_warning(kind: Any) -> None:
    X = np.column_stack([Y, np.ones(5), np.ones(5)])
    with pytest.warns(UserWarning, match="2 features, but only 1 have a positive gain"):
        model = kind(k=2).fit(X, Y)
    assert model.support_.tolist() == [0, 1]


@pytest.mark.parametrize("scale", ["minmax", "STD", 3, True, ""], ids=repr)
@each_kind
def test_a_bad_scale_is_refused(kind: Any, scale: Any) -> None:
    with pytest.raises(ValueError, match=f"scale={scale!r} is not valid.*'std'"):
        kind(scale=scale).fit(PLAIN, Y)


@each_kind
def test_a_pooled_scale_needs_more_weight_than_classes(kind: Any) -> None:
    with pytest.raises(ValueError, match=r"pooled.*sum to 2.*2 classes"):
        kind(scale="pooled").fit(PLAIN[:2], Y[:2])


@pytest.mark.parametrize(
    "priors",
    ["flat", [0.5], [0.5, 0.25, 0.25], [0.5, 0.6], [0, 1], [-0.5, 1.5], [np.nan, 0.5]],
    ids=repr,
)
def test_bad_priors_are_refused(priors: Any) -> None:
    with pytest.raises(ValueError, match="priors"):
        L2CenterClassifier(priors=priors).fit(PLAIN, Y)


@pytest.mark.parametrize("priors", [None, 0.5, ["a", "b"], [[0.5, 0.5]], [[0.5], [0.5]]], ids=repr)
def test_priors_that_are_no_numbers_are_refused_by_name(priors: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="priors"):
        L2CenterClassifier(priors=priors).fit(PLAIN, Y)


@pytest.mark.parametrize("priors", ["flat", [0.5], [0.5, 0.6]], ids=repr)
def test_bad_priors_are_refused_at_the_first_batch(priors: Any) -> None:
    with pytest.raises(ValueError, match="priors"):
        L2CenterClassifier(priors=priors).partial_fit(PLAIN, Y, classes=[0, 1])


BAD_BUDGETS = [0, -1, "lots", "", "-1MB", "0", "5 parsecs", True, 1.5, np.nan, [1]]


@pytest.mark.parametrize("budget", BAD_BUDGETS, ids=repr)
@each_kind
def test_a_bad_memory_budget_is_refused(kind: Any, budget: Any) -> None:
    with pytest.raises(ValueError, match=r"memory_budget=.*is not a size"):
        kind(memory_budget=budget).fit(PLAIN, Y)


@pytest.mark.parametrize("budget", BAD_BUDGETS, ids=repr)
def test_a_bad_memory_budget_is_refused_at_the_first_batch(budget: Any) -> None:
    with pytest.raises(ValueError, match=r"memory_budget=.*is not a size"):
        L2CenterClassifier(memory_budget=budget).partial_fit(PLAIN, Y, classes=[0, 1])


# --- devices -----------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["gpu", "CPU", "cuda:", "cuda:x", "cuda:-1", "", 0], ids=repr)
@each_kind
def test_an_unknown_device_is_refused(kind: Any, device: Any) -> None:
    for call in (lambda: kind(device=device).fit(PLAIN, Y), lambda: _fitted(kind()).to(device)):
        with pytest.raises(ValueError, match=f"unknown device {device!r}.*'cuda:N'"):
            call()


@each_kind
def test_a_device_that_does_not_exist_is_refused(kind: Any) -> None:
    for call in (
        lambda: kind(device="cuda:99").fit(PLAIN, Y),
        lambda: _fitted(kind()).to("cuda:99"),
    ):
        with pytest.raises(DeviceUnavailableError, match=r"'cuda:99' does not exist.*CUDA device"):
            call()


@each_kind
def test_moving_nowhere_is_refused(kind: Any) -> None:
    with pytest.raises(ValueError, match="name of a device"):
        _fitted(kind()).to(None)


def test_cuda_without_cupy_names_the_extra() -> None:
    program = """if True:
        import importlib.util
        find = importlib.util.find_spec  # as where CuPy is not installed:
        importlib.util.find_spec = lambda name, *rest: None if name == "cupy" else find(name, *rest)
        from gpucenters import DeviceUnavailableError, L1CenterClassifier, L2CenterClassifier
        X, y = [[0.0], [1.0]], [0, 1]
        for kind in (L1CenterClassifier, L2CenterClassifier):
            assert kind(device="auto").fit(X, y).predict(X).tolist() == y
            for call in (kind(device="cuda").fit, lambda X, y: kind().fit(X, y).to("cuda:0")):
                try:
                    call(X, y)
                except DeviceUnavailableError as error:
                    assert isinstance(error, RuntimeError)
                    print(error)
        """
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 4
    for line in lines:
        assert "CuPy is not installed" in line
        assert "gpucenters[cuda12]" in line and "gpucenters[cuda13]" in line


@pytest.mark.parametrize("other", list(BACKENDS))
@each_kind
def test_x_of_another_namespace_is_refused(kind: Any, other: str, backend: Any) -> None:
    if other == backend.name:
        other = "numpy" if backend.name != "numpy" else "cupy"
    X = BACKENDS[other].array(PLAIN)
    model = _fitted(kind(), backend)
    calls = [*_calls(model, X), model.transform, lambda X: model.score(X, Y)]
    if kind is L2CenterClassifier:
        calls.append(lambda X: model.partial_fit(X, Y))
    for call in calls:
        with pytest.raises(ValueError, match=r"(?s)must use the same namespace.*to\(device\)"):
            call(X)


@each_kind
def test_sparse_x_of_another_namespace_is_refused(kind: Any, backend: Any) -> None:
    other = BACKENDS["numpy" if backend.name == "cupy" else "cupy"]
    model = _fitted(kind(), backend)
    for X in (other.csr(PLAIN), other.csc(PLAIN)):
        for call in [*_calls(model, X), model.transform]:
            with pytest.raises(ValueError, match=r"(?s)must use the same namespace.*to\(device\)"):
                call(X)


# --- before and between fits -------------------------------------------------------------------


@each_kind
def test_a_model_that_is_not_fitted_says_so(kind: Any) -> None:
    model = kind()
    calls = [*_calls(model, PLAIN), model.transform, model.inverse_transform]
    calls += [lambda X: model.score(X, Y), lambda X: model.with_k(1), lambda X: model.to("cpu")]
    calls += [lambda X: model.get_support(), lambda X: model.get_feature_names_out()]
    for call in calls:
        with pytest.raises(NotFittedError, match=f"{kind.__name__} instance is not fitted"):
            call(PLAIN)
    for name in ("support_", "ranking_", "scores_", "scale_", "centers_", "objective_"):
        assert not hasattr(model, name)
    for name in ("classes_", "coef_", "intercept_", "n_features_in_"):
        assert not hasattr(model, name)


def test_the_first_batch_needs_classes() -> None:
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        L2CenterClassifier().partial_fit(PLAIN, Y)


@pytest.mark.parametrize("classes", [[1], [], ["a"]])
def test_at_least_two_classes_must_be_named(classes: list) -> None:
    with pytest.raises(ValueError, match=r"classes.*at least two"):
        L2CenterClassifier().partial_fit(PLAIN, Y, classes=classes)


def test_an_unknown_label_is_named(backend: Any) -> None:
    X = backend.array(PLAIN)
    with pytest.raises(ValueError, match=r"not among classes: \[7\]"):
        L2CenterClassifier().partial_fit(X, [0, 1, 7, 1, 0], classes=[0, 1])
    with pytest.raises(ValueError, match=r"not among classes: \['d'\]"):
        L2CenterClassifier().partial_fit(X, list("abdab"), classes=["a", "b", "c"])
    with pytest.raises(ValueError, match="not among classes"):
        L2CenterClassifier().partial_fit(X, list("ababa"), classes=[0, 1])


def test_classes_that_were_not_met_yet_are_named(backend: Any) -> None:
    X = backend.array(PLAIN)
    model = L2CenterClassifier().partial_fit(X, list("ababa"), classes=list("abcd"))
    model.partial_fit(X, list("ccccd"), sample_weight=[1, 1, 1, 1, 0])
    calls = [*_calls(model, X), model.transform, lambda X: model.score(X, list("ababa"))]
    calls += [lambda X: model.with_k(1), lambda X: model.get_support()]
    for call in calls:
        with pytest.raises(NotFittedError, match="no sample of class 'd' yet"):
            call(X)
    model.partial_fit(X[:1, :], ["d"])
    rows = backend.array(np.concatenate([PLAIN, PLAIN, PLAIN[:1]]))
    weights = [*[1] * 9, 0, 1]
    whole = L2CenterClassifier().fit(rows, list("ababaccccdd"), sample_weight=weights)
    assert model.classes_.tolist() == whole.classes_.tolist()
    for name in ("centers_", "scores_"):
        found, expected = (backend.host(getattr(m, name)) for m in (model, whole))
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def _with(value: float) -> np.ndarray:
    X = PLAIN.copy()
    X[3, 2] = value
    return X


FAILING = {
    "NaN": ({"X": _with(np.nan)}, r"NaN in feature 2 \(first in row 3\)"),
    "infinity": ({"X": _with(np.inf)}, r"infinity in feature 2 \(first in row 3\)"),
    "overflow": ({"X": _with(1e200)}, r"feature 2 \(first in row 3\).* overflows float64"),
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
    # Nor does anything of it show later.
    for one in (model, untouched):
        one.partial_fit(make(PLAIN[::-1].copy()), Y)
    for found, expected in zip(
        _state(model, X, backend), _state(untouched, X, backend), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("failure", [f for f in FAILING if f not in ("classes", "width")])
def test_a_first_batch_that_fails_leaves_no_model(failure: str) -> None:
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


@each_kind
def test_a_fit_that_fails_leaves_a_new_model_unfitted(kind: Any) -> None:
    model = kind()
    with pytest.raises(ValueError, match="NaN"):
        model.fit(_with(np.nan), Y)
    with pytest.raises(NotFittedError, match=f"{kind.__name__} instance is not fitted"):
        model.predict(PLAIN)


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.int64, ">i4", ">i8"])
def test_a_negative_index_is_found_whatever_its_type_and_the_width(kind: Any) -> None:
    # Read without its sign, -1 of a narrow type is a column of a wide matrix.
    for width in (100, 1000, 100_000):
        X = scipy.sparse.csr_matrix((np.ones(4), [0, 1, 2, 3], [0, 1, 2, 3, 4]), shape=(4, width))
        X.indices = np.asarray([0, 1, -1, 3], dtype=kind)
        with pytest.raises(ValueError, match=r"indices of the CSR .* entry 2 is -1"):
            L2CenterClassifier().fit(X, [0, 0, 1, 1])
        X.indices = np.asarray([0, 1, 2, 3], dtype=kind)
        assert L2CenterClassifier(k=4).fit(X, [0, 0, 1, 1]).support_.tolist() == [0, 1, 2, 3]
