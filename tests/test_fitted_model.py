"""A fitted model: it changes with a successful fit alone, and its arrays are read-only."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from small_data import (
    COUNTS,
    HALVES,
    KINDS,
    MODELS_WITH_PRIORS,
    NORMAL,
    PLAIN,
    Y,
    each_kind,
    prediction_calls,
    with_value,
)

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    MahalanobisCenterClassifier,
)
from gpucenters.estimators.fitted import learned


@each_kind
def test_every_method_of_an_unfitted_model_raises_not_fitted_error(kind: Any) -> None:
    model = kind()
    calls = [*prediction_calls(model, PLAIN), model.transform, model.inverse_transform]
    calls += [lambda X: model.score(X, Y), lambda X: model.with_k(1), lambda X: model.to("cpu")]
    calls += [lambda X: model.get_support(), lambda X: model.get_feature_names_out()]
    for call in calls:
        with pytest.raises(NotFittedError, match=f"{kind.__name__} instance is not fitted"):
            call(PLAIN)
    for name in ("support_", "ranking_", "scores_", "scale_", "centers_", "objective_"):
        assert not hasattr(model, name)
    for name in ("classes_", "coef_", "intercept_", "n_features_in_"):
        assert not hasattr(model, name)


@each_kind
def test_a_fit_that_fails_leaves_a_new_model_unfitted(kind: Any) -> None:
    model = kind()
    with pytest.raises(ValueError, match="NaN"):
        model.fit(with_value(np.nan), Y)
    with pytest.raises(NotFittedError, match=f"{kind.__name__} instance is not fitted"):
        model.predict(PLAIN)


@pytest.mark.parametrize("width", [2, 9])
@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_that_fails_leaves_the_fitted_model_as_it_was(kind: Any, width: int) -> None:
    model = kind(k=3).fit(NORMAL, HALVES)
    expected = model.decision_function(NORMAL)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((4, width), np.nan), [0, 1, 0, 1])
    assert model.n_features_in_ == 6
    np.testing.assert_array_equal(model.decision_function(NORMAL), expected)
    with pytest.raises(ValueError, match="features"):
        model.predict(np.zeros((2, width)))


def test_parameters_set_after_the_fit_do_not_change_the_model() -> None:
    model = L2CenterClassifier(priors="empirical").fit(NORMAL[:30], HALVES[:30])
    expected = model.decision_function(NORMAL)
    model.set_params(priors=[0.9, 0.1], k=1)
    np.testing.assert_array_equal(model.decision_function(NORMAL), expected)
    np.testing.assert_allclose(NORMAL @ model.coef_[0] + model.intercept_, expected, atol=1e-9)
    with pytest.raises(ValueError, match=r"scale='std' is not the same"):
        model.set_params(scale="std").partial_fit(NORMAL, HALVES)
    with pytest.raises(ValueError, match="k=0"):
        model.set_params(scale=None, k=0).partial_fit(NORMAL, HALVES)


def test_a_copy_does_not_change_with_the_original() -> None:
    model = L2CenterClassifier(k=3).fit(NORMAL, HALVES)
    twin = copy.copy(model)
    expected = twin.decision_function(NORMAL)
    model.partial_fit(5 * NORMAL, 1 - HALVES)
    np.testing.assert_array_equal(twin.decision_function(NORMAL), expected)
    np.testing.assert_array_equal(twin.with_k(3).decision_function(NORMAL), expected)


@pytest.mark.parametrize("name", ["support_", "ranking_", "scores_", "centers_", "scale_"])
def test_fitted_arrays_cannot_be_written_to(name: str) -> None:
    model = L2CenterClassifier(k=3, scale="std").fit(NORMAL, HALVES)
    with pytest.raises(ValueError, match="read-only"):
        getattr(model, name)[...] = 0


@pytest.mark.parametrize(
    "model",
    [L2CenterClassifier(), L1CenterClassifier(), *(m for m, _ in MODELS_WITH_PRIORS[1:])],
    ids=str,
)
def test_every_fitted_array_of_every_model_is_read_only(model: Any) -> None:
    model.fit(COUNTS, HALVES)
    names = [n for n in dir(model) if n.endswith("_") and not n.startswith("_")]
    arrays = {n: getattr(model, n) for n in names if isinstance(getattr(model, n), np.ndarray)}
    assert {"classes_", "support_", "scores_", "centers_"} <= set(arrays)
    assert not [n for n, a in arrays.items() if a.flags.writeable]


def _unsolvable() -> list[Any]:
    singular = MahalanobisCenterClassifier(shrinkage=None)
    return [
        singular.partial_fit(np.eye(4), [0, 0, 1, 1], classes=[0, 1]),
        L2CenterClassifier().partial_fit(PLAIN, [0] * 5, classes=[0, 1]),
    ]


@pytest.mark.parametrize("model", _unsolvable(), ids=lambda m: type(m).__name__)
def test_a_stream_that_cannot_be_solved_yet_is_shown_and_asked_for_attributes(model: Any) -> None:
    assert type(model).__name__ in repr(model)
    assert type(model).__name__ in model._repr_html_()
    learned = [n for n in dir(model) if n.endswith("_") and not n.startswith("_")]
    assert {"coef_", "support_", "scores_", "classes_"} <= set(learned)
    assert not any(hasattr(model, n) for n in ("coef_", "support_", "scores_", "objective_"))
    inspect.getmembers(model)  # no error
    with pytest.raises(ValueError, match=r"singular|no sample of class"):
        model.predict(PLAIN)
    with pytest.raises(AttributeError, match=r"singular|no sample of class"):
        _ = model.coef_


@pytest.mark.parametrize(
    "model", [m for m, _ in MODELS_WITH_PRIORS], ids=lambda m: type(m).__name__
)
def test_a_notebook_shows_a_model_without_forming_wide_attributes(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = clone(model).fit(COUNTS, HALVES)

    def refuse(self: Any) -> None:
        raise AssertionError("a wide attribute was formed")

    wide = [n for n in ("coef_", "intercept_", "scores_", "centers_", "scale_") if n in dir(model)]
    assert "scores_" in wide
    for name in wide:
        monkeypatch.setattr(type(model), name, learned(refuse))
    shown = model._repr_html_()
    assert set(wide) <= set(dir(model))
    if hasattr(BaseEstimator, "_get_fitted_attr_html"):
        for name in ("classes_", "n_features_in_", "support_", "objective_"):
            assert name in shown
