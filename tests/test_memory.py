"""Fits and predictions of sparse data allocate no dense array of n x m numbers."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse

from gpucenters import L1CenterClassifier, L2CenterClassifier, SparseMultinomialNB

N, M, PER_ROW = 200_000, 100_000, 12


@pytest.fixture(scope="module")
def text() -> tuple[scipy.sparse.csr_array, np.ndarray]:
    rng = np.random.default_rng(0)
    indices = rng.integers(0, M, (N, PER_ROW), dtype=np.int32)
    indptr = np.arange(0, N * PER_ROW + 1, PER_ROW, dtype=np.int32)
    X = scipy.sparse.csr_array(
        (np.ones(N * PER_ROW, dtype=np.float32), indices.ravel(), indptr), shape=(N, M)
    )
    X.sum_duplicates()
    return X, rng.integers(0, 2, N)


def _peak(work: object) -> float:
    """Megabytes that NumPy and Python allocate at most while ``work`` runs."""
    tracemalloc.start()
    try:
        work()  # type: ignore[operator]
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize("scale", [None, "std", "pooled"])
@pytest.mark.parametrize("kind", [L2CenterClassifier, L1CenterClassifier])
def test_fit_and_predict_on_sparse_data_need_little_memory(
    kind: type, scale: str | None, layout: str, text: tuple[scipy.sparse.csr_array, np.ndarray]
) -> None:
    X, y = text
    X = X.asformat(layout)
    model = kind(k="all", scale=scale)
    assert _peak(lambda: model.fit(X, y)) < 100
    assert _peak(lambda: model.predict(X)) < 100


@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_many_classes_need_their_sums_and_the_budget(layout: str) -> None:
    classes, m = 100, 40_000
    sums = classes * m * 8 / 1e6
    X = scipy.sparse.random(2 * classes, m, 2e-4, layout, np.float32, np.random.default_rng(0))
    X.data[:] = 1
    y = np.arange(2 * classes) % classes
    model = SparseMultinomialNB(k=1, memory_budget="4MB")
    assert sums < _peak(lambda: model.fit(X, y)) < sums + 15
    assert _peak(lambda: model.predict(X)) < 15
    found = model.with_k(2).decision_function(X)
    expected = model.set_params(memory_budget="1GB").with_k(2).decision_function(X)
    np.testing.assert_array_equal(found, expected)
    X.data[-1] = np.nan
    with pytest.raises(ValueError, match="NaN in feature"):
        model.set_params(memory_budget="4MB").predict(X)


def test_the_measured_peak_includes_a_dense_matrix() -> None:
    assert _peak(lambda: np.zeros((N, 100))) > 100
