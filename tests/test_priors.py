"""Priors: their effect on predictions, and which are refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from small_data import COUNTS, MODELS_WITH_PRIORS, PLAIN, THIRDS, Y

from gpucenters import (
    L2CenterClassifier,
)


@pytest.mark.parametrize(
    ("priors", "winner"),
    [("uniform", 0), ("empirical", 2), ([0.2, 0.4, 0.4], 1), ([0.2, 0.3, 0.5], 2)],
)
def test_predict_with_equal_centers_takes_the_first_largest_prior(
    priors: Any, winner: int, backend: Any
) -> None:
    rows = [[1.0, 0.3], [3.0, 0.7]]
    X, y = np.asarray(rows * 4), np.asarray([0, 0, 1, 1, 2, 2, 2, 2])
    points = [[0.0, 0.0], [2.0, 0.5], [1e8, -1e8]]
    for train, test in zip(backend.containers(X), backend.containers(points), strict=True):
        model = L2CenterClassifier(priors=priors).fit(train, y)
        assert backend.host(model.scores_).tolist() == [0.0, 0.0]
        assert backend.host(model.predict(test)).tolist() == [winner] * 3


@pytest.mark.parametrize(("model", "name"), MODELS_WITH_PRIORS, ids=lambda value: str(value))
def test_priors_changed_after_the_fit_do_not_change_the_model(model: Any, name: str) -> None:
    given = np.asarray([0.2, 0.3, 0.5])
    expected = clone(model).set_params(**{name: given.copy()}).fit(COUNTS, THIRDS)
    for fit in (
        lambda m: m.fit(COUNTS, THIRDS),
        lambda m: m.partial_fit(COUNTS, THIRDS, classes=[0, 1, 2]),
    ):
        found = fit(clone(model).set_params(**{name: given}))
        given[:] = [0.8, 0.1, 0.1]
        np.testing.assert_allclose(
            found.with_k(2).predict_proba(COUNTS), expected.predict_proba(COUNTS), rtol=1e-12
        )
        given[:] = [0.2, 0.3, 0.5]


@pytest.mark.parametrize(("model", "name"), MODELS_WITH_PRIORS, ids=lambda value: str(value))
def test_float32_priors_are_accepted_and_unordered_ones_refused(model: Any, name: str) -> None:
    narrow = (np.bincount(THIRDS) / np.float32(40)).astype(np.float32)
    found = clone(model).set_params(**{name: narrow}).fit(COUNTS, THIRDS)
    exact = clone(model).set_params(**{name: np.bincount(THIRDS) / 40}).fit(COUNTS, THIRDS)
    np.testing.assert_allclose(
        found.predict_proba(COUNTS), exact.predict_proba(COUNTS), rtol=1e-6, atol=1e-12
    )
    for wrong in ({0: 0.2, 1: 0.3, 2: 0.5}, {0.25: 1, 0.3: 2, 0.45: 3}, {0.2, 0.3, 0.5}):
        with pytest.raises(ValueError, match=f"{name} must be in the order of classes_"):
            clone(model).set_params(**{name: wrong}).fit(COUNTS, THIRDS)


VALID = "use 'uniform', 'empirical' or K numbers"
BAD_PRIORS = [
    ("flat", f"priors='flat' is not valid: {VALID}"),
    ([0.5], "priors has 1 entries, but there are 2 classes"),
    ([0.5, 0.25, 0.25], "priors has 3 entries, but there are 2 classes"),
    ([0.5, 0.6], r"priors must be positive and sum to 1, got \[0.5, 0.6\], whose sum is 1.1"),
    ([0, 1], r"priors must be positive and sum to 1, got \[0.0, 1.0\], whose sum is 1\."),
    ([-0.5, 1.5], r"priors must be positive and sum to 1, got \[-0.5, 1.5\]"),
    ([np.nan, 0.5], r"priors must be positive and sum to 1, got \[nan, 0.5\]"),
]


@pytest.mark.parametrize(("priors", "message"), BAD_PRIORS, ids=[repr(p) for p, _ in BAD_PRIORS])
def test_fit_refuses_invalid_priors(priors: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        L2CenterClassifier(priors=priors).fit(PLAIN, Y)


@pytest.mark.parametrize("priors", [None, 0.5, ["a", "b"], [[0.5, 0.5]], [[0.5], [0.5]]], ids=repr)
def test_fit_refuses_priors_that_are_no_numbers(priors: Any) -> None:
    message = re.escape(f"priors={priors!r} is not valid: {VALID}")
    with pytest.raises(ValueError, match=message):
        L2CenterClassifier(priors=priors).fit(PLAIN, Y)


FIRST_BATCH = [bad for bad in BAD_PRIORS if bad[0] in ("flat", [0.5], [0.5, 0.6])]


@pytest.mark.parametrize(("priors", "message"), FIRST_BATCH, ids=[repr(p) for p, _ in FIRST_BATCH])
def test_partial_fit_refuses_invalid_priors_at_the_first_batch(priors: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        L2CenterClassifier(priors=priors).partial_fit(PLAIN, Y, classes=[0, 1])
