"""Arrays that cannot be worked on are refused at the door, with what to pass instead."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import array_api_compat.numpy
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.base import clone
from small_data import COUNTS, HALVES

from gpucenters import (
    GMEBClassifier,
    L1CenterClassifier,
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    SparseBernoulliNB,
    SparseMultinomialNB,
    odds_ratio,
    permutation_gains,
    sparsity_path,
    thresholded_multinomial,
)
from gpucenters.solvers import bernoulli_nb, l1_centers, l2_centers, multinomial_nb, select

MODELS = [
    *(L1CenterClassifier(), L2CenterClassifier(), MahalanobisCenterClassifier()),
    *(SparseBernoulliNB(), SparseMultinomialNB()),
]
FUNCTIONS = [
    *(odds_ratio, thresholded_multinomial),
    *(bernoulli_nb, l1_centers, l2_centers, multinomial_nb),
]


def _module(name: str) -> Any:
    """A module, or the test is skipped: `make torch` installs those that are not of the suite."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip(name, exc_type=ImportError)
        return importlib.import_module(name)


class Immutable:
    """An array of the standard that has no assignment, as cubed's."""

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.shape, self.dtype, self.ndim = values, values.shape, values.dtype, 2

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        return array_api_compat.numpy


class Computed(Immutable):
    """With a method that computes it."""

    def compute(self) -> np.ndarray:
        return self.values


class OfUnknownSize(Immutable):
    """An array whose size is not known before it is computed, as ndonnx may have."""

    def __init__(self, values: np.ndarray) -> None:
        super().__init__(values)
        self.shape = (None, *values.shape[1:])

    def __setitem__(self, key: Any, value: Any) -> None:
        raise AssertionError


class OnDisk:
    """A matrix that must be read first, as the sparse data sets of anndata."""

    def __init__(self, values: np.ndarray) -> None:
        self.shape = values.shape

    def to_memory(self) -> Any:
        raise AssertionError


def _dask_frame(a: np.ndarray) -> Any:
    frame = pd.Series(a) if a.ndim == 1 else pd.DataFrame(a, columns=[f"c{i}" for i in range(6)])
    return _module("dask.dataframe").from_pandas(frame, npartitions=2)


def _tensor(a: np.ndarray) -> Any:
    return _module("torch").asarray(a.astype(np.float64))


# How each kind is made, and what the message names. The first kinds need no other library.
KINDS: dict[str, tuple[Callable[[np.ndarray], Any], str]] = {
    "immutable": (Immutable, r"Immutable.*numpy\.asarray\({name}\)"),
    "computed": (Computed, r"Computed.*{name}\.compute\(\)"),
    "of unknown size": (OfUnknownSize, r"OfUnknownSize.*numpy\.asarray\({name}\)"),
    "on disk": (OnDisk, r"OnDisk.*{name}\.to_memory\(\)"),
    "polars lazy": (lambda a: pl.DataFrame(a).lazy(), r"polars\.LazyFrame.*{name}\.collect\(\)"),
    "jax": (lambda a: _module("jax.numpy").asarray(a), r"jax\.Array.*numpy\.asarray\({name}\)"),
    "dask array": (lambda a: _module("dask.array").from_array(a), r"Dask.*{name}\.compute\(\)"),
    "dask frame": (_dask_frame, r"Dask.*{name}\.compute\(\)"),
    "pydata sparse": (lambda a: _module("sparse").COO(a), r"sparse\.COO.*{name}\.to_scipy_sparse"),
    "torch grad": (lambda a: _tensor(a).requires_grad_(), r"requires grad.*{name}\.detach\(\)"),
    "torch sparse": (lambda a: _tensor(a).to_sparse(), r"layout torch\.sparse_coo.*SciPy CSR"),
}
each_kind = pytest.mark.parametrize("kind", list(KINDS))


def _refused(kind: str, name: str, values: np.ndarray, calls: list[Callable[[Any], Any]]) -> None:
    make, message = KINDS[kind]
    given = make(values)
    for call in calls:
        with pytest.raises(TypeError, match=message.replace("{name}", name)):
            call(given)


def _models() -> list[Any]:
    return [clone(model).fit(COUNTS, HALVES) for model in MODELS]


@each_kind
def test_x_of_a_kind_that_cannot_be_worked_on_is_refused_with_what_to_pass(kind: str) -> None:
    calls: list[Callable[[Any], Any]] = []
    for model in _models():
        names = ["predict", "decision_function", "predict_proba", "transform", "inverse_transform"]
        calls += [getattr(model, name) for name in names if hasattr(model, name)]
        calls += [
            lambda X, model=model: clone(model).fit(X, HALVES),
            lambda X, model=model: model.score(X, HALVES),
        ]
        if hasattr(model, "statistics"):
            calls += [
                lambda X, model=model: model.statistics(X, HALVES),
                lambda X, model=model: model.partial_fit(X, HALVES),
                lambda X, model=model: clone(model).partial_fit(X, HALVES, classes=[0, 1]),
            ]
    calls += [lambda X, function=function: function(X, HALVES) for function in FUNCTIONS]
    _refused(kind, "X", COUNTS, calls)


