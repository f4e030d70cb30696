"""What a fit on a Dask cluster refuses, and how its errors name the partition."""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import distributed
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
from distributed import Client, LocalCluster
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import gpucenters.dask
from gpucenters import GMEBClassifier, L1CenterClassifier, L2CenterClassifier
from gpucenters.dask import sums

pytestmark = WARNINGS


def test_what_is_divided_otherwise_is_refused_and_how_is_said(client: Client) -> None:
    fit, X = gpucenters.dask.fit, da.from_array(VALUES, chunks=(60, 6))
    y = da.from_array(LABELS, chunks=60)
    cases = [
        (lambda: fit(ON_SUMS[0], X, y.rechunk(120)), "X has 4 partitions, y has 2"),
        (
            lambda: fit(ON_SUMS[0], X, y.rechunk(((50, 70, 60, 60),))),
            "partition 0 has 60 rows of X, but 50 of y",
        ),
        (lambda: fit(ON_SUMS[0], X, LABELS[1:]), r"X has 240 rows, y has shape \(239,\)"),
        (
            lambda: fit(ON_SUMS[0], parts(VALUES), LABELS),
            "numbers of rows of X's partitions are not known",
        ),
        (
            lambda: fit(ON_SUMS[0], parts(VALUES), parts(LABELS, [0, 30, *EDGES[2:]])),
            r"partition [01]: X has (31|0) rows, but there are (30|1) labels",
        ),
        (lambda: fit(ON_SUMS[0], X, np.zeros(240, int)), "at least two classes"),
        (lambda: fit(L2CenterClassifier(k=0), X, y), "k=0"),
    ]
    for call, message in cases:
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match=r"Dask array or DataFrame.* got ndarray"):
        fit(ON_SUMS[0], VALUES, LABELS)
    with pytest.raises(TypeError, match="got LogisticRegression"):
        fit(LogisticRegression(), X, y)


def test_without_a_client_the_error_says_how_to_start_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Any:
        raise ValueError("No global client found")

    monkeypatch.setattr(distributed, "get_client", none)
    with pytest.raises(ValueError, match=r"no Dask client: start one"):
        gpucenters.dask.fit(ON_SUMS[0], da.from_array(VALUES, chunks=(60, 6)), LABELS)


@pytest.mark.parametrize("model", [ON_SUMS[0], *ON_MEDIANS[:1]], ids=name_of)
@pytest.mark.parametrize("sparse", [False, True])
def test_a_bad_value_is_named_by_partition_row_and_feature(
    client: Client, model: Any, sparse: bool
) -> None:
    X = VALUES.copy()
    X[95, 4] = np.nan
    X = sp.csr_array(X) if sparse else X
    with pytest.raises(ValueError, match=r"^partition 4: .*NaN.* feature 4 \(first in row 4\)"):
        gpucenters.dask.fit(model, parts(X), parts(LABELS))


