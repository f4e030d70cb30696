"""Calls that an interrupt ends at any line: the model is as before the call, or as after it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from strategies import quietly

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    SparseBernoulliNB,
    SparseMultinomialNB,
    SparsePoissonNB,
)

STREAMS = [
    L2CenterClassifier(k=2),
    L2CenterClassifier(k=2, scale="std"),
    SparseBernoulliNB(k=2),
    SparseMultinomialNB(k=2),
    SparsePoissonNB(k=2, scale="dispersion"),
    MahalanobisCenterClassifier(k=2, shrinkage="ledoit-wolf"),
]
FITS = [*STREAMS, L1CenterClassifier(k=2)]
KINDS = {"dense": np.asarray, "csr": scipy.sparse.csr_array}

rng = np.random.default_rng(0)
X = rng.poisson(1.0, (24, 5)).astype(np.float64)
X[:, 4] += 1e4  # ill-conditioned: kept centred where data are sparse
WIDE = np.concatenate([X, np.zeros((24, 995))], axis=1)  # the batch touches few of its columns
y = np.arange(24) % 2


class Interrupt(BaseException):
    """What a signal handler may raise anywhere."""


def _interrupted(call: Callable[[], Any], at: int) -> bool:
    """Run a call that is interrupted before its line number ``at`` inside the package."""
    lines = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal lines
        if "gpucenters" not in frame.f_code.co_filename or "tests" in frame.f_code.co_filename:
            return None
        # A tracer can raise between the end of a with block and its exit, where no signal handler
        # runs: the lock of this function would never be released.
        if frame.f_code.co_name == "one_blas_thread":
            return None
        if event == "line":
            lines += 1
            if lines == at:
                raise Interrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        quietly(call)
    except Interrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def _state(model: Any, data: Any) -> list[Any]:
    """All that tells a model from another: parameters of the fit, statistics and predictions."""
    found = [model.n_features_in_, model.classes_.tolist(), model.support_.tolist()]
    found += [model.decision_function(data).tobytes(), model.objective_]
    statistics = model._fitted.statistics
    if statistics is not None:
        found += [np.asarray(a).tobytes() for _, _, a in statistics._arrays()]
        found += [list(statistics.class_weight), list(statistics.count)]
    return found


def _check(make: Callable[[], Any], call: Callable[[Any], Any], data: Any, step: int) -> None:
    """Interrupt a call at every ``step``-th line, and compare with the states before and after."""
    before, after = make(), make()
    quietly(call, after)
    states = [_state(before, data), _state(after, data)]
    assert states[0] != states[1]
    at = 1 + step // 2
    while True:
        model = make()
        if not _interrupted(lambda model=model: call(model), at):
            break
        assert _state(model, data) in states, f"torn by an interrupt at line {at}"
        quietly(call, model)  # and the call can be made again
        at += step
    assert at > 20


@pytest.mark.parametrize("wide", [False, True], ids=["narrow", "wide"])
@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("model", STREAMS, ids=str)
def test_partial_fit_interrupted_at_any_line_is_not_torn(
    model: Any, kind: str, wide: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if wide and isinstance(model, MahalanobisCenterClassifier):
        pytest.skip("a covariance of 1,000 features adds nothing to this test")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # a trace is of one thread
    data = KINDS[kind](WIDE if wide else X)

    def make() -> Any:
        return clone(model).partial_fit(data[:20], y[:20], classes=[0, 1])

    _check(make, lambda model: model.partial_fit(data[20:], y[20:]), data, step=41)


@pytest.mark.parametrize("model", FITS, ids=str)
def test_fit_interrupted_at_any_line_leaves_the_model_or_replaces_it(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")

    def make() -> Any:
        return quietly(clone(model).fit, X[:16], y[:16])

    _check(make, lambda model: model.fit(X, y + 1), X, step=97)


@pytest.mark.parametrize("model", STREAMS, ids=str)
def test_merge_interrupted_at_any_line_is_not_torn(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    S = scipy.sparse.csr_array(X)
    other = model.statistics(S[12:], y[12:])

    def bits(statistics: Any) -> list[Any]:
        found = [np.asarray(a).tobytes() for _, _, a in statistics._arrays()]
        return [*found, list(statistics.class_weight), list(statistics.count)]

    def make() -> Any:
        return model.statistics(S[:12], y[:12])

    states, at = [bits(make()), bits(make().merge(other))], 1
    while True:
        one = make()
        if not _interrupted(lambda one=one: one.merge(other), at):
            break
        assert bits(one) in states, f"torn by an interrupt at line {at}"
        at += 7
    assert at > 20
