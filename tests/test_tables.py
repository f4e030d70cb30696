"""Tables that other libraries write, AnnData files, and corpora in their published layouts."""

from __future__ import annotations

import sys
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import anndata
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.sparse
from malformed import NAMES, TABLES, X, Y, outcome, table

from gpucenters import L1CenterClassifier, L2CenterClassifier
from gpucenters.cli import main
from gpucenters.readers import ReadError, batches, read

KINDS = np.where(Y == 1, "x", "y")


def written(path: Path, frame: pd.DataFrame | pa.Table) -> Path:
    found = frame if isinstance(frame, pa.Table) else pa.Table.from_pandas(frame)
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(found, path, row_group_size=3)
    else:
        pyarrow.feather.write_feather(found, path, chunksize=3)
    return path


@pytest.fixture
def cells() -> Any:
    """An AnnData of the values and labels of `malformed`."""
    obs = pd.DataFrame({"type": pd.Categorical(KINDS), "batch": Y}, index=[f"c{i}" for i in Y])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return anndata.AnnData(
            scipy.sparse.csr_matrix(X), obs=obs, var=pd.DataFrame(index=pd.Index(NAMES))
        )


@pytest.mark.parametrize("kind", ["uint64", "int64"])
def test_large_integers_of_a_table_stay_labels_of_their_own(kind: str, tmp_path: Path) -> None:
    labels = [0, 5, 2**53, 2**53 + 1, 2**60, 1, 2**63 - 1 if kind == "int64" else 2**64 - 1]
    values = pa.array([0.5] * len(labels))
    path = written(tmp_path / "x.parquet", pa.table({"a": values, "label": pa.array(labels, kind)}))
    assert read(path).y.tolist() == labels
    assert [x for batch in batches(path, 2) for x in batch.y.tolist()] == labels


def test_labels_of_svmlight_that_would_lose_digits_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.svmlight"
    path.write_text(f"{2**53 - 1} 1:1\n{2**53 + 1} 1:2\n")
    with pytest.raises(ReadError, match=r"line 2.*2\*\*53 or more"):
        read(path)


@pytest.mark.parametrize("name", ["parquet", "feather"])
def test_typed_tables(name: str, tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=NAMES, index=[f"row {i}" for i in range(len(X))])
    frame["kind"] = pd.Categorical(KINDS)
    frame["ü1"] = frame["ü1"].astype(np.float32)
    path = written(tmp_path / f"data.{name}", frame)
    expected = frame[NAMES].to_numpy().tolist(), KINDS.tolist(), NAMES
    assert outcome(read, path, label="kind") == expected
    assert outcome(batches, path, 2, label="kind") == expected
    assert all(len(batch) <= 2 for batch in batches(path, 2, label="kind"))
    small = written(tmp_path / f"small.{name}", pa.table({"a": pa.array([1, 2], "int8")}))
    assert read(small).X.dtype == np.int8
    texts = pa.table({"text": ["a", "", "b\n"], "label": [0, 1, 1], "id": [7, 8, 9]})
    path = written(tmp_path / f"texts.{name}", texts)
    assert outcome(read, path) == (["a", "", "b\n"], [0, 1, 1], None)
    assert outcome(batches, path, 1) == outcome(read, path)


def test_h5ad(cells: Any, tmp_path: Path) -> None:
    path = tmp_path / "cells.h5ad"
    for matrix in (cells.X, cells.X.tocsc(), X, X.astype(np.float32)):
        for compression in (None, "gzip"):
            cells.X = matrix
            cells.write_h5ad(path, compression=compression)
            values = matrix.toarray() if scipy.sparse.issparse(matrix) else matrix
            expected = values.tolist(), KINDS.tolist(), NAMES
            assert outcome(read, path, label="type") == expected
            assert outcome(batches, path, 2, label="type") == expected
    assert read(path, label="batch").y.tolist() == Y.tolist()  # type: ignore[union-attr]
    assert read(path).y is None
    cells.obs.loc[cells.obs.index[3], "type"] = np.nan
    cells.write_h5ad(path)
    with pytest.raises(ReadError, match=r"cells.h5ad: in row \d of obs\['type'\] the label is mi"):
        read(path, label="type")


def test_layers_raw_and_cells_without_labels_of_h5ad(cells: Any, tmp_path: Path) -> None:
    path = tmp_path / "cells.h5ad"
    cells.obs_names = names = [f"c{i}" for i in range(len(Y))]
    cells.raw = cells
    cells.layers["twice"] = 2 * cells.X
    cells.obs["type"] = pd.Categorical([None, *KINDS[1:]])
    cells[:, :3].copy().write_h5ad(path)
    options = {"label": "type", "missing": "drop", "id": "_index"}
    for given, values in (({"layer": "twice"}, 2 * X[:, :3]), ({"raw": True}, X)):
        with pytest.warns(UserWarning, match="1 row of 7 with missing values left out"):
            data = read(path, **options, **given)
        assert data.X.toarray().tolist() == values[1:].tolist() and data.ids == names[1:]
        assert data.y.tolist() == KINDS[1:].tolist()
        assert data.feature_names.tolist() == NAMES[: values.shape[1]]
    with pytest.raises(ReadError, match=r"no layer 'x' for layer=; the layers are \['twice'\]"):
        read(path, layer="x")
    with pytest.raises(ReadError, match="X stays on disk, so that no rows without labels can go"):
        read(path, label="type", missing="drop", max_bytes=100)
    del cells.raw
    cells.write_h5ad(path)
    with pytest.raises(ReadError, match="there is no raw"):
        read(path, raw=True)


