"""Everything that counts as X, y and weights gives what a plain float64 array gives."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.base import clone

from gpucenters import L1CenterClassifier, L2CenterClassifier

MODELS = [
    L2CenterClassifier(k=3, scale="std"),
    L2CenterClassifier(k=3, priors="empirical"),
    L1CenterClassifier(k=3),
]
CLASSES = [2, 3]
FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]


def _data(n_classes: int, kind: str = "f", n: int = 24, m: int = 7) -> tuple[np.ndarray, Any]:
    """Data that any type of this kind holds exactly, with zeros and no ties."""
    rng = np.random.default_rng(n_classes)
    y = np.arange(n) % n_classes
    if kind == "b":
        return (rng.random((n, m)) < 0.2 + 0.6 * ((y[:, None] + np.arange(m)) % 2)).astype(float), y
    X = rng.integers(0, 4, size=(n, m)).astype(float)
    X[:, [1, 2, 4, 5]] += np.asarray([3, 5, 2, 1]) * y[:, None]
    if kind in "if":
        X[:, 2] = -X[:, 2]
    if kind == "f":
        X += rng.integers(0, 8, size=(n, m)) / 8 * (X != 0)
    return X, y


def _to_host(x: Any, backend: Any) -> np.ndarray:
    return x if isinstance(x, np.ndarray) else backend.host(x)


def _same_answers(model: Any, X: Any, plain: np.ndarray, y: Any, backend: Any) -> Any:
    """Fit on X and on the same values as plain float64, and compare all that comes out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that k exceeds the features with positive gain
        expected = clone(model).fit(plain, y)
        found = clone(model).fit(X, y)
    close = {"rtol": 1e-11, "atol": 1e-11}
    np.testing.assert_array_equal(found.support_, expected.support_)
    np.testing.assert_array_equal(found.ranking_, expected.ranking_)
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(_to_host(found.centers_, backend), expected.centers_, **close)
    np.testing.assert_allclose(_to_host(found.scores_, backend), expected.scores_, **close)
    decision = expected.decision_function(plain)
    np.testing.assert_allclose(_to_host(found.decision_function(X), backend), decision, **close)
    both = np.sort(decision if decision.ndim == 2 else np.stack([decision, 0 * decision], 1), 1)
    rows = both[:, -1] - both[:, -2] > 1e-9  # an exact tie may fall either way, by rounding
    assert rows.mean() > 0.3
    predicted = _to_host(found.predict(X), backend)
    np.testing.assert_array_equal(predicted[rows], expected.predict(plain)[rows])
    return found


def _name(value: Any) -> Any:
    if isinstance(value, L2CenterClassifier | L1CenterClassifier):
        extra = ["scale"] if value.scale else ["priors"] if hasattr(value, "priors") else []
        return "-".join([type(value).__name__[:2].lower(), *extra])
    return getattr(value, "__name__", None)


each_model = pytest.mark.parametrize("model", MODELS, ids=_name)

# --- dense -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int16", "int64", "uint64", "float32", "float64"]
)
@pytest.mark.parametrize("n_classes", CLASSES)
@each_model
def test_any_standard_type_fits(model: Any, n_classes: int, dtype: str, backend: Any) -> None:
    plain, y = _data(n_classes, np.dtype(dtype).kind)
    X = backend.array(plain, dtype)
    assert str(X.dtype).endswith(dtype)
    _same_answers(model, X, plain, y, backend)


@pytest.mark.parametrize("dtype", [np.float16, np.longdouble, object, ">f8", ">i4"], ids=str)
@pytest.mark.parametrize("n_classes", CLASSES)
@each_model
def test_any_type_of_numpy_fits(model: Any, n_classes: int, dtype: Any, on_host: Any) -> None:
    plain, y = _data(n_classes, "i" if dtype == ">i4" else "f")
    _same_answers(model, on_host.array(plain, dtype), plain, y, on_host)


@each_model
def test_values_near_the_end_of_uint64_do_not_wrap(model: Any, on_host: Any) -> None:
    small, y = _data(2, "u")
    X = np.uint64(2**63) + small.astype(np.uint64) * np.uint64(2**40)
    _same_answers(model, X, X.astype(np.float64), y, on_host)


