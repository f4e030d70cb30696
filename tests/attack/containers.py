"""Every container and type gives the model of the same values as float64 in C order."""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from answers import FORMATS, messy
from conftest import BACKENDS
from sklearn.base import clone

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    SparseBernoulliNB,
    SparseMultinomialNB,
)

from .report import Report

PROBLEMS = 3000
TYPES = [*"efdgbhilBHIL?O", ">f4", ">f8", ">i2", ">i4", ">u8"]
INDICES = ["i1", "u1", "i2", "u4", "i4", "i8", "u8", ">i4", ">i8"]
MODELS = [
    L2CenterClassifier(2),
    L2CenterClassifier(2, scale="std", priors="empirical"),
    L2CenterClassifier(0.5, scale="pooled"),
    L1CenterClassifier(2),
    L1CenterClassifier(2, scale="std"),
    SparseBernoulliNB(2),
    SparseMultinomialNB(2),
    MahalanobisCenterClassifier(2, shrinkage=0.2),
    MahalanobisCenterClassifier(1, shrinkage="ledoit-wolf"),
]


def _strided(X: np.ndarray) -> np.ndarray:
    return np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]


def _read_only(X: np.ndarray) -> np.ndarray:
    X = X.copy()
    X.flags.writeable = False
    return X


def _mapped(X: np.ndarray) -> np.ndarray:
    if X.dtype.kind == "O":
        return X
    with tempfile.NamedTemporaryFile(suffix=".npy") as file:
        np.save(file, X)
        file.flush()
        return np.load(file.name, mmap_mode="r")


DENSE: dict[str, Callable[[np.ndarray], Any]] = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "reversed": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "strided": _strided,
    "read-only": _read_only,
    "memory map": _mapped,
    "Fortran map": lambda X: _mapped(np.asfortranarray(X)),
    "list": lambda X: X.tolist(),
    "frame": pd.DataFrame,
    "frame of columns": lambda X: pd.DataFrame({f"f{i}": list(X[:, i]) for i in range(X.shape[1])}),
}


def _compressed(rng: np.random.Generator, X: np.ndarray) -> tuple[Any, str]:
    """CSR or CSC with unsorted indices, also duplicates and zeros, of any types and strides."""
    layout, index = str(rng.choice(["csr", "csc"])), str(rng.choice(INDICES))
    kind, form = str(rng.choice(["f4", "f8", ">f8", "i4", "O", "f2"])), rng.integers(4)
    A = (
        messy(X, layout, BACKENDS["numpy"], duplicates=rng.choice([0, 0.4]))
        if rng.random() < 0.7
        else getattr(sp, f"{layout}_array")(X)
    )
    index = "i4" if A.nnz > np.iinfo(index).max else index
    parts = [A.data.astype(kind), A.indices.astype(index), A.indptr.astype(index)]
    if form == 1:
        parts = [np.repeat(p, 2)[::2] for p in parts]
    elif form == 2:
        parts[:2] = [np.concatenate([p, p[:2]]) for p in parts[:2]]  # beyond the last row
    elif form == 3:
        parts = [_mapped(p) for p in parts]
    A = getattr(sp, f"{layout}_{rng.choice(['matrix', 'array'])}")(X.shape)
    A.data, A.indices, A.indptr = parts
    A.has_sorted_indices = A.has_canonical_format = bool(rng.random() < 0.5)  # true or not
    return A, f"{layout} of {kind}, indices {index}, form {form}"


def attack(rng: np.random.Generator, report: Report) -> None:
    n, m, K = int(rng.integers(12, 30)), int(rng.integers(2, 6)), int(rng.integers(2, 4))
    y = rng.permutation(np.arange(n) % K)
    X = rng.integers(0, 5, (n, m)).astype(np.float64) * (rng.random((n, m)) < 0.7)
    X[:, 0] += y
    kind = str(rng.choice(TYPES))
    if kind == "?":
        X = np.minimum(X, 1)
    if rng.random() < 0.4:
        name = str(rng.choice(list(DENSE)))
        given = DENSE[name](X.astype(kind))
        name = f"dense {name} of {kind}"
    elif rng.random() < 0.4:
        form, kind = str(rng.choice(FORMATS)), "f8" if kind in ("e", "O", "g") else kind
        name = f"{form}_{rng.choice(['matrix', 'array'])}"
        native = X.astype(np.dtype(kind).newbyteorder("="))
        given, name = getattr(sp, name)(native), f"{name} of {kind}"
        if form == "dia" and rng.random() < 0.5:
            given.offsets = given.offsets.astype("i8")
    else:
        given, name = _compressed(rng, X)
    model = MODELS[rng.integers(len(MODELS))]
    call = str(rng.choice(["fit", "partial_fit", "predict"]))
    if call == "partial_fit" and isinstance(model, L1CenterClassifier):
        call = "fit"
    text = f"# {model!r}.{call}, {name}\nX, y = np.array({X.tolist()}), np.array({y.tolist()})"
    want = clone(model).fit(X, y)
    report.count("problems")
    try:
        if call == "fit":
            found = clone(model).fit(given, y)
        elif call == "partial_fit":
            found = clone(model).partial_fit(given, y, classes=np.arange(K))
        else:
            found = want
        got = [found.predict(given), found.transform(given), found.decision_function(given)]
    except Exception as error:
        report.fail(
            f"{type(error).__name__}: {str(error)[:60]}", text, traceback.format_exc(limit=-3)
        )
        return
    if sp.issparse(got[1]):
        got[1] = got[1].toarray()
    decision = want.decision_function(X)
    close = {"rtol": 1e-9, "atol": 1e-9}
    if found.ranking_.tolist() != want.ranking_.tolist():
        report.fail("another ranking", text)
    elif not np.allclose(found.scores_, want.scores_, **close):
        report.fail("other scores", text)
    elif abs(found.objective_ - want.objective_) > 1e-10 * abs(want.objective_):
        report.fail("another objective", text)
    elif not np.allclose(got[2], decision, **close):
        report.fail("other decisions", text)
    elif not np.allclose(np.asarray(got[1], dtype=np.float64), want.transform(X), **close):
        report.fail("another transform", text)
    two = np.sort(decision if decision.ndim == 2 else np.stack([decision, 0 * decision], 1), 1)
    clear = two[:, -1] - two[:, -2] > 1e-9
    if not np.array_equal(got[0][clear], want.predict(X)[clear]):
        report.fail("other predictions", text)
