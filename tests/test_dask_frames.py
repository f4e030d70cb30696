"""Dask DataFrames, as of Parquet files: the rows of one partition of X, y and weights together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from clusters import (
    COUNTS,
    LABELS,
    ON_MEDIANS,
    ON_SUMS,
    VALUES,
    WARNINGS,
    WEIGHTS,
    name_of,
    same_bits,
)
from distributed import Client
from sklearn.base import clone

import gpucenters.dask
from gpucenters import L1CenterClassifier, L2CenterClassifier

pytestmark = WARNINGS

NAMES = [f"f{j}" for j in range(30)]
FRAME = pd.DataFrame(COUNTS.toarray().astype(float), columns=NAMES).assign(
    label=LABELS, weight=WEIGHTS, group=np.arange(240) // 60, text="of no use, and wide"
)
TWO = [ON_SUMS[1], ON_MEDIANS[0]]


@pytest.fixture
def table(tmp_path: Path) -> Any:
    """A function that gives the frame as a DataFrame of that many Parquet files."""

    def of_files(n: int) -> dd.DataFrame:
        edges = np.linspace(0, len(FRAME), n + 1).astype(int)
        for i in range(n):
            FRAME[edges[i] : edges[i + 1]].to_parquet(tmp_path / f"part.{i:02}.parquet")
        return dd.read_parquet(tmp_path)

    return of_files


@pytest.mark.parametrize("n_files", [2, 3, 10, 40])
def test_columns_of_parquet_files_fit_as_the_frame_in_memory(
    client: Client, table: Any, n_files: int
) -> None:
    t = table(n_files)
    weighted = t["weight"], WEIGHTS
    for model in [*ON_SUMS, *ON_MEDIANS] if n_files == 3 else TWO:
        for weight, weights in [weighted, (None, None)] if n_files < 10 else [weighted]:
            found = gpucenters.dask.fit(model, t[NAMES[:8]], t["label"], weight)
            local = clone(model).fit(FRAME[NAMES[:8]], LABELS, sample_weight=weights)
            same_bits(found, local)
            assert found.feature_names_in_.tolist() == NAMES[:8]
    predicted = gpucenters.dask.predict(found, t[NAMES[:8]])
    assert predicted.numblocks == (n_files,)
    assert np.array_equal(predicted.compute(), local.predict(FRAME[NAMES[:8]]))


@pytest.mark.parametrize("model", TWO, ids=name_of)
def test_columns_of_one_table_fit_however_they_are_taken(
    client: Client, table: Any, model: Any
) -> None:
    t, few = table(6), NAMES[:5]
    kept = t[t["f0"] > 0]
    extra = ["label", "weight", "group", "text"]
    cases = {
        "a filter": (kept[few], kept["label"], kept["weight"]),
        "filters of columns": (kept[few], t["label"][t["f0"] > 0], t["weight"][t["f0"] > 0]),
        "drop": (t.drop(columns=extra), t["label"], t["weight"]),
        "all values": (t[few].values, t["label"].values, t["weight"].values),
        "values of X": (t[few].values, t["label"], t["weight"]),
        "values of y": (t[NAMES].values, t["label"].values, t["weight"].to_dask_array()),
        "values of weights": (t[NAMES], t["label"], t["weight"].values),
        "fewer partitions": tuple(
            x.repartition(npartitions=3) for x in (t[few], t.label, t.weight)
        ),
    }
    for name, (X, y, weight) in cases.items():
        rows = FRAME["f0"] > 0 if "filter" in name else slice(None)
        columns = few if X.shape[1] == 5 else NAMES
        local = clone(model).fit(FRAME[rows][columns], LABELS[rows], sample_weight=WEIGHTS[rows])
        found = gpucenters.dask.fit(model, X, y, weight)
        same_bits(found, local)
        predicted = gpucenters.dask.predict_proba(found, X).compute()
        np.testing.assert_allclose(predicted, local.predict_proba(FRAME[rows][columns]), 1e-9)


def test_values_of_other_numbers_of_rows_are_refused(client: Client, table: Any) -> None:
    t = table(10)
    with pytest.raises(ValueError, match="X has 240 rows, y has 239"):
        gpucenters.dask.fit(ON_SUMS[0], t[NAMES].values, da.from_array(LABELS[1:], chunks=80))
    with pytest.raises(ValueError, match="X has 10 partitions, y has 5"):
        gpucenters.dask.fit(ON_SUMS[0], t[NAMES], t["label"].repartition(npartitions=5))


@pytest.mark.parametrize("model", TWO, ids=name_of)
def test_files_that_a_filter_leaves_out_are_partitions_without_rows(
    client: Client, tmp_path: Path, model: Any
) -> None:
    FRAME.to_parquet(tmp_path, partition_cols=["group"])
    t = dd.read_parquet(tmp_path, filesystem="arrow")
    kept, rows = t[t["group"] == 2], FRAME["group"] == 2
    local = clone(model).fit(FRAME[rows][NAMES], LABELS[rows])
    same_bits(gpucenters.dask.fit(model, kept[NAMES], kept["label"]), local)
    labels = dd.from_pandas(FRAME["label"].where(rows), npartitions=4).dropna()
    same_bits(gpucenters.dask.fit(model, kept[NAMES], labels.astype(int)), local)


def _half(part: pd.DataFrame) -> pd.DataFrame:
    return part.sample(frac=0.5)


@pytest.mark.parametrize("model", [L2CenterClassifier(), L1CenterClassifier()], ids=name_of)
def test_rows_that_are_drawn_at_random_keep_their_labels(client: Client, model: Any) -> None:
    t = dd.from_pandas(pd.DataFrame({"is": LABELS, "label": LABELS}), npartitions=4)
    drawn = t.map_partitions(_half)
    found = gpucenters.dask.fit(model, drawn[["is"]], drawn["label"])
    assert found.centers_.tolist() == [[0.0], [1.0], [2.0]]


READ: list[tuple[str, ...]] = []


def _read(i: int, columns: list[str] | None = None) -> pd.DataFrame:
    part = FRAME[60 * i : 60 * (i + 1)]
    part = part if columns is None else part[columns]
    READ.append(tuple(part.columns))
    return part


def test_files_are_read_once_for_labels_and_once_for_all_without_other_columns(
    client: Client,
) -> None:
    t = dd.from_map(_read, range(4), meta=FRAME[:0])
    READ.clear()
    gpucenters.dask.fit(ON_SUMS[0], t[NAMES[:5]], t["label"], t["weight"])
    assert READ[:4] == [("label",)] * 4
    assert READ[4:] == [(*NAMES[:5], "label", "weight")] * 4


def test_data_frames_keep_their_names_and_strings_their_labels(client: Client) -> None:
    frame = pd.DataFrame(VALUES, columns=list("abcdef")).assign(label=LABELS.astype(str))
    frame["label"] = frame["label"].astype(object)
    X = dd.from_pandas(frame, npartitions=4)
    for model in (ON_SUMS[1], ON_MEDIANS[0]):
        found = gpucenters.dask.fit(model, X[list("abcdef")], X["label"])
        local = clone(model).fit(frame[list("abcdef")], frame["label"])
        assert found.get_feature_names_out().tolist() == local.get_feature_names_out().tolist()
        np.testing.assert_allclose(found.scores_, local.scores_, rtol=1e-12)
        predicted = gpucenters.dask.predict(found, X[list("abcdef")])
        assert predicted.compute().tolist() == local.predict(frame[list("abcdef")]).tolist()
