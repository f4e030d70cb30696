"""Class moments with all second moments: batches, weights, sparse products, sizes."""

from __future__ import annotations

import tracemalloc
from functools import partial
from typing import Any

import joblib
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from bits import bits
from conftest import BACKENDS
from correlated import assert_same_model, correlated
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from strategies import modest

from gpucenters import MahalanobisCenterClassifier
from gpucenters.reductions import scatter
from gpucenters.statistics import cross_moments
from gpucenters.statistics.cross_moments import check_size


@pytest.mark.parametrize("shrinkage", [None, "ledoit-wolf"])
@given(data=st.data())
@modest(6)
def test_any_split_gives_the_model_of_all_rows(shrinkage: Any, backend: Any, data: Any) -> None:
    X, y = correlated(3, 40, 4)
    X[np.abs(X) < 0.7] = 0
    s = data.draw(st.sampled_from([None, np.random.default_rng(2).integers(0, 3, 40)]))
    layouts = ["array"] if backend.sparse is None else ["array", "csr", "csc"]
    make = [getattr(backend, data.draw(st.sampled_from(layouts))) for _ in range(4)]
    cuts = sorted(data.draw(st.lists(st.integers(1, 39), min_size=3, max_size=3, unique=True)))
    model = MahalanobisCenterClassifier(k=2, shrinkage=shrinkage)
    rows = np.split(np.arange(40), cuts)
    for number, part in enumerate(rows):
        weights = None if s is None else s[part]
        model.partial_fit(make[number](X[part]), y[part], [0, 1, 2], weights)
    whole = clone(model).fit(backend.array(X), y, sample_weight=s)
    assert_same_model(model, whole, backend)


@pytest.mark.parametrize("shrinkage", [None, 0.2, "ledoit-wolf"])
def test_weights_are_repetitions(shrinkage: Any, backend: Any) -> None:
    X, y = correlated(3)
    X[np.abs(X) < 0.5] = 0
    s = np.random.default_rng(0).integers(0, 4, 60)
    repeated = MahalanobisCenterClassifier(k=3, shrinkage=shrinkage)
    repeated.fit(backend.array(np.repeat(X, s, axis=0)), np.repeat(y, s))
    for container in backend.containers(X):
        model = clone(repeated).fit(container, y, sample_weight=s)
        assert_same_model(model, repeated, backend)


def _sparse(n: int = 400, m: int = 30) -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(4)
    X = scipy.sparse.random(n, m, 0.06, "csr", np.float64, rng)
    X.data[:] = rng.poisson(2.0, X.nnz) + 1
    return X, rng.integers(0, 3, n)


@pytest.mark.parametrize("weighted", [False, True], ids=["unit", "weighted"])
@pytest.mark.parametrize("shrinkage", [None, "ledoit-wolf"])
@pytest.mark.parametrize("steep", [False, True], ids=["sparse", "with a full column"])
def test_products_of_sparse_rows_are_those_of_dense_rows(
    steep: bool, shrinkage: Any, weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = _sparse()
    s = np.random.default_rng(0).integers(0, 3, 400) if weighted else None
    dense = X.toarray()
    if steep:
        dense[:, 3] = 1e7 + np.arange(400) % 7
    X = scipy.sparse.csr_array(dense)
    monkeypatch.setattr(scatter, "_STRIP_ENTRIES", 200)
    monkeypatch.setattr(scatter, "_COST_OF_PAIR", 1e-9)
    monkeypatch.setattr(scatter, "_COST_OF_NUMBER", 0)
    calls = []
    made = scatter._add_dense
    monkeypatch.setattr(scatter, "_add_dense", lambda *a: (calls.append(1), made(*a)))
    expected = MahalanobisCenterClassifier(k=5, shrinkage=shrinkage)
    expected.fit(dense, y, sample_weight=s)
    calls.clear()
    for kind in (scipy.sparse.csr_matrix, scipy.sparse.csc_array):
        found = clone(expected).fit(kind(X), y, sample_weight=s)
        np.testing.assert_array_equal(found.support_, expected.support_)
        assert found.shrinkage_ == pytest.approx(expected.shrinkage_, rel=1e-8)
        for name in ("scores_", "covariance_", "means_"):
            a, b = getattr(found, name), getattr(expected, name)
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10, err_msg=name)
    # Rows are made dense only where raw sums would cancel in a column.
    assert bool(calls) == steep