def test_int8_sums_do_not_wrap(backend: Any) -> None:
    X = np.full((1000, 2), 127, dtype=np.int8)
    X[500:, 1] = -128
    model = L2CenterClassifier().fit(backend.array(X), np.arange(1000) // 500)
    assert backend.host(model.centers_).tolist() == [[127, 127], [127, -128]]


DENSE_FORMS = {
    "list of lists": lambda x: x.tolist(),
    "list of arrays": list,
    "tuple of tuples": lambda x: tuple(map(tuple, x.tolist())),
    "Fortran order": np.asfortranarray,
    "view with steps": lambda x: np.repeat(x, 2, axis=0)[::2, ::-1][:, ::-1],
    "view backwards": lambda x: np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
    "view of every other column": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "pandas": pd.DataFrame,
    "pandas float32": lambda x: pd.DataFrame(x).astype("float32"),
    "pandas mixed": lambda x: pd.DataFrame(x).astype({0: "float32", 1: "float64"}),
    "polars": lambda x: pl.DataFrame({f"c{i}": x[:, i] for i in range(x.shape[1])}),
    "polars float32": lambda x: pl.DataFrame(
        {f"c{i}": x[:, i].astype("float32") for i in range(x.shape[1])}
    ),
}
INTEGER_FORMS = {
    "nullable Int64": lambda x: pd.DataFrame(x).astype("Int64"),
    "nullable UInt8": lambda x: pd.DataFrame(x).astype("UInt8"),
    "integers and floats": lambda x: pd.DataFrame(x).astype({0: "int8", 1: "Int64", 2: "float32"}),
    "polars integers": lambda x: pl.DataFrame(
        {f"c{i}": x[:, i].astype("int32") for i in range(x.shape[1])}
    ),
    "list of integers": lambda x: x.astype(int).tolist(),
}


@pytest.mark.parametrize("form", list(DENSE_FORMS))
@pytest.mark.parametrize("n_classes", CLASSES)
@each_model
def test_any_dense_form_fits(model: Any, n_classes: int, form: str, on_host: Any) -> None:
    plain, y = _data(n_classes)
    _same_answers(model, DENSE_FORMS[form](plain), plain, y, on_host)


@pytest.mark.parametrize("form", list(INTEGER_FORMS))
@each_model
def test_any_form_of_integers_fits(model: Any, form: str, on_host: Any) -> None:
    plain, y = _data(3, "u")
    _same_answers(model, INTEGER_FORMS[form](plain), plain, y, on_host)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int16"])
@each_model
def test_memory_map_fits(model: Any, dtype: str, order: str, tmp_path: Path, on_host: Any) -> None:
    plain, y = _data(3, np.dtype(dtype).kind)
    np.save(tmp_path / "x.npy", np.asarray(plain, dtype=dtype, order=order))
    X = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert isinstance(X, np.memmap) and not X.flags.writeable
    assert X.flags.f_contiguous == (order == "F")
    found = _same_answers(model, X, plain, y, on_host)
    np.testing.assert_array_equal(found.transform(X), X[:, found.support_])


@pytest.mark.parametrize("view", ["steps", "transpose"])
@each_model
def test_views_on_any_device_fit(model: Any, view: str, backend: Any) -> None:
    plain, y = _data(3)
    if view == "steps":
        X = backend.array(np.repeat(plain, 2, axis=0)[:, ::-1])[::2, ::-1]
    else:
        X = backend.array(np.ascontiguousarray(plain.T)).T
    _same_answers(model, X, plain, y, backend)


# --- sparse ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["matrix", "array"])
@pytest.mark.parametrize("layout", FORMATS)
@each_model
def test_any_format_of_scipy_fits(model: Any, layout: str, kind: str, on_host: Any) -> None:
    plain, y = _data(3)
    X = getattr(scipy.sparse, f"{layout}_{kind}")(plain)
    _same_answers(model, X, plain, y, on_host)


@pytest.mark.parametrize("layout", ["csr_matrix", "csc_matrix", "coo_matrix"])
@each_model
def test_any_format_of_either_library_fits(model: Any, layout: str, sparse_backend: Any) -> None:
    plain, y = _data(3)
    X = getattr(sparse_backend.sparse, layout)(sparse_backend.csr(plain))
    _same_answers(model, X, plain, y, sparse_backend)


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int64", "uint64", "float32", "float64", "longdouble"]
)
@pytest.mark.parametrize("layout", ["csr_matrix", "csc_array"])
@each_model
def test_sparse_data_of_any_type_fit(model: Any, layout: str, dtype: str, on_host: Any) -> None:
    plain, y = _data(3, np.dtype(dtype).kind)
    X = getattr(scipy.sparse, layout)(plain.astype(dtype))
    assert X.dtype == dtype
    _same_answers(model, X, plain, y, on_host)


