"""X in files of HDF5 and Zarr, as of a backed AnnData: read in parts, to the bits in memory."""

from __future__ import annotations

import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import anndata
import h5py
import numpy as np
import pytest
import scipy.sparse
from every_model import others
from sklearn.base import clone

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    ShrunkenCentroidClassifier,
    SparseBernoulliNB,
    SparseGaussianNB,
    SparseMultinomialNB,
    SparsePoissonNB,
)
from gpucenters.arrays import inputs as batches
from gpucenters.multiclass import OneVsRestClassifier

BUDGET = "40kB"  # a few rows of a batch
MODELS = [
    L2CenterClassifier(k=5),
    L2CenterClassifier(k=5, scale="pooled"),
    MahalanobisCenterClassifier(k=2, shrinkage="ledoit-wolf", memory_budget="1MB"),
    SparseBernoulliNB(k=5),
    SparseMultinomialNB(k=5),
    SparsePoissonNB(k=5),
    SparseGaussianNB(k=5),
    ShrunkenCentroidClassifier(k=5),
]
MODELS += others(MODELS, "partial_fit", k=5)
_rng = np.random.default_rng(3)
X = _rng.random((700, 30), dtype=np.float32) * (_rng.random((700, 30)) < 0.3)
Y = np.array(["a", "b", "c"])[_rng.integers(0, 3, 700)]


@pytest.fixture(autouse=True)
def _many_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "LEAST_BYTES", 1000)


