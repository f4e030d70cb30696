"""The arrays that the caller passes are left as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from answers import FORMATS, MODELS, each_model, messy, mixed_data, to_host
from sklearn.base import clone


def _use(model: Any, X: Any, y: Any, weights: Any = None) -> None:
    """Call everything that reads X."""
    fitted = clone(model).fit(X, y, sample_weight=weights)
    fitted.predict(X)
    fitted.decision_function(X)
    fitted.transform(X)
    fitted.score(X, y)
    fitted.predict_proba(X)
    if hasattr(fitted, "partial_fit"):
        fitted.partial_fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("layout", ["csr", "csc"])
@each_model
def test_the_arrays_of_a_sparse_matrix_are_not_changed(
    model: Any, layout: str, sparse_backend: Any
) -> None:
    plain, y = mixed_data(3)
    X = messy(plain, layout, sparse_backend)
    parts = {name: getattr(X, name) for name in ("data", "indices", "indptr")}
    if sparse_backend.name == "numpy":  # writable arrays, so that a write does not raise
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
def test_a_matrix_of_another_sparse_format_is_not_changed(layout: str) -> None:
    plain, y = mixed_data(3)
    X = getattr(scipy.sparse, f"{layout}_array")(plain)
    _use(MODELS[0], X, y)
    assert X.format == layout
    np.testing.assert_array_equal(X.toarray(), plain)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@each_model
def test_dense_arrays_labels_and_weights_are_not_changed(
    model: Any, dtype: Any, backend: Any
) -> None:
    plain, y = mixed_data(3, np.dtype(dtype).kind)
    arrays = [plain.astype(dtype), y, np.arange(24) % 3 + 0.5]
    before = [a.copy() for a in arrays]
    if backend.name != "numpy":
        arrays = [backend.array(a) for a in arrays]
    _use(model, *arrays)
    for found, expected in zip(arrays, before, strict=True):
        found = to_host(found, backend)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


@each_model
def test_data_frames_are_not_changed(model: Any) -> None:
    plain, y = mixed_data(3)
    frame = pd.DataFrame(plain, columns=list("abcdefg"))
    before = frame.copy(deep=True)
    _use(model, frame, pd.Series(y))
    pd.testing.assert_frame_equal(frame, before)