def _messy(plain: np.ndarray, layout: str, backend: Any, index: str = "int32") -> Any:
    """The same values unsorted, in part stored twice over, with some of the zeros stored."""
    rng = np.random.default_rng(0)
    lines = plain if layout == "csr" else plain.T
    data, indices, indptr = [], [], [0]
    for line in lines:
        stored = np.flatnonzero((line != 0) | (rng.random(line.size) < 0.3))
        twice = stored[rng.random(stored.size) < 0.4]
        values = np.concatenate([line[stored] - np.isin(stored, twice), np.ones(twice.size)])
        order = rng.permutation(values.size)
        data.append(values[order])
        indices.append(np.concatenate([stored, twice])[order])
        indptr.append(indptr[-1] + order.size)
    kind = getattr(backend.sparse, f"{layout}_matrix")
    data, indices = np.concatenate(data), np.concatenate(indices).astype(index)
    if backend.name == "numpy":
        X = kind(plain.shape)
        X.data, X.indices, X.indptr = data, indices, np.asarray(indptr, dtype=index)
        for part in (X.data, X.indices, X.indptr):
            part.flags.writeable = False
        return X
    parts = [backend.array(p) for p in (data, indices, np.asarray(indptr, dtype=index))]
    return kind(tuple(parts), shape=plain.shape)


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize("n_classes", CLASSES)
@each_model
def test_order_duplicates_and_stored_zeros_change_nothing(
    model: Any, n_classes: int, layout: str, index: str, sparse_backend: Any
) -> None:
    plain, y = _data(n_classes)
    X = _messy(plain, layout, sparse_backend, index)
    assert X.data.shape[0] > np.count_nonzero(plain)
    if sparse_backend.name == "numpy":
        assert X.indices.dtype == index
    _same_answers(model, X, plain, y, sparse_backend)


@pytest.mark.parametrize("layout", ["csr", "csc"])
@each_model
def test_transform_of_a_messy_matrix_has_the_same_values(
    model: Any, layout: str, sparse_backend: Any
) -> None:
    plain, y = _data(3)
    X = _messy(plain, layout, sparse_backend)
    found = clone(model).fit(X, y)
    chosen = found.transform(X)
    assert chosen.format == layout
    np.testing.assert_array_equal(sparse_backend.host(chosen.toarray()), plain[:, found.support_])


@pytest.mark.parametrize("layout", ["csr", "csc"])
@each_model
def test_empty_rows_and_columns_change_nothing(
    model: Any, layout: str, sparse_backend: Any
) -> None:
    plain, y = _data(3)
    plain[[0, 7, 23]] = 0
    plain[:, [0, 6]] = 0
    _same_answers(model, getattr(sparse_backend, layout)(plain), plain, y, sparse_backend)


@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize("kind", [L2CenterClassifier, L1CenterClassifier])
@pytest.mark.parametrize("scale", [None, "std", "pooled"])
def test_a_matrix_of_zeros_fits(kind: Any, scale: Any, layout: str, sparse_backend: Any) -> None:
    X = getattr(sparse_backend, layout)(np.zeros((6, 4)))
    model = kind(scale=scale).fit(X, [0, 1, 2, 0, 1, 2])
    host = sparse_backend.host
    assert host(model.scores_).tolist() == [0, 0, 0, 0]
    assert model.objective_ == 0
    assert not host(model.centers_).any()
    assert host(model.predict(X)).tolist() == [0] * 6


# --- nothing of the caller's is changed --------------------------------------------------------


def _use(model: Any, X: Any, y: Any, weights: Any = None) -> None:
    """Call everything that reads X."""
    fitted = clone(model).fit(X, y, sample_weight=weights)
    fitted.predict(X)
    fitted.decision_function(X)
    fitted.transform(X)
    fitted.score(X, y)
    if hasattr(fitted, "predict_proba"):
        fitted.predict_proba(X)
        fitted.partial_fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("layout", ["csr", "csc"])
@each_model
def test_the_arrays_of_a_sparse_matrix_are_left_alone(
    model: Any, layout: str, sparse_backend: Any
) -> None:
    plain, y = _data(3)
    X = _messy(plain, layout, sparse_backend)
    parts = {name: getattr(X, name) for name in ("data", "indices", "indptr")}
    if sparse_backend.name == "numpy":  # writable, so that a change would show and not raise
        for name in parts:
            setattr(X, name, parts[name].copy())
            parts[name] = getattr(X, name)
    before = {name: np.array(sparse_backend.host(part)) for name, part in parts.items()}
    _use(model, X, y)
    for name, part in parts.items():
        assert getattr(X, name) is part
        found = sparse_backend.host(part)
        assert found.dtype == before[name].dtype
        np.testing.assert_array_equal(found, before[name])


