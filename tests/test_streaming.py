"""Batches are added in place and atomically, and with little memory."""

from __future__ import annotations

import copy
import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from bits import bits
from sklearn.base import clone

from gpucenters import L2CenterClassifier
from gpucenters.reductions import class_sums, moments

rng = np.random.default_rng(0)
X = rng.poisson(0.7, (60, 8)).astype(np.float64)
y = np.arange(60) % 2


def _state(model: Any) -> list[Any]:
    return bits(model._fitted.statistics)


def _models() -> list[L2CenterClassifier]:
    return [L2CenterClassifier(), L2CenterClassifier(scale="std")]


@pytest.mark.parametrize("model", _models(), ids=str)
@pytest.mark.parametrize("wide", [False, True], ids=["narrow", "wide"])
@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array, scipy.sparse.csc_array])
def test_an_interrupted_batch_leaves_the_model_as_it_was(
    model: Any, wide: bool, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = clone(model)
    data = np.concatenate([X, np.zeros((60, 5000))], axis=1) if wide else X.copy()
    data[:, 0] += 1e6  # the moments of this column are kept centred
    model.partial_fit(kind(data[:40]), y[:40], classes=[0, 1])
    expected, predicted = _state(model), model.predict(kind(data))

    # The interrupt comes after some of the sums were added.
    add, merged = class_sums._add_in_partitions, class_sums.map_strips

    def interrupted(*arguments: Any) -> None:
        add(*arguments)
        raise KeyboardInterrupt("in the middle")

    def merged_in_part(*arguments: Any) -> Any:
        yield next(merged(*arguments))
        raise KeyboardInterrupt("in the middle")

    monkeypatch.setattr(class_sums, "_add_in_partitions", interrupted)
    for module in (class_sums, moments):
        monkeypatch.setattr(module, "map_strips", merged_in_part)
    with pytest.raises(KeyboardInterrupt, match="in the middle"):
        model.partial_fit(kind(data[40:43]), y[40:43])
    monkeypatch.undo()
    assert _state(model) == expected
    np.testing.assert_array_equal(model.predict(kind(data)), predicted)
    model.partial_fit(kind(data[40:]), y[40:])
    whole = type(model)(**model.get_params()).fit(kind(data), y)
    np.testing.assert_allclose(model.scores_, whole.scores_, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("model", _models(), ids=str)
def test_copies_of_a_stream_do_not_share_its_sums(model: Any) -> None:
    model = clone(model)
    S = scipy.sparse.csr_array(X)
    model.partial_fit(S[:30], y[:30], classes=[0, 1])
    other = model.with_k(2)
    moved = model.to("cpu")
    expected = _state(other)
    model.partial_fit(S[30:], y[30:])
    assert _state(other) == expected == _state(moved)
    other.partial_fit(S[30:], y[30:])
    assert _state(other) == _state(model)


@pytest.mark.parametrize("scale", [None, "std"])
def test_a_small_batch_of_very_wide_data_needs_little_memory(scale: str | None) -> None:
    m, rows = 12_000_000, 1000
    indices = np.sort(rng.choice(m, (rows, 20)), axis=1).ravel().astype(np.int32)
    indptr = np.arange(0, rows * 20 + 1, 20, dtype=np.int32)
    batch = scipy.sparse.csr_array((np.ones(rows * 20, np.float32), indices, indptr), (rows, m))
    labels = np.arange(rows) % 2
    model = L2CenterClassifier(k=10, scale=scale)
    model.partial_fit(batch, labels, classes=[0, 1])
    tracemalloc.start()
    try:
        model.partial_fit(batch, labels)
        assert tracemalloc.get_traced_memory()[1] < 10e6
    finally:
        tracemalloc.stop()
    assert model._fitted.statistics.count == [1000, 1000]


def test_a_sort_that_runs_out_of_memory_is_repeated_on_half_of_the_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from gpucenters import L1CenterClassifier
    from gpucenters.reductions import medians

    expected = L1CenterClassifier().fit(X, y)
    sort, widths = medians.sort_columns, []

    def short_of_memory(chunk: Any, *rest: Any) -> Any:
        widths.append(chunk.shape[1])
        if chunk.shape[1] > most:
            raise MemoryError
        return sort(chunk, *rest)

    monkeypatch.setattr(medians, "sort_columns", short_of_memory)
    most = 3
    model = L1CenterClassifier().fit(X, y)
    np.testing.assert_array_equal(model.scores_, expected.scores_)
    np.testing.assert_array_equal(model.centers_, expected.centers_)
    assert widths[0] == 8 and min(widths) == 2
    most = 0
    with pytest.raises(MemoryError, match="a column of 60 samples does not fit"):
        L1CenterClassifier().fit(X, y)


def test_sums_that_do_not_fit_say_how_much_they_need() -> None:
    wide = scipy.sparse.csr_array(([1.0], ([0], [0])), shape=(2, 2**44))
    with pytest.raises(MemoryError, match=r"2 classes x 17,592,186,044,416 features need"):
        L2CenterClassifier().fit(wide, [0, 1])


def test_verbose_shows_progress_and_quiet_does_not(
    capsys: pytest.CaptureFixture, tmp_path: Any
) -> None:
    from gpucenters import L1CenterClassifier

    path = tmp_path / "map"
    mapped = np.memmap(path, dtype=np.float64, mode="w+", shape=X.shape)
    mapped[:] = X
    L1CenterClassifier(memory_budget=1).fit(mapped, y)
    quiet = capsys.readouterr()
    assert quiet.out == quiet.err == ""
    model = L1CenterClassifier(memory_budget=4000, verbose=True).fit(mapped, y)
    loud = capsys.readouterr()
    assert "passes over X" in loud.err
    assert "L1CenterClassifier: 60 x 8" in loud.out
    np.testing.assert_array_equal(model.scores_, L1CenterClassifier().fit(X, y).scores_)


def test_sparse_medians_keep_to_the_budget(capsys: pytest.CaptureFixture) -> None:
    from gpucenters import L1CenterClassifier

    generator = np.random.default_rng(0)
    wide = scipy.sparse.random(3000, 400, 0.7, "csr", np.float32, generator)
    labels = np.arange(3000) % 2
    expected = L1CenterClassifier().fit(wide, labels)

    def peak(budget: str) -> float:
        tracemalloc.start()
        try:
            model = L1CenterClassifier(memory_budget=budget, verbose=True).fit(wide, labels)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
            np.testing.assert_array_equal(model.scores_, expected.scores_)
            np.testing.assert_array_equal(model.centers_, expected.centers_)

    assert peak("1GB") > 25e6
    assert "passes over X" not in capsys.readouterr().err
    assert peak("8MB") < 15e6
    assert "passes over X" in capsys.readouterr().err


@pytest.mark.parametrize("model", _models(), ids=str)
@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
def test_a_batch_for_a_copy_of_a_stream_does_not_change_the_stream(model: Any, kind: Any) -> None:
    model = clone(model).partial_fit(kind(X[:30]), y[:30], classes=[0, 1])
    expected = _state(model)
    whole = _state(copy.deepcopy(model).partial_fit(kind(X[30:]), y[30:]))
    for made in (lambda m: m.with_k(2), lambda m: m.to("cpu"), copy.copy, copy.deepcopy):
        for other in (made(model), made(made(model))):
            other.partial_fit(kind(X[30:]), y[30:])
            assert _state(model) == expected
            assert _state(other) == whole
