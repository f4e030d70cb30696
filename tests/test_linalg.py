"""Products of matrices with one BLAS thread."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from typing import Any

import numpy as np
import pytest


def test_a_matrix_that_is_not_positive_definite_is_solved_all_the_same(backend: Any) -> None:
    from gpucenters.arrays.backend import backend_of
    from gpucenters.arrays.linalg import factorised

    matrix = np.asarray([[2.0, 1.0, 3.0], [1.0, 5.0, 0.5], [3.0, 0.5, 1.0]])
    assert np.linalg.eigvalsh(matrix)[0] < 0 < np.linalg.eigvalsh(matrix)[1]
    b = np.asarray([1.0, -2.0, 0.5])
    there = backend.array(matrix)
    with backend_of(there).current():
        found = factorised(there, backend_of(there))(backend.array(b))
    np.testing.assert_allclose(matrix @ backend.host(found), b, atol=1e-12)


def test_blas_has_its_threads_again_after_the_last_context() -> None:
    from threadpoolctl import threadpool_info, threadpool_limits

    from gpucenters.arrays.backend import HOST
    from gpucenters.arrays.linalg import one_blas_thread

    def threads() -> set[int]:
        return {i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"}

    with threadpool_limits(2, user_api="blas"):
        before = threads()
        first, second = one_blas_thread(HOST), one_blas_thread(HOST)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)  # the first of two fits ends before the second one
        assert threads() == {1}
        second.__exit__(None, None, None)
        assert threads() == before
        with pytest.raises(KeyError, match="inside"), one_blas_thread(HOST):
            raise KeyError("inside")
        assert threads() == before


def _blas_threads() -> set[int]:
    from threadpoolctl import threadpool_info

    return {i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"}


def test_blas_is_limited_from_any_thread_and_restored_by_the_last_one() -> None:
    """threadpoolctl 3.8 gives the limit to the first thread that sets it."""
    from threadpoolctl import threadpool_limits

    from gpucenters.arrays.backend import HOST
    from gpucenters.arrays.linalg import one_blas_thread

    seen: list[set[int]] = []
    started, finish = threading.Barrier(2), threading.Event()

    def hold() -> None:
        with one_blas_thread(HOST):
            seen.append(_blas_threads())
            started.wait(10)
            finish.wait(10)

    with threadpool_limits(2, user_api="blas"):
        before = _blas_threads()
        with one_blas_thread(HOST):
            pass
        for _ in range(2):  # the last holder is this thread, and then the other one
            other = threading.Thread(target=hold)
            finish.clear()
            with one_blas_thread(HOST):
                other.start()
                started.wait(10)
                assert _blas_threads() == {1}
                if len(seen) == 1:
                    finish.set()
                    other.join()
            finish.set()
            other.join()
            assert _blas_threads() == before
    assert seen == [{1}, {1}]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_forked_while_another_thread_holds_the_lock_can_fit() -> None:
    from gpucenters import MahalanobisCenterClassifier
    from gpucenters.arrays import linalg

    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with linalg._lock:
            held.set()
            release.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(10)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of fork beside threads
            child = os.fork()
        if child == 0:
            X = np.random.default_rng(0).normal(size=(30, 3))
            MahalanobisCenterClassifier(shrinkage=0.1).fit(X, np.arange(30) % 2)
            os._exit(0)
        for _ in range(300):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                break
            time.sleep(0.1)
        else:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            pytest.fail("the child waits for a lock that its parent's thread held")
        assert status == 0
    finally:
        release.set()
        holder.join()


def test_other_threads_can_limit_blas_after_the_last_context() -> None:
    from threadpoolctl import threadpool_limits

    from gpucenters.arrays.backend import HOST
    from gpucenters.arrays.linalg import one_blas_thread

    seen: list[set[int]] = []

    def limit() -> None:
        with threadpool_limits(3, user_api="blas"):
            seen.append(_blas_threads())

    with one_blas_thread(HOST):
        pass
    other = threading.Thread(target=limit)
    other.start()
    other.join()
    assert seen == [{3}]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_forked_inside_a_context_restores_the_threads_of_its_parent() -> None:
    from threadpoolctl import threadpool_limits

    from gpucenters.arrays.backend import HOST
    from gpucenters.arrays.linalg import one_blas_thread

    with threadpool_limits(2, user_api="blas"):
        before = _blas_threads()
        with one_blas_thread(HOST):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of fork beside threads
                child = os.fork()
            if child == 0:
                right = False
                try:
                    with one_blas_thread(HOST):
                        right = _blas_threads() == {1}
                    right = right and _blas_threads() == before
                finally:
                    os._exit(0 if right else 1)
            assert os.waitpid(child, 0)[1] == 0
        assert _blas_threads() == before


def test_blas_is_limited_where_another_thread_has_set_a_limit() -> None:
    from threadpoolctl import threadpool_limits

    from gpucenters.arrays.backend import HOST
    from gpucenters.arrays.linalg import one_blas_thread

    seen: list[set[int]] = []

    def hold() -> None:
        with one_blas_thread(HOST):
            seen.append(_blas_threads())
        seen.append(_blas_threads())

    with threadpool_limits(2, user_api="blas"):
        other = threading.Thread(target=hold)
        other.start()
        other.join()
    assert seen == [{1}, {2}]


def test_an_interrupt_at_the_end_of_a_context_does_not_keep_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from threadpoolctl import threadpool_limits

    from gpucenters.arrays import linalg
    from gpucenters.arrays.backend import HOST

    def interrupt(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code.co_name == "one_blas_thread" and event == "line":
            lines.append(frame.f_lineno)
            if len(lines) == wanted:
                raise KeyboardInterrupt
        return interrupt

    with threadpool_limits(2, user_api="blas"):
        for wanted in range(1, 40):
            # The tracer may raise where the lock is held and nothing releases it.
            monkeypatch.setattr(linalg, "_lock", threading.RLock())
            lines: list[int] = []
            before = sys.gettrace()
            sys.settrace(interrupt)
            try:
                with linalg.one_blas_thread(HOST):
                    pass
            except KeyboardInterrupt:
                pass
            finally:
                sys.settrace(before)
            with linalg.one_blas_thread(HOST):
                assert _blas_threads() == {1}
            assert _blas_threads() == {2}
            if len(lines) < wanted:
                break
        assert wanted > 5