@pytest.mark.parametrize("layout", FORMATS)
def test_a_matrix_of_another_format_is_left_alone(layout: str) -> None:
    plain, y = _data(3)
    X = getattr(scipy.sparse, f"{layout}_array")(plain)
    _use(MODELS[0], X, y)
    assert X.format == layout
    np.testing.assert_array_equal(X.toarray(), plain)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@each_model
def test_dense_arrays_labels_and_weights_are_left_alone(
    model: Any, dtype: Any, backend: Any
) -> None:
    plain, y = _data(3, np.dtype(dtype).kind)
    arrays = [plain.astype(dtype), y, np.arange(24) % 3 + 0.5]
    before = [a.copy() for a in arrays]
    if backend.name != "numpy":
        arrays = [backend.array(a) for a in arrays]
    _use(model, *arrays)
    for found, expected in zip(arrays, before, strict=True):
        found = _to_host(found, backend)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


@each_model
def test_data_frames_are_left_alone(model: Any) -> None:
    plain, y = _data(3)
    frame = pd.DataFrame(plain, columns=list("abcdefg"))
    before = frame.copy(deep=True)
    _use(model, frame, pd.Series(y))
    pd.testing.assert_frame_equal(frame, before)


# --- labels ------------------------------------------------------------------------------------

LABELS = {
    "list": [0, 1, 2],
    "Series": pd.Series([0, 1, 2]),
    "categorical": pd.Series(["a", "b", "c"], dtype="category"),
    "strings": np.array(["fig", "apple", "pear"]),
    "objects": np.array(["fig", "apple", "pear"], dtype=object),
    "list of strings": ["fig", "apple", "pear"],
    "booleans": np.array([True, False]),
    "negative": np.array([5, -7, 0]),
    "unsigned": np.array([200, 3, 255], dtype=np.uint8),
    "whole floats": np.array([2.0, -1.0, 7.0]),
    "huge": np.array([2**62, -(2**62), 2**62 - 1]),
    "huge unsigned": np.array([2**64 - 1, 2**63, 0], dtype=np.uint64),
    "polars": pl.Series(["fig", "apple", "pear"]),
}


@pytest.mark.parametrize("form", list(LABELS))
@each_model
def test_any_labels_are_learned(model: Any, form: str, backend: Any) -> None:
    labels = LABELS[form]
    plain, codes = _data(len(labels))
    X = backend.array(plain)
    if isinstance(labels, list):
        y = [labels[c] for c in codes]
    elif isinstance(labels, pd.Series):
        y = labels.iloc[codes]
    elif isinstance(labels, pl.Series):
        y = labels.gather(codes)
    else:
        y = labels[codes]
    values = np.asarray(labels)
    order = np.argsort(values)
    found = clone(model).fit(X, y)
    np.testing.assert_array_equal(found.classes_, values[order])
    expected = clone(model).fit(X, np.argsort(order)[codes])
    np.testing.assert_array_equal(backend.host(found.centers_), backend.host(expected.centers_))
    predicted = _to_host(found.predict(X), backend)
    assert predicted.dtype == found.classes_.dtype
    np.testing.assert_array_equal(predicted, values[order][backend.host(expected.predict(X))])
    assert found.score(X, y) > 0.7


@pytest.mark.parametrize("dtype", ["int64", "int32", "float64", "bool"])
@each_model
def test_labels_and_weights_may_live_on_either_device(model: Any, dtype: str, backend: Any) -> None:
    plain, codes = _data(2)
    y, weights = codes.astype(dtype), np.arange(24) % 3 + 0.5
    expected = clone(model).fit(plain, y, sample_weight=weights)
    for X in (plain, backend.array(plain)):
        for labels, s in ((y, backend.array(weights)), (backend.array(y), weights)):
            found = clone(model).fit(X, labels, sample_weight=s)
            np.testing.assert_array_equal(found.classes_, expected.classes_)
            np.testing.assert_array_equal(found.support_, expected.support_)
            assert found.objective_ == pytest.approx(expected.objective_, rel=1e-12)
            assert found.score(X, labels, s) == pytest.approx(expected.score(plain, y, weights))


def test_a_column_of_labels_is_taken_with_a_warning(backend: Any) -> None:
    X, y = _data(2)
    with pytest.warns(UserWarning, match="column-vector y"):
        model = L2CenterClassifier(k=3).fit(backend.array(X), backend.array(y[:, None]))
    assert model.classes_.tolist() == [0, 1]


