"""scikit-learn's estimator checks, and equality with its classifiers."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from typing import Any
from unittest import SkipTest

import numpy as np
import pytest
import scipy.sparse
import scipy.special
import sklearn
from every_model import others
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.neighbors import NearestCentroid
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.fixes import parse_version

from gpucenters import (
    GMEBClassifier,
    L1CenterClassifier,
    L2CenterClassifier,
    LogRatioScaler,
)

CHECKED = [*others([]), GMEBClassifier(), LogRatioScaler()]
NEGATIVE = ("check_decision_proba_consistency", "check_class_weight_classifiers")
DATA = {"wine": load_wine, "digits": load_digits, "breast cancer": load_breast_cancer}


def _untied(scores: np.ndarray) -> np.ndarray:
    """Rows whose two largest scores are clearly apart."""
    best = np.sort(scores, axis=1)[:, -2:]
    return best[:, 1] - best[:, 0] > 1e-9 * (1 + np.abs(best[:, 1]))


CHECKS_ARRAYS = parse_version(sklearn.__version__) >= parse_version("1.9")
NO_ARRAYS = "before scikit-learn 1.9 its array API checks want classes_ on the device of X"


def _libraries(check: Any) -> set[str]:
    """The array libraries that a check needs."""
    found = {check.keywords.get("array_namespace")}
    found |= {value.xp for name, value in check.keywords.items() if name.endswith("ns_and_device")}
    return found - {None}


def _checks() -> list[Any]:
    """(model, check) pairs, but for those that need array libraries that are not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pairs = [pair for model in CHECKED for pair in estimator_checks_generator(model)]
    pairs = [(m, check) for m, check in pairs if all(map(find_spec, _libraries(check)))]
    skip = pytest.mark.skip(reason=NO_ARRAYS)
    # The checks draw negative values, which the tags exclude.
    negative = pytest.mark.xfail(raises=ValueError, reason="the check hands in negative values")

    def marks(model: Any, check: Any) -> list[Any]:
        name = check.func.__name__
        if name in NEGATIVE and model.__sklearn_tags__().input_tags.positive_only:
            return [negative]
        return [] if CHECKS_ARRAYS or not _libraries(check) else [skip]

    return [pytest.param(*pair, marks=marks(*pair)) for pair in pairs]


CHECKS = _checks()


def _name(value: Any) -> str:
    if not hasattr(value, "keywords"):
        return type(value).__name__
    return "-".join([value.func.__name__, *map(str, value.keywords.values())])


@pytest.mark.filterwarnings("default")  # some checks cause warnings
@pytest.mark.parametrize(("model", "check"), CHECKS, ids=_name)
def test_passes_scikit_learn_check(model: Any, check: Any) -> None:
    check(model)


HERE = [name for name in ("array_api_strict", "torch") if find_spec(name)]


@pytest.mark.filterwarnings("default")  # some checks cause warnings
@pytest.mark.skipif(not CHECKS_ARRAYS, reason=NO_ARRAYS)
@pytest.mark.parametrize("library", HERE)
@pytest.mark.parametrize("kind", [type(model) for model in CHECKED])
def test_checks_of_the_array_api_are_not_skipped(kind: Any, library: str) -> None:
    ran = set()
    for model, check in (parameters.values for parameters in CHECKS):
        # (torch's other devices need hardware.)
        if (
            type(model) is kind
            and _libraries(check) == {library}
            and check.keywords.get("device_name") in (None, "cpu", "CPU_DEVICE", "device1")
        ):
            try:
                check(model)
            except SkipTest as reason:
                pytest.fail(f"{_name(check)} was skipped: {reason}")
            ran.add(check.func.__name__)
    wanted = {"check_array_api_input"}
    if library == "array_api_strict":
        wanted.add("check_array_api_same_namespace")
    assert ran >= wanted


@pytest.mark.parametrize("data", list(DATA))
def test_l2_with_all_features_is_nearest_centroid(data: str, backend: Any) -> None:
    X, y = DATA[data](return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some pixels are constant
        theirs = NearestCentroid().fit(X, y)
    ours = L2CenterClassifier().fit(backend.array(X), y)
    np.testing.assert_allclose(backend.host(ours.centers_), theirs.centroids_, rtol=1e-12)
    distances = ((X[:, None, :] - theirs.centroids_) ** 2).sum(axis=2)
    rows = _untied(-distances)
    assert rows.mean() > 0.99
    predicted = backend.host(ours.predict(backend.array(X)))
    np.testing.assert_array_equal(predicted[rows], theirs.predict(X)[rows])


@pytest.mark.parametrize("data", list(DATA))
def test_l1_with_all_features_is_nearest_median(data: str, backend: Any) -> None:
    X, y = DATA[data](return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some pixels are constant
        theirs = NearestCentroid(metric="manhattan").fit(X, y)
    ours = L1CenterClassifier().fit(backend.array(X), y)
    np.testing.assert_array_equal(backend.host(ours.centers_), theirs.centroids_)
    distances = np.abs(X[:, None, :] - theirs.centroids_).sum(axis=2)
    rows = _untied(-distances)
    assert rows.mean() > 0.9
    predicted = backend.host(ours.predict(backend.array(X)))
    np.testing.assert_array_equal(predicted[rows], theirs.predict(X)[rows])


@pytest.mark.skipif(
    not hasattr(NearestCentroid(), "decision_function"),
    reason="this scikit-learn has no NearestCentroid.decision_function",
)
@pytest.mark.parametrize("priors", ["uniform", "empirical", "array"])
@pytest.mark.parametrize("data", list(DATA))
def test_pooled_scale_and_priors_are_diagonal_discriminant_analysis(
    data: str, priors: Any, backend: Any
) -> None:
    X, y = DATA[data](return_X_y=True)
    if priors == "array":
        priors = np.arange(1.0, y.max() + 2)
        priors /= priors.sum()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some pixels are constant
        as_list = priors if isinstance(priors, str) else priors.tolist()
        theirs = NearestCentroid(priors=as_list).fit(X, y)
    ours = L2CenterClassifier(scale="pooled", priors=priors).fit(backend.array(X), y)
    found = backend.host(ours.decision_function(backend.array(X)))
    expected = theirs.decision_function(X)
    if expected.ndim == 2:  # a term common to all classes is left out
        found = found - found[:, :1]
        expected = expected - expected[:, :1]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-7)
    probabilities = backend.host(ours.predict_proba(backend.array(X)))
    if hasattr(theirs, "predict_proba") and expected.ndim == 1:
        # scikit-learn takes the score for the log of a density, not for twice the log.
        np.testing.assert_allclose(
            probabilities[:, 1], scipy.special.expit(expected / 2), rtol=1e-6, atol=1e-12
        )
