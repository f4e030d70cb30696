"""Readers: what each format holds, batches of it, and what is wrong with a file, and where."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import pickle
import re
import sys
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from malformed import (
    CORPORA,
    HEADED,
    NAMES,
    NOT_OF_LINES,
    SEEDS,
    TABLES,
    X,
    Y,
    malformed,
    npy,
    npz,
    outcome,
    place,
    seed,
)
from sklearn.datasets import dump_svmlight_file

from gpucenters import L2CenterClassifier, SparseBernoulliNB
from gpucenters.readers import (
    FORMATS,
    ReadError,
    batches,
    fit_text,
    lines,
    read,
    tables,
)


def write(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


# --- what is read ------------------------------------------------------------------------------

TEXTS = ["a b", "", '"c, \u2028\x85\x0b\x0cd']
TEXT_FILES = {
    "headed.tsv": (HEADED, TEXTS, ["1", "0", "1"]),
    "bare.tsv": (HEADED.partition("\n")[2], TEXTS, ["1", "0", "1"]),
    "mark.tsv": ("\ufeff" + HEADED, TEXTS, ["1", "0", "1"]),
    "crlf.tsv": ("1\ta b\r\n0\t\r\n1\tc\r\n", ["a b", "", "c"], ["1", "0", "1"]),
    "no end.tsv": ("1\ta\n0\tb", ["a", "b"], ["1", "0"]),
    "other order.tsv": ("id\ttext\tlabel\n7\ta\tx\n8\tb\ty\n", ["a", "b"], ["x", "y"]),
    "no labels.tsv": ("text\na\n\nb\n", ["a", "", "b"], None),
    "quoted.csv": ('text,label\n"a ""b"", \nc",x\r\n\n" ",y', ['a "b", \nc', " "], ["x", "y"]),
    "no labels.csv": ("id,text\n1,a\n2,b\n", ["a", "b"], None),
    "texts.txt": ("a\tb\n\r\n\ufeffc", ["a\tb", "", "\ufeffc"], None),
}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("name", TEXT_FILES)
def test_texts(name: str, packed: bool, tmp_path: Path) -> None:
    content, texts, labels = TEXT_FILES[name]
    raw = content.encode()
    path = write(tmp_path / (name + ".gz" * packed), gzip.compress(raw) if packed else raw)
    data = read(path)
    assert data.is_text and texts == data.X and len(data) == len(texts)
    assert (data.y is None) == (labels is None)
    assert labels is None or data.y.tolist() == labels  # type: ignore[union-attr]
    for rows in (1, 2, 100):
        assert [len(b) <= rows for b in batches(path, rows)].count(False) == 0
        assert outcome(batches, path, rows) == (texts, labels, None)


def test_columns_by_name(tmp_path: Path) -> None:
    content = "a,b,label,text\n1,x,y,z\n"
    path = write(tmp_path / "data.csv", content)
    data = read(path, label="a", text="b")
    assert (data.X, data.y.tolist()) == (["x"], ["1"])  # type: ignore[union-attr]
    tabs = write(tmp_path / "data.tsv", content.replace(",", "\t"))
    assert outcome(read, tabs, text="label") == outcome(read, path, text="label")


def test_tables_of_numbers(tmp_path: Path) -> None:
    rows = [
        ",".join([f"{v!r}" for v in row.tolist()] + [str(y)]) for row, y in zip(X, Y, strict=True)
    ]
    content = "\n".join([",".join([*NAMES, "kind"]), *rows])
    expected = X.tolist(), Y.astype(str).tolist(), NAMES
    path = write(tmp_path / "data.csv", content)
    assert outcome(read, path, label="kind") == expected
    assert outcome(batches, path, 3, label="kind") == expected
    tabs = write(tmp_path / "data.tsv", content.replace(",", "\t"))
    assert outcome(read, tabs, label="kind") == expected
    assert outcome(read, path) == (np.c_[X, Y].tolist(), None, [*NAMES, "kind"])


PANDAS = pd.DataFrame({"a": [1.5, 2, 3], "b": [4.0, 5, -6], "class": ["x", "y", "x"]})
ROWS = [[1.5, 4], [2, 5], [3, -6]], ["x", "y", "x"], ["a", "b"]
R_ROWS = '"a"\t"b"\t"class"\n"1"\t1.5\t4\t"x"\n"2"\t2\t5\t"y"\n"3"\t3\t-6\t"x"\n'
WRITTEN: dict[str, tuple[Any, dict[str, Any]]] = {
    "index.csv": (PANDAS.to_csv(), {}),
    "twice.csv": (PANDAS.to_csv().replace(",a", "Unnamed: 0,a"), {}),
    "R write.table.tsv": (R_ROWS, {}),
    "R write.table.txt": (R_ROWS.replace("\t", " "), {"sep": " "}),
    "R write.csv2.csv": (PANDAS.to_csv(sep=";", decimal=","), {"sep": ";", "decimal": ","}),
    "quoted.csv": (PANDAS.to_csv(quoting=csv.QUOTE_ALL), {}),
    "bare.csv": (
        PANDAS.to_csv(header=False), {"header": False, "label": "4", "drop": ["1"]},
    ),
    "named index.csv": (PANDAS.to_csv(index_label="id"), {"id": "id"}),
    "excel.txt": (PANDAS.to_csv(sep="\t", index=False).encode("utf-16"), {}),
    "mark.csv": (PANDAS.to_csv(index=False).encode("utf-8-sig"), {"encoding": "latin-1"}),
    "bytes.csv": (PANDAS.to_csv(index=False).encode("utf-16-be"), {"encoding": "utf-16-be"}),
    "excel.csv": ("sep=;\n" + PANDAS.to_csv(sep=";", index=False), {}),
    "blank lines.csv": ("\n" + PANDAS.to_csv(index=False).replace("\n", "\n\n"), {}),
    "trailing commas.csv": (PANDAS.to_csv(index=False).replace("\n", ",\n"), {}),
    "windows.csv": (PANDAS.to_csv(index=False, lineterminator="\r\n"), {}),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*has no name, as an index")
@pytest.mark.parametrize("name", WRITTEN)
def test_tables_as_pandas_and_r_write_them(name: str, tmp_path: Path) -> None:
    content, options = WRITTEN[name]
    path = write(tmp_path / name, content)
    options = {"label": "class"} | options
    values, labels, names = outcome(read, path, **options)
    assert (values, labels) == ROWS[:2], values
    assert names == (["2", "3"] if "header" in options else ["a", "b"])
    assert outcome(batches, path, 2, **options) == (values, labels, names)


def test_a_name_with_a_space_is_one_column_where_the_separator_is_told(tmp_path: Path) -> None:
    for top, options in (("sep=;\n", {}), ("", {"sep": ","})):
        path = write(tmp_path / "x.csv", f"{top}my value\n1\n2\n")
        assert outcome(read, path, **options) == ([[1], [2]], None, ["my value"])


def test_a_space_in_the_name_of_the_only_column_is_no_separator(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "my value\n1\n2\n")
    assert outcome(read, path) == ([[1], [2]], None, ["my value"])
    with pytest.raises(ReadError, match=r"line 2, .* separates the fields, say sep=' '"):
        read(write(path, "my value\n1 2\n"))


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("sample class f0\ns0 B 1.5\n", {"label": "class"}),
        ("sample class f0\ns0 B 1.5\n", {"id": "sample"}),
        ("sample class f0\ns0 B 1.5\n", {"drop": ["sample"]}),
        ("sample class f0\ns0 B 1.5\n", {"features": ["f0"]}),
        ("kind words\na b\n", {"text": "words"}),
        ("1 2 3\n0 4 5\n", {"label": "1"}),
        ("1 2 3\n0 4 5\n", {"label": "1", "header": False}),
        ("1 \n1 4:1 17:1\n", {}),
    ],
)
def test_a_space_is_named_where_one_column_is_not_what_is_asked_for(
    content: str, options: dict[str, Any], tmp_path: Path
) -> None:
    path = write(tmp_path / "x.csv", content)
    with pytest.raises(ReadError, match=r"line 1, .* no comma .*, but ' ': .* sep=' '"):
        read(path, **options)
    with pytest.raises(ReadError, match=r"line 1, .* no comma .*, but ';': .* sep=';'"):
        read(write(path, "a b;c\n1;2\n"), label="c")


def test_a_space_of_prose_is_no_separator(tmp_path: Path) -> None:
    path = write(tmp_path / "x.txt", "a film of 2001\nfine\n")
    with pytest.raises(ReadError, match=r"is no number\. If the column is no feature"):
        read(path, header=False, format="csv")
    with pytest.raises(ReadError, match=r"no column 'f0', which the model takes; .* are '1'"):
        read(path, header=False, features=["f0"])


def test_an_index_is_left_out_and_named(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", PANDAS.to_csv())
    with pytest.warns(UserWarning, match=r"x.csv, line 1, column 1: column 1 has no name"):
        read(path, label="class")
    data = read(path, label="class", id="")
    assert data.ids == ["0", "1", "2"] and data.X.shape == (3, 2)


@pytest.mark.parametrize("first", [0, 1])
def test_a_first_column_that_counts_the_rows_is_warned_of(first: int, tmp_path: Path) -> None:
    frame = pd.DataFrame({"row": np.arange(first, first + 12), "a": 2.5, "b": range(12)})
    path = write(tmp_path / "x.csv", frame.to_csv(index=False))
    what = r"x.csv: the column 'row' counts the rows.* id='row' where .* or drop='row'"
    with pytest.warns(UserWarning, match=what):
        assert read(path).X.shape == (12, 3)
    with pytest.warns(UserWarning, match=what) as caught:
        assert sum(map(len, batches(path, 5))) == 12
    assert len(caught) == 1
    for options in ({"id": "row"}, {"drop": ["row"]}, {"features": ["row", "a"]}):
        read(path, **options)
    for values in ([*range(first, first + 11), 99], range(2, 14)):  # without a warning
        read(write(path, frame.assign(row=values).to_csv(index=False)))
    read(write(path, frame[:9].to_csv(index=False)))


@pytest.mark.parametrize("kind", ["infer", "bz2", "xz", "zip"])
def test_compressed_files(kind: Any, tmp_path: Path) -> None:
    path = tmp_path / f"x.csv.{kind}"
    PANDAS.to_csv(path, index=False, compression=kind)
    options = {"label": "class"} | ({"format": "csv"} if kind == "infer" else {})
    assert outcome(read, path, **options) == ROWS
    if kind == "infer":
        return
    whole = path.read_bytes()
    for content in (whole[:-20], whole[:40], whole[:30] + bytes(20) + whole[50:]):
        with pytest.raises(ReadError, match=r"line 1, column 1: .*damaged"):
            read(write(path, content), **options)
    write(path, whole)
    with zipfile.ZipFile(path, "w") as archive:
        for member in ("a.csv", "b.csv"):
            archive.writestr(member, "a")
    with pytest.raises(ReadError, match="the archive holds 2 files, and must hold one"):
        read(path, **options)


def test_missing_values_are_refused_left_out_or_kept(tmp_path: Path) -> None:
    content = "a,b,label\n1,2,x\nNA,3,y\n4,,x\n5,6,\n7,nan,None\n8,9,y\n"
    path = write(tmp_path / "x.csv", content)
    with pytest.raises(ReadError, match=r"line 3, column 1: the value in the column 'a' is miss"):
        read(path)
    for rows in (1, 2, 100):
        with pytest.warns(UserWarning, match=r"x.csv: 4 rows of 6 with missing values left out"):
            found = outcome(batches, path, rows, missing="drop")
        assert found == ([[1, 2], [8, 9]], ["x", "y"], ["a", "b"])
    with pytest.raises(ReadError, match="line 5, column 5: the label is empty"):
        read(path, missing="keep")
    kept = read(write(path, content.replace("5,6,\n7,nan,None\n", "")), missing="keep")
    np.testing.assert_array_equal(kept.X, [[1, 2], [np.nan, 3], [4, np.nan], [8, 9]])
    with pytest.raises(ReadError, match="line 2, column 5: the label 'None' stands for a missing"):
        read(write(path, "a,b,label\n1,2,None\n"))
    assert read(path, na=[""]).y.tolist() == ["None"]
    assert read(write(path, "text,label\na,None\n")).y.tolist() == ["None"]
    with pytest.raises(ReadError, match=r"line 2, column 3: the value .* is missing"):
        read(write(path, "a,b,label\n1,-9,x\n"), na=["-9"])
    with pytest.raises(ReadError, match="'-inf' in the column 'b' is not finite"):
        read(write(path, "a,b,label\n1,-inf,x\n"))


def test_labels_that_are_all_whole_numbers_are_the_same_with_and_without_a_point(
    tmp_path: Path,
) -> None:
    for labels, expected in (
        ("1.0 0 -1 0.00", ["1", "0", "-1", "0"]),
        ("1.0 1 1.1", ["1.0", "1", "1.1"]),
        ("007 7 7.0", ["007", "7", "7.0"]),
        ("1e5 1.0", ["1e5", "1.0"]),
    ):
        table = "\n".join(["a,label", *(f"{i},{x}" for i, x in enumerate(labels.split()))])
        path = write(tmp_path / "x.csv", table)
        assert read(path).y.tolist() == expected
        beside = write(tmp_path / "y.txt", labels.replace(" ", "\n"))
        assert read(path, labels=beside, drop=["label"]).y.tolist() == expected
    rows = [f"{label}\ttext of {label}\n" for label in ("1", "0.0", "1.0", "0")]
    texts = write(tmp_path / "x.tsv", "".join(rows))
    assert fit_text(texts, SparseBernoulliNB(k=2), rows=2).classes_.tolist() == ["0", "1"]


@pytest.mark.parametrize("by_arrow", [True, False], ids=["pyarrow", "python"])
def test_tables_are_read_alike_with_and_without_pyarrow(
    by_arrow: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    values = rng.standard_normal((300, 4)) * 10.0 ** rng.integers(-300, 300, (300, 4))
    frame = pd.DataFrame(values, columns=["a", 'b"', "c\nd", "e"])
    frame["label"] = rng.choice(["x", 'two "words"', "a,b", "line\nbreak", "é"], 300)
    path = tmp_path / "x.csv"
    frame.to_csv(path, index=False)
    if not by_arrow:
        monkeypatch.setattr(tables, "find_spec", lambda name: None)
    monkeypatch.setattr(tables, "_BLOCK", 1000)
    monkeypatch.setattr(tables, "_OF_COLUMN", 1)
    expected = values.tolist(), frame["label"].tolist(), frame.columns[:4].tolist()
    assert outcome(read, path) == expected
    assert outcome(batches, path, 7) == expected
    odd = write(path, "a,b\n+1,True\n\n 2 ,1e3\n\n3.,.5\n")
    assert outcome(read, odd) == ([[1, 1], [2, 1e3], [3, 0.5]], None, ["a", "b"])
    for cell in ("1_0", "0x1", "nan(1)", "1d0"):
        with pytest.raises(ReadError, match=r"line 3, column 3: .* is no number"):
            read(write(path, f"a,b\n1,2\n3,{cell}\n"))


def test_a_first_line_that_may_be_a_header_or_a_sample_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tsv", "text\ta b\nlabel\tc\n")
    with pytest.raises(ReadError, match=r"line 1, column 1: .*'text' and 'a b'.* header=False"):
        read(path)
    assert outcome(read, path, header=False) == (["a b", "c"], ["text", "label"], None)
    assert outcome(read, path, header=True) == (["label"], None, None)
    with pytest.raises(ReadError, match="this line holds numbers, as '1', where the names"):
        read(write(tmp_path / "x.csv", "1,4,x\n2,5,y\n"))
    with pytest.raises(ReadError, match="this line holds numbers, as '1', where the names"):
        read(write(tmp_path / "x.csv", "1,4,3\n2,5,4\n"), features=["1", "2"])
    with pytest.raises(ReadError, match="line 1, column 1: decimal=',' is the separator too"):
        read(tmp_path / "x.csv", decimal=",")
    counted = write(tmp_path / "x.csv", pd.DataFrame(X).to_csv(index=False))
    assert outcome(read, counted) == (X.tolist(), None, ["0", "1", "2", "3", "4"])


@pytest.mark.parametrize("zero_based", [False, True])
def test_svmlight(zero_based: bool, tmp_path: Path) -> None:
    path = tmp_path / "data.svm"
    dump_svmlight_file(X[:, :4], Y, path.as_posix(), zero_based=zero_based, comment="here")
    write(path, path.read_bytes().replace(b"\n3 ", b"\n\n # no row\n3 ") + b"2 # no values\r\n")
    options = {"zero_based": zero_based}
    expected = [*X[:, :4].tolist(), [0.0] * 4], [*Y.tolist(), 2], None
    assert outcome(read, path, **options) == expected
    assert outcome(batches, path, 2, **options) == expected
    assert read(path, **options).y.dtype == np.int64  # type: ignore[union-attr]
    wide = read(path, n_features=9, **options).X
    assert wide.shape == (8, 9) and wide[:, 4:].nnz == 0 and wide.format == "csr"
    marked = write(tmp_path / "marked.svm", codecs.BOM_UTF8 + path.read_bytes())
    assert outcome(read, marked, **options) == expected
    halves = write(tmp_path / "halves.libsvm", "0.5 qid:3 2:1e3\n-1 1:inf\n")
    assert outcome(read, halves) == ([[0, 1e3], [np.inf, 0]], [0.5, -1], None)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_sparsenpz(form: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    scipy.sparse.save_npz(path, getattr(scipy.sparse, f"{form}_{kind}")(X))
    np.save(tmp_path / "y.npy", Y)
    write(tmp_path / "y.txt", "\n".join(Y.astype(str)))
    assert outcome(read, path) == (X.tolist(), None, None)
    for labels, expected in ("y.npy", Y.tolist()), ("y.txt", Y.astype(str).tolist()):
        beside = {"labels": tmp_path / labels}
        assert outcome(read, path, **beside) == (X.tolist(), expected, None)
        assert outcome(batches, path, 3, **beside) == (X.tolist(), expected, None)
    assert read(path).X.format == "csr"


def test_npz_with_labels_and_names(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    parts: dict[str, Any] = {"y": Y, "feature_names": np.array(NAMES)}
    for save in (np.savez, np.savez_compressed):
        save(path, X=X, other=np.arange(3), **parts)
        assert outcome(read, path) == (X.tolist(), Y.tolist(), NAMES)
        assert outcome(batches, path, 2) == (X.tolist(), Y.tolist(), NAMES)
    A = scipy.sparse.csr_array(X)
    np.savez(
        path, format="csr", shape=A.shape, data=A.data, indices=A.indices, indptr=A.indptr, **parts
    )
    assert outcome(read, path) == (X.tolist(), Y.tolist(), NAMES)
    np.savez(path, X=X)
    assert outcome(read, path) == (X.tolist(), None, None)


def test_npy_is_mapped(tmp_path: Path) -> None:
    for order in "CF":
        np.save(tmp_path / "X.npy", np.asarray(X, order=order))
        np.save(tmp_path / "y.npy", Y.astype(str))
        beside = {"labels": tmp_path / "y.npy"}
        mapped = read(tmp_path / "X.npy", **beside).X
        assert isinstance(mapped, np.memmap) and not mapped.flags.writeable
        assert outcome(read, tmp_path / "X.npy", **beside) == (
            X.tolist(),
            Y.astype(str).tolist(),
            None,
        )
    np.save(tmp_path / "X.npy", np.zeros((len(Y), 10_000)))
    assert read(tmp_path / "X.npy", max_bytes=10_000, **beside).X.shape == (len(Y), 10_000)


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    def give(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))

    for content in (HEADED.encode(), gzip.compress(HEADED.encode())):
        give(content)
        assert read("-", format="tsv").X == TEXTS
        assert not sys.stdin.buffer.closed
    give(b"1 1:2\n2 0:3")
    with pytest.raises(ReadError, match="standard input, line 2, column 3: the index of '0:3'"):
        read("-", format="svmlight")
    give(b"a\nb\n")
    assert [b.X for b in batches("-", 1, format="lines")] == [["a"], ["b"]]
    for call in (
        lambda: read("-"),
        lambda: read("-", format="npz"),
        lambda: list(batches("-", 1, format="svmlight")),
        lambda: fit_text("-", L2CenterClassifier(), format="tsv"),
    ):
        with pytest.raises(ReadError, match="standard input: "):
            call()


def test_encodings(tmp_path: Path) -> None:
    path = write(tmp_path / "data.tsv", "é\tñ\n".encode("latin-1"))
    assert read(path, encoding="latin-1").X == ["ñ"]
    with pytest.raises(ValueError, match="encoding='utf-99' is none"):
        read(path, encoding="utf-99")


# --- what is wrong, and where ------------------------------------------------------------------

FAULTS: dict[str, tuple[str, Any, int, int, str]] = {
    "byte": ("tsv", b"x\ta\ny\tb\xc3\xa9\xe9\n", 2, 6, "byte 6 of the line, 0xe9, is not utf-8"),
    "utf-16 cut off": ("tsv", "x\ta\n".encode("utf-16")[:-1], 1, 1, "is not utf-16-le: truncated"),
    "utf-16 without a mark": ("tsv", "x\ta\n".encode("utf-16-le"), 1, 1, "encoding='utf-16-le'"),
    "no tab": ("tsv", "x\ta\nüy z\n", 2, 5, "has 1 field, not 2"),
    "a tab too many": ("tsv", "x\ta\nüü\tz\ty\n", 2, 6, "has 3 fields, not 2"),
    "blank line": ("tsv", "x\ta\n\ny\tb\n", 2, 1, "has 1 field"),
    "no label": ("tsv", "x\ta\n\tb\n", 2, 1, "the label is empty"),
    "NUL in a label": ("tsv", "good\ta\ngood\0\tb\n", 2, 1, "NUL"),
    "long label": ("csv", "text,label\na," + "x" * 1001, 2, 3, "1,001 characters"),
    "nothing": ("tsv", "", 1, 1, "no samples"),
    "a header alone": ("csv", "text,label\n", 1, 1, "no samples"),
    "labels alone": ("csv", "label\nx\n", 1, 1, "no column but that of the labels"),
    "names twice": ("csv", "text,label,text\n", 1, 12, "'text' is there 2 times"),
    "features twice": ("csv", "b,a,a,label\n", 1, 5, "'a' is there 2 times: rename .*drop='a'"),
    "open quote": ("csv", 'text,label\na,x\nb,"c""d\n\n', 3, 3, "quote that opens here"),
    "after a quote": ("csv", 'text,label\n"a\nb"c,x\n', 3, 3, "goes on after its closing"),
    "carriage return": ("csv", "text,label\na\rb,x\n", 2, 3, "carriage return"),
    "few fields": ("csv", 'text,label\n"a\nb"\n', 3, 3, "has 1 field, not 2"),
    "many fields": ("csv", 'text,label\n"a,\nb",x,y\n', 3, 6, "has 3 fields, not 2"),
    "empty label": ("csv", 'text,label\n"a\n""b",""\n', 3, 6, "label is empty"),
    "no number": ("csv", 'a,b\n1,2\n3,"x"\n', 3, 3, "'x' in the column 'b' is no number"),
    "thousands": (
        "csv",
        'a,b\n1,"1,234"\n',
        2,
        3,
        "Where ',' separates thous.* without it. Where the comma is a decimal point, write a point",
    ),
    "millions": ("csv", 'a,b\n1,"1,234,567.5"\n', 2, 3, "Where ',' separates .* without it.$"),
    "spaces": ("csv", "a,b\n1,1 234\n", 2, 3, "Where ' ' separates thousands, .* without it.$"),
    "comma in a cell": ("csv", 'a,b\n1,"1,5"\n', 2, 3, "number. Where the .* point, write a point"),
    "comma": (
        "tsv",
        "a\tb\tc\n1\t1,5\t2\n",
        2,
        3,
        "number. Where the comma .* point, say decimal=','",
    ),
    "quoted semicolons": ("csv", '"";"a";"b"\n"1";2;3\n', 1, 1, "but ';': name .* sep=';'"),
    "quoted spaces": ("csv", '"a" "b c"\n"1" 2 3\n', 1, 1, "but ' ': name .* sep=' '"),
    "quoted commas": ("tsv", '"a","b"\n1,2\n', 1, 1, "there is no tab .* but ',': .* sep=','"),
    "spaces without quotes": ("csv", "a b\n1 2 3\n", 2, 1, "is no number.* sep=' '"),
    "label": ("svmlight", "1 1:2\n a 1:2", 2, 2, "label 'a' is no finite"),
    "label nan": ("svmlight", "1 1:2\nnan 1:2", 2, 1, "label 'nan' is no finite"),
    "two labels": ("svmlight", "1,2 1:2", 1, 1, "label '1,2'"),
    "no colon": ("svmlight", "#\n1 1:2 3\n", 2, 7, "'3' is no index:value"),
    "index": ("svmlight", "1 1:2 x:3\n", 1, 7, "index of 'x:3' is no whole"),
    "zero": ("svmlight", "1 0:2\n", 1, 3, "less than 1. .*zero_based=True"),
    "negative": ("svmlight", "1 -3:2\n", 1, 3, "less than 1"),
    "order": ("svmlight", "1 2:2  2:3\n", 1, 8, "'2:3' is not larger"),
    "huge index": ("svmlight", "1 99999999999999999999:2\n", 1, 3, "is more than"),
    "large index": ("svmlight", "1 3000000000:2\n", 1, 3, "is more than"),
    "value": ("svmlight", "1 1:2\n\n1 1:2 2:\xff # 1:x", 3, 7, r"'2:\\xc3\\xbf' is no number"),
    "qid": ("svmlight", "1 qid\n", 1, 3, "'qid' is no index:value"),
}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("case", FAULTS)
def test_faults_are_located(case: str, packed: bool, tmp_path: Path) -> None:
    format, content, line, column, what = FAULTS[case]
    raw = content if isinstance(content, bytes) else content.encode()
    path = write(tmp_path / f"data.{format}", gzip.compress(raw) if packed else raw)
    for call in (lambda: read(path), lambda: list(batches(path, 1))):
        with pytest.raises(ReadError, match=what) as caught:
            call()
        assert (caught.value.line, caught.value.column) == (line, column)
        assert str(caught.value).startswith(f"{path}, line {line}, column {column}: ")
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_an_index_beyond_the_features_is_located(tmp_path: Path) -> None:
    path = write(tmp_path / "data.svm", "1 1:2\n1 2:1 6:1\n")
    with pytest.raises(ReadError, match=r"line 2, column 7: .*beyond the 5 features"):
        read(path, n_features=5)
    assert read(path, n_features=6).X.shape == (2, 6)


def test_damaged_gzip_names_the_file_and_the_line(tmp_path: Path) -> None:
    whole = gzip.compress(b"x\ta\n" * 100_000)
    for content in (whole[:-1], whole[:200], whole[:-8] + bytes(8), whole + b"more", whole[:2]):
        path = write(tmp_path / "data.tsv", content)
        with pytest.raises(ReadError, match=r"data.tsv, line \d+, column 1: the gzip data"):
            read(path)


def test_options_that_do_not_fit(tmp_path: Path) -> None:
    path = write(tmp_path / "data.csv", "text,label\na,x\n")
    for options, what in (
        ({"label": "z"}, r"line 1, column 1: there is no column 'z' for label=; .*'text', 'label'"),
        ({"text": "z"}, "no column 'z' for text="),
        ({"format": "lines", "text": "z"}, "text= is for tsv, .*, and not for lines"),
    ):
        with pytest.raises(ReadError, match=what):
            read(path, **options)
    with pytest.raises(ValueError, match=f"format='tab' is not valid: use one of {FORMATS[0]}, "):
        read(path, format="tab")
    with pytest.raises(ReadError, match=r"data: its name tells no format: give format=, of tsv, "):
        read(write(tmp_path / "data", ""))
    for end in ("xlsx", "json", "pkl"):
        with pytest.raises(ReadError, match=rf"\.{end} is not read: save .* as CSV or Parquet"):
            read(write(tmp_path / f"data.{end}", ""))
    with pytest.raises(ValueError, match="rows=0 is not valid"):
        batches(path, 0)
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "missing")
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "missing.npy")


def test_columns_without_names_are_counted_as_the_format_does(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", [[1, np.inf]])
    with pytest.raises(ReadError, match="row 1 of the column 1 is inf"):
        read(tmp_path / "x.npy", missing="drop")
    for base in (0, 1):
        path = write(tmp_path / "x.svm", f"1 {base}:1 {base + 1}:inf\n")
        with pytest.raises(ReadError, match=f"row 1 of the column {base + 1} is inf"):
            read(path, missing="drop", zero_based=base == 0)


def test_labels_beside_that_do_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "X.npy"
    np.save(path, X)
    for name, content, what in (
        ("few.txt", "a\nb\n", "few.txt: has 2 labels, and .*X.npy has more rows"),
        ("many.txt", "a\n" * 8, "many.txt: has 8 labels for 7 rows of .*X.npy"),
        ("gap.txt", "a\n\na\n", "gap.txt, line 2, column 1: the label is empty"),
        ("none.txt", "", "none.txt, line 1, column 1: there is no label"),
    ):
        labels = write(tmp_path / name, content)
        for found in outcome(read, path, labels=labels), outcome(batches, path, 2, labels=labels):
            assert re.search(what, found[0])
    np.save(tmp_path / "two.npy", X)
    with pytest.raises(ReadError, match="must be a row of numbers or strings"):
        read(path, labels=tmp_path / "two.npy")


# --- sizes that a file claims ------------------------------------------------------------------


def test_what_decompresses_to_too_much_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = b"x\t" + b"a" * 996 + b"\n"
    path = write(tmp_path / "rows.tsv.gz", gzip.compress(row * 10_000))
    with pytest.raises(ReadError, match=r"line 835, column 1: there are more than 1,000,000"):
        read(path, max_bytes=1_000_000)
    monkeypatch.setattr(lines, "LONGEST", 2**20)
    line = write(tmp_path / "line.tsv", gzip.compress(bytes(2**25)))
    tracemalloc.start()
    try:
        assert sum(len(batch) for batch in batches(path, 100)) == 10_000
        with pytest.raises(ReadError, match="line 1, column 1048576: the line has more than"):
            read(line)
        assert tracemalloc.get_traced_memory()[1] < 6 * 2**20
    finally:
        tracemalloc.stop()


def test_short_lines_count_with_the_objects_that_they_become(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.tsv", b"a\tb c\n" * 20_000)  # 120 kB, and 4 MB in memory
    tracemalloc.start()
    try:
        with pytest.raises(ReadError, match=r"there are more than 1,000,000 bytes to hold"):
            read(path, max_bytes=1_000_000)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()
    assert len(read(path, max_bytes=10_000_000)) == 20_000


class _Evil:
    def __reduce__(self) -> Any:
        return pytest.fail, ("a pickle was loaded",)


ARCHIVES = {
    "huge": (npz(X=npy(np.zeros((1, 2)), shape=(2**40, 2))), "X is of shape"),
    "negative": (npz(X=npy(np.zeros((1, 2)), shape=(-1, -2))), "X is of shape"),
    "bomb": (npz(X=npy(np.zeros((2**20, 4)))), "more than 1,000,000 bytes to hold"),
    "objects": (npz(X=npy(np.zeros(4), descr="|O")), "Python objects"),
    "text": (b"no archive", "is no .npz file"),
    "one number": (npz(X=npy(np.zeros(()))), "must be a table of numbers"),
    "strings": (npz(X=npy(np.array([["a"]]))), "must be a table of numbers, not <U1"),
    "no columns": (npz(X=npy(np.zeros((3, 0)))), "must be a table of numbers"),
    "no rows": (npz(X=npy(np.zeros((0, 3)))), "no samples"),
    "no X": (npz(Z=npy(np.zeros((3, 3)))), "neither an array X nor .*'Z'"),
    "few labels": (npz(X=npy(X), y=npy(Y[1:])), r"X has the shape \(7, 5\), and y \(6,\)"),
    "wide labels": (npz(X=npy(X), y=npy(X)), "labels must be a row"),
    "few names": (npz(X=npy(X), feature_names=npy(np.array(["a"]))), "feature_names must"),
}


@pytest.mark.parametrize("case", ARCHIVES)
def test_archives_that_are_not_right(case: str, tmp_path: Path) -> None:
    content, what = ARCHIVES[case]
    path = write(tmp_path / "data.npz", content)
    tracemalloc.start()
    try:
        with pytest.raises(ReadError, match=rf"data\.npz: .*{what}"):
            read(path, max_bytes=1_000_000)
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()


def test_pickles_are_never_read(tmp_path: Path) -> None:
    evil = np.array([[_Evil()]], dtype=object)
    for name in ("data.npy", "data.npz"):
        if name == "data.npy":
            np.save(tmp_path / name, evil, allow_pickle=True)
        else:
            np.savez(tmp_path / name, X=evil)
        with pytest.raises(ReadError, match=r"Python objects"):
            read(tmp_path / name)
        write(tmp_path / name, pickle.dumps(_Evil()))
        with pytest.raises(ReadError, match=f"is no {name[4:]} file of plain"):
            read(tmp_path / name)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"indices": np.array([9] * 3)}, "indices|index"),
        ({"indices": np.array([-1, 0, 1])}, "indices|index"),
        ({"indices": np.array([0.0, 1.0, 2.0])}, "whole numbers, not float64"),
        ({"indptr": np.array([0, 5, 1, 3])}, "ind"),
        ({"shape": np.array([2**40, 3])}, "index|indptr|shape"),
        ({"format": np.array("coo"), "row": np.array([9, 0, 0]), "col": np.arange(3)}, "row|index"),
        ({"format": np.array("csx")}, "format|csx"),
    ],
    ids=str,
)
def test_damaged_sparse_matrices(changes: Any, what: str, tmp_path: Path) -> None:
    A = scipy.sparse.csr_array(np.eye(3))
    parts = {"data": A.data, "indices": A.indices, "indptr": A.indptr, "shape": np.array(A.shape)}
    np.savez(tmp_path / "data.npz", **({"format": np.array("csr")} | parts | changes))
    with pytest.raises(ReadError, match=rf"data\.npz: .*({what})"):
        read(tmp_path / "data.npz")


def test_a_sparse_matrix_of_too_many_rows_is_not_made(tmp_path: Path) -> None:
    A = scipy.sparse.coo_array(([1.0], ([3], [0])), shape=(2**40, 1))
    scipy.sparse.save_npz(tmp_path / "data.npz", A)
    with pytest.raises(ReadError, match="to hold"):
        read(tmp_path / "data.npz")


# --- malformed files ---------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*has no name, as an index")
@pytest.mark.parametrize("name", [*SEEDS, *TABLES])
def test_malformed_files_give_errors_that_name_the_place(name: str, tmp_path: Path) -> None:
    path, content = place(tmp_path, name, seed(name)), seed(name)
    assert not isinstance(outcome(read, path)[0], str)
    refused = well_formed = 0
    wanted = 30 if name in (*TABLES, *CORPORA) else 300  # `make attack readers` has more
    for number in range(3000):
        content = malformed(np.random.default_rng([7, number]), seed(name))
        found = outcome(read, place(tmp_path, name, content), max_bytes=2**20)
        if isinstance(found[0], str):
            message, line, column = found
            assert message.startswith(str(path))
            assert name.endswith(NOT_OF_LINES) or (line >= 1 and column >= 1)
            refused += 1
        else:
            well_formed += 1
        if well_formed < 30 or isinstance(found[0], str):
            again = outcome(batches, path, 2, max_bytes=2**20)
            if name in TABLES and isinstance(again[0], str):
                assert isinstance(found[0], str)  # another fault may be met first
            else:
                np.testing.assert_equal(again, found)
        if refused == wanted:
            return
    raise AssertionError(f"only {refused} of 3,000 files were malformed")
