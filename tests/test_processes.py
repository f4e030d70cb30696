"""Fits in forked processes, under loky, and predictions in many threads."""

from __future__ import annotations

import copy
import multiprocessing
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import joblib
import numpy as np
import pytest
import scipy.sparse
import scipy.special
from separated import assert_identical_on_host
from sklearn.datasets import load_digits
from small_data import KINDS

from gpucenters import L2CenterClassifier
from gpucenters.arrays.backend import HOST
from gpucenters.blocks import sparse
from gpucenters.blocks.convert import as_block


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork"
)
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_in_a_forked_process_gives_the_bits_of_the_parent(kind: Any) -> None:
    X, y = load_digits(return_X_y=True)
    here = kind(k=20, scale="std").fit(X, y)  # thread pools exist before the fork
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        there = pool.submit(kind(k=20, scale="std").fit, X, y).result(timeout=60)
    assert_identical_on_host(there, here, X)


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork"
)
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_does_not_wait_for_a_property_that_a_thread_computes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those of functools in Python 3.11 have a lock for all instances (python/cpython#87634)."""
    X = scipy.sparse.csr_array(np.eye(4))
    inside, leave, to_numpy = threading.Event(), threading.Event(), sparse.to_numpy

    def slow(x: Any) -> Any:
        if threading.current_thread() is thread:
            inside.set()
            leave.wait(timeout=60)
        return to_numpy(x)

    monkeypatch.setattr(sparse, "to_numpy", slow)
    block = as_block(X, HOST)
    thread = threading.Thread(target=lambda: block.host_indptr)
    thread.start()
    assert inside.wait(timeout=60)
    context = multiprocessing.get_context("fork")
    child = context.Process(target=lambda: as_block(X, HOST).host_indptr)
    child.start()
    child.join(timeout=30)
    ended = child.exitcode
    child.kill()
    leave.set()
    thread.join()
    assert ended == 0


@pytest.mark.parametrize("kind", KINDS)
def test_fits_under_loky_give_the_bits_of_one_process(kind: Any) -> None:
    X, y = load_digits(return_X_y=True)
    X = scipy.sparse.csr_array(X)
    with joblib.parallel_backend("loky", n_jobs=2):
        found = joblib.Parallel()(joblib.delayed(kind(k=k).fit)(X, y) for k in (5, 20))
    for k, model in zip((5, 20), found, strict=True):
        assert_identical_on_host(model, kind(k=k).fit(X, y), X)


@pytest.mark.parametrize("kind", KINDS)
def test_many_threads_predict_what_one_predicts(kind: Any) -> None:
    X, y = load_digits(return_X_y=True)
    model = kind(k=20, scale="std")
    if kind is L2CenterClassifier:  # the first thread that reads the solution forms it
        model.partial_fit(X, y, classes=range(10))
    else:
        model.fit(X, y)
    alone = copy.deepcopy(model)
    start = threading.Barrier(8)

    def work(_: int) -> tuple[Any, ...]:
        start.wait(timeout=60)
        support = model.support_.copy()
        return model.predict(X), model.decision_function(X), model.transform(X), support

    expected = (alone.predict(X), alone.decision_function(X), alone.transform(X), alone.support_)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(work, range(8)):
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_array_equal(a, b)
