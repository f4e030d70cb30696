"""Warnings name the line of the caller."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from small_data import COUNTS, HALVES, NORMAL

from gpucenters import (
    L2CenterClassifier,
    SparseMultinomialNB,
    UninformativeFeaturesWarning,
)
from gpucenters.solvers import select, selection


def test_warnings_name_the_file_of_the_caller() -> None:
    model = L2CenterClassifier().fit(NORMAL, HALVES)
    for call in (
        lambda: L2CenterClassifier(k=9).fit(NORMAL, HALVES),
        lambda: L2CenterClassifier(k=2).fit(0 * NORMAL, HALVES),
        lambda: SparseMultinomialNB(k=3).fit(0 * COUNTS + 1, HALVES),
        lambda: model.with_k(9),
        lambda: select(np.zeros(3), 2),
    ):
        with pytest.warns(UserWarning, match="k=|features") as seen:
            call()
        assert {w.filename for w in seen} == {__file__}


@pytest.mark.parametrize("model", [L2CenterClassifier(), SparseMultinomialNB()])
def test_a_search_shows_uninformative_features_once(model: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(selection, "_SHOWN", set())
    X = np.ones((40, 6))
    X[:20, 0] = X[20:, 1] = 4  # only these two tell the classes apart
    grid = {"k": [3, 0.5, 5]}
    with warnings.catch_warnings(record=True) as seen:
        warnings.resetwarnings()  # the default: nothing that pytest asks for
        warnings.filterwarnings("error", message="of something else")
        GridSearchCV(model, grid, cv=4, refit=False).fit(X, HALVES)
        for _ in range(2):
            model.set_params(k=3).fit(X, HALVES)
    assert [w.category for w in seen] == [UninformativeFeaturesWarning] * 2  # of two lines
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", UninformativeFeaturesWarning)
        GridSearchCV(model, grid, cv=4, refit=False).fit(X, HALVES)
    assert len(seen) == 12
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UninformativeFeaturesWarning)
        GridSearchCV(model, grid, cv=4, refit=False).fit(X, HALVES)
