"""GMEBClassifier, its path and its cross-validation: what they promise beside the optimum."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from conftest import BACKENDS
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit, TimeSeriesSplit
from sklearn.utils.estimator_checks import estimator_checks_generator

import gpucenters
from gpucenters import GMEBClassifier, GMEBClassifierCV, gmeb_path, permutation_gains, sparsity_path

_rng = np.random.default_rng(0)
Y = np.arange(60) % 2
X = _rng.normal(size=(60, 40)) * _rng.uniform(0.5, 3, 40) * (1 + Y[:, None])
X[:, :4] += 2 * Y[:, None]
THIRDS = np.arange(60) % 3
SPARSE = np.where(_rng.random((60, 40)) < 0.2, X, 0.0)
NUMBERS = ["theta_", "multiplier_", "omega_", "objective_", "lower_bound_", "gap_", "n_iter_"]


def same(found: Any, expected: Any, data: Any, rtol: float = 1e-9) -> None:
    for name in ("objective_", "omega_", "theta_"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol, 1e-7)
    np.testing.assert_array_equal(found.support_, expected.support_)
    np.testing.assert_array_equal(found.predict(data), expected.predict(data))


def test_attributes_are_what_they_say(backend: Any) -> None:
    cases = [(THIRDS, 3)] + [(Y, 1)] * (backend.name == "numpy")
    for y, decisions in cases:
        data = backend.array(X)
        model = GMEBClassifier(r_plus=2.0, r_minus=3.0).fit(data, y)
        coef, sigma = backend.host(model.coef_), backend.host(model.sigma_)
        intercept = backend.host(model.intercept_)
        assert coef.shape == sigma.shape == (decisions, 40) and intercept.shape == (decisions,)
        for name in NUMBERS:
            assert np.shape(getattr(model, name)) == (() if decisions == 1 else (decisions,))
        mean = X.mean(axis=0)
        scores = X @ coef.T + intercept
        centred = (X - mean) @ coef.T
        for c in range(decisions):
            plus = y == (1 if decisions == 1 else c)
            sign = np.where(plus, 1, -1)
            loss = np.maximum(0, 1 - sign * scores[:, c]).sum()
            v = [((X[rows] - mean) ** 2).mean(axis=0) / r for rows, r in ((plus, 2), (~plus, 3))]
            used = coef[c] != 0
            # sigma is feasible in the problem of the paper, and reaches the norm.
            assert (coef[c, used] ** 2 / sigma[c, used]).sum() <= 1 + 1e-9
            assert v[0] @ sigma[c] <= 1 + 1e-9 and v[1] @ sigma[c] <= 1 + 1e-9
            assert np.all(sigma[c, ~used] == 0)
            for rows, r in ((plus, 2), (~plus, 3)):
                assert (centred[rows, c] ** 2).mean() <= r + 1e-9
            np.testing.assert_allclose(np.atleast_1d(model.objective_)[c], loss, rtol=1e-9)
        assert np.all(model.gap_ >= 0) and np.all(model.gap_ <= 1e-6 * 60)
        np.testing.assert_allclose(model.objective_ - model.lower_bound_, model.gap_, atol=1e-12)
        found = backend.host(model.decision_function(data))
        np.testing.assert_allclose(found.reshape(60, -1), scores, atol=1e-9)
        wanted = scores[:, 0] > 0 if decisions == 1 else scores.argmax(axis=1)
        np.testing.assert_array_equal(backend.host(model.predict(data)), wanted)
        large = np.abs(coef)
        large = np.any((large >= 0.01) | (large >= 0.01 * large.max(axis=1)[:, None]), axis=0)
        np.testing.assert_array_equal(model.support_, np.flatnonzero(large))
        np.testing.assert_array_equal(backend.host(model.transform(data)), X[:, model.support_])


def test_shifted_and_scaled_features_give_the_same_model() -> None:
    expected = GMEBClassifier(threshold=0).fit(X, Y)
    shift, scale = _rng.normal(size=40) * 100, 10.0 ** _rng.integers(-6, 7, 40)
    for a, b in ((1.0, shift), (scale, 0.0), (scale, shift)):
        found = GMEBClassifier(threshold=0).fit((X + b) * a, Y)
        np.testing.assert_allclose(found.objective_, expected.objective_, rtol=1e-7)
        np.testing.assert_array_equal(found.predict((X + b) * a), expected.predict(X))
        np.testing.assert_allclose(found.coef_ * a, expected.coef_, atol=1e-6)


def test_a_large_offset_leaves_the_certificate_valid() -> None:
    model = GMEBClassifier().fit(X + 1e7, Y)
    assert 0 <= model.objective_ - model.lower_bound_ <= 1e-6 * 60
    np.testing.assert_allclose(model.objective_, GMEBClassifier().fit(X, Y).objective_, atol=1e-5)


@pytest.mark.parametrize("offset", [0.0, 3.0])
def test_sparse_and_dense_data_give_the_same_model(offset: float, sparse_backend: Any) -> None:
    data = SPARSE + offset * (np.arange(40) == 2)
    expected = GMEBClassifier(r_plus=0.5).fit(data, Y)
    for kind in (sparse_backend.csr, sparse_backend.csc):
        found = GMEBClassifier(r_plus=0.5).fit(kind(data), Y).to("cpu")
        same(found, expected, data, 1e-6)


def test_a_working_set_of_sparse_columns_stays_sparse(sparse_backend: Any) -> None:
    rng = np.random.default_rng(4)
    data = (rng.random((300, 60)) < 0.05) * rng.normal(size=(300, 60))
    y = (data[:, :5].sum(axis=1) + 0.1 * rng.normal(size=300) > 0).astype(int)
    weight = rng.integers(0, 3, 300).astype(float)
    expected = GMEBClassifier(r_plus=0.5).fit(data, y, weight)
    found = GMEBClassifier(r_plus=0.5).fit(sparse_backend.csr(data), y, weight).to("cpu")
    same(found, expected, data, 1e-6)


def test_weights_are_repetitions_and_zero_leaves_out() -> None:
    weight = _rng.integers(0, 3, 60)
    found = GMEBClassifier().fit(X, Y, weight)
    expected = GMEBClassifier().fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight))
    np.testing.assert_allclose(found.objective_, expected.objective_, rtol=1e-6)
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))


def test_permuted_labels_of_classes_change_the_sign() -> None:
    one = GMEBClassifier(r_plus=2, r_minus=5).fit(X, Y)
    other = GMEBClassifier(r_plus=5, r_minus=2).fit(X, 1 - Y)
    np.testing.assert_allclose(one.coef_, -other.coef_, atol=1e-6)
    np.testing.assert_allclose(one.theta_, 1 - other.theta_, atol=1e-5)


def test_strings_and_a_class_of_one_sample() -> None:
    y = np.array(["no"] * 59 + ["yes"])
    model = GMEBClassifier().fit(X, y)
    assert set(model.predict(X)) <= {"no", "yes"}
    assert model.gap_ <= 1e-6 * 2


def test_features_that_do_not_tell_give_one_label(backend: Any) -> None:
    data = np.repeat([[0.0, 1.0], [2.0, 1.0]], 3, axis=0)
    y = [0, 0, 1, 0, 0, 1]
    model = GMEBClassifier().fit(backend.array(data), y)
    assert np.all(np.abs(backend.host(model.coef_)) < 1e-9)
    assert model.objective_ == pytest.approx(4) and model.multiplier_ == pytest.approx(0)
    constant = GMEBClassifier().fit(backend.array(np.ones((6, 3))), y)
    assert constant.support_.tolist() == [] and constant.gap_ == 0
    assert backend.host(constant.predict(backend.array(np.ones((2, 3))))).tolist() == [0, 0]
    assert constant.coef_.shape == (1, 3)
    with pytest.raises(ValueError, match="NaN"):
        constant.predict(backend.array([[1.0, np.nan, 1.0]]))
    file = io.BytesIO()
    constant.to("cpu").save(file)
    file.seek(0)
    assert gpucenters.load(file).predict(np.ones((2, 3))).tolist() == [0, 0]


def test_stopping_early_says_the_gap() -> None:
    with pytest.warns(ConvergenceWarning, match="after 1 rounds at a gap of"):
        model = GMEBClassifier(max_iter=1).fit(X, Y)
    assert model.n_iter_ == 1 and model.gap_ > 0
    assert model.lower_bound_ <= GMEBClassifier().fit(X, Y).objective_ <= model.objective_


@pytest.mark.parametrize("value", [0, -1.0, np.inf, np.nan, True, "4", None])
def test_a_wrong_parameter_is_named(value: Any) -> None:
    for name in ("r_plus", "r_minus", "tol", "max_iter", "threshold"):
        if (name, value) in (("threshold", 0), ("r_minus", None)):
            continue
        with pytest.raises(ValueError, match=f"{name}={value!r} is not valid"):
            GMEBClassifier(**{name: value}).fit(X, Y)


def test_what_it_is_not() -> None:
    model = GMEBClassifier().fit(X, Y)
    for name in ("with_k", "partial_fit", "predict_proba", "k", "scores_", "ranking_"):
        assert not hasattr(model, name)
    for call in (lambda: permutation_gains(model, X, Y), lambda: sparsity_path(model, X, Y)):
        with pytest.raises(TypeError, match="GMEBClassifier"):
            call()


@pytest.mark.parametrize("y", [Y, THIRDS], ids=["two", "three"])
def test_a_model_comes_back_from_a_file_and_a_pickle(y: Any, backend: Any) -> None:
    if y is THIRDS and backend.name != "numpy":
        pytest.skip("the arrays of three classes come back as those of two")
    data = backend.array(X)
    model = GMEBClassifier(r_plus=2.0).fit(data, y)
    host = model.to("cpu")
    for full in (False, True):
        file = io.BytesIO()
        model.save(file, full=full)
        file.seek(0)
        for found in (gpucenters.load(file, "cpu"), pickle.loads(pickle.dumps(host))):
            for name in ("coef_", "intercept_", "sigma_", "support_", "classes_", *NUMBERS):
                np.testing.assert_array_equal(getattr(found, name), getattr(host, name))
            np.testing.assert_array_equal(found.decision_function(X), host.decision_function(X))
            assert found.get_params()["r_plus"] == 2.0
    moved = model.to("cuda")
    cupy = BACKENDS["cupy"]
    cupy.check(moved.coef_)
    np.testing.assert_allclose(
        cupy.host(moved.decision_function(cupy.array(X))), host.decision_function(X), atol=1e-9
    )
    assert copy.deepcopy(host).predict(X).tolist() == host.predict(X).tolist()


def test_a_path_gives_the_models_of_its_bounds(backend: Any) -> None:
    data = backend.array(X)
    minus = [2.0, 9.0] if backend.name == "numpy" else [2.0]
    models = gmeb_path(GMEBClassifier(), data, Y, r_plus=[1.0, 3.0], r_minus=minus)
    pairs = [(model.r_plus, model.r_minus) for model in models]
    assert pairs == [(a, b) for a in (1.0, 3.0) for b in minus]
    for model in models:
        alone = GMEBClassifier(r_plus=model.r_plus, r_minus=model.r_minus).fit(X, Y)
        np.testing.assert_allclose(model.objective_, alone.objective_, atol=2e-6 * 60)
        assert model.gap_ <= 1e-6 * 60
    for wrong in ([], [1.0, 0.0], ["a"]):
        with pytest.raises(ValueError, match="r_plus"):
            gmeb_path(GMEBClassifier(), X, Y, r_plus=wrong)
    with pytest.raises(TypeError, match="takes a GMEBClassifier"):
        gmeb_path(gpucenters.L2CenterClassifier(), X, Y, r_plus=1)


@pytest.mark.parametrize(
    ("y", "rule"), [(Y, "one-standard-error"), (THIRDS, "best")], ids=["two", "three"]
)
def test_cross_validation_scores_are_those_of_fits_to_the_folds(y: Any, rule: str) -> None:
    # Two classes have the rule to test, three only how they are put together.
    grid, folds = ([0.2, 1.0, 5.0], 3) if y is Y else ([0.2, 5.0], 2)
    cv = StratifiedKFold(folds)
    model = GMEBClassifierCV(r_plus=grid, cv=folds, rule=rule, tol=1e-4).fit(X, y)
    wanted = [
        [
            GMEBClassifier(r_plus=r, tol=1e-4).fit(X[a], y[a]).score(X[b], y[b])
            for a, b in cv.split(X, y)
        ]
        for r in grid
    ]
    np.testing.assert_allclose(model.fold_scores_, wanted, atol=0.051)  # one sample of a fold
    mean, error = model.fold_scores_.mean(axis=1), model.fold_scores_.std(axis=1, ddof=1)
    best = mean.argmax()
    least = mean[best] - (error[best] / np.sqrt(folds) if rule != "best" else 0)
    assert model.r_plus_ == model.r_minus_ == grid[np.flatnonzero(mean >= least - 1e-9)[0]]
    assert model.best_score_ == mean[grid.index(model.r_plus_)]
    same(model, GMEBClassifier(r_plus=model.r_plus_, tol=1e-4).fit(X, y), X, 1e-3)
    assert model.grid_.tolist() == [[r, r] for r in grid]
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    assert gpucenters.load(file).fold_scores_.tolist() == model.fold_scores_.tolist()
    with pytest.raises(ValueError, match="rule='worst' is not valid"):
        GMEBClassifierCV(rule="worst").fit(X, y)


@pytest.mark.parametrize(
    "cv",
    [
        TimeSeriesSplit(2, gap=6),
        StratifiedShuffleSplit(2, train_size=12, test_size=20, random_state=0),
        [(np.repeat(np.arange(20), np.arange(20) % 3 + 1), -np.arange(1, 21) // 2)],
        [(np.arange(60) < 20, np.arange(60) >= 40)],
    ],
    ids=["gap", "train_size", "repeated rows", "masks"],
)
def test_cross_validation_trains_on_the_training_samples_alone(cv: Any) -> None:
    # What tells the classes apart is turned round with time.
    data = X * np.where(np.arange(60) < 30, 1.0, -1.0)[:, None]
    weight = 1.0 + np.arange(60) % 2
    model = GMEBClassifierCV(r_plus=[1.0, 4.0], cv=cv, tol=1e-6).fit(data, Y, weight)
    folds = cv if isinstance(cv, list) else list(cv.split(data, Y))
    for r, scores in zip([1.0, 4.0], model.fold_scores_, strict=True):
        for (train, test), score in zip(folds, scores, strict=True):
            one = GMEBClassifier(r_plus=r).fit(data[train], Y[train], weight[train])
            expected = one.score(data[test], Y[test], weight[test])
            assert score == pytest.approx(expected, abs=2.01 / weight[test].sum())


def test_folds_that_cannot_be_scored_are_named() -> None:
    weight = np.where(np.arange(60) < 40, 1.0, 0.0)
    folds = [(np.arange(20), np.arange(20, 40)), (np.arange(40), np.arange(40, 60))]
    with pytest.raises(ValueError, match="fold 1 of cv has no test sample of positive weight"):
        GMEBClassifierCV(cv=folds).fit(X, Y, weight)
    with pytest.raises(ValueError, match=r"fold 1 cannot be fitted or scored: .*class 1"):
        GMEBClassifierCV(cv=[folds[0], (np.arange(0, 40, 2), [1])], r_plus=[1.0]).fit(X, Y)
    with pytest.raises(ValueError, match="fold 0 of cv names the training sample 60"):
        GMEBClassifierCV(cv=[([0, 1, 60], [2])]).fit(X, Y)
    with pytest.raises(ValueError, match="cv=31 folds need as many samples of a class"):
        GMEBClassifierCV(cv=31).fit(X, Y)


@pytest.mark.parametrize("name", ["array_api_strict", "cupy"])
def test_cross_validation_works_where_x_lives(name: str) -> None:
    backend = BACKENDS[name]
    model = GMEBClassifierCV(r_plus=[1.0], cv=2, tol=1e-3)
    expected = copy.deepcopy(model).fit(X, Y)
    model.fit(backend.array(X), Y)
    backend.check(model.coef_)
    np.testing.assert_allclose(model.fold_scores_, expected.fold_scores_, atol=0.034)


def test_cross_validation_passes_scikit_learn_checks() -> None:
    wanted = {"check_estimators_overwrite_params", "check_parameters_default_constructible"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for model, check in estimator_checks_generator(GMEBClassifierCV(r_plus=[1.0], cv=2)):
            if check.func.__name__ in wanted:
                check(model)
