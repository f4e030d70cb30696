"""Sparse X in every format gives what plain float64 gives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from answers import CLASSES, FORMATS, assert_same_answers, each_model, messy, mixed_data, to_host
from conftest import BACKENDS, cupy
from sklearn.base import clone
from small_data import COUNTS, HALVES, NORMAL
from stand_in import on_stand_in
from strategies import quietly

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    ShrunkenCentroidClassifier,
    SparseBernoulliNB,
    SparseGaussianNB,
    SparseMultinomialNB,
    SparsePoissonNB,
    sparsity_path,
)
from gpucenters.arrays import functions, sparsetools
from gpucenters.arrays.backend import HOST, backend_of
from gpucenters.arrays.context import Context
from gpucenters.blocks.convert import as_block
from gpucenters.blocks.samples import make_samples
from gpucenters.reductions import class_sums
from gpucenters.reductions.class_sums import RawSums, add_class_sums

RNG = np.random.default_rng(0)
EVERY_MODEL = [
    *(L2CenterClassifier(k=3), L2CenterClassifier(k=3, scale="std"), L1CenterClassifier(k=3)),
    *(SparseBernoulliNB(k=3), SparseMultinomialNB(k=3), SparseGaussianNB(k=3)),
    *(SparsePoissonNB(k=3), SparsePoissonNB(k=3, scale="dispersion")),
    ShrunkenCentroidClassifier(k=3),
]


@pytest.mark.parametrize("kind", ["matrix", "array"])
@pytest.mark.parametrize("layout", FORMATS)
@each_model
def test_every_format_of_scipy_gives_the_answers_of_float64(
    model: Any, layout: str, kind: str, on_host: Any
) -> None:
    plain, y = mixed_data(3)
    X = getattr(scipy.sparse, f"{layout}_{kind}")(plain)
    assert_same_answers(model, X, plain, y, on_host)


@pytest.mark.parametrize("layout", ["csr_matrix", "csc_matrix", "coo_matrix"])
@each_model
def test_csr_csc_and_coo_of_each_library_give_the_answers_of_float64(
    model: Any, layout: str, sparse_backend: Any
) -> None:
    plain, y = mixed_data(3)
    X = getattr(sparse_backend.sparse, layout)(sparse_backend.csr(plain))
    assert_same_answers(model, X, plain, y, sparse_backend)


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int64", "uint64", "float32", "float64", "longdouble"]
)
@pytest.mark.parametrize("layout", ["csr_matrix", "csc_array"])
@each_model
def test_sparse_data_of_every_type_give_the_answers_of_float64(
    model: Any, layout: str, dtype: str, on_host: Any
) -> None:
    plain, y = mixed_data(3, np.dtype(dtype).kind)
    X = getattr(scipy.sparse, layout)(plain.astype(dtype))
    assert X.dtype == dtype
    assert_same_answers(model, X, plain, y, on_host)


@pytest.mark.parametrize(("index", "duplicates"), [("int32", 0.4), ("int64", 0.4), ("int32", 0)])
@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize("n_classes", CLASSES)
@each_model
def test_order_duplicates_and_stored_zeros_change_nothing(
    model: Any, n_classes: int, layout: str, index: str, duplicates: float, sparse_backend: Any
) -> None:
    plain, y = mixed_data(n_classes)
    X = messy(plain, layout, sparse_backend, index, duplicates)
    assert X.data.shape[0] > np.count_nonzero(plain)
    if sparse_backend.name == "numpy":
        assert X.indices.dtype == index
    assert_same_answers(model, X, plain, y, sparse_backend)


@pytest.mark.parametrize("integers", [True, False])
@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize("model", EVERY_MODEL, ids=str)
def test_rows_in_any_order_give_the_results_of_sorted_rows(
    model: Any, layout: str, integers: bool, sparse_backend: Any
) -> None:
    """And their bits where sums are exact: a sum takes the rows of CSR in their order."""
    plain, y = mixed_data(3, "u" if integers else "f", n=90)
    plain = np.abs(plain)
    X, ordered = messy(plain, layout, sparse_backend, duplicates=0), plain
    if sparse_backend.name == "numpy":
        ordered = X.copy()
        ordered.sort_indices()
    else:
        ordered = getattr(sparse_backend.sparse, f"{layout}_matrix")(X.get().sorted_indices())
    found, expected = quietly(clone(model).fit, X, y), quietly(clone(model).fit, ordered, y)
    for name in ("scores_", "centers_", "decision_function", "predict_proba"):
        one, other = getattr(found, name), getattr(expected, name)
        if callable(one):
            one, other = one(X), other(ordered)
        one, other = to_host(one, sparse_backend), to_host(other, sparse_backend)
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)
        if integers and layout == "csr" and name == "scores_":
            np.testing.assert_array_equal(one, other)
    one, other = (sparsity_path(model, A, y, cv=3).scores for A in (X, ordered))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_rows_in_any_order_are_read_in_place(layout: str, sparse_backend: Any) -> None:
    X = messy(mixed_data(3)[0], layout, sparse_backend, duplicates=0)
    block: Any = as_block(X, backend_of(X))
    for own, given in ((block.data, X.data), (block.indices, X.indices)):
        assert sparse_backend.xp.may_share_memory(own, given)


@pytest.mark.parametrize("size", [12, 10**6])  # by a table, and by a sort
@pytest.mark.parametrize("compiled", [True, False])
def test_an_entry_that_is_stored_twice_is_found_in_any_row(
    compiled: bool, size: int, sparse_backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in ("_LOOK_UPS", "_SORTED", "CUDA_CHUNK"):
        monkeypatch.setattr(functions, step, 8)
    monkeypatch.setattr(sparsetools, "AVAILABLE", compiled)
    rng = np.random.default_rng(0)
    rows = [rng.permutation(min(size, 40))[: rng.integers(0, 11)] for _ in range(30)]
    rows[7] = np.arange(11)[::-1]
    backend = backend_of(sparse_backend.array([0.0]))
    for row in [None, *range(30)]:
        found = [np.append(r, r[:1]) if i == row else r for i, r in enumerate(rows)]
        indptr = np.cumsum([0, *map(len, found)])
        for kind in (np.int32, np.int64):
            parts = (sparse_backend.array(p.astype(kind)) for p in (np.concatenate(found), indptr))
            twice = functions.stores_twice(*parts, size, backend)
            assert twice == (row is not None and len(rows[row]) > 0)


@on_stand_in
def test_a_device_sorts_no_entries_of_rows_in_any_order() -> None:
    plain, y = mixed_data(3)
    X = messy(plain, "csr", BACKENDS["cupy"], duplicates=0)
    with cupy._fake.count_syncs() as seen:
        L2CenterClassifier().fit(X, y).predict(X)
    assert "sum_duplicates" not in seen.reasons


@pytest.mark.parametrize("layout", ["csr", "csc"])
@each_model
def test_empty_rows_and_columns_change_nothing(
    model: Any, layout: str, sparse_backend: Any
) -> None:
    plain, y = mixed_data(3)
    plain[[0, 7, 23]] = 0
    plain[:, [0, 6]] = 0
    assert_same_answers(model, getattr(sparse_backend, layout)(plain), plain, y, sparse_backend)


@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize("kind", [L2CenterClassifier, L1CenterClassifier])
@pytest.mark.parametrize("scale", [None, "std", "pooled"])
def test_a_matrix_of_zeros_has_zero_gains_and_centers(
    kind: Any, scale: Any, layout: str, sparse_backend: Any
) -> None:
    X = getattr(sparse_backend, layout)(np.zeros((6, 4)))
    model = kind(scale=scale).fit(X, [0, 1, 2, 0, 1, 2])
    host = sparse_backend.host
    assert host(model.scores_).tolist() == [0, 0, 0, 0]
    assert model.objective_ == 0
    assert not host(model.centers_).any()
    assert host(model.predict(X)).tolist() == [0] * 6


def test_a_data_frame_with_sparse_columns_gives_the_answers_of_dense_data() -> None:
    frame = pd.DataFrame.sparse.from_spmatrix(scipy.sparse.csr_matrix(np.round(NORMAL)))
    frame.columns = list("abcdef")
    model = L2CenterClassifier(k=2).fit(frame, HALVES)
    plain = L2CenterClassifier(k=2).fit(np.round(NORMAL), HALVES)
    np.testing.assert_array_equal(model.support_, plain.support_)
    np.testing.assert_array_equal(model.predict(frame), plain.predict(np.round(NORMAL)))
    assert model.feature_names_in_.tolist() == list("abcdef")


def _in_parts(parts: list, dtype: Any) -> scipy.sparse.csr_matrix:
    """A matrix whose first cell is stored as duplicates."""
    A = scipy.sparse.csr_matrix((6, 2), dtype=dtype)
    A.data = np.asarray([*parts, 1, 1, 1, 1, 1], dtype=dtype)
    n = len(parts)
    A.indices = np.asarray([0] * n + [1, 1, 0, 1, 0], dtype=np.int32)
    A.indptr = np.asarray([0, n, n + 1, n + 2, n + 3, n + 4, n + 5], dtype=np.int32)
    return A


@pytest.mark.parametrize(
    ("parts", "dtype"),
    [([1, 1, 1], bool), ([100, 100, 100], np.int8), ([200, 100], np.uint8), ([5, -2], float)],
)
@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_duplicates_of_a_cell_are_summed_in_every_method_and_type(
    parts: list, dtype: Any, layout: str
) -> None:
    A, labels = _in_parts(parts, dtype), [0, 1, 1, 0, 1, 0]
    if layout == "csc":
        dense, entries = A.toarray(), A.tocoo()
        order = np.argsort(entries.col, kind="stable")
        A = scipy.sparse.csc_matrix((6, 2), dtype=dtype)
        A.data, A.indices = entries.data[order], entries.row[order].astype(np.int32)
        A.indptr = np.searchsorted(entries.col[order], [0, 1, 2]).astype(np.int32)
        np.testing.assert_array_equal(A.toarray(), dense)
    for model in (
        L2CenterClassifier(),
        L1CenterClassifier(),
        MahalanobisCenterClassifier(shrinkage=0.5),
        SparseBernoulliNB(),
        SparseMultinomialNB(),
    ):
        model.fit(COUNTS[:6, :2] + 0.0, labels)
        wanted = A.toarray().astype(float)
        if isinstance(model, SparseMultinomialNB) and (wanted < 0).any():
            continue
        np.testing.assert_allclose(
            model.decision_function(A), model.decision_function(wanted), rtol=1e-12
        )
        if isinstance(model, MahalanobisCenterClassifier):
            np.testing.assert_allclose(model.transform(A), model.transform(wanted), rtol=1e-12)


@pytest.mark.parametrize("weights", [None, RNG.random(300)])
def test_rows_in_the_order_of_their_classes_have_the_same_bits(
    weights: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = scipy.sparse.random(300, 40, 0.3, format="csr", random_state=0)
    X.data[::9] = 0.0
    block, rows = as_block(X, HOST), RNG.integers(0, 7, 300)
    samples = make_samples(rows, 300, HOST, sample_weight=weights).with_exposure(RNG.random(300))
    ctx = replace(Context.of(HOST), chunk=64)
    # Partitions that cut rows.
    cuts = [(0, 3), (3, 1001), (1001, 1002), (1002, X.nnz)]
    monkeypatch.setattr(class_sums, "partitions", lambda *_: cuts)

    def sums() -> RawSums:
        found = RawSums(*(np.zeros((7, 40)) for _ in range(2)), nonzero=np.zeros((7, 40)))
        add_class_sums(block, samples, found, ctx)
        return found

    expected = sums()
    monkeypatch.setattr(class_sums, "_CACHED_SUMS", 0)
    monkeypatch.setattr(class_sums, "_SORTED_ENTRIES", 200)
    taken, take_rows = [], sparsetools.take_rows
    monkeypatch.setattr(sparsetools, "take_rows", lambda *a: (taken.append(a), take_rows(*a)))
    found = sums()
    for name in ("total", "square", "nonzero"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert len(taken) > 10 or not sparsetools.AVAILABLE