@each_kind
def test_y_and_weights_of_such_a_kind_are_refused_too(kind: str) -> None:
    of_y: list[Callable[[Any], Any]] = []
    of_weights: list[Callable[[Any], Any]] = []
    for model in _models():
        calls = [clone(model).fit, model.score]
        if hasattr(model, "statistics"):
            calls += [model.partial_fit, model.statistics]
        for call in calls:
            of_y.append(lambda y, call=call: call(COUNTS, y))
            of_weights.append(lambda s, call=call: call(COUNTS, HALVES, sample_weight=s))
    for function in FUNCTIONS:
        of_y.append(lambda y, function=function: function(COUNTS, y))
    for function in FUNCTIONS[2:]:
        of_weights.append(lambda s, f=function: f(COUNTS, HALVES, sample_weight=s))
    _refused(kind, "y", HALVES, of_y)
    _refused(kind, "sample_weight", np.ones(40), of_weights)
    model = L2CenterClassifier()
    _refused(kind, "classes", HALVES, [lambda c: model.partial_fit(COUNTS, HALVES, classes=c)])
    _refused(kind, "gain", np.ones(6), [select])


def test_dask_data_are_told_of_the_fit_in_partitions_and_statistics_merge() -> None:
    X = _module("dask.array").from_array(COUNTS, chunks=(10, 6))
    y = _module("dask.array").from_array(HALVES, chunks=10)
    model = L2CenterClassifier(k=2)
    with pytest.raises(TypeError, match=r"gpucenters\.dask\.fit\("):
        model.fit(X, HALVES)
    with pytest.raises(TypeError, match=r"pass y\.compute\(\)\.$"):
        model.fit(COUNTS, y)
    parts = []
    for rows in (slice(start, start + 10) for start in range(0, 40, 10)):
        parts.append(model.statistics(X[rows].compute(), HALVES[rows], classes=[0, 1]))
    for part in parts[1:]:
        parts[0].merge(part)
    expected = L2CenterClassifier(k=2).fit(COUNTS, HALVES)
    assert model.fit_statistics(parts[0]).support_.tolist() == expected.support_.tolist()


def test_data_on_disk_are_refused_where_all_of_them_are_needed(tmp_path: Path) -> None:
    anndata, h5py = _module("anndata"), _module("h5py")
    with h5py.File(tmp_path / "cells.h5", "w") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        anndata.io.write_elem(file, "sparse", scipy.sparse.csr_matrix(COUNTS))
        anndata.io.write_elem(file, "dense", COUNTS)
        backed = anndata.io.sparse_dataset(file["sparse"])
        for X in (backed, file["dense"]):
            calls: list[Callable[[Any], Any]] = [
                L1CenterClassifier().fit,
                GMEBClassifier().fit,
                lambda X, _: L2CenterClassifier().fit(COUNTS, X),
                lambda X, y: permutation_gains(L2CenterClassifier(), X, y),
                lambda X, y: sparsity_path(L2CenterClassifier(), X, y),
                *FUNCTIONS,
            ]
            for call in calls:
                with pytest.raises(TypeError, match=r"in memory, and .* is on disk: .*to_memory\("):
                    call(X, HALVES)
        with pytest.raises(TypeError, match=r"anndata\.AnnData.*pass X\.X"):
            L2CenterClassifier().fit(anndata.AnnData(COUNTS), HALVES)


@pytest.mark.parametrize("value", [2**24 + 1, 1 / 3])
def test_numbers_of_the_host_keep_their_precision(value: float, backend: Any) -> None:
    # float32, which is torch's type for lists of numbers, has neither value.
    X, weights = backend.array(COUNTS * 1.0), np.where(HALVES, value, 1.0)
    for model in (SparseBernoulliNB(), SparseMultinomialNB()):
        found = clone(model).fit(X, HALVES, sample_weight=weights)
        expected = clone(model).fit(COUNTS, HALVES, sample_weight=weights)
        for name in ("class_count_", "class_log_prior_", "coef_", "intercept_"):
            here = backend.host(getattr(found, name))
            assert here.dtype == np.float64
            np.testing.assert_allclose(here, getattr(expected, name), rtol=1e-12)


def test_predictions_share_no_memory_with_the_model(backend: Any) -> None:
    # A read-only array of NumPy that another library takes over gives a warning, an error here.
    for model in MODELS:
        found = clone(model).fit(backend.array(COUNTS * 1.0), HALVES)
        predicted = found.predict(backend.array(COUNTS * 1.0))
        before = found.classes_.copy()
        predicted[...] = 7
        np.testing.assert_array_equal(found.classes_, before)


def test_fit_and_predict_give_no_warning_of_the_array_library(backend: Any) -> None:
    # torch warns when its devices are listed, which the filter of the suite would turn into an
    # error that the library itself catches.
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for model in MODELS:
            clone(model).fit(backend.array(COUNTS * 1.0), HALVES).predict(
                backend.array(COUNTS * 1.0)
            )
    assert [str(warning.message) for warning in seen] == []
