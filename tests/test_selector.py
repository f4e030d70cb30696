"""The classifiers as feature selectors: names, masks, and the inverse transform."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from separated import separated
from small_data import KINDS

from gpucenters import L2CenterClassifier


@pytest.mark.parametrize("kind", KINDS)
def test_pandas_output_has_the_names_and_the_index_of_the_input(kind: Any) -> None:
    X, y = separated(2)
    frame = pd.DataFrame(X, columns=list("hgfedcba"), index=range(100, 130))
    model = kind(k=2).set_output(transform="pandas").fit(frame, y)
    assert model.feature_names_in_.tolist() == list("hgfedcba")
    assert model.support_.tolist() == [0, 1]
    pd.testing.assert_frame_equal(model.transform(frame), frame[["h", "g"]])
    pd.testing.assert_frame_equal(
        kind(k=2).fit(X, y).set_output(transform="pandas").transform(X),
        pd.DataFrame(X[:, :2], columns=["x0", "x1"]),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_feature_names_out_are_those_of_the_support(kind: Any, backend: Any) -> None:
    X, y = separated(2)
    model = kind(k=2).fit(backend.array(X), y)
    assert model.get_feature_names_out().tolist() == ["x0", "x1"]
    assert model.get_feature_names_out(list("hgfedcba")).tolist() == ["h", "g"]


@pytest.mark.parametrize("kind", KINDS)
def test_support_as_a_mask_and_as_indices(kind: Any, backend: Any) -> None:
    X, y = separated(2)
    model = kind(k=3).fit(backend.array(X[:, ::-1]), y)
    mask, indices = model.get_support(), model.get_support(indices=True)
    assert mask.dtype == np.bool_
    assert mask.tolist() == [False] * 5 + [True] * 3
    np.testing.assert_array_equal(indices, [5, 6, 7])
    np.testing.assert_array_equal(model.support_, indices)


@pytest.mark.parametrize("kind", KINDS)
def test_inverse_transform_puts_columns_back_between_zeros(kind: Any, backend: Any) -> None:
    X, y = separated(2)
    X = X[:, [3, 0, 4, 1, 5]]
    wide = backend.array(X)
    model = kind(k=2).fit(wide, y)
    back = model.inverse_transform(model.transform(wide))
    expected = np.zeros_like(X)
    expected[:, [1, 3]] = X[:, [1, 3]]
    np.testing.assert_array_equal(backend.host(back), expected)
    with pytest.raises(ValueError, match="shape"):
        model.inverse_transform(wide)


@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize("kind", KINDS)
def test_inverse_transform_of_sparse_data_is_sparse(
    kind: Any, layout: str, sparse_backend: Any
) -> None:
    X, y = separated(2)
    X = X[:, [3, 0, 4, 1, 5]]
    wide = getattr(sparse_backend, layout)(X)
    model = kind(k=2).fit(wide, y)
    back = model.inverse_transform(model.transform(wide))
    assert sparse_backend.sparse.issparse(back)
    assert back.nnz == 60
    expected = np.zeros_like(X)
    expected[:, [1, 3]] = X[:, [1, 3]]
    np.testing.assert_array_equal(sparse_backend.host(back.toarray()), expected)


@pytest.mark.parametrize("layout", [scipy.sparse.csr_array, scipy.sparse.csc_matrix])
@pytest.mark.parametrize("dtype", ["float16", ">f2", ">f8", ">i4", "int8", "bool"])
def test_sparse_types_that_scipy_does_not_know_are_selected_and_kept(
    dtype: str, layout: Any
) -> None:
    plain = (np.arange(60).reshape(10, 6) % 7 % 3).astype(dtype)
    whole = layout(plain.astype(np.float64))
    X = layout((whole.data.astype(dtype), whole.indices, whole.indptr), shape=(10, 6))
    model = L2CenterClassifier(k=2).fit(X, np.arange(10) % 2)
    chosen = model.transform(X)
    assert chosen.dtype == X.dtype == np.dtype(dtype) and isinstance(chosen, layout)
    back = model.inverse_transform(chosen)
    assert back.dtype == X.dtype
    for part, expected in (
        (chosen, plain[:, model.support_]),
        (back, np.where(model.get_support(), plain, 0)),
    ):
        part.data = part.data.astype(np.float64)
        np.testing.assert_array_equal(part.toarray(), expected.astype(np.float64))
