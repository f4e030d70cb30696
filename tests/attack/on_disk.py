"""X in a file of HDF5 gives the bits in memory, for any layout, budget and number of threads."""

from __future__ import annotations

import io
import os
import traceback
from typing import Any

import anndata
import h5py
import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from gpucenters import (
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    ShrunkenCentroidClassifier,
    SparseBernoulliNB,
    SparseGaussianNB,
    SparseMultinomialNB,
    SparsePoissonNB,
)
from gpucenters.arrays import inputs as batches

from .report import Report

PROBLEMS = 3000
MODELS = [
    L2CenterClassifier(2),
    L2CenterClassifier(2, scale="std"),
    MahalanobisCenterClassifier(1, shrinkage="ledoit-wolf"),
    ShrunkenCentroidClassifier(2),
    SparseBernoulliNB(2),
    SparseGaussianNB(2),
    SparseMultinomialNB(2),
    SparsePoissonNB(2),
    SparsePoissonNB(2, scale="dispersion"),
]


def _stored(rng: np.random.Generator, X: np.ndarray, form: str) -> tuple[Any, Any]:
    """(what is on disk, the same in memory)."""
    matrix: Any = X
    options: dict[str, Any] = {}
    if form != "dense":
        matrix = sp.csr_matrix(X)
        if form == "unsorted":
            for left, right in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
                order = rng.permutation(right - left)
                for part in (matrix.indices, matrix.data):
                    part[left:right] = part[left:right][order]
            matrix.has_sorted_indices = matrix.has_canonical_format = False
    stored_shape = X.shape if form == "dense" else (matrix.nnz,)
    if rng.random() < 0.5 and min(stored_shape):
        options["chunks"] = tuple(int(rng.integers(1, size + 1)) for size in stored_shape)
        options["compression"] = "gzip"
    file = h5py.File(io.BytesIO(), "w")
    if form == "dense":
        return file.create_dataset("X", data=matrix, **options), matrix
    group = file.create_group("X")
    group.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0"})
    group.attrs["shape"] = matrix.shape
    for name in ("data", "indices"):
        group.create_dataset(name, data=getattr(matrix, name), **options)
    group.create_dataset("indptr", data=matrix.indptr)
    return anndata.io.sparse_dataset(group), matrix


def attack(rng: np.random.Generator, report: Report) -> None:
    n, m, K = int(rng.integers(8, 400)), int(rng.integers(2, 60)), int(rng.integers(2, 5))
    y = rng.permutation(np.arange(n) % K)
    X = rng.random((n, m)) * (rng.random((n, m)) < rng.random())
    X[np.arange(n), rng.integers(0, m, n)] += 1 + y
    X = (9 * X).astype(str(rng.choice(["f2", "f4", "f8", "u1", "i4"])))
    form = str(rng.choice(["dense", "csr", "unsorted"]))
    if form != "dense" and X.dtype == np.float16:
        X = X.astype(np.float32)
    stored, matrix = _stored(rng, X, form)
    model: Any = clone(MODELS[rng.integers(len(MODELS))])
    weight = rng.integers(0, 3, n) + (np.arange(n) < 4 * K) if rng.random() < 0.3 else None
    if not isinstance(model, MahalanobisCenterClassifier):
        model.set_params(memory_budget=int(10 ** rng.uniform(0, 6)))
    os.environ["OMP_NUM_THREADS"] = str(rng.integers(1, 5))
    text = f"# {model!r}, {form}, {X.dtype}, {X.shape}, weights {weight is not None}"
    batches.LEAST_BYTES = int(10 ** rng.uniform(2, 5))
    report.count(form)
    try:
        found = clone(model).fit(stored, y, sample_weight=weight)
        want = clone(model).fit(matrix, y, sample_weight=weight)
        np.testing.assert_array_equal(found.centers_, want.centers_)
        np.testing.assert_array_equal(found.objective_, want.objective_)
        np.testing.assert_array_equal(found.predict(stored), want.predict(matrix))
        decisions = found.decision_function(stored), want.decision_function(matrix)
        if form == "unsorted":  # products in memory sum the entries in the order they have
            np.testing.assert_allclose(*decisions, rtol=1e-9, atol=1e-9)
        else:
            np.testing.assert_array_equal(*decisions)
    except Exception as error:
        kind = type(error).__name__
        report.fail(f"{form}: {kind}", text, traceback.format_exc(limit=-2))
