"""What fits on the device cost a GPU: launches, waits and bytes, counted by the stand-in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from conftest import BACKENDS, HERE, cupy
from stand_in import counts, on_stand_in
from strategies import quietly

from gpucenters import (
    GMEBClassifier,
    L1CenterClassifier,
    L2CenterClassifier,
    ShrunkenCentroidClassifier,
    SparseBernoulliNB,
    SparseGaussianNB,
    SparseMultinomialNB,
    SparsePoissonNB,
    devices,
)
from gpucenters.arrays import schedule
from gpucenters.arrays.uploads import _SLOTS

pytestmark = on_stand_in


@pytest.fixture(autouse=True, scope="module")
def _probed() -> None:
    """CUDA is probed before the tests, because the probe waits for the device."""
    devices()


def _calls(model: Any, X: Any, y: np.ndarray) -> tuple[list[Any], Any]:
    """The calls of a fit, and the counts of its launches and waits."""
    with cupy._fake.count_syncs() as seen, cupy._fake.recording() as calls:
        quietly(model.fit, X, y)
    return calls, seen


def _resident(X: Any) -> Any:
    """A matrix of SciPy as one of cupyx."""
    parts = tuple(map(cupy.asarray, (X.data, X.indices, X.indptr)))
    return BACKENDS["cupy"].sparse.csr_matrix(parts, shape=X.shape)


def _wide(n: int, m: int, classes: int, per_row: int = 20) -> tuple[Any, np.ndarray]:
    """Sparse counts on the device."""
    rng = np.random.default_rng(0)
    indices = rng.integers(0, m, n * per_row).astype(np.int32)
    data = np.ones(indices.size, dtype=np.float32)
    X = scipy.sparse.csr_matrix((data, indices, np.arange(n + 1) * per_row), shape=(n, m))
    X.sum_duplicates()
    return _resident(X), np.arange(n) % classes


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize(
    "model",
    [
        *(L2CenterClassifier(), L2CenterClassifier(scale="std"), L2CenterClassifier(k=50)),
        *(SparseBernoulliNB(), SparseMultinomialNB(), SparsePoissonNB(), SparseGaussianNB()),
        ShrunkenCentroidClassifier(),
    ],
    ids=str,
)
def test_no_thread_block_reduces_a_long_row_alone(model: Any, classes: int) -> None:
    X, y = _wide(200, 40_000, classes)
    calls, _ = _calls(model, X, y)
    reductions = [c for c in calls if c.reduction and c.blocks is not None]
    assert reductions
    assert max(c.reduction[1] for c in reductions if c.blocks < 132) <= 2**12


@pytest.mark.parametrize("kind", ["array", "csr"])
@pytest.mark.parametrize("classes", [2, 3, 11])
@pytest.mark.parametrize("weighted", [False, True])
def test_launches_of_l1_do_not_grow_with_the_samples(
    kind: str, classes: int, weighted: bool
) -> None:
    launches = []
    for n in (60, 1500):
        X, y = counts(n, 8, classes)
        weights = 1.0 + np.arange(n) % 3 if weighted else None
        data = getattr(BACKENDS["cupy"], kind)(X - 1)
        with cupy._fake.count_syncs() as seen:
            quietly(L1CenterClassifier().fit, data, y, weights)
        launches.append(seen.launches)
    assert launches[0] == launches[1] <= 240


@pytest.mark.parametrize("classes", [2, 10])
def test_l1_reads_sorted_values_once_for_each_sum(classes: int) -> None:
    X, y = counts(2000, 64, classes)
    calls, _ = _calls(L1CenterClassifier(), cupy.asarray(X), y)
    moved = sum(c.read + c.written for c in calls)
    # 136 in the sort, and 12 for the keys, 16 for the copy that is sorted, 12 for the values.
    assert moved <= 200 * X.size


@pytest.mark.parametrize(("launches", "waits", "model"), [(60, 8, {}), (95, 11, {"k": 50})])
def test_l2_of_wide_sparse_data_keeps_to_its_launches_waits_and_bytes(
    launches: int, waits: int, model: dict[str, Any]
) -> None:
    X, y = _wide(4000, 40_000, 2)
    calls, seen = _calls(L2CenterClassifier(**model), X, y)
    assert seen.launches <= launches and seen.syncs <= waits
    features, entries = 8 * X.shape[1], 8 * X.nnz
    most = (28 if not model else 72) * features + 2 * entries
    assert sum(c.read + c.written for c in calls) <= most


@pytest.mark.parametrize("share", [0.1, 0.9])
def test_products_with_sparse_columns_need_no_order(share: float) -> None:
    X = scipy.sparse.random(300, 12, share, format="csr", random_state=0)
    y = np.arange(300) % 2
    with cupy._fake.recording() as calls:
        there = _resident(X)
        quietly(GMEBClassifier().fit, there, y).predict(there)
    assert not [c for c in calls if c.name in ("check of order", "lexsort", "toarray")]


def test_sums_of_many_classes_need_no_order_of_their_rows() -> None:
    X, y = counts(300, 12, 70)
    calls, _ = _calls(L2CenterClassifier(), cupy.asarray(X), y)
    names = {c.name for c in calls}
    assert "spmm" in names and "check of order" not in names


def test_page_locked_slots_stay_for_chunks_of_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "UPLOAD_BYTES", 15 * 2**10)
    X, y = counts(1001, 300)
    calls, _ = _calls(L2CenterClassifier(device="cuda"), scipy.sparse.csr_matrix(X), y)
    slots = [c.workspace for c in calls if c.name == "alloc_pinned"]
    assert len(slots) == _SLOTS and set(slots) == {2**14}


# Estimates of `bench gpu --model` for a card with 3.35 TB/s, from a small part of the shapes.


@pytest.mark.parametrize(
    ("shape", "row", "most", "part"),
    [
        ("twitter-bigram", "l2 fit", 8e-3, 512),
        ("square-2", "l1 fit", 60e-3, 128),
        ("square-10", "l1 fit", 60e-3, 128),
    ],
)
def test_the_estimate_of_a_fit_on_the_device_is_below_its_goal(
    shape: str, row: str, most: float, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(HERE.parent))
    from bench import gpu, gpu_model
    from bench.shapes import labels

    made, card = gpu.GPU_SHAPES[shape], gpu_model.Card(3.35e12, 3e-6, 1e-5, 5.5e10, 6e10)
    X = made.make(part)
    there = cupy.asarray(X) if isinstance(X, np.ndarray) else _resident(X)
    y = labels(X.shape[0], "int", made.classes)
    model = L2CenterClassifier() if row == "l2 fit" else L1CenterClassifier()
    with gpu_model.parts_of_chunks(part):
        found = gpu_model.estimate(lambda: model.fit(there, y), card, part, made.classes)
    assert found.seconds <= most, found.greatest
