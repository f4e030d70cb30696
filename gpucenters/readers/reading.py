"""Data from files: the format by the name, the whole file or batches of its rows, and their fit."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.pipeline import Pipeline

from ..text import make_vectorizer
from .arrays import array_batches, h5ad_batches
from .arrow import arrow_batches
from .batching import joined, with_labels, without_missing
from .corpora import folder_batches, sentence_batches, tweet_batches
from .data import Data, Options, ReadError, without_point
from .lines import COMPRESSED
from .svmlight import svmlight_batches
from .tables import line_batches, table_batches


class Format(NamedTuple):
    """A format of files.

    Attributes
    ----------
    batches : callable
        Gives the samples of a path, at most so many at a time, by options.
    options : frozenset of str
        The options that it has and not all formats have.
    remembered : tuple of str
        The options by which other data must be read as those of a model.
    suffixes : tuple of str
        The ends of names, besides its own.
    name : str
        A pattern of whole names, which says more than their ends.
    needs_file : bool
        Whether it is read at any place, as standard input cannot be.
    may_be_bare : bool
        Whether its columns may have no names.
    """

    batches: Callable[[Any, int, Options], Iterator[Data]]
    options: frozenset[str] = frozenset()
    remembered: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    name: str = ""
    needs_file: bool = False
    may_be_bare: bool = False


_COLUMNS = frozenset({"text", "drop", "label", "id"})
_FIELDS = frozenset({"sep", "header", "na", "decimal"})
_CELLS = frozenset({"label", "id", "layer", "raw"})
_TWEETS = r"(training\.1600000\.processed|testdata\.manual).*\.csv"
BY_NAME = {
    "tsv": Format(table_batches, _COLUMNS | _FIELDS, ("text",), may_be_bare=True),
    "csv": Format(table_batches, _COLUMNS | _FIELDS, ("text",)),
    "lines": Format(line_batches, suffixes=(".txt",)),
    "svmlight": Format(svmlight_batches, frozenset(), ("zero_based",), (".svm", ".libsvm")),
    "npz": Format(array_batches, needs_file=True),
    "npy": Format(array_batches, needs_file=True),
    "parquet": Format(arrow_batches, _COLUMNS, ("text",), (".pq",), needs_file=True),
    "feather": Format(arrow_batches, _COLUMNS, ("text",), (".arrow",), needs_file=True),
    "h5ad": Format(h5ad_batches, _CELLS, ("layer", "raw"), needs_file=True),
    "sentiment140": Format(tweet_batches, name=_TWEETS),
    "all": Format(sentence_batches, name=r"stsa\..*\.(train|dev|test)"),
    "folder": Format(folder_batches, frozenset({"id"}), needs_file=True),
    "newsgroups": Format(folder_batches, frozenset({"id"}), needs_file=True),
}
#: The formats that are read.
FORMATS = tuple(BY_NAME)
_FOREIGN = {".xlsx", ".xls", ".ods", ".json", ".jsonl", ".pkl", ".pickle", ".rds", ".mat", ".sav"}


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
    options = dict(locals())
    (data,) = _batches(options.pop("path"), sys.maxsize, Options(**options))
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


def fit_text(
    path: Any,
    estimator: Any,
    vectorizer: HashingVectorizer | None = None,
    *,
    rows: int = 10_000,
    progress: Callable[[int, int | None], None] | None = None,
    **options: Any,
) -> Pipeline:
    """Fit a model to a file of texts of which no more than a batch is in memory.

    One pass finds the labels, a second one hashes the texts and adds them batch by batch.

    Parameters
    ----------
    path : str or path-like
        A file of texts with labels: see `read`. It is read twice, so not "-".
    estimator : classifier with ``partial_fit``
        Its clone is fitted.
    vectorizer : HashingVectorizer, optional
        By default one that counts: ``HashingVectorizer(alternate_sign=False, norm=None)``. Others
        need all texts at once.
    rows : int, default=10,000
        Texts of a batch.
    progress : callable, optional
        Called after each batch with the number of texts so far and their total, which in the first
        pass is None.
    **options
        Those of `read`.

    Returns
    -------
    Pipeline
        With the steps "vectorizer" and "classifier", both fitted. The model is that of all texts at
        once: see ``partial_fit``.

    Raises
    ------
    TypeError
        For a model that cannot be fitted in batches, or another vectorizer.
    ReadError
        For a file that is not right, has no texts or no labels.
    """
    if not hasattr(estimator, "partial_fit"):
        raise TypeError(
            f"{type(estimator).__name__} cannot be fitted in batches, since its centers are no "
            "function of sums: read the whole file and fit it, or choose another model."
        )
    vectorizer = make_vectorizer("hashing") if vectorizer is None else clone(vectorizer)
    if not isinstance(vectorizer, HashingVectorizer):
        raise TypeError(
            f"{type(vectorizer).__name__} needs all texts at once: use a HashingVectorizer, or "
            "read the whole file and fit it."
        )
    if path == "-":
        raise ReadError(path, "a fit in batches reads twice, which needs a file.")
    report = progress or (lambda done, total: None)
    labels: set[Any] = set()
    total = done = 0
    for batch in batches(path, rows, **options):
        if not batch.is_text or batch.y is None:
            what = "texts" if not batch.is_text else "labels"
            raise ReadError(path, f"there are no {what} in it: name their column or file.")
        labels.update(batch.y.tolist())
        total += len(batch)
        report(total, None)
    model, classes = clone(estimator), sorted(labels)
    whole = without_point(
        np.asarray(classes)
    )  # of all batches, since one tells nothing of the others
    known = dict(zip(classes, whole.tolist(), strict=True)) if whole.dtype.kind == "U" else {}
    classes = sorted({*known.values()}) or classes
    for batch in batches(path, rows, **options):
        y: Any = batch.y
        y = np.asarray([known[label] for label in y.tolist()]) if known else y
        model.partial_fit(vectorizer.transform(batch.X), y, classes=classes)
        done += len(batch)
        report(done, total)
    return Pipeline([("vectorizer", vectorizer), ("classifier", model)])


def _batches(path: Any, rows: int, options: Options) -> Iterator[Data]:
    name = format_of(path, options)
    if name not in BY_NAME:
        raise ValueError(f"format={name!r} is not valid: use one of {', '.join(FORMATS)}.")
    format = BY_NAME[name]
    if path == "-" and format.needs_file:
        raise ReadError(path, f"{name} needs a file, which can be read at any place.")
    for option in _given(options):
        if option not in format.options:
            having = ", ".join(n for n, each in BY_NAME.items() if option in each.options)
            raise ReadError(path, f"{option}= is for {having}, and not for {name}.")
    _check(options)
    options = replace(options, format=name)
    found = format.batches(path, rows, options)
    if options.labels is not None:
        found = with_labels(found, path, options)
    if "drop" in format.options or options.missing == "drop":
        found = without_missing(found, path, options)
    if rows == sys.maxsize:
        found = iter(joined(found, path, options.limit()))
    empty = True
    for batch in found:
        empty = False
        yield batch
    if empty:
        place = () if format.needs_file else (1, 1)
        raise ReadError(path, "there are no samples.", *place)


def _check(options: Options) -> None:
    """Raise for an option that no file can be read by."""
    if options.missing not in ("error", "drop", "keep"):
        raise ValueError(f"missing={options.missing!r} is not valid: use error, drop or keep.")
    for name in ("sep", "decimal"):
        value = getattr(options, name)
        if value is not None and (len(value) != 1 or not value.isascii() or value in '\r\n"'):
            raise ValueError(f"{name}={value!r} is not valid: use one character, as ';'.")


def _given(options: Options) -> list[str]:
    """The options that are given and not for all formats."""
    plain = Options()
    special = frozenset[str]().union(*(format.options for format in BY_NAME.values()))
    return [n for n in vars(plain) if n in special and getattr(options, n) != getattr(plain, n)]


def format_of(path: Any, options: Options) -> str:
    """The format that is given, or that the name of a file or folder tells.

    Lines are a table where options of tables are given. Raises a ReadError for a name that tells
    nothing, and an OSError where there is no such file either.
    """
    if options.format is not None:
        return options.format
    name = _named_format(path)
    is_table = name == "lines" and (options.features is not None or _given(options))
    return "tsv" if is_table else name


def _named_format(path: Any) -> str:
    name = Path(os.fspath(path)).name.lower()
    for end in COMPRESSED:
        name = name.removesuffix(end)
    if path != "-" and Path(path).is_dir():
        return "newsgroups" if name.startswith(("20news", "20_news")) else "folder"
    suffix = Path(name).suffix
    for known, format in BY_NAME.items():
        if format.name and re.fullmatch(format.name, name):
            return known
    for known, format in BY_NAME.items():
        if suffix in (f".{known}", *format.suffixes):
            return known
    if path != "-":
        os.stat(path)  # a file that is not there has no format to tell
    if suffix in _FOREIGN:
        raise ReadError(path, f"{suffix} is not read: save the table as CSV or Parquet.")
    raise ReadError(path, f"its name tells no format: give format=, of {', '.join(FORMATS)}.")
