"""Results do not depend on threads and budgets, and compiled loops equal the array functions."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import joblib
import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

from gpucenters import L1CenterClassifier, L2CenterClassifier
from gpucenters.arrays import functions, schedule, sparsetools
from gpucenters.arrays.backend import HOST, backend_of
from gpucenters.arrays.context import Context
from gpucenters.arrays.schedule import run, thread_count
from gpucenters.blocks.convert import as_block
from gpucenters.blocks.samples import make_samples
from gpucenters.reductions.class_sums import RawSums, add_class_sums

rng = np.random.default_rng(0)
DENSE = rng.standard_normal((300, 700)).astype(np.float32) * 10.0 ** rng.integers(-3, 4, 700)
SPARSE = scipy.sparse.random(2000, 300, 0.4, "csr", np.float64, rng)
SPARSE.data[:] = rng.standard_normal(SPARSE.nnz)
MODELS = [
    L2CenterClassifier(),
    L2CenterClassifier(scale="std"),
    L1CenterClassifier(),
    L1CenterClassifier(scale="pooled"),
]


@pytest.fixture
def many_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small chunks and lanes, so that small data are partitioned as large data are."""
    monkeypatch.setattr(schedule, "CPU_CHUNK", 2**10)
    monkeypatch.setattr(schedule, "PARTITION_ENTRIES", 2**12)


def _everything(model: Any, X: Any, y: np.ndarray, s: Any) -> list[bytes]:
    model.fit(X, y, sample_weight=s)
    found = [model.scores_, model.centers_, model.objective_, model.decision_function(X)]
    return [np.asarray(part).tobytes() for part in found]


# By default each number of threads and each budget once, under full each pair of them.
SOME_SCHEDULES = [(1, None), (2, "1MB"), (4, None), (4, 1)]
ALL_SCHEDULES = list(itertools.product((1, 2, 4), (1, "1MB", None)))