def on_disk(path: Path, matrix: Any, *, zarr: bool = False, **options: Any) -> Any:
    """What a backed AnnData gives as X."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if zarr:
            file = pytest.importorskip("zarr").open_group(path, mode="w")
        else:
            file = h5py.File(path, "w")
        anndata.io.write_elem(file, "X", matrix, dataset_kwargs=options)
        is_sparse = scipy.sparse.issparse(matrix)
        return anndata.io.sparse_dataset(file["X"]) if is_sparse else file["X"]


def assert_same(model: Any, stored: Any, matrix: Any) -> None:
    found, expected = clone(model).fit(stored, Y), clone(model).fit(matrix, Y)
    for name in ("centers_", "scores_", "objective_"):
        if hasattr(expected, name):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    for method in ("decision_function", "transform"):
        one, other = getattr(found, method)(stored), getattr(expected, method)(matrix)
        assert type(one) is type(other) and one.dtype == other.dtype.newbyteorder("=")
        one, other = (x.toarray() if scipy.sparse.issparse(x) else x for x in (one, other))
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("form", ["csr", "dense"])
def test_the_bits_are_those_in_memory(model: Any, form: str, tmp_path: Path) -> None:
    matrix = scipy.sparse.csr_matrix(X) if form == "csr" else X
    stored = on_disk(tmp_path / "cells.h5", matrix)
    if model.memory_budget is None:
        model = clone(model).set_params(memory_budget=BUDGET)
    assert_same(model, stored, matrix)


@pytest.mark.parametrize("threads", ["1", "4"])
def test_bits_depend_on_no_budget_number_of_threads_or_chunks(
    threads: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    matrix = scipy.sparse.csr_matrix(X)
    for number, (values, options) in enumerate(
        [(X, {}), (X, {"chunks": (17, 7), "compression": "gzip"}), (matrix, {"chunks": (101,)})]
    ):
        stored = on_disk(tmp_path / f"{number}.h5", values, **options)
        for budget in (1, "4kB", None):
            model = SparseGaussianNB(k=4, memory_budget=budget)
            assert_same(model, stored, values)


def test_zarr_and_other_types(tmp_path: Path) -> None:
    whole = np.rint(9 * X)
    model = L2CenterClassifier(k=5, memory_budget=BUDGET)
    for dtype in (np.uint8, ">f4", np.float64, bool):
        forms = (np.asarray,) if dtype == ">f4" else (np.asarray, scipy.sparse.csr_matrix)
        for number, form in enumerate(forms):
            matrix = form(whole.astype(dtype))
            assert_same(model, on_disk(tmp_path / f"{dtype}{number}", matrix), matrix)
    for number, matrix in enumerate((X, scipy.sparse.csr_matrix(X))):
        assert_same(model, on_disk(tmp_path / f"{number}.zarr", matrix, zarr=True), matrix)


def test_rows_that_are_not_sorted(tmp_path: Path) -> None:
    matrix = scipy.sparse.csr_matrix(X)
    for row in range(len(X)):
        part = slice(*matrix.indptr[row : row + 2])
        order = _rng.permutation(part.stop - part.start)
        matrix.indices[part], matrix.data[part] = (
            matrix.indices[part][order],
            matrix.data[part][order],
        )
    matrix.has_sorted_indices = False
    stored = on_disk(tmp_path / "cells.h5", matrix)
    model = SparseGaussianNB(k=4, memory_budget=BUDGET)
    found, expected = clone(model).fit(stored, Y), clone(model).fit(matrix, Y)
    np.testing.assert_array_equal(found.scores_, expected.scores_)
    np.testing.assert_array_equal(found.predict(stored), expected.predict(matrix))


def test_batches_statistics_and_decompositions(tmp_path: Path) -> None:
    stored = on_disk(tmp_path / "cells.h5", scipy.sparse.csr_matrix(X))
    model = SparseMultinomialNB(k=5, memory_budget=BUDGET)
    expected = clone(model).fit(X, Y)
    statistics = model.statistics(stored, Y)
    for found in (
        clone(model).fit_statistics(statistics),
        clone(model).partial_fit(stored, Y, classes=["a", "b", "c"]),
    ):
        np.testing.assert_allclose(found.scores_, expected.scores_, rtol=1e-12)
    one = OneVsRestClassifier(model)
    np.testing.assert_array_equal(one.fit(stored, Y).predict(stored), one.fit(X, Y).predict(X))


def test_a_model_that_needs_all_of_x_predicts_in_parts(tmp_path: Path) -> None:
    dense = _rng.random(X.shape)
    stored = on_disk(tmp_path / "cells.h5", dense)
    model = L1CenterClassifier(k=5).fit(dense, Y)
    np.testing.assert_array_equal(model.predict(stored), model.predict(dense))


def test_what_is_larger_than_the_budget_is_never_held(tmp_path: Path) -> None:
    y = Y[_rng.integers(0, len(Y), 20_000)]
    wide = np.tile(X, (30, 7))[:20_000]  # 17 MB
    for number, matrix in enumerate((wide, scipy.sparse.csr_matrix(wide))):
        stored = on_disk(tmp_path / f"{number}.h5", matrix)
        tracemalloc.start()
        try:
            model = L2CenterClassifier(k=5, memory_budget="1MB").fit(stored, y)
            model.predict(stored)
            assert tracemalloc.get_traced_memory()[1] < 10_000_000
        finally:
            tracemalloc.stop()


DAMAGE: dict[str, tuple[dict[str, Any], str]] = {
    "outside": ({"indices": 99}, r"entry 3 is 99, outside 0\.\.29"),
    "negative": ({"indices": -1}, r"entry 3 is -1, outside"),
    "falls": ({"indptr": 0}, "it falls after position"),
    "infinite": ({"data": np.inf}, "infinity in feature"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damage_on_disk_is_found(case: str, tmp_path: Path) -> None:
    changes, what = DAMAGE[case]
    stored = on_disk(tmp_path / "cells.h5", scipy.sparse.csr_matrix(X))
    for part, value in changes.items():
        stored.group[part][3] = value
    with pytest.raises(ValueError, match=what):
        L2CenterClassifier().fit(stored, Y)


def test_what_cannot_be_read_by_rows_is_refused(tmp_path: Path) -> None:
    columns = on_disk(tmp_path / "csc.h5", scipy.sparse.csc_matrix(X))
    with pytest.raises(TypeError, match=r"stored by column.*X\.to_memory\(\)"):
        L2CenterClassifier().fit(columns, Y)
    twice = on_disk(tmp_path / "twice.h5", scipy.sparse.csr_matrix(X))
    twice.group["indices"][1] = twice.group["indices"][0]
    with pytest.raises(TypeError, match=r"stores entries twice.*X\.to_memory\(\)"):
        L2CenterClassifier().fit(twice, Y)
    text = on_disk(tmp_path / "text.h5", np.array([["a", "b"]], dtype=object))
    with pytest.raises(TypeError, match="real numbers"):
        L2CenterClassifier().fit(text, Y[:1])


@pytest.mark.parametrize("form", ["csr", "dense"])
def test_parts_go_up_to_a_device(form: str, tmp_path: Path) -> None:
    whole = np.rint(9 * X)
    matrix = scipy.sparse.csr_matrix(whole) if form == "csr" else whole
    stored = on_disk(tmp_path / "cells.h5", matrix)
    for model in (L2CenterClassifier(k=5), SparseMultinomialNB(k=5)):
        model = clone(model).set_params(device="cuda", memory_budget=BUDGET)
        found, expected = clone(model).fit(stored, Y), clone(model).fit(matrix, Y)
        np.testing.assert_array_equal(found.support_, expected.support_)
        np.testing.assert_array_equal(found.predict(stored), expected.predict(matrix))