# --- where results live ------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", CLASSES)
@each_model
def test_results_come_back_beside_the_input(model: Any, n_classes: int, backend: Any) -> None:
    plain, y = _data(n_classes)
    for X in backend.containers(plain, (np.float64, np.float32)):
        found = clone(model).fit(X, y)
        results = {
            "predict": found.predict(X),
            "decision_function": found.decision_function(X),
            "centers_": found.centers_,
            "scores_": found.scores_,
        }
        if hasattr(found, "predict_proba"):
            results["predict_proba"] = found.predict_proba(X)
            results["predict_log_proba"] = found.predict_log_proba(X)
            results["coef_"], results["intercept_"] = found.coef_, found.intercept_
        if found.scale is not None:
            results["scale_"] = found.scale_
        for name, result in results.items():
            backend.check(result)
            assert str(result.dtype).endswith("int64" if name == "predict" else "float64"), name
        for host in (found.support_, found.ranking_):
            assert type(host) is np.ndarray
            assert host.dtype == np.int64
            assert host.shape == (3,)
        assert type(found.objective_) is float
        assert found.centers_.shape == (n_classes, 3)
        assert found.scores_.shape == (7,)


@each_model
def test_results_come_back_beside_the_input_wherever_the_work_is_done(
    model: Any, backend: Any
) -> None:
    plain, y = _data(3)
    X = backend.array(plain)
    for device in ("cpu", "cuda"):
        found = clone(model).set_params(device=device).fit(X, y)
        expected = clone(model).fit(plain, y)
        backend.check(found.predict(X))
        backend.check(found.decision_function(X))
        backend.check(found.transform(X))
        np.testing.assert_allclose(
            backend.host(found.decision_function(X)),
            expected.decision_function(plain),
            rtol=1e-11,
            atol=1e-11,
        )


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float32", "float64"])
@each_model
def test_transform_keeps_library_device_and_type(model: Any, dtype: str, backend: Any) -> None:
    plain, y = _data(2, np.dtype(dtype).kind)
    X = backend.array(plain, dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = clone(model).fit(X, y)
    chosen = found.transform(X)
    backend.check(chosen)
    assert chosen.dtype == X.dtype
    np.testing.assert_array_equal(backend.host(chosen), plain[:, found.support_].astype(dtype))


@pytest.mark.parametrize("dtype", ["bool", "float32", "float64"])
@pytest.mark.parametrize("layout", ["csr", "csc"])
@each_model
def test_transform_keeps_sparse_layout_and_type(
    model: Any, layout: str, dtype: str, sparse_backend: Any
) -> None:
    plain, y = _data(2, np.dtype(dtype).kind)
    X = getattr(sparse_backend, layout)(plain, dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = clone(model).fit(X, y)
    chosen = found.transform(X)
    assert type(chosen) is type(X)
    assert chosen.dtype == X.dtype
    assert chosen.shape == (24, 3)
    np.testing.assert_array_equal(
        sparse_backend.host(chosen.toarray()), plain[:, found.support_].astype(dtype)
    )


@pytest.mark.parametrize("kind", ["csr_array", "csc_array", "csr_matrix", "csc_matrix"])
@pytest.mark.parametrize("dtype", ["int8", "uint64", "longdouble"])
def test_transform_keeps_the_kinds_and_types_of_scipy(dtype: str, kind: str) -> None:
    plain, y = _data(2, "u")
    X = getattr(scipy.sparse, kind)(plain.astype(dtype))
    model = clone(MODELS[0]).fit(X, y)
    chosen = model.transform(X)
    assert type(chosen) is type(X)
    assert chosen.dtype == X.dtype
    np.testing.assert_array_equal(chosen.toarray(), plain[:, model.support_])


@pytest.mark.parametrize("n_classes", CLASSES)
@each_model
def test_one_row_is_answered_as_among_others(model: Any, n_classes: int, backend: Any) -> None:
    plain, y = _data(n_classes)
    for X, single in zip(backend.containers(plain), backend.containers(plain[5:6]), strict=True):
        found = clone(model).fit(X, y)
        methods = [found.predict, found.decision_function]
        if hasattr(found, "predict_proba"):
            methods += [found.predict_proba, found.predict_log_proba]
        for method in methods:
            one, all_ = backend.host(method(single)), backend.host(method(X))
            assert one.shape == (1, *all_.shape[1:])
            np.testing.assert_allclose(one[0], all_[5], rtol=1e-12, atol=1e-12)
        assert found.transform(single).shape == (1, 3)


@each_model
def test_one_feature_is_enough(model: Any, backend: Any) -> None:
    plain, y = _data(3)
    model = clone(model).set_params(k="all")
    for X in backend.containers(plain[:, [2]]):
        found = _same_answers(model, X, plain[:, [2]], y, backend)
        assert found.transform(X).shape == (24, 1)