@pytest.mark.parametrize(
    "schedules", [SOME_SCHEDULES, pytest.param(ALL_SCHEDULES, marks=pytest.mark.full)], ids=len
)
@pytest.mark.parametrize("weighted", [False, True], ids=["unit", "weighted"])
@pytest.mark.parametrize("X", [DENSE, SPARSE, SPARSE.tocsc()], ids=["dense", "csr", "csc"])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_bits_do_not_depend_on_threads_or_budget(
    model: Any,
    X: Any,
    weighted: bool,
    schedules: list,
    many_lanes: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    y = np.arange(X.shape[0]) % 3
    s = np.random.default_rng(1).random(X.shape[0]) if weighted else None
    monkeypatch.setattr(joblib, "cpu_count", lambda: 4)
    found = []
    for count, budget in schedules:
        monkeypatch.setenv("OMP_NUM_THREADS", str(count))
        assert thread_count(HOST) == count
        found.append(_everything(clone(model).set_params(memory_budget=budget), X, y, s))
    assert all(f == found[0] for f in found)


def test_the_number_of_lanes_grows_with_entries_per_accumulator() -> None:
    entries = 2**26
    assert len(schedule.partitions(entries, 1000, HOST)) == 8
    assert len(schedule.partitions(entries, 2**26, HOST)) == 2
    assert len(schedule.partitions(entries, 2**28, HOST)) == 1
    assert len(schedule.partitions(1000, 10, HOST)) == 1
    assert len(schedule.partitions(0, 10, HOST)) == 1
    cuts = schedule.partitions(2**22 + 3, 10, HOST)
    assert cuts[0][0] == 0 and cuts[-1][1] == 2**22 + 3
    assert all(a[1] == b[0] for a, b in itertools.pairwise(cuts))


@pytest.mark.parametrize("weighted", [False, True], ids=["unit", "weighted"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, bool])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_compiled_loops_give_the_bits_of_the_array_functions(
    model: Any, dtype: Any, weighted: bool, many_lanes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sparsetools.AVAILABLE, "SciPy's loops are not as expected: the fast way is off"
    X = SPARSE.copy()
    X.data = np.round(10 * X.data)
    X = X.astype(dtype)
    X.eliminate_zeros()
    y = np.arange(X.shape[0]) % 3
    s = rng.integers(0, 4, X.shape[0]) if weighted else None
    fast = _everything(model, X, y, s)
    monkeypatch.setattr(sparsetools, "AVAILABLE", False)
    assert not as_block(X, HOST).has_compiled_loops
    common = _everything(model, X, y, s)
    assert fast[:2] == common[:2]
    # The two ways add in another order, so that these results agree up to rounding.
    for a, b in zip(fast[2:], common[2:], strict=True):
        np.testing.assert_allclose(np.frombuffer(a), np.frombuffer(b), rtol=1e-12, atol=1e-12)


def test_add_at_sums_repeated_indices(monkeypatch: pytest.MonkeyPatch) -> None:
    for available in (True, False):
        monkeypatch.setattr(sparsetools, "AVAILABLE", available)
        for kind in (np.int32, np.int64):
            target = np.zeros(3)
            functions.add_at(target, np.asarray([2, 0, 2], dtype=kind), np.asarray([1.0, 2, 3]))
            assert target.tolist() == [2, 0, 4]


@pytest.mark.parametrize("name", ["csc_matvec", "csr_matvec", "csr_matvecs", "csr_scale_rows"])
def test_check_refuses_a_compiled_loop_that_changed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loops are private bindings of SciPy, which may change."""
    assert sparsetools.check()
    loop = getattr(sparsetools.tools, name)

    def changed(*arguments: Any) -> None:
        loop(*arguments)
        arguments[-1 if name != "csr_scale_rows" else -2][0] += 1

    monkeypatch.setattr(sparsetools.tools, name, changed)
    assert not sparsetools.check()
    monkeypatch.delattr(sparsetools.tools, name)
    assert not sparsetools.check()


@pytest.mark.parametrize("error", [TypeError, ValueError, RuntimeError])
def test_check_refuses_compiled_loops_that_raise(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed(*arguments: Any) -> None:
        raise error("other arguments are expected")

    monkeypatch.setattr(sparsetools.tools, "csc_matvec", changed)
    assert not sparsetools.check()


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_check_refuses_a_compiled_loop_that_changed_for_one_type_of_indices(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = sparsetools.tools.csr_matvec

    def changed(*arguments: Any) -> None:
        loop(*arguments)
        if arguments[2].dtype == kind:
            arguments[-1][0] += 1

    monkeypatch.setattr(sparsetools.tools, "csr_matvec", changed)
    assert not sparsetools.check()


def test_a_nested_run_stays_in_the_thread_of_its_task() -> None:
    def outer(i: int) -> set[int]:
        idents = run(lambda _: threading.get_ident(), range(20), HOST, 4)
        return {threading.get_ident(), *idents}

    assert all(len(idents) == 1 for idents in run(outer, range(8), HOST, 4))


def test_class_sums_of_more_than_2_to_the_31_cells_use_int64() -> None:
    # The position of a sum among classes x features exceeds int32.
    m = 2**30
    X = scipy.sparse.csr_array(
        (np.asarray([1.0, 2, 3]), np.asarray([5, m - 1, m - 1]), np.asarray([0, 1, 2, 3])),
        shape=(3, m),
    )

    block = as_block(X, HOST)
    seen: list = []

    def note(total: Any, key: Any, x: Any) -> None:
        seen.extend(key.tolist())

    total = np.broadcast_to(np.zeros(1), (3, m))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HOST.xp, "reshape", lambda a, shape: a, raising=False)
        patch.setattr(sparsetools, "add_at", note)
        samples, ctx = make_samples([0, 1, 2], 3, HOST), Context.of(HOST, 10**9)
        add_class_sums(block, samples, RawSums(total), ctx)
    assert seen == [5, 2 * m - 1, 3 * m - 1]


def test_run_keeps_the_order_and_raises_the_error_of_a_task() -> None:
    assert list(run(lambda i: i * i, range(100), HOST, 4)) == [i * i for i in range(100)]

    def fail(i: int) -> int:
        if i == 3:
            raise KeyError(i)
        return i

    with pytest.raises(KeyError, match="3"):
        list(run(fail, range(10), HOST, 2))


def test_run_starts_at_most_two_tasks_for_each_thread() -> None:
    begun: list[int] = []
    before = set(threading.enumerate())  # of other tests

    def tasks() -> Any:
        for i in range(10):
            begun.append(i)
            yield i

    results = run(lambda i: i, tasks(), HOST, 2)
    assert next(results) == 0
    assert len(begun) <= 4
    assert list(results) == list(range(1, 10))
    assert set(threading.enumerate()) <= before


def test_thread_count_is_one_inside_joblib_and_follows_omp_num_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(joblib, "cpu_count", lambda: 3)
    assert thread_count(HOST) == 3
    counts = joblib.Parallel(n_jobs=2, backend="threading")(
        joblib.delayed(thread_count)(HOST) for _ in range(4)
    )
    assert counts == [1] * 4
    for value, expected in (("2", 2), ("8", 3), ("0", 3), ("4,2", 3), ("", 3)):
        monkeypatch.setenv("OMP_NUM_THREADS", value)
        assert thread_count(HOST) == expected


def test_thread_count_follows_the_limit_of_joblib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    cores = thread_count(HOST)
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    assert thread_count(HOST) == 1
    monkeypatch.delenv("LOKY_MAX_CPU_COUNT")
    assert thread_count(HOST) == cores


def test_thread_count_away_from_the_host_is_one(
    backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(joblib, "cpu_count", lambda: 3)
    expected = 3 if backend.name == "numpy" else 1
    assert schedule.thread_count(backend_of(backend.array([0.0]))) == expected


@pytest.mark.parametrize("started", [0, 1])
def test_items_are_done_once_where_no_further_thread_can_be_started(
    started: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under limits, "can't start new thread" comes after the item was queued."""
    start, count = threading.Thread.start, []

    def limited(thread: threading.Thread) -> None:
        count.append(1)
        if len(count) > started:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    done: list[int] = []
    assert list(run(lambda i: done.append(i) or i, range(50), HOST, 4)) == list(range(50))
    assert sorted(done) == list(range(50))
    assert not getattr(schedule._this_thread, "is_worker", False)


def test_a_fit_is_possible_where_no_pool_takes_work_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At the exit of the interpreter: "cannot schedule new futures after interpreter shutdown"."""
    from concurrent.futures import ThreadPoolExecutor

    def submit(*arguments: Any, **options: Any) -> None:
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    y = np.arange(DENSE.shape[0]) % 3
    expected = L2CenterClassifier().fit(DENSE, y)
    monkeypatch.setattr(ThreadPoolExecutor, "submit", submit)
    np.testing.assert_array_equal(L2CenterClassifier().fit(DENSE, y).scores_, expected.scores_)
