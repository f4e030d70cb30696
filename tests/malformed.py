"""Small files of each format, and malformed ones that are made of them."""

from __future__ import annotations

import gzip
import io
import re
import warnings
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from gpucenters.readers import Data, ReadError

_rng = np.random.default_rng(5)
X = _rng.integers(0, 3, (7, 5)) * _rng.random((7, 5)).round(3)
Y = np.array([3, 1, 1, 3, 1, 3, 3])
NAMES = [f"ü{i}" for i in range(5)]
HEADED = 'label\ttext\n1\ta b\n0\t\n1\t"c, \u2028\x85\x0b\x0cd\r\n'


def outcome(make: Any, *args: Any, **options: Any) -> Any:
    """(samples, labels, names) of data or batches, or (what, line, column) of the error."""
    try:
        found = make(*args, **options)
        parts = [found] if isinstance(found, Data) else list(found)
    except ReadError as error:
        return re.sub(" at 0x[0-9a-f]+", "", str(error)), error.line, error.column
    samples: list[Any] = []
    for part in parts:
        values = part.X.toarray() if scipy.sparse.issparse(part.X) else part.X
        samples += values if part.is_text else values.tolist()
    y = None if parts[0].y is None else [label for part in parts for label in part.y.tolist()]
    names = None if parts[0].feature_names is None else parts[0].feature_names.tolist()
    return samples, y, names


def npy(array: Any, **changes: Any) -> bytes:
    """An array in the .npy format, whose header may say something else."""
    header = np.lib.format.header_data_from_array_1_0(array) | changes
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + array.tobytes()


def npz(**members: bytes) -> bytes:
    """An archive of .npy files."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


def _sparse() -> bytes:
    file = io.BytesIO()
    scipy.sparse.save_npz(file, scipy.sparse.csr_array(X), compressed=False)
    return file.getvalue()


_TEXTS = {
    "tsv": HEADED,
    "csv": 'id,text,label\n1,"a ""b"", \nc",x\r\n2,é,y\n3,"",z\n',
    "numbers.csv": 'a,b,label\n1,2.5,x\n-3,"4",y\n1e5,6,z\n',
    "txt": "öäü\nßéñ ñé\n\nfoür",
    "svmlight": "1 1:2 3:0.5 # a\n-1 qid:3 2:1e3\n\n1 1:1 2:2 3:3\n",
}
CORPORA = {
    "sentiment140": '"0","1","Mon","NO_QUERY","me","a, b"\n"4","2","Tue","NO_QUERY","me","c"\n',
    "all": "1 a b\n0 \n1 ,  c\n",
    "folder": "a\n\nb",
    "newsgroups": "From: me\n\na b\n\nc\n",
}
#: A well-formed file of each kind, by the end of its name.
SEEDS = {name: text.encode() for name, text in _TEXTS.items()}
SEEDS |= {f"{name}.gz": gzip.compress(content) for name, content in SEEDS.items()}
SEEDS |= {name: text.encode() for name, text in CORPORA.items()}
SEEDS |= {"npy": npy(X), "sparse.npz": _sparse()}
SEEDS["npz"] = npz(X=npy(X), y=npy(Y), feature_names=npy(np.array(NAMES)))
#: Names of formats that other libraries write, and of those that are no lines of text.
TABLES = ["parquet", "feather", "h5ad"]
NOT_OF_LINES = ("npy", "npz", *TABLES)
_FOLDERS = {"folder": "texts", "newsgroups": "20news-bydate"}


@cache
def table(name: str) -> bytes:
    """A table in a format that another library writes, with the values and labels from here."""
    file = io.BytesIO()
    if name == "h5ad":
        import anndata
        import h5py

        with h5py.File(file, "w") as h5, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            write = anndata.io.write_elem
            write(h5, "X", scipy.sparse.csr_matrix(X))
            for axis, columns in ("obs", {"label": Y}), ("var", {}):
                group, index = h5.create_group(axis), [str(i) for i in range(7 if columns else 5)]
                group.attrs.update({"_index": "_index", "column-order": list(columns)})
                write(group, "_index", np.array(NAMES if axis == "var" else index, dtype=object))
                for column, values in columns.items():
                    write(group, column, values)
        return file.getvalue()
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet

    found = pa.table(dict(zip([*NAMES, "label"], [*X.T, Y], strict=True)))
    if name == "parquet":
        pyarrow.parquet.write_table(found, file)
    else:
        pyarrow.feather.write_feather(found, file, compression="uncompressed")
    return file.getvalue()


def seed(name: str) -> bytes:
    """The well-formed file whose name ends so."""
    return table(name) if name in TABLES else SEEDS[name]


def place(folder: Path, name: str, content: bytes) -> Path:
    """The path of a file of some format: a folder of texts, one of them this, where it is one."""
    if name not in _FOLDERS:
        path = folder / f"data.{name}"
        path.write_bytes(content)
        return path
    path = folder / _FOLDERS[name]
    for label in ("a", "b"):
        (path / label).mkdir(parents=True, exist_ok=True)
        (path / label / "1").write_bytes(content if label == "b" else SEEDS[name])
    return path


_PIECES = rb"\t \n \r \0 \xff \x80 \xed\xa0\x80 1e999 0:1 nan : # - x , "
_INSERTS = [b" ", b'"', *(p.decode("unicode_escape").encode("latin-1") for p in _PIECES.split())]


def malformed(rng: np.random.Generator, content: bytes) -> bytes:
    """Content with one to three changes: bytes flipped, cut out, put in or doubled, or cut off."""
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(len(content) + 1))
        way = rng.integers(6)
        if way == 0:
            changed = (content[at : at + 1] or b"x")[0] ^ (1 << int(rng.integers(8)))
            content = content[:at] + bytes([changed]) + content[at + 1 :]
        elif way == 1:
            content = content[:at] + content[at + int(rng.integers(1, 9)) :]
        elif way == 2:
            content = content[:at]
        elif way == 3:
            content = content[:at] + content[max(at - 9, 0) : at] + content[at:]
        else:
            content = content[:at] + _INSERTS[rng.integers(len(_INSERTS))] + content[at:]
    return content
