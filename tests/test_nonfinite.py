"""X that holds NaN or infinity is refused, with the feature and the first row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from small_data import (
    HALVES,
    KINDS,
    NORMAL,
    PLAIN,
    SOLVERS,
    Y,
    each_center_model,
    each_kind,
    prediction_calls,
    quiet,
    quiet_containers,
)

from gpucenters import (
    L2CenterClassifier,
)


@pytest.mark.parametrize(
    ("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")]
)
@each_center_model
def test_fit_names_the_feature_and_row_of_a_nonfinite_value(
    model: Any, value: float, word: str, backend: Any
) -> None:
    plain = PLAIN.copy()
    plain[3, 2] = value
    for X in quiet_containers(plain, backend):
        with pytest.raises(ValueError, match=rf"{word} in feature 2 \(first in row 3\)"):
            clone(model).fit(X, Y)
        if hasattr(model, "partial_fit"):
            with pytest.raises(ValueError, match=rf"{word} in feature 2 \(first in row 3\)"):
                clone(model).partial_fit(X, Y, classes=[0, 1])


@pytest.mark.parametrize(
    ("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")]
)
@each_center_model
def test_predict_names_the_feature_and_row_of_a_nonfinite_value(
    model: Any, value: float, word: str, backend: Any
) -> None:
    plain = PLAIN.copy()
    plain[3, 2] = value
    for good, X in zip(
        quiet_containers(PLAIN, backend), quiet_containers(plain, backend), strict=True
    ):
        fitted = clone(model).fit(good, Y)
        for call in prediction_calls(fitted, X):
            with pytest.raises(ValueError, match=rf"{word} in feature 2 \(first in row 3\)"):
                call(X)
        with pytest.raises(ValueError, match=word):
            fitted.score(X, Y)


@quiet
@pytest.mark.parametrize("both", [[np.inf, -np.inf], [np.nan, np.inf]])
@each_center_model
def test_fit_finds_infinities_whose_sum_cancels(
    model: Any, both: list[float], backend: Any
) -> None:
    plain = PLAIN.copy()
    plain[[1, 3], 0] = both
    for X in quiet_containers(plain, backend):
        with pytest.raises(ValueError, match="in feature 0"):
            clone(model).fit(X, Y)


@each_center_model
def test_fit_finds_one_nan_in_the_last_cell_of_a_large_matrix(model: Any, on_host: Any) -> None:
    X = np.ones((3000, 400), dtype=np.float32)
    X[2999, 399] = np.nan
    for container in (X, np.asfortranarray(X), scipy.sparse.csr_array(X)):
        with pytest.raises(ValueError, match=r"NaN in feature 399 \(first in row 2999\)"):
            clone(model).fit(container, np.arange(3000) % 2)


@each_kind
def test_fit_refuses_a_long_double_beyond_float64(kind: Any) -> None:
    X = PLAIN.astype(np.longdouble)
    X[3, 2] = np.finfo(np.longdouble).max
    if np.finfo(np.longdouble).max == np.finfo(np.float64).max:
        pytest.skip("long double is no longer than double on this system")
    with pytest.raises(ValueError, match="in feature 2"):
        kind().fit(X, Y)


@pytest.mark.parametrize("kind", KINDS)
def test_fit_refuses_nan_in_a_row_of_weight_zero(kind: Any) -> None:
    Q, s = NORMAL.copy(), np.ones(40)
    Q[3, 1], s[3] = np.nan, 0
    for container in (Q, scipy.sparse.csr_array(Q)):
        with pytest.raises(ValueError, match="NaN in feature 1"):
            kind().fit(container, HALVES, sample_weight=s)


def test_transform_refuses_nan_in_every_container() -> None:
    Q = NORMAL.copy()
    Q[3, 1] = np.nan
    for container in (np.asarray, scipy.sparse.csr_array, scipy.sparse.csc_array):
        model = L2CenterClassifier(k=2).fit(container(NORMAL), HALVES)
        with pytest.raises(ValueError, match=r"NaN in feature 1 \(first in row 3\)"):
            model.transform(container(Q))


def test_solvers_name_the_feature_and_row_of_a_nonfinite_value(backend: Any) -> None:
    for value, word in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")):
        X = np.ones((4, 5))
        X[2, 3] = value
        for container in backend.containers(X):
            for solve in SOLVERS:
                with pytest.raises(ValueError, match=f"{word}.* feature 3 .*row 2"):
                    solve(container, [0, 0, 1, 1])