def test_sparse_products_are_used_where_they_cost_less(monkeypatch: pytest.MonkeyPatch) -> None:
    few = scipy.sparse.random(2000, 300, 0.02, "csr", random_state=0)
    many = scipy.sparse.random(200, 30, 0.5, "csr", random_state=0)
    seen = []
    real = scatter._class_scatter
    monkeypatch.setattr(
        scatter, "_class_scatter", lambda *a, **b: (seen.append(1), real(*a, **b))[1]
    )
    for matrix, classes, products in ((few, 2, True), (few, 20, False), (many, 2, False)):
        seen.clear()
        labels = np.arange(matrix.shape[0]) % classes
        MahalanobisCenterClassifier(shrinkage=0.5).fit(matrix, labels)
        assert bool(seen) == products


def test_many_classes_share_one_scatter_and_a_stream_does_not(
    monkeypatch: pytest.MonkeyPatch, backend: Any
) -> None:
    X, y = correlated(6, 120)
    X[np.random.default_rng(9).random(X.shape) < 0.6] = 0
    s = np.random.default_rng(0).random(120)
    apart = MahalanobisCenterClassifier(k=3).fit(backend.array(X), y, sample_weight=s)
    monkeypatch.setattr(cross_moments, "_MOST_APART", 0)
    monkeypatch.setattr(scatter, "_COST_OF_PAIR", 1e-9)
    monkeypatch.setattr(scatter, "_COST_OF_NUMBER", 0)
    for container in backend.containers(X):
        together = MahalanobisCenterClassifier(k=3).fit(container, y, sample_weight=s)
        assert together._fitted.statistics.scatter.shape == (2, 5, 5)
        assert_same_model(together, apart, backend)
        with pytest.raises(ValueError, match="first batch to partial_fit as well"):
            together.partial_fit(container, y)
        assert_same_model(together, apart, backend)
    # A stream keeps a scatter matrix for each class, because later weights are unknown.
    streamed = MahalanobisCenterClassifier(k=3)
    for rows in (slice(0, 50), slice(50, 120)):
        streamed.partial_fit(backend.array(X[rows]), y[rows], range(6), s[rows])
    assert streamed._fitted.statistics.scatter.shape == (6, 5, 5)
    assert_same_model(streamed, apart, backend)


def test_many_classes_with_fourth_moments_are_kept_apart(
    monkeypatch: pytest.MonkeyPatch, backend: Any
) -> None:
    X, y = correlated(6, 120)
    model = MahalanobisCenterClassifier(k=3, shrinkage="ledoit-wolf")
    expected = clone(model).fit(backend.array(X), y)
    monkeypatch.setattr(cross_moments, "_MOST_APART", 0)
    found = clone(model).fit(backend.array(X), y)
    assert found._fitted.statistics.scatter.shape == (6, 5, 5)
    assert_same_model(found, expected, backend)


