"""What is special about CUDA: how often the host waits, how data go up, what our kernels do.

On the stand-in, which counts, writes down the order of events and plays the kernels; those are
compiled as C++ here, and compared with what plays them.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from conftest import BACKENDS, cupy
from sklearn.base import clone
from strategies import quietly

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    SparseBernoulliNB,
    SparseMultinomialNB,
    devices,
)
from gpucenters.arrays import grid, kernels, uploads
from gpucenters.arrays.backend import backend_of
from gpucenters.arrays.budget import resolve_budget
from gpucenters.arrays.context import Context
from gpucenters.blocks.compressed import Compressed
from gpucenters.blocks.convert import as_block
from gpucenters.blocks.sorted_columns import SortingPlan
from gpucenters.blocks.sparse_scatter import as_rows

STAND_IN = hasattr(cupy, "_fake")
on_stand_in = pytest.mark.skipif(not STAND_IN, reason="only the stand-in counts and writes down")


def _counts(n: int, m: int, classes: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.4, (n, m)).astype(np.float32)
    y = rng.permutation(np.arange(n) % classes)
    X[y == 0, :2] += 3
    return X, y


@pytest.fixture(autouse=True, scope="module")
def _probed() -> None:
    """Whether CUDA can be used is looked at once, and waits for that."""
    devices()


def _syncs(model: Any, X: Any, y: np.ndarray) -> tuple[int, list[str]]:
    with cupy._fake.count_syncs() as seen:
        quietly(model.fit, X, y)
    return seen.syncs, seen.reasons


# --- how often the host waits ----------------------------------------------------------------


@on_stand_in
@pytest.mark.parametrize("classes", [2, 3, 11])
@pytest.mark.parametrize("kind", ["array", "csr", "csc"])
@pytest.mark.parametrize(
    "model",
    [L2CenterClassifier(k=5), L2CenterClassifier(k=5, scale="pooled"), SparseBernoulliNB(k=5)],
    ids=str,
)
def test_a_fit_from_sums_on_the_device_waits_a_fixed_number_of_times(
    classes: int, kind: str, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend, seen = BACKENDS["cupy"], {}
    for n, m, chunk in ((60, 20, 64), (700, 90, 256), (700, 90, 64)):
        monkeypatch.setattr(grid, "CUDA_CHUNK", chunk)
        X, y = _counts(n, m, classes)
        seen[n, m, chunk] = _syncs(model, getattr(backend, kind)(X), y)
    assert len({count for count, _ in seen.values()}) == 1, seen
    assert all(count <= 15 for count, _ in seen.values()), seen


@on_stand_in
def test_whole_numbers_that_cancel_wait_a_fixed_number_of_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = _counts(700, 30)
    there, seen = BACKENDS["cupy"].csr(X + 1000), []
    for chunk in (2**25, 1000, 100):
        monkeypatch.setattr(grid, "CUDA_CHUNK", chunk)
        seen.append(_syncs(L2CenterClassifier(k=3), there, y))
    one, *many = (count for count, _ in seen)
    # (Cut into chunks, where the rows begin is fetched, and the first chunk is looked at alone.)
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
        monkeypatch.setattr(grid, "CUDA_CHUNK", chunk)
        X, y = _counts(n, m, classes)
        weights = 1.0 + np.arange(n) % 3 if weighted else None
        with cupy._fake.count_syncs() as counter:
            quietly(L1CenterClassifier(k=3).fit, cupy.asarray(X, dtype=dtype), y, weights)
        seen[n, m, chunk] = counter.syncs, counter.reasons
    assert len({count for count, _ in seen.values()}) == 1, seen
    assert all(count <= 10 for count, _ in seen.values()), seen


@on_stand_in
def test_predictions_on_the_device_wait_a_fixed_number_of_times() -> None:
    X, y = _counts(300, 30, 3)
    for kind in ("array", "csr"):
        data = getattr(BACKENDS["cupy"], kind)(X)
        for model in (L2CenterClassifier(k=4), L1CenterClassifier(k=1)):
            quietly(model.fit, data, y).predict(data)
            counts = []
            for rows in (10, 300):
                some = data[:rows]
                with cupy._fake.count_syncs() as seen:
                    model.predict(some)
                counts.append(seen.syncs)
            assert counts[0] == counts[1] <= 12, (kind, model, counts)


# --- host data on their way up ---------------------------------------------------------------


def _containers(X: np.ndarray) -> list[Any]:
    dense = [X, np.asfortranarray(X)] + [X.astype(t) for t in (np.int64, np.float16, ">f8", "g")]
    sparse = []
    for kind in (scipy.sparse.csr_array, scipy.sparse.csc_matrix):
        for dtype in (np.float32, np.int8, ">f4", ">i4", ">f8", "g"):
            matrix = kind(X)
            matrix.data = matrix.data.astype(dtype)  # (as a constructor would not leave it)
            sparse.append(matrix)
        # The same, with each entry in two parts.
        whole, parts = kind(X), kind(X.shape, dtype=np.float32)
        parts.data = np.repeat(whole.data / 2, 2).astype(">f4")
        parts.indices, parts.indptr = np.repeat(whole.indices, 2), 2 * whole.indptr
        sparse.append(parts)
    return dense + sparse


@pytest.mark.parametrize("upload", [2**23, 90])
def test_host_data_go_up_in_chunks_and_give_the_same_model(
    upload: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grid, "UPLOAD_CHUNK", upload)
    X, y = _counts(120, 40, 3)
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


@on_stand_in
@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array, scipy.sparse.csc_array])
def test_a_chunk_waits_for_what_it_must_and_for_nothing_else(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grid, "UPLOAD_CHUNK", 500)
    X, y = _counts(400, 50)
    cupy._fake.reset()
    with cupy._fake.count_syncs() as seen:
        L2CenterClassifier(device="cuda").fit(kind(X), y)
    assert seen.pinned_uploads >= 8
    _check_order(cupy._fake.actions)
    # The labels and a few numbers go up as they are; no chunk of X does.
    assert seen.uploaded_bytes < 6 * X.nbytes


def _check_order(actions: list[Any]) -> None:
    """Two streams, as a device would see them: what each has waited for when it gets on."""
    recorded: dict[str, tuple[str, int]] = {}
    waited: dict[str, int] = {}  # up to which action of the other stream
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
            if len(uploads) >= 3:
                # Its slot was worked on between the last upload but one and the last one's...
                assert waited[stream] > uploads[-3]
                busy = [i for i in range(uploads[-3], uploads[-2]) if actions[i].what == "launch"]
                assert all(i < waited[stream] for i in busy)
                # ...its page-locked half is free, and the last chunk is not waited for.
                assert f"{marks[-2]}@{len(uploads) - 1}" in synchronized
                late = [i for i in range(uploads[-2], at) if actions[i].what == "launch"]
                assert not late or waited[stream] < late[-1]
        elif what == "launch" and uploads:
            assert waited["null"] > uploads[-1]
    assert len(uploads) >= 8


def _plain(X: Any) -> np.ndarray:
    return X.toarray() if scipy.sparse.issparse(X) else X


def _fits(model: Any, X: Any, y: np.ndarray) -> Any:
    return quietly(model.fit, X, y)


def _parts(model: Any, X: Any, y: np.ndarray) -> Any:
    for rows in (slice(0, 1000), slice(1000, 3000)):
        quietly(model.partial_fit, X[rows], y[rows], classes=[0, 1, 2])
    return model


_DEVICE = {"device": "cuda"}
_ROOMS: list[tuple[Any, Any]] = [
    (L2CenterClassifier(k=4, **_DEVICE), _fits),
    (L2CenterClassifier(k=4, scale="std", **_DEVICE), _fits),
    (L2CenterClassifier(k=4, **_DEVICE), _parts),
    (L1CenterClassifier(k=4, **_DEVICE), _fits),
    (SparseBernoulliNB(k=4, **_DEVICE), _fits),
    (SparseMultinomialNB(k=4, **_DEVICE), _parts),
    (MahalanobisCenterClassifier(k=4, **_DEVICE), _fits),
]


@on_stand_in
@pytest.mark.parametrize(
    "kind",
    [np.asarray, scipy.sparse.csr_array, scipy.sparse.csc_array, scipy.sparse.csr_matrix],
    ids=["dense", "csr", "csc", "csr of integers"],
)
@pytest.mark.parametrize(("model", "fit"), _ROOMS, ids=[f"{m} {f.__name__}" for m, f in _ROOMS])
def test_out_of_memory_makes_chunks_smaller(
    kind: Any, model: Any, fit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grid, "LEAST_CUDA_CHUNK", 1024)
    monkeypatch.setattr(grid, "CUDA_CHUNK", 2**17)
    X, y = _counts(3000, 40, 3)
    data = kind(X.astype(np.int64) if kind is scipy.sparse.csr_matrix else X)
    expected = fit(clone(model), data, y)
    predicted = expected.predict(data)
    pool, found = cupy._fake.pool(), clone(model)
    try:
        # (A chunk of float64, alone, would take 960 kB.)
        pool.limit = pool.used + 700_000
        found = fit(found, data, y)
        np.testing.assert_array_equal(found.predict(data), predicted)
        np.testing.assert_array_equal(found.support_, expected.support_)
        np.testing.assert_allclose(
            _plain(found.transform(data)), _plain(expected.transform(data)), rtol=1e-11, atol=1e-11
        )
        pool.limit = 0
        np.testing.assert_allclose(found.scores_.get(), expected.scores_.get(), rtol=1e-11)
        pool.limit = pool.used + 20_000
        with pytest.raises(
            MemoryError, match=r"Out of memory allocating|covariance of 40 features takes"
        ):
            fit(clone(model), data, y)
    finally:
        pool.limit = 0


@on_stand_in
@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("limit", [1_500_000, 2_500_000])
def test_a_budget_that_is_not_there_is_made_do_without(
    kind: Any, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grid, "LEAST_CUDA_CHUNK", 1024)
    monkeypatch.setattr(grid, "CUDA_CHUNK", 2**17)
    X, y = _counts(3000, 40, 3)
    X += 1  # no median is zero: every column is sorted
    expected = quietly(L1CenterClassifier(k=4).fit, X, y)
    pool = cupy._fake.pool()
    try:
        pool.limit = pool.used + limit
        model = L1CenterClassifier(k=4, device="cuda", memory_budget="1GB")
        found = quietly(model.fit, kind(X), y)
        pool.limit = 0
        np.testing.assert_array_equal(found.support_, expected.support_)
        # Once there is memory again, all of it is used.
        assert _context_of(found, kind(X)).chunk == 2**17
    finally:
        pool.limit = 0


def _context_of(model: Any, X: Any) -> Any:
    contexts = []
    score = model._scores

    def note(block: Any, ctx: Any) -> Any:
        contexts.append(ctx)
        return score(block, ctx)

    model._scores = note
    model.predict(X)
    return contexts[-1]


@on_stand_in
@pytest.mark.parametrize("scale", [None, "std"])
def test_a_stream_is_solved_in_chunks_that_fit(scale: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "LEAST_CUDA_CHUNK", 1024)
    monkeypatch.setattr(grid, "CUDA_CHUNK", 2**20)
    X = scipy.sparse.random(300, 60_000, 0.01, format="csr", random_state=0)
    y = np.arange(300) % 2
    expected = L2CenterClassifier(k=4, scale=scale).partial_fit(X, y, classes=[0, 1])
    pool, solved = cupy._fake.pool(), 0
    for limit in np.arange(2, 9, 0.5) * 1e6:
        model = L2CenterClassifier(k=4, scale=scale, device="cuda")
        model.partial_fit(X, y, classes=[0, 1])
        try:
            pool.limit = pool.used + int(limit)
            support = model.support_.tolist()
        except MemoryError:
            assert not solved, f"{limit:,} bytes are not enough, but {solved:,} were"
        else:
            solved = solved or limit
            assert support == expected.support_.tolist()
        finally:
            pool.limit = 0
    # (6.5 MB for "std" if what is solved did not get smaller chunks at each try.)
    assert 0 < solved <= {None: 5e6, "std": 5.5e6}[scale]


@on_stand_in
def test_selection_on_the_device_is_done_in_chunks_that_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(grid, "LEAST_CUDA_CHUNK", 1024)
    monkeypatch.setattr(grid, "CUDA_CHUNK", 2**17)
    X, y = _counts(3000, 40)
    there = cupy.asarray(X)
    model = L2CenterClassifier(k=4).fit(there, y)
    support, pool = model.support_, cupy._fake.pool()
    try:
        pool.limit = pool.used + 500_000  # the chunk as float64 takes 960 kB
        np.testing.assert_array_equal(model.transform(there).get(), X[:, support])
    finally:
        pool.limit = 0


@on_stand_in
def test_what_can_never_fit_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "LEAST_CUDA_CHUNK", 16)
    monkeypatch.setattr(grid, "CUDA_CHUNK", 64)
    X, y = _counts(60, 20)
    tries = []
    model = MahalanobisCenterClassifier(device="cuda", memory_budget=48 * 64)
    enter = model._enter
    monkeypatch.setattr(model, "_enter", lambda *args: tries.append(1) or enter(*args))
    with pytest.raises(MemoryError, match="the covariance of 20 features takes"):
        model.fit(X, y)
    assert len(tries) == 1


@on_stand_in
def test_a_second_try_may_have_what_the_user_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "LEAST_CUDA_CHUNK", 16)
    X, y = _counts(60, 20)
    tries = []
    model = MahalanobisCenterClassifier(device="cuda", memory_budget=50_000)
    enter = model._enter

    def scarce(*args: Any) -> Any:
        tries.append(1)
        if len(tries) == 1:
            raise MemoryError
        return enter(*args)

    monkeypatch.setattr(model, "_enter", scarce)
    model.fit(X, y)
    assert len(tries) == 2


@on_stand_in
def test_rows_of_a_resident_matrix_are_made_in_small_chunks_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, _ = _counts(60, 20)
    there, seen = BACKENDS["cupy"].csc(X), []

    chunk_size = Compressed.chunk_size

    def note(self: Any, ctx: Any) -> int:
        seen.append(chunk_size(self, ctx))
        return seen[-1]

    monkeypatch.setattr(Compressed, "chunk_size", note)
    ctx = replace(Context.of(backend_of(there)), chunk=100)
    rows = as_rows(as_block(there, ctx.backend), ctx)
    assert set(seen) == {100} and rows.by_row
    np.testing.assert_array_equal(rows.data.get(), scipy.sparse.csr_array(X).data)


def test_what_was_sorted_in_vain_is_gone_before_its_halves_are() -> None:
    class Lists:
        def __init__(self, width: int) -> None:
            self.width = width

    alive: list[Any] = []

    def sort(left: int, right: int) -> Any:
        assert not any(ref() for ref in alive)
        lists = Lists(right - left)
        alive.append(weakref.ref(lists))
        return slice(left, right), lists

    def medians(lists: Lists) -> int:
        if lists.width > 2:
            raise MemoryError
        return lists.width

    ctx = Context.of(backend_of(np.zeros(1)))
    found = SortingPlan([(0, 7)], sort, "too large").map(medians, ctx)
    assert [width for _, width in found] == [1, 2, 2, 2]


@on_stand_in
def test_a_small_budget_makes_chunks_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "LEAST_CUDA_CHUNK", 1024)
    monkeypatch.setattr(grid, "CUDA_CHUNK", 2**20)
    X, y = _counts(4000, 100)
    pool, peaks = cupy._fake.pool(), {}
    for kind in (np.asarray, scipy.sparse.csr_array):
        for budget in ("1GB", "500kB"):
            there = getattr(BACKENDS["cupy"], "array" if kind is np.asarray else "csr")(X)
            models = [L2CenterClassifier(scale="std"), L1CenterClassifier()]
            if kind is scipy.sparse.csr_array:
                models.append(SparseMultinomialNB())
            for model in models:
                model.set_params(memory_budget=budget)
                pool.peak = before = pool.used
                quietly(model.fit, there, y)
                name = type(model).__name__, kind.__name__
                peaks.setdefault(name, []).append(pool.peak - before)
    for name, (large, small) in peaks.items():
        assert small < 1_000_000 and small < 0.6 * large, (name, large, small)


@on_stand_in
def test_without_page_locked_memory_chunks_are_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "LEAST_CUDA_CHUNK", 1024)
    monkeypatch.setattr(grid, "CUDA_CHUNK", 2**17)
    import cupyx

    empty = cupyx.empty_pinned

    status = 2

    def scarce(shape: int, dtype: Any) -> np.ndarray:
        if shape > 100_000:
            raise cupy.cuda.runtime.CUDARuntimeError(status, "cudaErrorOfSomeKind", "no memory")
        return empty(shape, dtype)

    monkeypatch.setattr(cupyx, "empty_pinned", scarce)
    X, y = _counts(3000, 40)
    expected = L2CenterClassifier(k=4).fit(X, y)
    found = L2CenterClassifier(k=4, device="cuda").fit(X, y)
    np.testing.assert_array_equal(found.support_, expected.support_)
    status = 700  # an error of something else shows itself
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError, match="cudaErrorOfSomeKind"):
        L2CenterClassifier(k=4, device="cuda").fit(X, y)


@on_stand_in
def test_a_slot_that_cannot_be_had_leaves_the_other_as_it_is() -> None:
    """The next chunk may go into a slot only after the work on it, be there an error before."""
    upload, null = uploads.Upload(), cupy.cuda.Stream.null
    upload.send(np.zeros(1000))
    upload.send(np.zeros(1000))
    last = cupy.cuda.Event()
    last.record(null)  # after the work on the second chunk
    pool = cupy._fake.pool()
    try:
        pool.limit = pool.used + 1
        with pytest.raises(MemoryError, match="Out of memory allocating 80,384 bytes"):
            upload.send(np.zeros(10_000))
    finally:
        pool.limit = 0
    cupy._fake.actions.clear()
    upload.send(np.zeros(1000))
    first = cupy._fake.actions[0]
    waits = [a for a in cupy._fake.actions if a.what == "wait" and a.stream != "null"]
    assert first.what == "record" and waits
    assert all(int(str(a.about).split()[-1]) > int(str(last).split()[-1]) for a in waits)


def test_a_memory_map_is_read_in_strips_on_the_device(tmp_path: Path) -> None:
    X, y = _counts(200, 60)
    path = tmp_path / "x.dat"
    np.asarray(X).tofile(path)
    mapped = np.memmap(path, dtype=X.dtype, mode="r", shape=X.shape)
    expected = quietly(L1CenterClassifier(k=2).fit, X, y)
    model = L1CenterClassifier(k=2, device="cuda", memory_budget=200_000)
    found = quietly(model.fit, mapped, y)
    assert found.support_.tolist() == expected.support_.tolist()


@on_stand_in
@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_strided_arrays_in_cupyx_matrices_are_read_right(layout: str) -> None:
    X, y = _counts(80, 30)
    plain = getattr(BACKENDS["cupy"], layout)(X)
    table = cupy.zeros((plain.nnz, 3), dtype=cupy.float32)
    places = cupy.zeros((plain.nnz, 2), dtype=cupy.int32)
    table[:, 1], places[:, 0] = plain.data, plain.indices
    kind = type(plain)
    strided = kind((table[:, 1], places[:, 0], plain.indptr), shape=plain.shape)
    if strided.data.flags.c_contiguous:
        strided.data, strided.indices = table[:, 1], places[:, 0]
    assert not strided.data.flags.c_contiguous
    for model in (
        L2CenterClassifier(k=4),
        L2CenterClassifier(k=4, scale="std"),
        L1CenterClassifier(k=2),
        SparseMultinomialNB(k=4),
    ):
        expected, found = quietly(clone(model).fit, plain, y), quietly(model.fit, strided, y)
        np.testing.assert_array_equal(found.support_, expected.support_)
        np.testing.assert_allclose(found.scores_.get(), expected.scores_.get(), rtol=1e-13)
        np.testing.assert_array_equal(found.predict(strided).get(), expected.predict(plain).get())


@on_stand_in
def test_the_budget_keeps_to_the_limit_of_the_memory_pool() -> None:
    backend = backend_of(cupy.zeros(1))
    pool = cupy.get_default_memory_pool()
    try:
        pool.set_limit(size=pool.used_bytes() + 4_000_000)
        assert resolve_budget(None, backend) == 1_000_000
        pool.set_limit(size=0)
        assert resolve_budget(None, backend) > 10**9
    finally:
        pool.set_limit(size=0)


# --- the kernels -----------------------------------------------------------------------------

_SHIM = r"""
#include <cstring>
#define __global__
#define __device__ static
struct Dim { long long x; };
static Dim blockIdx, blockDim, threadIdx;
static double atomicAdd(double* p, double v) { double old = *p; *p += v; return old; }
static unsigned int __float_as_uint(float x) { unsigned int u; std::memcpy(&u, &x, 4); return u; }
static float __uint_as_float(unsigned int u) { float x; std::memcpy(&x, &u, 4); return x; }
extern "C" void place(long long block, long long width, long long thread)
{ blockIdx.x = block; blockDim.x = width; threadIdx.x = thread; }
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The kernels as C++: ``run(options, name, threads, *args)``."""
    compiler = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
    if compiler is None:
        assert not os.environ.get("CI"), "CI must have a C++ compiler"
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp("kernels")
    libraries: dict[tuple[str, ...], ctypes.CDLL] = {}

    def library(options: tuple[str, ...]) -> ctypes.CDLL:
        if options not in libraries:
            source = folder / f"kernels{len(libraries)}.cpp"
            source.write_text(_SHIM + kernels.source())
            path = source.with_suffix(".so")
            flags = ["-O1", "-Wall", "-Werror", "-fPIC", "-shared", "-std=c++14"]
            done = subprocess.run(
                [compiler, *flags, *options, str(source), "-o", str(path)],
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            libraries[options] = ctypes.CDLL(str(path))
        return libraries[options]

    def run(options: tuple[str, ...], name: str, threads: int, *args: Any) -> None:
        lib = library(options)
        plain = [
            ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else ctypes.c_longlong(a)
            for a in args
        ]
        for thread in range(threads):
            lib.place(*(ctypes.c_longlong(v) for v in (thread // 256, 256, thread % 256)))
            getattr(lib, name)(*plain)

    return run


def _played() -> dict[str, Any]:
    sys.path.insert(0, str(Path(__file__).parent / "fake_cupy"))
    try:
        from cupy import _raw
    finally:
        sys.path.pop(0)
    return _raw.KERNELS


@on_stand_in
@pytest.mark.parametrize("options", kernels.type_options(), ids=" ".join)
@pytest.mark.parametrize("by_row", [True, False])
def test_class_sums_of_the_kernel(compiled: Any, options: tuple[str, str], by_row: bool) -> None:
    index = np.dtype(np.int32 if "int" in options[0] and "long" not in options[0] else np.int64)
    value = {"float": np.float32, "double": np.float64}.get(options[1].split("=")[1], np.uint8)
    rng = np.random.default_rng(3)
    n, m, k, slots = 57, 40, 3, 4
    # Empty rows and columns, at both ends too, and one row much longer than a thread's run.
    X = rng.integers(0, 2, (n, m)) * (rng.random((n, 1)) < 0.6) * (rng.random(m) < 0.7)
    X[0] = X[-1] = 0
    X[30] = 1
    matrix = (scipy.sparse.csr_matrix if by_row else scipy.sparse.csc_matrix)(X.astype(value))
    stored = matrix.nnz
    codes = rng.integers(0, k, n).astype(np.int32)
    head = (
        *(matrix.data, matrix.indices.astype(index), matrix.indptr.astype(index)),
        *(matrix.indptr.shape[0] - 1, 0, stored, int(by_row), codes),
    )
    for weights in (0, rng.random(n)):
        for with_square, with_sum in (
            (True, True),
            (False, True),
            (True, False),
            (False, False),
        ):
            found = []
            for play in ("compiled", "played"):
                total = np.zeros((k, m))
                square = np.zeros((k, m)) if with_square else 0
                sum_of_squares = np.zeros((k, slots)) if with_sum else 0
                args = (*head, weights, m, total, square, sum_of_squares, slots)
                if play == "compiled":
                    compiled(options, "add_class_sums", -(-stored // 8) + 3, *args)
                else:
                    _played()["add_class_sums"](*args)
                found.append((total, square, sum_of_squares))
            for a, b in zip(*found, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-14)
            # (Not only like each other.)
            w = np.ones(n) if isinstance(weights, int) else weights
            truth = [(w[:, None] * X)[codes == c].sum(axis=0) for c in range(k)]
            np.testing.assert_allclose(found[0][0], truth, rtol=1e-13)


@on_stand_in
@pytest.mark.parametrize("order", ["C", "F", "cut"])
def test_keys_of_the_kernel_sort_as_values_do(compiled: Any, order: str) -> None:
    rng = np.random.default_rng(4)
    x = rng.standard_normal((23, 9)).astype(np.float32)
    x[rng.random(x.shape) < 0.2] = 0
    x[3, 2], x[4, 2], x[5, 2] = -0.0, np.inf, -np.inf
    x[6, 2], x[7, 2] = np.finfo(np.float32).tiny / 4, -np.finfo(np.float32).max
    x = {"C": x, "F": np.asfortranarray(x), "cut": x[:, 2:7]}[order]
    rows, columns = x.shape
    codes = rng.integers(-1, 3, rows).astype(np.int32)
    args = (x, x.strides[0] // 4, x.strides[1] // 4, rows, columns, codes, 3)
    keys, played = (np.zeros(x.size, np.uint64) for _ in range(2))
    compiled(("-DINDEX=int", "-DVALUE=float"), "pack_lists", x.size + 5, *args, keys)
    _played()["pack_lists"](*args, played)
    np.testing.assert_array_equal(keys, played)
    keys.sort()
    kept = int((codes >= 0).sum()) * columns
    values, again = (np.zeros(kept, np.float32) for _ in range(2))
    compiled(("-DINDEX=int", "-DVALUE=float"), "unpack_values", kept + 5, keys, kept, values)
    _played()["unpack_values"](keys, kept, again)
    np.testing.assert_array_equal(values, again)
    expected = [np.sort(x[codes == c, i]) for i in range(columns) for c in range(3)]
    np.testing.assert_array_equal(values, np.concatenate(expected))
    assert not np.signbit(values[values == 0]).any()
