"""Where results live, and the type and container of what transform returns."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from answers import CLASSES, MODELS, each_model, messy, mixed_data
from sklearn.base import clone


@pytest.mark.parametrize("n_classes", CLASSES)
@each_model
def test_results_have_the_library_and_device_of_x(model: Any, n_classes: int, backend: Any) -> None:
    plain, y = mixed_data(n_classes)
    for X in backend.containers(plain, (np.float64, np.float32)):
        found = clone(model).fit(X, y)
        results = {
            "predict": found.predict(X),
            "decision_function": found.decision_function(X),
            "centers_": found.centers_,
            "scores_": found.scores_,
        }
        results["predict_proba"] = found.predict_proba(X)
        results["predict_log_proba"] = found.predict_log_proba(X)
        if hasattr(found, "coef_"):
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
def test_results_have_the_library_and_device_of_x_for_every_device_parameter(
    model: Any, backend: Any
) -> None:
    plain, y = mixed_data(3)
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
    plain, y = mixed_data(2, np.dtype(dtype).kind)
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
    plain, y = mixed_data(2, np.dtype(dtype).kind)
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
    plain, y = mixed_data(2, "u")
    X = getattr(scipy.sparse, kind)(plain.astype(dtype))
    model = clone(MODELS[0]).fit(X, y)
    chosen = model.transform(X)
    assert type(chosen) is type(X)
    assert chosen.dtype == X.dtype
    np.testing.assert_array_equal(chosen.toarray(), plain[:, model.support_])


@pytest.mark.parametrize("layout", ["csr", "csc"])
@each_model
def test_transform_of_unsorted_duplicates_has_the_values_of_dense_data(
    model: Any, layout: str, sparse_backend: Any
) -> None:
    plain, y = mixed_data(3)
    X = messy(plain, layout, sparse_backend)
    found = clone(model).fit(X, y)
    chosen = found.transform(X)
    assert chosen.format == layout
    np.testing.assert_array_equal(sparse_backend.host(chosen.toarray()), plain[:, found.support_])