def test_workers_with_another_version_are_named(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gpucenters.dask import partitions

    monkeypatch.setattr(partitions, "__version__", "99.0")
    X = da.from_array(VALUES, chunks=(60, 6))
    with pytest.raises(RuntimeError, match=r"worker .* has gpucenters .*, this process 99\.0"):
        gpucenters.dask.fit(ON_SUMS[0], X, LABELS)


NAMED = pd.DataFrame(VALUES, columns=list("abcdef"))
FIRST, SECOND = slice(0, 100), slice(100, 240)


@pytest.mark.parametrize(
    ("model", "lanes"), [(ON_SUMS[0], 1), (ON_SUMS[1], 2), (ON_MEDIANS[0], 2)], ids=["1", "2", "l1"]
)
def test_a_partition_of_other_features_is_named_with_what_differs(
    client: Client, model: Any, lanes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sums, "FEWEST_LANES", lanes)
    monkeypatch.setattr(sums, "MOST_LANES", lanes)
    other = NAMED[SECOND]
    cases = [
        (VALUES[FIRST], VALUES[SECOND, :5], "X has 5 features, but that of partition 0 has 6"),
        (VALUES[FIRST, :5], VALUES[SECOND], "X has 6 features, but that of partition 0 has 5"),
        (sp.csr_array(VALUES[FIRST]), sp.csr_array(VALUES[SECOND, :1]), "X has 1 features, but"),
        (NAMED[FIRST], other[list("abdcef")], "feature names .* 0: feature 2 is 'd', there 'c'"),
        (NAMED[FIRST], other.rename(columns={"f": "z"}), "feature 5 is 'z', there 'f'"),
        (VALUES[FIRST], VALUES[SECOND, 0], r"X must have two dimensions, got .* \(140,\)"),
        (VALUES[FIRST], VALUES[SECOND].tolist(), "X must be an array"),
        (VALUES[:101], VALUES[101:], "X has [0-9]+ rows, but there are [0-9]+ labels"),
    ]
    y = parts(LABELS, [0, 100, 240])
    for one, two, message in cases:
        X = [dask.delayed(one), dask.delayed(two, traverse=False)]
        with pytest.raises((TypeError, ValueError), match=f"^partition [01]: .*{message}"):
            gpucenters.dask.fit(model, X, y)


def test_predictions_of_a_partition_that_differs_name_it() -> None:
    model = L2CenterClassifier(k=2).fit(VALUES, LABELS)
    found = gpucenters.dask.predict(model, [*parts(VALUES), dask.delayed(VALUES[:, :5])])
    with pytest.raises(ValueError, match=r"^partition 7: X has 5 features"):
        found.compute(scheduler="synchronous")


def test_partitions_that_differ_are_refused_for_l1(client: Client) -> None:
    sparse, y = sp.csr_array(VALUES), parts(LABELS, [0, 100, 240])
    text = [y[0], parts(LABELS.astype(str), [0, 100, 240])[1]]
    cases = [
        (sparse[FIRST], VALUES[SECOND], y, "1: X is dense, and that of partition 0 is sparse"),
        (VALUES[FIRST], sparse[SECOND], y, "1: X is sparse, and that of partition 0 is dense"),
        (VALUES[FIRST], VALUES[SECOND], text, "1 are <U.*, those of partition 0 int64"),
    ]
    for one, other, labels, message in cases:
        with pytest.raises(TypeError, match=f"partition {message}"):
            gpucenters.dask.fit(L1CenterClassifier(), [*map(dask.delayed, (one, other))], labels)
    # Weights that are divided otherwise, and a class without weight.
    X = parts(VALUES, [0, 100, 240])
    lists = [y[0], dask.delayed(LABELS[100:].tolist(), traverse=False)]
    with pytest.raises(TypeError, match="partition 1: y must be an array"):
        gpucenters.dask.fit(L1CenterClassifier(), X, lists)
    with pytest.raises(ValueError, match=r"partition [01]: "):
        gpucenters.dask.fit(L1CenterClassifier(), X, y, parts(WEIGHTS, [0, 99, 240]))
    for data in (X, parts(sparse, [0, 100, 240])):
        weights = parts(1.0 * (LABELS > 0), [0, 100, 240])
        with pytest.raises(ValueError, match="class 0 is left without weight"):
            gpucenters.dask.fit(L1CenterClassifier(), data, y, weights)


def test_labels_of_a_partition_without_rows_are_refused(client: Client) -> None:
    X, y = parts(VALUES, [0, 240, 240]), [*parts(LABELS, [0, 240]), *parts(LABELS, [0, 3])]
    for model in (L2CenterClassifier(), L1CenterClassifier()):
        with pytest.raises(ValueError, match="partition 1: X has 0 rows, but there are 3 labels"):
            gpucenters.dask.fit(model, X, y)


@pytest.mark.parametrize(
    "model", [L2CenterClassifier(), L1CenterClassifier(), GMEBClassifier()], ids=name_of
)
def test_predictions_of_a_model_that_is_not_fitted_are_refused_at_once(model: Any) -> None:
    for name in ("predict", "predict_proba", "decision_function", "transform"):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(gpucenters.dask, name)(model, parts(VALUES))


def test_one_delayed_object_is_no_list_of_partitions(client: Client) -> None:
    with pytest.raises(TypeError, match=r"list of delayed objects .* got Delayed"):
        gpucenters.dask.fit(ON_SUMS[0], dask.delayed(VALUES), LABELS)


@pytest.mark.parametrize("model", [ON_SUMS[0], *ON_MEDIANS], ids=name_of)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_a_number_is_the_weight_of_all_rows_of_a_partition(
    client: Client, model: Any, sparse: bool
) -> None:
    X = COUNTS if sparse else COUNTS.toarray()
    sizes, numbers = np.diff(EDGES), [2, 5, 0, None, np.float64(3.0), np.asarray(2), 1]
    weights = [dask.delayed(w) for w in numbers]
    found = gpucenters.dask.fit(model, parts(X), parts(LABELS), weights)
    of_rows = np.repeat([1.0 if w is None else float(w) for w in numbers], sizes)
    same_bits(found, clone(model).fit(X, LABELS, sample_weight=of_rows))


def test_a_fit_in_a_task_does_not_wait_for_its_own_thread() -> None:
    counts, labels = COUNTS.toarray(), LABELS

    def fit(model: Any) -> Any:  # pickled by value: a worker does not know this file
        X, y = da.from_array(counts, chunks=(80, 30)), da.from_array(labels, chunks=80)
        return gpucenters.dask.fit(model, X, y)

    with (
        # (In a process of its own: the client that Dask makes in a task stays as the default one.)
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        tasks = [client.submit(fit, model) for model in (ON_SUMS[0], ON_MEDIANS[0])]
        for task in tasks:
            model = task.result(timeout=60)
            same_bits(model, clone(model).fit(COUNTS.toarray(), LABELS))
