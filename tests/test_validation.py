"""Checks of the shape, the type and the feature names of X."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from small_data import PLAIN, Y, each_kind, fit_plain, prediction_calls


@pytest.mark.parametrize("shape", [(0, 4), (5, 0), (0, 0)])
@each_kind
def test_fit_refuses_x_without_rows_or_without_columns(
    kind: Any, shape: tuple[int, int], backend: Any
) -> None:
    what = "sample" if shape[0] == 0 else "feature"
    for X in backend.containers(np.zeros(shape)):
        with pytest.raises(ValueError, match=rf"0 {what}\(s\).*minimum of 1"):
            kind().fit(X, Y[: shape[0]])


@each_kind
def test_predict_refuses_x_without_rows(kind: Any, backend: Any) -> None:
    for X in backend.containers(np.zeros((0, 4))):
        with pytest.raises(ValueError, match=r"0 sample\(s\)"):
            fit_plain(kind(), backend).predict(X)


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
        fit_plain(kind(), backend).predict(X)


@each_kind
def test_a_sparse_array_of_one_dimension_is_refused(kind: Any) -> None:
    for X in (scipy.sparse.coo_array(np.ones(5)), scipy.sparse.csr_array(np.ones(5))):
        assert X.ndim == 1
        message = r"2D sparse array, got 1D.*reshape\(-1, 1\).*reshape\(1, -1\)"
        for call in (lambda X: kind().fit(X, Y), fit_plain(kind()).predict):
            with pytest.raises(ValueError, match=message):
                call(X)


@each_kind
def test_complex_data_are_refused(kind: Any, backend: Any) -> None:
    for X in backend.containers(PLAIN, (np.complex128, np.complex64)):
        with pytest.raises(ValueError, match="Complex data not supported"):
            kind().fit(X, Y)
    with pytest.raises(ValueError, match="Complex data not supported"):
        fit_plain(kind(), backend).predict(X)


@pytest.mark.parametrize("dtype", ["U", "S", "M8[s]", "m8[s]"])
@each_kind
def test_values_that_are_no_numbers_are_refused(kind: Any, dtype: str) -> None:
    X = PLAIN.astype(np.int64).astype(dtype)
    with pytest.raises(TypeError, match="X must hold real numbers, got an array of"):
        kind().fit(X, Y)
    model = fit_plain(kind())
    for call in [*prediction_calls(model, X), model.transform, model.inverse_transform]:
        with pytest.raises(TypeError, match="X must hold real numbers, got an array of"):
            call(X)


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
    model = fit_plain(kind())
    for call in (
        lambda X: kind().fit(X, Y),
        *(model.predict, model.transform, model.inverse_transform),
        model.set_output(transform="pandas").transform,
    ):
        for form in (X, pd.DataFrame(X)):
            with pytest.raises(ValueError, match=message):
                call(form)


@each_kind
def test_the_named_row_of_an_object_counts_from_the_first_row_of_x(kind: Any) -> None:
    X = np.ones((70_000, 20), dtype=object)
    X[69_999, 0] = "pear"
    with pytest.raises(ValueError, match="X holds 'pear' in feature 0, row 69999"):
        kind().fit(X, np.arange(70_000) % 2)


@each_kind
def test_fitted_model_refuses_another_number_of_features(kind: Any, backend: Any) -> None:
    model = fit_plain(kind(), backend)
    for width in (3, 5):
        for X in backend.containers(np.ones((2, width))):
            for call in [*prediction_calls(model, X), model.transform]:
                with pytest.raises(ValueError, match=f"{width} features.*expecting 4"):
                    call(X)


@each_kind
def test_fitted_model_refuses_other_feature_names_and_another_order(kind: Any) -> None:
    frame = pd.DataFrame(PLAIN, columns=["a", "b", "c", "d"])
    model = kind().fit(frame, Y)
    for call in [*prediction_calls(model, frame), model.transform]:
        with pytest.raises(ValueError, match=r"(?s)feature names.*\bz\b"):
            call(frame.rename(columns={"b": "z"}))
        with pytest.raises(ValueError, match=r"(?i)feature names must be in the same order"):
            call(frame[["b", "a", "c", "d"]])