@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csr_array, scipy.sparse.csc_array])
@pytest.mark.parametrize("shrinkage", [0.1, "ledoit-wolf"])
def test_bits_do_not_depend_on_threads_or_budget(
    shrinkage: Any, layout: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(0)
    X = layout(rng.normal(size=(1500, 530)) * (rng.random((1500, 530)) < 0.3))
    y, found = np.arange(1500) % 3, []
    monkeypatch.setattr(joblib, "cpu_count", lambda: 4)
    for threads, budget in ((1, "100MB"), (2, "1GB"), (4, None)):
        monkeypatch.setenv("OMP_NUM_THREADS", str(threads))
        model = MahalanobisCenterClassifier(k=5, shrinkage=shrinkage, memory_budget=budget)
        with threadpool_limits(threads, user_api="blas"):
            model.fit(X, y)
        parts = (model.covariance_, model.transformation_, model.scores_, model.centers_)
        found.append([model.objective_, *(p.tobytes() for p in parts)])
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("shrinkage", [None, "ledoit-wolf"])
def test_a_batch_that_fails_leaves_the_model_as_it_was(
    shrinkage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = correlated(2)
    model = MahalanobisCenterClassifier(shrinkage=shrinkage)
    model.partial_fit(X[:40], y[:40], classes=[0, 1])
    before, expected = bits(model._fitted.statistics), model.predict(X)
    bad = X.copy()
    bad[7, 2] = np.nan
    with pytest.raises(ValueError, match=r"NaN in feature 2 \(first in row 7\)"):
        model.partial_fit(bad, y)
    part = scatter._add_sums

    def interrupted(*arguments: Any) -> Any:
        part(*arguments)
        raise KeyboardInterrupt("in the middle")

    monkeypatch.setattr(scatter, "_add_sums", interrupted)
    with pytest.raises(KeyboardInterrupt, match="in the middle"):
        model.partial_fit(X[40:], y[40:])
    monkeypatch.undo()
    assert bits(model._fitted.statistics) == before
    np.testing.assert_array_equal(model.predict(X), expected)
    kept = model.with_k(2)
    model.partial_fit(X[40:], y[40:])
    assert bits(kept._fitted.statistics) == before  # the batch does not reach the copy
    assert_same_model(model, clone(model).fit(X, y), BACKENDS["numpy"])


def test_a_stream_without_samples_of_a_class_is_not_fitted() -> None:
    X, y = correlated(2)
    model = MahalanobisCenterClassifier(shrinkage=None)
    model.partial_fit(X[y == 0], y[y == 0], classes=[0, 1])
    for name in ("covariance_", "means_", "support_"):
        with pytest.raises(NotFittedError, match="no sample of class 1 yet"):
            getattr(model, name)
    model.partial_fit(X[y == 1], y[y == 1])
    assert_same_model(model, MahalanobisCenterClassifier().fit(X, y), BACKENDS["numpy"])
    with pytest.raises(ValueError, match="set it before the first batch"):
        model.set_params(shrinkage="ledoit-wolf").partial_fit(X, y)
    # A stream with fourth moments can drop the shrinkage that needs them.
    model = MahalanobisCenterClassifier(shrinkage="ledoit-wolf")
    model.partial_fit(X[:30], y[:30], classes=[0, 1])
    model.set_params(shrinkage=None).partial_fit(X[30:], y[30:])
    assert_same_model(model, MahalanobisCenterClassifier().fit(X, y), BACKENDS["numpy"])


def test_sums_that_overflow_are_an_error_and_change_nothing(backend: Any) -> None:
    X, y = correlated(2)
    huge = np.where(X > 0, 9e153, -9e153)  # their squares are finite
    model = MahalanobisCenterClassifier(shrinkage=0.1)
    with pytest.raises(ValueError, match="sums of squares of X overflow float64"):
        model.fit(backend.array(huge), y)
    model.partial_fit(backend.array(X), y, classes=[0, 1])
    expected = clone(model).fit(backend.array(X), y)
    with pytest.raises(ValueError, match="sums of X overflow float64"):
        model.partial_fit(backend.array(huge), y)
    assert_same_model(model, expected, backend)


@pytest.mark.parametrize(
    ("k", "fourth", "streaming", "matrices"),
    [(3, False, False, 10), (40, False, False, 9), (40, True, False, 47), (3, False, True, 13)],
)
def test_the_budget_counts_the_matrices_of_the_classes(
    k: int, fourth: bool, streaming: bool, matrices: int
) -> None:
    size = 8_000_000 * matrices
    check_size(1000, k, size, fourth=fourth, streaming=streaming)
    with pytest.raises(MemoryError, match=f"{matrices} matrices of 1,000 x 1,000"):
        check_size(1000, k, size - 1, fourth=fourth, streaming=streaming)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_data_too_wide_are_refused_before_anything_is_allocated(method: str, backend: Any) -> None:
    X = backend.array(np.ones((4, 3000)))
    model = MahalanobisCenterClassifier(memory_budget="100MB")
    call = partial(getattr(model, method), X, [0, 1, 0, 1])
    call = partial(call, classes=[0, 1]) if method == "partial_fit" else call
    tracemalloc.start()
    try:
        with pytest.raises(MemoryError, match=r"3,000 features .* memory budget .*scale='pooled'"):
            call()
        assert tracemalloc.get_traced_memory()[1] < 3e6  # one matrix has 72 MB
    finally:
        tracemalloc.stop()
    assert not hasattr(model, "classes_")
