"""The number of features chosen by cross-validation, as an estimator."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator
from test_sklearn import CHECKS_ARRAYS, _libraries, _name

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    SparseBernoulliNB,
    SparsityPathCV,
    sparsity_path,
)

X, Y = load_breast_cancer(return_X_y=True)


def _checks() -> list[Any]:
    models = [
        SparsityPathCV(L2CenterClassifier()),
        SparsityPathCV(MahalanobisCenterClassifier(), ks=[1, "all"], cv=3),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pairs = [pair for model in models for pair in estimator_checks_generator(model)]
    arrays = CHECKS_ARRAYS
    return [
        pytest.param(*pair, id=_name(pair[0].estimator) + "-" + _name(pair[1]))
        for pair in pairs
        if not _libraries(pair[1]) or (arrays and _libraries(pair[1]) == {"array_api_strict"})
    ]


@pytest.mark.filterwarnings("default")  # some checks cause warnings
@pytest.mark.parametrize(("model", "check"), _checks())
def test_passes_scikit_learn_check(model: Any, check: Any) -> None:
    check(model)


@pytest.mark.parametrize("rule", ["best", "one-standard-error"])
def test_is_the_model_fitted_with_the_k_of_the_path(rule: str, backend: Any) -> None:
    held = backend.array(X)
    for model in (L2CenterClassifier(scale="std"), L1CenterClassifier(), SparseBernoulliNB()):
        ks = [1, 3, 8, 30]
        path = sparsity_path(model, held, Y, ks=ks, cv=4)
        found = SparsityPathCV(model, ks, cv=4, rule=rule).fit(held, Y)
        assert found.best_k_ == (path.best_k if rule == "best" else path.best_k_1se)
        np.testing.assert_array_equal(found.path_.scores, path.scores)
        assert found.best_score_ == path.mean[ks.index(found.best_k_)]
        one = clone(model).set_params(k=found.best_k_).fit(held, Y)
        np.testing.assert_array_equal(found.get_support(indices=True), one.support_)
        for name in ("predict", "decision_function", "predict_proba", "transform"):
            backend.assert_same(getattr(found, name)(held), getattr(one, name)(held))
        assert found.score(held, Y) == one.score(held, Y)
        for name in ("scores_", "centers_", "ranking_", "coef_", "feature_importances_"):
            assert hasattr(found, name) == hasattr(one, name)
            if hasattr(one, name) and name not in ("ranking_", "feature_importances_"):
                backend.assert_same(getattr(found, name), getattr(one, name))
        np.testing.assert_array_equal(found.ranking_, one.ranking_)
        assert hasattr(found, "predict_joint_log_proba") == isinstance(model, SparseBernoulliNB)
        assert found.n_features_in_ == 30 and found.classes_.tolist() == [0, 1]


def test_chooses_what_a_grid_search_chooses(on_host: Any) -> None:
    ks = [1, 2, 4, 8, 16]
    grid = GridSearchCV(L2CenterClassifier(scale="pooled"), {"k": ks}, scoring="roc_auc").fit(X, Y)
    ours = SparsityPathCV(L2CenterClassifier(scale="pooled"), ks, scoring="roc_auc").fit(X, Y)
    assert ours.best_k_ == grid.best_params_["k"]
    np.testing.assert_allclose(ours.path_.mean, grid.cv_results_["mean_test_score"], atol=1e-12)
    np.testing.assert_allclose(ours.path_.std, grid.cv_results_["std_test_score"], atol=1e-12)
    assert ours.score(X, Y) == pytest.approx(grid.score(X, Y), abs=1e-12)


def test_in_pipelines(on_host: Any) -> None:
    frame, y = load_breast_cancer(return_X_y=True, as_frame=True)
    last = make_pipeline(StandardScaler(), SparsityPathCV(L1CenterClassifier(), [2, 5]))
    assert last.fit(X, Y).score(X, Y) > 0.9
    first = make_pipeline(
        SparsityPathCV(L2CenterClassifier(scale="std"), [4]), LogisticRegression()
    ).set_output(transform="pandas")
    first.fit(frame, y)
    chosen = first[0].get_feature_names_out()
    assert first[-1].feature_names_in_.tolist() == list(chosen) and len(chosen) == 4
    assert list(first[0].feature_names_in_) == list(frame.columns)
    wide = first[0].set_output(transform="default").inverse_transform(X[:, first[0].get_support()])
    assert wide.shape == X.shape
    sparse = scipy.sparse.csr_matrix(X)
    assert scipy.sparse.issparse(SparsityPathCV(L2CenterClassifier()).fit_transform(sparse, Y))
    tuned = GridSearchCV(last, {"sparsitypathcv__estimator__scale": [None, "std"]}, cv=2)
    assert tuned.fit(X, Y).best_score_ > 0.9


def test_weights_and_groups_go_where_they_belong(on_host: Any) -> None:
    weights, groups = 1.0 + np.arange(len(Y)) % 4, np.arange(len(Y)) // 3
    model, given = L2CenterClassifier(scale="std"), {"sample_weight": weights, "groups": groups}
    found = SparsityPathCV(model, [1, 4], cv=GroupKFold(3)).fit(X, Y, **given)
    path = sparsity_path(model, X, Y, ks=[1, 4], cv=GroupKFold(3), **given)
    np.testing.assert_array_equal(found.path_.scores, path.scores)
    one = clone(model).set_params(k=found.best_k_).fit(X, Y, weights)
    np.testing.assert_array_equal(found.best_estimator_.centers_, one.centers_)
    with pytest.raises(TypeError, match="unexpected keyword argument: 'weight'"):
        SparsityPathCV(model).fit(X, Y, weight=weights)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = SparsityPathCV(
            L2CenterClassifier(scale="std").set_fit_request(sample_weight=True),
            [1, 4],
            cv=GroupKFold(3),
            scoring=make_scorer(accuracy_score).set_score_request(sample_weight=False),
        )
        outer = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), routed)
        again = outer.fit(X, Y, **given)[-1]
        scaled = StandardScaler().fit_transform(X)
        options = {"cv": GroupKFold(3), "scoring": routed.scoring}
        path = sparsity_path(routed.estimator, scaled, Y, ks=[1, 4], **options, **given)
    np.testing.assert_array_equal(again.path_.scores, path.scores)


def test_what_the_model_has_not_is_not_there(on_host: Any) -> None:
    full = SparsityPathCV(MahalanobisCenterClassifier(), [2, "all"]).fit(X, Y)
    assert not hasattr(full, "get_support") and not hasattr(full, "inverse_transform")
    assert full.transform(X).shape == (569, full.best_k_)
    assert hasattr(SparsityPathCV(L2CenterClassifier()), "get_support")
    assert not hasattr(SparsityPathCV(L2CenterClassifier()), "classes_")
    with pytest.raises(ValueError, match="rule='most'"):
        SparsityPathCV(L2CenterClassifier(), rule="most").fit(X, Y)
    same = pickle.loads(pickle.dumps(full))
    np.testing.assert_array_equal(same.predict(X), full.predict(X))
    assert same.path_.best_k == full.path_.best_k
