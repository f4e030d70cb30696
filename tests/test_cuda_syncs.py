"""The number of times that the host waits for the device in a fit or a prediction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import BACKENDS, cupy
from stand_in import counts, on_stand_in
from strategies import quietly

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    ShrunkenCentroidClassifier,
    SparseBernoulliNB,
    SparseGaussianNB,
    SparsePoissonNB,
    devices,
)
from gpucenters.arrays import schedule


@pytest.fixture(autouse=True, scope="module")
def _probed() -> None:
    """CUDA is probed before the tests, because the probe waits for the device."""
    devices()


def _syncs(model: Any, X: Any, y: np.ndarray) -> tuple[int, list[str]]:
    with cupy._fake.count_syncs() as seen:
        quietly(model.fit, X, y)
    return seen.syncs, seen.reasons


@on_stand_in
@pytest.mark.parametrize("classes", [2, 3, 11])
@pytest.mark.parametrize("kind", ["array", "csr", "csc"])
@pytest.mark.parametrize(
    "model",
    [
        *(L2CenterClassifier(k=5), L2CenterClassifier(k=5, scale="pooled")),
        *(SparseBernoulliNB(k=5), SparsePoissonNB(k=5), SparseGaussianNB(k=5)),
        ShrunkenCentroidClassifier(k=5),
    ],
    ids=str,
)
def test_a_fit_from_sums_on_the_device_waits_a_fixed_number_of_times(
    classes: int, kind: str, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend, seen = BACKENDS["cupy"], {}
    for n, m, chunk in ((60, 20, 64), (700, 90, 256), (700, 90, 64)):
        monkeypatch.setattr(schedule, "CUDA_CHUNK", chunk)
        X, y = counts(n, m, classes)
        seen[n, m, chunk] = _syncs(model, getattr(backend, kind)(X), y)
    assert len({count for count, _ in seen.values()}) == 1, seen
    assert all(count <= 15 for count, _ in seen.values()), seen


@on_stand_in
def test_an_l2_fit_of_cancelling_sums_waits_a_fixed_number_of_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = counts(700, 30)
    there, seen = BACKENDS["cupy"].csr(X + 1000), []
    for chunk in (2**25, 1000, 100):
        monkeypatch.setattr(schedule, "CUDA_CHUNK", chunk)
        seen.append(_syncs(L2CenterClassifier(k=3), there, y))
    one, *many = (count for count, _ in seen)
    # Chunks add two waits: the row pointers are fetched, and the first chunk is inspected.
    assert one + 2 == many[0] == many[1], seen


@on_stand_in
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weighted", [False, True])
def test_an_l1_fit_of_dense_data_on_the_device_waits_a_fixed_number_of_times(
    classes: int, dtype: str, weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = {}
    for n, m, chunk in ((60, 20, 2**25), (60, 90, 64), (700, 120, 256)):
        monkeypatch.setattr(schedule, "CUDA_CHUNK", chunk)
        X, y = counts(n, m, classes)
        weights = 1.0 + np.arange(n) % 3 if weighted else None
        with cupy._fake.count_syncs() as counter:
            quietly(L1CenterClassifier(k=3).fit, cupy.asarray(X, dtype=dtype), y, weights)
        seen[n, m, chunk] = counter.syncs, counter.reasons
    assert len({count for count, _ in seen.values()}) == 1, seen
    assert all(count <= 10 for count, _ in seen.values()), seen


@on_stand_in
def test_predictions_on_the_device_wait_a_fixed_number_of_times() -> None:
    X, y = counts(300, 30, 3)
    for kind in ("array", "csr"):
        data = getattr(BACKENDS["cupy"], kind)(X)
        for model in (L2CenterClassifier(k=4), L1CenterClassifier(k=1)):
            quietly(model.fit, data, y).predict(data)
            waits = []
            for rows in (10, 300):
                some = data[:rows]
                with cupy._fake.count_syncs() as seen:
                    model.predict(some)
                waits.append(seen.syncs)
            assert waits[0] == waits[1] <= 12, (kind, model, waits)


@on_stand_in
@pytest.mark.parametrize(
    "model",
    [
        *(L1CenterClassifier(k=3), L2CenterClassifier(k=3, scale="std")),
        *(ShrunkenCentroidClassifier(k=3), SparseGaussianNB(k=3)),
        *(SparseBernoulliNB(k=3), SparsePoissonNB(k=3)),
    ],
    ids=str,
)
def test_no_step_on_the_device_takes_a_call_for_each_class(model: Any) -> None:
    for kind in ("array", "csr"):
        seen = []
        for classes in (70, 280):
            rng = np.random.default_rng(0)
            # Of many sizes, and a column whose sums cancel.
            y = np.concatenate([np.arange(classes), rng.integers(0, classes, 600 - classes)])
            X = rng.standard_normal((600, 5))
            X[:, 0] += 1e6
            data = getattr(BACKENDS["cupy"], kind)(abs(X))
            with cupy._fake.count_syncs() as fit:
                fitted = quietly(model.fit, data, y)
            with cupy._fake.count_syncs() as predict:
                if not isinstance(model, L2CenterClassifier):  # whose close scores are formed anew
                    fitted.decision_function(data)
            seen.append((fit.syncs, fit.launches, predict.syncs, predict.launches))
        assert all(many <= few for few, many in zip(*seen, strict=True)), (kind, seen)
