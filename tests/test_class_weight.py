"""The parameter ``class_weight``: factors of sample weights, in each way to fit a model."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier as RefittedOneVsRest
from sklearn.utils.class_weight import compute_class_weight

import gpucenters
from gpucenters import (
    GMEBClassifier,
    GMEBClassifierCV,
    L1CenterClassifier,
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    ShrunkenCentroidClassifier,
    SparseBernoulliNB,
    SparseGaussianNB,
    SparseMultinomialNB,
    SparsePoissonNB,
    gmeb_path,
    permutation_gains,
    sparsity_path,
)
from gpucenters.estimators.fitted import FittedModel
from gpucenters.multiclass import NestedDichotomiesClassifier, OneVsRestClassifier

RNG = np.random.default_rng(0)
CODES = np.repeat([0, 1, 2], [30, 12, 6])
COUNTS = RNG.poisson(1.0, (48, 9)) + RNG.poisson(1.5, (48, 9)) * (
    np.arange(9) % 3 == CODES[:, None]
)
WEIGHTS = RNG.integers(0, 3, 48)
NAMES = np.asarray(["pear", "fig", "apple"])

OF_STATISTICS = [
    SparseBernoulliNB(k=4, binarize=1.0),
    SparseMultinomialNB(k=4),
    SparsePoissonNB(k=4),
    SparseGaussianNB(k=4),
    ShrunkenCentroidClassifier(k=4),
]
EVERY = [*OF_STATISTICS, GMEBClassifier(tol=1e-4), GMEBClassifierCV(r_plus=[2.0], cv=2, tol=1e-4)]


def _name(value: Any) -> str:
    return type(value).__name__


each_model = pytest.mark.parametrize("model", EVERY, ids=_name)
each_of_statistics = pytest.mark.parametrize("model", OF_STATISTICS, ids=_name)


def same(a: Any, b: Any) -> None:
    np.testing.assert_array_equal(a.decision_function(COUNTS), b.decision_function(COUNTS))
    np.testing.assert_array_equal(a.support_, b.support_)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("class_weight", ["balanced", {"fig": 3.0, "apple": 0.5}], ids=_name)
@each_model
def test_class_weights_are_factors_of_sample_weights_as_scikit_learn_has_them(
    model: Any, class_weight: Any, weights: Any
) -> None:
    y = NAMES[CODES]
    repeated = y if weights is None else np.repeat(y, weights)  # as which weights count
    classes = np.unique(y)
    factor = compute_class_weight(class_weight, classes=classes, y=repeated)
    factors = factor[np.searchsorted(classes, y)] * (1 if weights is None else weights)
    found = clone(model).set_params(class_weight=class_weight).fit(COUNTS, y, sample_weight=weights)
    same(found, clone(model).fit(COUNTS, y, sample_weight=factors))
    plain = clone(model).fit(COUNTS, y, sample_weight=weights)
    assert np.any(found.decision_function(COUNTS) != plain.decision_function(COUNTS))


@pytest.mark.parametrize("kind", [SparseMultinomialNB, SparsePoissonNB])
def test_a_class_of_large_weight_is_predicted(kind: Any) -> None:
    # What scikit-learn's check asks, which draws negative values.
    X, y = RNG.poisson(5.0, (80, 3)), np.arange(80) % 2
    model = kind(class_weight={0: 1000, 1: 0.0001}).fit(X[:40], y[:40])
    assert np.mean(model.predict(X[40:]) == 0) > 0.87


@each_of_statistics
def test_balanced_classes_have_equal_priors(model: Any) -> None:
    found = clone(model).set_params(class_weight="balanced").fit(COUNTS, CODES)
    np.testing.assert_allclose(np.exp(FittedModel(found).log_prior), 1 / 3)


@pytest.mark.parametrize(
    "class_weight",
    [{}, {0: 2.0}, {0: 2, 1: 3, 2: 0.5}, {0: 2, 1: 3, 2: 0.5, 7: 1}, {0: 2, 7: 1}, {7: 1}],
    ids=str,
)
def test_labels_of_a_dict_are_read_as_by_scikit_learn(class_weight: dict) -> None:
    model = SparseBernoulliNB(class_weight=class_weight)
    try:
        factor = compute_class_weight(class_weight, classes=np.arange(3), y=CODES)
    except ValueError:
        with pytest.raises(
            ValueError, match=r"class_weight has 7, which y does not hold, and lack"
        ):
            model.fit(COUNTS, CODES)
    else:
        same(
            model.fit(COUNTS, CODES),
            SparseBernoulliNB().fit(COUNTS, CODES, sample_weight=factor[CODES]),
        )


def test_keys_are_the_labels_themselves() -> None:
    y = np.asarray([2**60, 2**60 + 1, 5])[CODES]
    model = SparseBernoulliNB(class_weight={np.int64(2**60 + 1): 9.0, 5: 2.0})
    same(
        model.fit(COUNTS, y),
        SparseBernoulliNB().fit(COUNTS, y, sample_weight=np.asarray([1.0, 9.0, 2.0])[CODES]),
    )
    same(
        SparseBernoulliNB(class_weight={False: 2, True: 3}).fit(COUNTS, CODES > 0),
        SparseBernoulliNB(class_weight={0: 2, 1: 3}).fit(COUNTS, CODES > 0),
    )


BAD = {
    "a word": ("even", "class_weight='even' is not valid: use None, 'balanced' or a dict"),
    "a list": ([1, 2, 3], r"class_weight=\[1, 2, 3\] is not valid"),
    "negative": ({0: 1, 1: -2.0}, "class_weight of 1 is -2.0"),
    "NaN": ({0: float("nan")}, "class_weight of 0 is nan"),
    "a string": ({0: "2"}, "class_weight of 0 is '2'"),
    "zero": ({1: 0.0}, "class 1 is left without weight.*class_weight"),
    "too small": ({1: 1e-200}, "sample_weight times class_weight is 1e-200 in row 30"),
}


@pytest.mark.parametrize("case", list(BAD))
@each_model
def test_class_weights_that_are_none_are_refused(model: Any, case: str) -> None:
    value, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        clone(model).set_params(class_weight=value).fit(COUNTS, CODES)


@each_of_statistics
def test_shards_and_batches_take_numbers_and_refuse_to_balance(model: Any) -> None:
    weighted = clone(model).set_params(class_weight={0: 2, 2: 4})
    expected = clone(weighted).fit(COUNTS, CODES).decision_function(COUNTS)
    halves = [(COUNTS[rows], CODES[rows]) for rows in (slice(0, None, 2), slice(1, None, 2))]
    stream, shards = clone(weighted), []
    for X, y in halves:
        stream.partial_fit(X, y, classes=[0, 1, 2])
        shards.append(weighted.statistics(X, y, classes=[0, 1, 2]))
    merged = clone(weighted).fit_statistics(shards[0].merge(shards[1]))
    for found in (stream, merged):
        np.testing.assert_allclose(found.decision_function(COUNTS), expected, rtol=1e-9, atol=1e-9)
    balanced = clone(model).set_params(class_weight="balanced")
    for call in (
        lambda: balanced.partial_fit(COUNTS, CODES, classes=[0, 1, 2]),
        lambda: balanced.statistics(COUNTS, CODES),
        lambda: balanced.fit_statistics(shards[0]),
    ):
        with pytest.raises(
            ValueError, match=r"'balanced' is not supported in .*compute_class_weig"
        ):
            call()


@each_of_statistics
def test_paths_balance_the_training_samples_of_each_fold(model: Any) -> None:
    # All samples together are balanced as they are, which the training samples are not.
    X, cv = scipy.sparse.csr_array(COUNTS), KFold(5)
    y = np.random.default_rng(1).permutation(np.repeat([0, 1, 2], 16))
    balanced = clone(model).set_params(class_weight="balanced", k=3)
    path = sparsity_path(balanced, X, y, ks=[3], cv=cv, scoring="neg_log_loss")
    expected = cross_val_score(balanced, X, y, cv=cv, scoring="neg_log_loss")
    np.testing.assert_allclose(path.scores[0], expected, rtol=1e-9)


@each_model
def test_copies_and_files_keep_class_weights(model: Any) -> None:
    for class_weight in ("balanced", {0: 2.0, 1: 3.0, np.int64(2): 1}):
        fitted = clone(model).set_params(class_weight=class_weight).fit(COUNTS, CODES)
        file = io.BytesIO()
        fitted.save(file)
        file.seek(0)
        loaded = gpucenters.load(file)
        assert loaded.class_weight == clone(fitted).class_weight == class_weight
        same(loaded, fitted)
        if hasattr(model, "with_k"):
            other = clone(fitted).set_params(k=2).fit(COUNTS, CODES)
            assert fitted.with_k(2).class_weight == class_weight
            same(fitted.with_k(2), other)


def test_binary_problems_are_balanced_each_on_its_own() -> None:
    model = SparsePoissonNB(k=4, class_weight="balanced")
    found = OneVsRestClassifier(model).fit(COUNTS, CODES)
    expected = RefittedOneVsRest(model).fit(COUNTS, CODES)
    np.testing.assert_array_equal(found.predict(COUNTS), expected.predict(COUNTS))
    for one, other in zip(found.estimators_, expected.estimators_, strict=True):
        same(one, other)
    nested = NestedDichotomiesClassifier(model, random_state=0).fit(COUNTS, CODES)
    for binary in nested.estimators_:
        np.testing.assert_allclose(binary.class_log_prior_, np.log(0.5))


def test_solutions_along_bounds_have_the_weights_of_single_fits() -> None:
    model = GMEBClassifier(tol=1e-4, class_weight="balanced", r_plus=2.0)
    (found,) = gmeb_path(model, COUNTS, CODES, r_plus=[2.0])
    same(found, clone(model).fit(COUNTS, CODES))


def test_gains_under_permuted_labels_have_no_class_weights() -> None:
    with pytest.raises(ValueError, match="permutation_gains counts each sample once"):
        permutation_gains(SparsePoissonNB(class_weight="balanced"), COUNTS, CODES, 5)


@pytest.mark.parametrize(
    "model", [L2CenterClassifier(), L1CenterClassifier(), MahalanobisCenterClassifier()], ids=_name
)
def test_models_whose_classes_weigh_the_same_have_no_class_weights(model: Any) -> None:
    with pytest.raises(ValueError, match="Invalid parameter 'class_weight'"):
        clone(model).set_params(class_weight="balanced")
    if not isinstance(model, MahalanobisCenterClassifier):  # of which they change the covariance
        found = clone(model).fit(COUNTS, CODES, sample_weight=np.asarray([1.0, 50.0, 0.1])[CODES])
        plain = clone(model).fit(COUNTS, CODES)
        np.testing.assert_allclose(found.scores_, plain.scores_)
        np.testing.assert_array_equal(found.predict(COUNTS), plain.predict(COUNTS))