@pytest.mark.parametrize("name", ["parquet", "feather"])
def test_missing_values_of_typed_tables_are_located_left_out_or_kept(
    name: str, tmp_path: Path
) -> None:
    columns = {
        "a": pa.array([1, None, 3, 4], "int64"),
        "b": pa.array([0.5, 1, float("nan"), 2]),
        "label": pa.array([7, 8, 7, None], "int64"),
        "who": ["p", "q", "r", "s"],
    }
    path = written(tmp_path / f"x.{name}", pa.table(columns))
    with pytest.raises(ReadError, match="row 4 of the column 'label' the label is missing"):
        read(path, id="who", missing="keep")
    with pytest.raises(ReadError, match="row 3 of the column 'b' is missing: missing= says"):
        read(path, drop=["a", "who", "label"])
    for rows in (1, 9):
        with pytest.warns(UserWarning, match="3 rows of 4 with missing values left out"):
            (data,) = batches(path, rows, id="who", missing="drop")
        assert (data.X.tolist(), data.y.tolist(), data.ids) == ([[1, 0.5]], [7], ["p"])
    kept = read(path, drop=["label", "who"], missing="keep")
    np.testing.assert_array_equal(kept.X, [[1, 0.5], [np.nan, 1], [3, np.nan], [4, 2]])
    infinite = written(tmp_path / f"y.{name}", pa.table({"a": [1.0, np.inf]}))
    with pytest.raises(ReadError, match="row 2 of the column 'a' is inf, and not finite"):
        read(infinite)


def test_texts_of_folders_are_named_by_their_files(tmp_path: Path) -> None:
    for label in ("a", "b"):
        (tmp_path / "texts" / label).mkdir(parents=True)
        (tmp_path / "texts" / label / "1.txt").write_text(label)
    assert read(tmp_path / "texts", id="file").ids == ["a/1.txt", "b/1.txt"]
    with pytest.raises(ReadError, match="the name of a text is that of its file: id='file'"):
        read(tmp_path / "texts", id="x")


def test_x_that_is_too_large_to_hold_stays_on_disk(cells: Any, tmp_path: Path) -> None:
    for number, matrix in enumerate((cells.X, X)):
        path = tmp_path / f"{number}.h5ad"
        cells.X = matrix
        cells.write_h5ad(path)
        data = read(path, label="type", max_bytes=250)
        assert not isinstance(data.X, np.ndarray) and not scipy.sparse.issparse(data.X)
        assert len(data) == 7
        found = L2CenterClassifier(k=2).fit(data.X, data.y)
        expected = L2CenterClassifier(k=2).fit(matrix, KINDS)
        np.testing.assert_array_equal(found.scores_, expected.scores_)
        with pytest.raises(TypeError, match="to_memory"):
            L1CenterClassifier().fit(data.X, data.y)
    cells.X, path = scipy.sparse.csc_matrix(X), tmp_path / "by column.h5ad"
    cells.write_h5ad(path)
    with pytest.raises(ReadError, match="more than 250 bytes to hold"):
        read(path, label="type", max_bytes=250)


TWEET = '"{}","1","Mon","NO_QUERY","me","{}"\n'


def test_corpora(tmp_path: Path) -> None:
    tweets = tmp_path / "training.1600000.processed.noemoticon.csv"
    tweets.write_text(TWEET.format(0, "é, b") + TWEET.format(4, "c"), encoding="latin-1")
    assert outcome(read, tweets) == (["é, b", "c"], ["0", "4"], None)
    sentences = "1 a , b\n0 \n1 é\n"
    for name in ("mpqa.all", "stsa.binary.phrases.train"):
        (tmp_path / name).write_text(sentences, encoding="latin-1")
        expected = ["a , b", "", "é"], ["1", "0", "1"], None
        assert outcome(read, tmp_path / name) == expected
        assert outcome(batches, tmp_path / name, 2) == expected
    train = tmp_path / "aclImdb" / "train"
    for label, number, text in (("pos", 0, "é\nb\n"), ("neg", 0, "c"), ("unsup", 0, "d")):
        (train / label).mkdir(parents=True)
        (train / label / f"{number}_9.txt").write_text(text, encoding="utf-8")
    (train / "pos" / ".hidden").write_bytes(b"\xff")
    assert outcome(read, train) == (["c", "é\nb"], ["neg", "pos"], None)
    assert outcome(batches, train, 1) == outcome(read, train)
    with pytest.raises(ReadError, match=r"train/neg: is a folder in that of a class.*aclImdb/tr"):
        read(train.parent)
    with pytest.raises(ReadError, match="more than 3 bytes"):
        read(train, max_bytes=3)
    group = tmp_path / "20news-bydate-train" / "sci.space"
    group.mkdir(parents=True)
    (group / "60001").write_text("Newsgroups: sci.space\n\né\n\nb\n", encoding="latin-1")
    assert outcome(read, group.parent) == (["é\n\nb"], ["sci.space"], None)
    (group / "60002").write_text("From: me\nSubject: none")
    with pytest.raises(ReadError, match=r"sci.space/60002, line 2, column 1: no empty line ends"):
        read(group.parent)
    (group.parent / "README").write_text("")
    with pytest.raises(ReadError, match="README: is a file beside the folders"):
        read(group.parent)


