"""Models fitted on a Dask cluster: equal to the local fit, whatever the cluster does."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from clusters import (
    COUNTS,
    EDGES,
    LABELS,
    ON_MEDIANS,
    ON_SUMS,
    VALUES,
    WARNINGS,
    WEIGHTS,
    name_of,
    parts,
    same_bits,
)
from conftest import BACKENDS, cupy
from distributed import Client, LocalCluster, get_task_stream
from sklearn.base import clone
from stand_in import STAND_IN

import gpucenters.dask
from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    SparseBernoulliNB,
    SparseGaussianNB,
)
from gpucenters.arrays.namespace import to_numpy
from gpucenters.dask import medians, sums

pytestmark = WARNINGS


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("model", ON_SUMS + ON_MEDIANS, ids=name_of)
def test_counts_in_partitions_give_the_bits_of_the_local_fit(
    client: Client, model: Any, weights: Any
) -> None:
    kinds = [sp.csr_array, sp.csc_array, sp.csr_matrix]
    X = [dask.delayed(kinds[i % 3])(part) for i, part in enumerate(parts(COUNTS))]
    weight = None if weights is None else parts(weights)
    found = gpucenters.dask.fit(model, X, parts(LABELS), weight)
    same_bits(found, clone(model).fit(COUNTS, LABELS, sample_weight=weights))
    assert not hasattr(model, "_fitted")


@pytest.mark.parametrize(
    "model", [*ON_SUMS[:2], MahalanobisCenterClassifier(k=2), *ON_MEDIANS], ids=name_of
)
def test_floats_of_a_dask_array_give_the_local_fit_up_to_rounding_and_one_result(
    client: Client, model: Any
) -> None:
    X = da.from_array(VALUES, chunks=(37, 4))
    found = gpucenters.dask.fit(model, X, LABELS)
    local = clone(model).fit(VALUES, LABELS)
    assert found.support_.tolist() == local.support_.tolist()
    np.testing.assert_allclose(found.scores_, local.scores_, rtol=1e-12, atol=1e-12)
    # The same bits in another order of completion, by one worker.
    with dask.annotate(workers=[next(iter(client.scheduler_info()["workers"]))]):
        again = gpucenters.dask.fit(model, X, LABELS)
    assert np.array_equal(found.scores_, again.scores_)


def on_device(part: Any, device: int, sparse: bool) -> Any:
    """On a worker: a pickle would bring it to the current device."""
    with cupy.cuda.Device(device):
        X = cupy.asarray(part.toarray().astype(float))
        return BACKENDS["cupy"].sparse.csr_matrix(X) if sparse else X


@pytest.mark.skipif(not STAND_IN, reason="sets the number of devices")
@pytest.mark.parametrize("model", [*ON_SUMS[:3], *ON_MEDIANS], ids=name_of)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_partitions_of_several_devices_give_the_local_fit(
    client: Client, model: Any, sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sums, "FEWEST_LANES", 2)
    cupy._fake.set_device_count(3)
    try:
        X = [dask.delayed(on_device)(part, i % 3, sparse) for i, part in enumerate(parts(COUNTS))]
        found = gpucenters.dask.fit(model, X, parts(LABELS))
        local = clone(model).fit(COUNTS, LABELS)
        assert to_numpy(found.ranking_).tolist() == local.ranking_.tolist()
        np.testing.assert_allclose(to_numpy(found.scores_), local.scores_, rtol=1e-12)
        np.testing.assert_array_equal(found.to("cpu").predict(COUNTS), local.predict(COUNTS))
    finally:
        cupy._fake.set_device_count(1)


def test_one_weight_for_each_lane_does_not_change_exact_sums(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    edges = list(range(0, 241, 24))
    model, local = ON_SUMS[0], clone(ON_SUMS[0]).fit(COUNTS, LABELS)
    for fewest in (1, 3, 10):
        monkeypatch.setattr(sums, "FEWEST_LANES", fewest)
        found = gpucenters.dask.fit(model, parts(COUNTS, edges), parts(LABELS, edges))
        same_bits(found, local)


def test_lanes_depend_on_the_data_alone() -> None:
    assert sums.n_lanes(3, 10) == 3
    assert sums.n_lanes(1000, 10) == sums.MOST_LANES
    assert sums.n_lanes(1000, 2**28) == sums.FEWEST_LANES


def test_l1_ranges_are_cut_where_values_are_many(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(medians, "RANGE_VALUES", 300)
    for X in (COUNTS, VALUES):
        found = gpucenters.dask.fit(ON_MEDIANS[1], parts(X), parts(LABELS))
        same_bits(found, clone(ON_MEDIANS[1]).fit(X, LABELS))


def test_negative_values_count_on_their_own_side(client: Client) -> None:
    X = np.zeros((20, 3))
    X[:11, 0], X[11:, 0] = -1, 1  # all values differ from zero, no sign has more than 11 of 20
    X[:6, 1], X[6:10, 1] = -1, 1
    y = np.arange(20) // 10
    found = gpucenters.dask.fit(
        L1CenterClassifier(), parts(sp.csr_array(X), [0, 5, 20]), parts(y, [0, 5, 20])
    )
    same_bits(found, L1CenterClassifier().fit(sp.csr_array(X), y))
    assert found.scores_[0] > 0


def test_unknown_numbers_of_rows_and_futures_are_taken(client: Client) -> None:
    X = da.from_array(VALUES, chunks=(60, 6))
    y = da.from_array(LABELS, chunks=60)
    kept = X[y != 1], y[y != 1]
    found = gpucenters.dask.fit(ON_SUMS[0], *kept)
    local = clone(ON_SUMS[0]).fit(VALUES[LABELS != 1], LABELS[LABELS != 1])
    np.testing.assert_allclose(found.scores_, local.scores_, rtol=1e-12)
    futures = (
        client.scatter([COUNTS[:100], COUNTS[100:]]),
        client.scatter([LABELS[:100], LABELS[100:]]),
    )
    same_bits(gpucenters.dask.fit(ON_SUMS[2], *futures), clone(ON_SUMS[2]).fit(COUNTS, LABELS))


@pytest.mark.parametrize("sparse", [False, True])
def test_predictions_are_lazy_and_those_of_the_model(sparse: bool) -> None:
    X = COUNTS if sparse else COUNTS.toarray()
    model = SparseBernoulliNB(k=5).fit(X, LABELS)
    for name in ("predict", "predict_proba", "decision_function", "transform"):
        found = getattr(gpucenters.dask, name)(model, parts(X))
        expected = getattr(model, name)(X)
        assert isinstance(found, da.Array)
        assert found.dtype == (float if name == "transform" else expected.dtype)
        assert found.shape[1:] == expected.shape[1:]
        found = found.compute(scheduler="synchronous")
        assert sp.issparse(found) == sp.issparse(expected)
        if sp.issparse(found):
            found, expected = found.toarray(), expected.toarray()
        assert np.array_equal(found, expected)


def _load(i: int, folder: Path, fails: int) -> Any:
    """A partition whose source fails some times."""
    tries = len(list(folder.glob(f"{i}-*")))
    (folder / f"{i}-{tries}").touch()
    if i == 2 and tries < fails:
        raise OSError("the disk is gone")
    return COUNTS[EDGES[i] : EDGES[i + 1]]


@pytest.mark.parametrize("model", [ON_SUMS[0], *ON_MEDIANS[:1]], ids=name_of)
def test_a_partition_that_fails_once_is_tried_again_and_one_that_always_fails_is_named(
    client: Client, model: Any, tmp_path: Path
) -> None:
    def X(fails: int) -> list[Any]:
        folder = tmp_path / str(fails)
        folder.mkdir()
        return [dask.delayed(_load)(i, folder, fails) for i in range(len(EDGES) - 1)]

    found = gpucenters.dask.fit(model, X(1), parts(LABELS))
    same_bits(found, clone(model).fit(COUNTS, LABELS))
    with pytest.raises(RuntimeError, match="partition 2: OSError: the disk is gone"):
        gpucenters.dask.fit(model, X(99), parts(LABELS))


# --- a worker that dies ------------------------------------------------------------------------


def _slow(i: int, edges: list[int], folder: Path) -> Any:
    (folder / f"{i}-{os.getpid()}-{time.monotonic_ns()}").touch()
    time.sleep(0.05)
    return COUNTS[edges[i] : edges[i + 1]]


def test_a_worker_killed_in_the_middle_of_the_fit_changes_no_bit(tmp_path: Path) -> None:
    edges = list(range(0, 241, 6))
    n = len(edges) - 1
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as cluster,
        Client(cluster) as client,
    ):
        pids = list(client.run(os.getpid).values())

        def kill() -> None:
            while len(list(tmp_path.iterdir())) < n // 2:
                time.sleep(0.01)
            os.kill(pids[0], signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        X = [dask.delayed(_slow)(i, edges, tmp_path) for i in range(n)]
        found = gpucenters.dask.fit(ON_SUMS[0], X, parts(LABELS, edges), client=client)
        killer.join()
        assert pids[0] not in client.run(os.getpid).values()
    same_bits(found, clone(ON_SUMS[0]).fit(COUNTS, LABELS))


def test_numbers_that_are_objects_fit_as_numbers_do(client: Client) -> None:
    found = gpucenters.dask.fit(L1CenterClassifier(), parts(VALUES.astype(object)), parts(LABELS))
    same_bits(found, L1CenterClassifier().fit(VALUES, LABELS))


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_a_count_by_class_leaves_fewer_columns_for_l1(
    client: Client, weights: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(medians, "RANGE_VALUES", 1)  # a range for each column
    # The first column is there in a quarter of each class, the second in all of the first class.
    X = np.stack([np.arange(240) % 4 == 0, LABELS[0] == LABELS], axis=1) * 3.0
    weight = None if weights is None else parts(weights)
    X = sp.csr_array(X)
    with get_task_stream(client) as stream:
        found = gpucenters.dask.fit(L1CenterClassifier(), parts(X), parts(LABELS), weight)
    same_bits(found, L1CenterClassifier().fit(X, LABELS, sample_weight=weights))
    tasks = Counter(str(task["key"]).rsplit("-", 2)[0] for task in stream.data)
    n = len(EDGES) - 1
    assert tasks["gpucenters-read-labels"] == tasks["gpucenters-cut-columns"] == n
    assert tasks["gpucenters-count-entries"] == tasks["gpucenters-count-by-class"] == n
    assert sum("solve-columns" in str(task["key"]) for task in stream.data) == 1


def test_entries_stored_256_times_are_counted_for_l1(client: Client) -> None:
    # Of uint8, as whose sum the number of entries would be 0. Weights ask for a count by class.
    values = np.tile(np.r_[5, np.zeros(255)], 240).astype(np.uint8)
    columns = np.ones(values.size, int)
    X = sp.csr_array((values, columns, 256 * np.arange(241)), shape=(240, 2))
    found = gpucenters.dask.fit(L1CenterClassifier(), parts(X), parts(LABELS), parts(WEIGHTS))
    assert found.centers_.tolist() == [[0.0, 5.0]] * 3


@pytest.mark.parametrize("model", [L2CenterClassifier(k=4), L1CenterClassifier(k=2)], ids=name_of)
def test_partitions_of_several_types_keep_the_values_of_their_labels(
    client: Client, model: Any
) -> None:
    names = np.asarray([2**53, 2**53 + 1, 2**60])
    kinds = [
        lambda y: names[y],
        lambda y: names[y].astype("u8"),
        lambda y: pd.Series(names[y], dtype="Int64"),
        lambda y: pd.DataFrame({"y": pd.Series(names[y], dtype="uint64[pyarrow]")}),
    ]
    y = [
        dask.delayed(kinds[i % 4](LABELS[a:b]))
        for i, (a, b) in enumerate(itertools.pairwise(EDGES))
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of labels in a column, from threads of the workers
        found = gpucenters.dask.fit(model, parts(COUNTS), y, client=client)
    same_bits(found, clone(model).fit(COUNTS, names[LABELS]))
    in_memory = pd.Series(names[LABELS], dtype="Int64")
    X = da.from_array(COUNTS.toarray(), chunks=(100, -1))
    found = gpucenters.dask.fit(model, X, in_memory, client=client)
    same_bits(found, clone(model).fit(COUNTS.toarray(), names[LABELS]))


@pytest.mark.parametrize("beside", [[-1, 0], [1.0, 0.0]], ids=["negative", "floats"])
def test_labels_of_partitions_that_no_type_holds_are_refused(client: Client, beside: list) -> None:
    large = np.asarray([2**64 - 1, 2**53 + 1], dtype="u8")
    y = [dask.delayed(part) for part in (large, np.asarray(beside))]
    X = [dask.delayed(np.eye(2))] * 2
    with pytest.raises(ValueError, match=r"y holds (the integer 9007|integers from -1 to 1844)"):
        gpucenters.dask.fit(L2CenterClassifier(), X, y, client=client)


@pytest.mark.parametrize("class_weight", ["balanced", {0: 4, 2: 0.5}], ids=["balanced", "dict"])
@pytest.mark.parametrize("model", [SparseBernoulliNB(k=4), SparseGaussianNB(k=4)], ids=name_of)
def test_class_weights_are_those_of_all_partitions(
    client: Client, model: Any, class_weight: Any
) -> None:
    model = clone(model).set_params(class_weight=class_weight)
    found = gpucenters.dask.fit(model, parts(COUNTS), parts(LABELS), parts(WEIGHTS), client=client)
    expected = clone(model).fit(COUNTS, LABELS, sample_weight=WEIGHTS)
    assert found.class_weight == class_weight
    np.testing.assert_array_equal(found.ranking_, expected.ranking_)
    np.testing.assert_allclose(found.scores_, expected.scores_, rtol=1e-9)
    np.testing.assert_allclose(found.class_count_, expected.class_count_)
