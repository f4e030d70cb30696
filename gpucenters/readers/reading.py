"""Data from files: the format by the name, the whole file or batches of its rows."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .arrays import array_batches, h5ad_batches
from .arrow import arrow_batches
from .corpora import folder_batches, sentence_batches, tweet_batches
from .data import Data, Options, ReadError
from .lines import COMPRESSED
from .steps import joined, settled, with_labels
from .svmlight import svmlight_batches
from .tables import line_batches, table_batches

_READERS: dict[str, Callable[[Any, int, Options], Iterator[Data]]] = {
    "tsv": table_batches,
    "csv": table_batches,
    "lines": line_batches,
    "svmlight": svmlight_batches,
    "npz": array_batches,
    "npy": array_batches,
    "parquet": arrow_batches,
    "feather": arrow_batches,
    "h5ad": h5ad_batches,
    "sentiment140": tweet_batches,
    "all": sentence_batches,
    "folder": folder_batches,
    "newsgroups": folder_batches,
}
#: The formats that are read.
FORMATS = tuple(_READERS)
_SUFFIXES = {f".{name}": name for name in FORMATS} | {
    ".txt": "lines",
    ".svm": "svmlight",
    ".libsvm": "svmlight",
    ".pq": "parquet",
    ".arrow": "feather",
}
_FOREIGN = {".xlsx", ".xls", ".ods", ".json", ".jsonl", ".pkl", ".pickle", ".rds", ".mat", ".sav"}
#: Names that say more than their ends.
_NAMES = {
    r"(training\.1600000\.processed|testdata\.manual).*\.csv": "sentiment140",
    r"stsa\..*\.(train|dev|test)": "all",
}
_NOT_OF_LINES = {"npz", "npy", "parquet", "feather", "h5ad", "folder", "newsgroups"}
_OF_LINES, _FOLDERS = ("tsv", "csv"), ("folder", "newsgroups")
_TABLES = (*_OF_LINES, "parquet", "feather")
#: The formats that an option is for, where it is not for all.
_FOR = {
    **dict.fromkeys(("text", "drop"), _TABLES),
    **dict.fromkeys(("sep", "header", "na"), _OF_LINES),
    "decimal": _OF_LINES,
    "label": (*_TABLES, "h5ad"),
    "id": (*_TABLES, "h5ad", *_FOLDERS),
    "layer": ("h5ad",),
    "raw": ("h5ad",),
}


def read(
    path: Any,
    *,
    format: str | None = None,
    labels: Any = None,
    label: str | None = None,
    text: str | None = None,
    id: str | None = None,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    sep: str | None = None,
    decimal: str = ".",
    header: bool | None = None,
    na: Sequence[str] | None = None,
    missing: str = "error",
    encoding: str | None = None,
    n_features: int | None = None,
    zero_based: bool = False,
    layer: str | None = None,
    raw: bool = False,
    max_bytes: int | None = None,
) -> Data:
    r"""The samples of a file.

    Parameters
    ----------
    path : str or path-like
        "-" is standard input, for formats of lines. Lines may be plain, or compressed by gzip, bz2
        or xz, or alone in a zip archive, whatever the name.
    format : str, default=None
        One of `FORMATS`; None reads it off the name.

        - "tsv" (.tsv): fields between tabs. ``label<TAB>text``, or named columns; texts have no
          quotes, unless each field of the first line has.
        - "csv" (.csv): commas and quotes as RFC 4180 has them; the first row names the columns.
        - "lines" (.txt): one text a line.
        - "svmlight" (.svmlight, .svm, .libsvm): a number, and index:value, with ascending indices.
        - "npz": a sparse matrix that SciPy has saved, or the array ``X``; and, where they are
          there, ``y`` and ``feature_names``.
        - "npy": a dense array, which is mapped, not read.
        - "parquet" (.parquet, .pq), "feather" (.feather, .arrow): columns by name, as of "csv";
          needs pyarrow. An index of pandas is left out.
        - "h5ad" (.h5ad): the ``X`` of an AnnData, CSR or dense, its ``var_names``, and a column of
          ``obs`` as labels; needs anndata. An X of more than ``max_bytes`` stays on disk, from
          where models that class statistics determine read it in parts.
        - "sentiment140" (training.1600000.processed*): polarity first, text last, no header.
        - "all" (.all; stsa*): a number, a space and a text, as MPQA, SST-2 and TREC have them.
        - "folder" (a folder): one folder for each class, with a file for each text, as IMDB's
          aclImdb/train; ``unsup`` is left out.
        - "newsgroups" (a folder named 20news* or 20_news*): the same, of articles whose header
          is left out, since it names the class.
    labels : str or path-like, optional
        A file with the labels: .npy, or one label a line. In place of those in the file.
    label, text : str, optional
        The columns of labels and of texts in tables; by default those named "label" and "text", if
        there are any. Without texts, all columns but the labels are numbers. A column without a
        name is left out with a warning, since it is an index that pandas or R has written. Where
        all labels are whole numbers as text, "1.0" is read as "1".
    id : str, optional
        The column of the names of samples, which become ``ids``; "" is the one without a name. Of
        "h5ad" a column of ``obs`` or its index, of a folder "file".
    drop : sequence of str, default=()
        Columns that are no features.
    features : sequence of str, optional
        The columns of numbers in tables that are read, if they are there; by default all others.
    sep : str, optional
        The character between the fields of "csv" or "tsv". With it ".txt" is a table.
    decimal : str, default="."
        The decimal point of numbers in "csv" and "tsv".
    header : bool, optional
        Whether the first row of "csv" or "tsv" names the columns; without one, columns are named
        "1", "2", and so on. By default a row that holds nothing but numbers, or "text" beside
        another word, is refused, since it may be either.
    na : sequence of str, optional
        What stands for a missing number or label in "csv" and "tsv"; by default the words of
        pandas, such as "", "NA" and "nan", and beside texts "" alone.
    missing : {"error", "drop", "keep"}, default="error"
        Whether missing values of tables are an error, their rows are left out with a warning, or
        numbers become NaN.
    encoding : str, optional
        Of text. By default "utf-8", and "latin-1" of "sentiment140", "all" and "newsgroups". A byte
        order mark overrules it.
    n_features : int, optional
        The number of columns of "svmlight"; by default its largest index.
    zero_based : bool, default=False
        Whether the first column of "svmlight" has the index 0. Never guessed: of two files, the one
        without that column would be read wrongly.
    layer : str, optional
        The layer of "h5ad" to read in place of X.
    raw : bool, default=False
        Whether to read the X and ``var_names`` of ``raw`` of "h5ad".
    max_bytes : int, optional
        How much may be held in memory, decompressed, and for each line some 200 bytes more, which
        Python's objects take; by default half of what is free.

    Returns
    -------
    Data

    Raises
    ------
    ReadError
        A ValueError that names file, line and column, for content that is not right.
    ImportError
        For a format that needs a library which is not installed.
    OSError
        For a file that cannot be opened.

    Examples
    --------
    >>> import os, tempfile
    >>> from gpucenters.readers import read
    >>> path = os.path.join(tempfile.mkdtemp(), "reviews.tsv")
    >>> with open(path, "w") as file:
    ...     _ = file.write("label\ttext\ngood\ta fine film\nbad\tdull\n")
    >>> data = read(path)
    >>> data.X, data.y.tolist()
    (['a fine film', 'dull'], ['good', 'bad'])
    """
    (data,) = _batches(
        path,
        sys.maxsize,
        Options(
            format=format,
            labels=labels,
            label=label,
            text=text,
            id=id,
            drop=drop,
            features=features,
            sep=sep,
            decimal=decimal,
            header=header,
            na=na,
            missing=missing,
            encoding=encoding,
            n_features=n_features,
            zero_based=zero_based,
            layer=layer,
            raw=raw,
            max_bytes=max_bytes,
        ),
    )
    return data


def batches(path: Any, rows: int, **options: Any) -> Iterator[Data]:
    """The samples of a file, some at a time: lines are never held beyond a batch.

    Parameters
    ----------
    path : str or path-like
    rows : int
        The most samples of a batch.
    **options
        Those of `read`, and ``unlabelled=True`` by which missing labels are masked, as of rows to
        predict. ``max_bytes`` is for what is read whole: .npz, and labels beside.

    Yields
    ------
    Data

    Raises
    ------
    ReadError, OSError
        As `read`, when the batch is asked for.
    """
    if rows < 1:
        raise ValueError(f"rows={rows!r} is not valid: use a number of rows, from 1.")
    return _batches(path, rows, Options(**options))


def _batches(path: Any, rows: int, options: Options) -> Iterator[Data]:
    plain = Options()
    given = {name for name in _FOR if getattr(options, name) != getattr(plain, name)}
    format = options.format or format_of(path)
    if options.format is None and format == "lines" and (given or options.features is not None):
        format = "tsv"
    if format not in FORMATS:
        raise ValueError(f"format={format!r} is not valid: use one of {', '.join(FORMATS)}.")
    if path == "-" and format in _NOT_OF_LINES:
        raise ReadError(path, f"{format} needs a file, which can be read at any place.")
    for name, formats in _FOR.items():
        if format not in formats and name in given:
            raise ReadError(path, f"{name}= is for {', '.join(formats)}, and not for {format}.")
    _check(options)
    options = replace(options, format=format)
    found = _READERS[format](path, rows, options)
    if options.labels is not None:
        found = with_labels(found, path, options)
    if format in _TABLES or options.missing == "drop":
        found = settled(found, path, options)
    if rows == sys.maxsize:
        found = joined(found, path, options.limit())
    empty = True
    for batch in found:
        empty = False
        yield batch
    if empty:
        place = () if format in _NOT_OF_LINES else (1, 1)
        raise ReadError(path, "there are no samples.", *place)


def _check(options: Options) -> None:
    """Raise for an option that no file can be read by."""
    if options.missing not in ("error", "drop", "keep"):
        raise ValueError(f"missing={options.missing!r} is not valid: use error, drop or keep.")
    for name in ("sep", "decimal"):
        value = getattr(options, name)
        if value is not None and (len(value) != 1 or not value.isascii() or value in '\r\n"'):
            raise ValueError(f"{name}={value!r} is not valid: use one character, as ';'.")


def format_of(path: Any) -> str:
    """The format that the name of a file or folder tells.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    str
        One of `FORMATS`.

    Raises
    ------
    ReadError
        For a name that tells none.
    OSError
        Where there is no such file either.
    """
    name = Path(os.fspath(path)).name.lower()
    for end in COMPRESSED:
        name = name.removesuffix(end)
    if path != "-" and Path(path).is_dir():
        return "newsgroups" if name.startswith(("20news", "20_news")) else "folder"
    special = (format for pattern, format in _NAMES.items() if re.fullmatch(pattern, name))
    format = next(special, None) or _SUFFIXES.get(Path(name).suffix)
    if format is None:
        if path != "-":
            os.stat(path)  # a file that is not there has no format to tell
        known = ", ".join(FORMATS)
        if (end := Path(name).suffix) in _FOREIGN:
            what = f"{end} is not read: save the table as CSV or Parquet."
            raise ReadError(path, what)
        raise ReadError(path, f"its name tells no format: give format=, of {known}.")
    return format