FAULTS: dict[str, tuple[dict[str, list], dict[str, str], str]] = {
    "missing number": ({"a": [1, None]}, {}, "row 2 of the column 'a' is missing"),
    "missing text": ({"text": ["a", None]}, {}, "row 2 of the column 'text' is missing"),
    "missing label": ({"label": [1, None], "a": [1, 2]}, {}, "row 2 of the column 'label' the lab"),
    "empty label": ({"label": ["x", ""], "a": [1, 2]}, {}, "row 2 of .* the label is empty"),
    "no label": ({"label": [[1], [2]], "a": [1, 2]}, {}, "the column 'label' holds no labels"),
    "no number": ({"a": ["x", "y"]}, {}, "the column 'a' holds string, and no numbers"),
    "no text": ({"a": [1]}, {"text": "a"}, "row 1 of the column 'a' is no text"),
    "no column": ({"a": [1]}, {"label": "b"}, "no column 'b' for label=; the columns are 'a'"),
    "labels alone": ({"label": [1]}, {}, "no column but that of the labels"),
    "features twice": ({"a": [1], "b": [2]}, {}, "the column 'a' is there 2 times: rename all but"),
    "no rows": ({"a": []}, {}, "of .*null|no samples|no numbers"),
}


@pytest.mark.parametrize("name", ["parquet", "feather"])
@pytest.mark.parametrize("case", FAULTS)
def test_faults_of_tables_are_located(case: str, name: str, tmp_path: Path) -> None:
    columns, options, what = FAULTS[case]
    named = pa.table(columns)
    if case == "features twice":
        named = named.rename_columns(["a", "a"])
    path = written(tmp_path / f"data.{name}", named)
    for call in (lambda: read(path, **options), lambda: list(batches(path, 1, **options))):
        with pytest.raises(ReadError, match=rf"data\.{name}: .*{what}"):
            call()


@pytest.mark.parametrize("name", TABLES)
def test_what_is_too_large_to_hold_is_not_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"data.{name}"
    path.write_bytes(table(name))
    with pytest.raises(ReadError, match="more than 20 bytes to hold"):
        read(path, max_bytes=20)


def test_a_string_that_is_repeated_is_held_once(tmp_path: Path) -> None:
    text = pa.array(["x" * 10**5] * 200).dictionary_encode()
    path = written(tmp_path / "data.parquet", pa.table({"text": text}))
    assert path.stat().st_size < 10**6
    tracemalloc.start()
    try:
        assert sum(len(batch) for batch in batches(path, 100)) == 200
        with pytest.raises(ReadError, match="more than 10,000,000 bytes"):
            read(path, max_bytes=10_000_000)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000  # all rows: 20 MB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("name", "library"), [("parquet", "tables"), ("h5ad", "anndata")])
def test_a_library_that_is_missing_is_named(
    name: str, library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("pyarrow.parquet", "pyarrow.ipc", "anndata.io"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"{name} needs .*'gpucenters\[{library}\]'"):
        read(tmp_path / f"data.{name}")


def test_command_line(cells: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = pd.DataFrame(X, columns=NAMES).assign(type=KINDS)
    written(tmp_path / "table.parquet", frame)
    cells.write_h5ad(tmp_path / "cells.h5ad")
    model = str(tmp_path / "model")
    for name in ("table.parquet", "cells.h5ad"):
        data = [str(tmp_path / name), "--label", "type"]
        assert main(["fit", *data, "-o", model, "--k", "2"]) == 0
        assert main(["predict", model, *data, "-o", str(tmp_path / "found")]) == 0
        assert "of 7 samples" in capsys.readouterr().err
    folder = tmp_path / "aclImdb" / "train"
    for label, text in (("pos", "fine film"), ("neg", "dull film")):
        (folder / label).mkdir(parents=True)
        (folder / label / "0_1.txt").write_text(text)
    assert main(["fit", str(folder), "-o", model, "--k", "1"]) == 0
    assert "dull" in capsys.readouterr().out
