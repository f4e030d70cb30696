"""Host data on their way to the device: chunks, streams and page-locked memory."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from conftest import cupy
from stand_in import counts, on_stand_in
from strategies import quietly

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
)
from gpucenters.arrays import schedule, uploads
from gpucenters.arrays.uploads import _SLOTS, Upload


def _containers(X: np.ndarray) -> list[Any]:
    dense = [X, np.asfortranarray(X)] + [X.astype(t) for t in (np.int64, np.float16, ">f8", "g")]
    sparse = []
    for kind in (scipy.sparse.csr_array, scipy.sparse.csc_matrix):
        for dtype in (np.float32, np.int8, ">f4", ">i4", ">f8", "g"):
            matrix = kind(X)
            matrix.data = matrix.data.astype(dtype)  # the constructor would convert it
            sparse.append(matrix)
        # Each entry is stored as two duplicates.
        whole, parts = kind(X), kind(X.shape, dtype=np.float32)
        parts.data = np.repeat(whole.data / 2, 2).astype(">f4")
        parts.indices, parts.indptr = np.repeat(whole.indices, 2), 2 * whole.indptr
        sparse.append(parts)
    return dense + sparse


@pytest.mark.parametrize("upload", [2**23, 700])
def test_host_data_uploaded_in_chunks_give_the_model_of_the_host(
    upload: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "UPLOAD_BYTES", upload)
    X, y = counts(120, 40, 3)
    for model in (
        L2CenterClassifier(k=5),
        L2CenterClassifier(k=5, scale="std"),
        L1CenterClassifier(k=2),
    ):
        expected = quietly(type(model)(**model.get_params()).fit, X, y)
        for data in _containers(X):
            found = quietly(model.set_params(device="cuda").fit, data, y)
            assert found.support_.tolist() == expected.support_.tolist()
            scores = found.scores_.get()
            if model.get_params().get("scale") is None:
                np.testing.assert_allclose(scores, expected.scores_, rtol=1e-14)
            np.testing.assert_array_equal(found.predict(data), expected.predict(X))


def _check_order(actions: list[Any]) -> None:
    """Check on the recorded actions of two streams what each has waited for at each step."""
    recorded: dict[str, tuple[str, int]] = {}
    waited: dict[str, int] = {}  # the last action of the other stream waited for
    synchronized: set[str] = set()
    uploads: list[int] = []
    marks: list[str] = []  # the event behind each upload
    for at, (what, stream, about) in enumerate(actions):
        if what == "record":
            recorded[str(about)] = (stream, at)
            if stream != "null":
                marks.append(str(about))
        elif what == "wait":
            other, upto = recorded[str(about)]
            assert other != stream
            waited[stream] = max(waited.get(stream, -1), upto)
        elif what == "synchronize":
            synchronized.add(f"{about}@{len(uploads)}")
        elif what == "upload" and stream != "null":
            uploads.append(at)
            if len(uploads) > _SLOTS:
                # The work on the slot, which ended before the last upload, is waited for.
                assert waited[stream] > uploads[-3]
                busy = [i for i in range(uploads[-3], uploads[-2]) if actions[i].what == "launch"]
                assert all(i < waited[stream] for i in busy)
                # The page-locked half is free, and the work on the last chunk is not waited for.
                assert f"{marks[-_SLOTS]}@{len(uploads) - 1}" in synchronized
                late = [i for i in range(uploads[-2], at) if actions[i].what == "launch"]
                assert not late or waited[stream] < late[-1]
        elif what == "launch" and uploads:
            assert waited["null"] > uploads[-1]
    assert len(uploads) >= 8


@on_stand_in
@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array, scipy.sparse.csc_array])
def test_an_upload_waits_for_its_slot_and_not_for_the_last_chunk(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "UPLOAD_BYTES", 3000)
    X, y = counts(400, 50)
    cupy._fake.reset()
    with cupy._fake.count_syncs() as seen:
        L2CenterClassifier(device="cuda").fit(kind(X), y)
    assert seen.pinned_uploads >= 8
    _check_order(cupy._fake.actions)
    # Only labels and a few numbers are uploaded from pageable memory, and no chunk of X.
    assert seen.uploaded_bytes < 6 * X.nbytes


@on_stand_in
def test_without_page_locked_memory_chunks_are_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "LEAST_CUDA_CHUNK", 1024)
    monkeypatch.setattr(schedule, "CUDA_CHUNK", 2**17)
    import cupyx

    empty = cupyx.empty_pinned

    status = 2, "cudaErrorMemoryAllocation", "out of memory"

    def scarce(shape: int, dtype: Any) -> np.ndarray:
        if shape > 100_000:
            raise cupy.cuda.runtime.CUDARuntimeError(*status)
        return empty(shape, dtype)

    monkeypatch.setattr(cupyx, "empty_pinned", scarce)
    X, y = counts(3000, 40)
    expected = L2CenterClassifier(k=4).fit(X, y)
    found = L2CenterClassifier(k=4, device="cuda").fit(X, y)
    np.testing.assert_array_equal(found.support_, expected.support_)
    # Another CUDA error is not caught.
    status = 700, "cudaErrorIllegalAddress", "an illegal memory access was encountered"
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError, match="cudaErrorIllegalAddress"):
        L2CenterClassifier(k=4, device="cuda").fit(X, y)


@on_stand_in
def test_work_on_a_chunk_after_the_third_call_from_then_races_with_what_overwrites_it() -> None:
    upload, faults = Upload(), cupy._fake.faults
    chunks = [np.full(1000, float(i)) for i in range(2 * _SLOTS)]
    sent, sums = [], []
    for chunk in chunks:
        sent += upload.send(chunk)
        sums.append(cupy.sum(sent[-1]))
    assert not faults and [float(s) for s in sums] == [1000.0 * i for i in range(2 * _SLOTS)]
    for chunk in chunks[:2]:
        cupy.sum(sent[-_SLOTS])
        sent += upload.send(chunk)
    assert len(faults) == 2
    assert all("does not wait for work on null" in fault for fault in faults)
    faults.clear()


@on_stand_in
def test_a_slot_that_does_not_fit_leaves_the_other_slots_as_they_are() -> None:
    """After an error, the next chunk still waits for the work on its slot."""
    upload, null = Upload(), cupy.cuda.Stream.null
    for _ in range(_SLOTS):
        upload.send(np.zeros(1000))
    last = cupy.cuda.Event()
    last.record(null)  # after the work on the second chunk
    pool = cupy._fake.pool()
    try:
        pool.limit = pool.used + 1
        with pytest.raises(MemoryError, match="Out of memory allocating 131,072 bytes"):
            upload.send(np.zeros(10_000))
    finally:
        pool.limit = 0
    cupy._fake.actions.clear()
    upload.send(np.zeros(1000))
    first = cupy._fake.actions[0]
    waits = [a for a in cupy._fake.actions if a.what == "wait" and a.stream != "null"]
    assert first.what == "record" and waits
    assert all(int(str(a.about).split()[-1]) > int(str(last).split()[-1]) for a in waits)


@on_stand_in
def test_the_copies_of_an_upload_share_one_pool_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    pools: list[int] = []

    class Pool(ThreadPoolExecutor):
        def __init__(self, threads: int) -> None:
            pools.append(threads)
            super().__init__(threads)

    for module in (uploads, schedule):
        monkeypatch.setattr(module, "ThreadPoolExecutor", Pool)
        monkeypatch.setattr(module, "thread_count", lambda backend: 3)
    monkeypatch.setattr(uploads, "_COPY_BYTES", 1000)
    upload, X = Upload(), np.random.default_rng(0).random((400, 20))
    found = [upload.send(X * i)[0].get() for i in range(6)]
    assert pools == [3]
    np.testing.assert_array_equal(found, [X * i for i in range(6)])


def test_a_memory_map_is_read_in_strips_on_the_device(tmp_path: Path) -> None:
    X, y = counts(200, 60)
    path = tmp_path / "x.dat"
    np.asarray(X).tofile(path)
    mapped = np.memmap(path, dtype=X.dtype, mode="r", shape=X.shape)
    expected = quietly(L1CenterClassifier(k=2).fit, X, y)
    model = L1CenterClassifier(k=2, device="cuda", memory_budget=200_000)
    found = quietly(model.fit, mapped, y)
    assert found.support_.tolist() == expected.support_.tolist()
