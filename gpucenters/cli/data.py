"""The data of a command: read, and made into features where they are texts."""

from __future__ import annotations

import codecs
import errno
import os
import re
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ..readers import Data


def _option(help: str, *names: str, panel: str = "Data", metavar: str | None = None) -> Any:
    return typer.Option(*names, help=help, metavar=metavar, rich_help_panel=panel)


DataPath = Annotated[
    str, typer.Argument(metavar="DATA", help="A file or folder of data; - is stdin.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


class Missing(StrEnum):
    """What becomes of missing values of tables."""

    ERROR = "error"
    DROP = "drop"
    MEDIAN = "median"


@dataclass(frozen=True)
class DataOptions:
    """How a file is read."""

    format: Annotated[
        str | None,
        _option(
            "Where the name does not say it: tsv, csv, lines, svmlight, npz, npy, parquet, "
            "feather, h5ad, sentiment140, all, folder, newsgroups.",
            metavar="NAME",
        ),
    ] = None
    label: Annotated[
        str | None, _option("The column of labels.", "--label", "-l", metavar="NAME")
    ] = None
    labels: Annotated[str | None, _option("Labels in a file of their own.", metavar="FILE")] = None
    text: Annotated[str | None, _option("The column of texts.", metavar="NAME")] = None
    id: Annotated[
        str | None,
        _option(
            "The column of names of samples, which is no feature; of folders: file.", metavar="NAME"
        ),
    ] = None
    drop: Annotated[
        list[str] | None,
        _option("A column that is no feature; may be given more than once.", metavar="NAME"),
    ] = None
    sep: Annotated[
        str | None, _option("What separates the fields of a table: ';', tab, ...", metavar="CHAR")
    ] = None
    decimal: Annotated[
        str, _option("The decimal point of the numbers of a table.", metavar="CHAR")
    ] = "."
    header: Annotated[
        bool | None,
        _option(
            "Whether the first row of a table names the columns; else these are 1, 2, ...",
            "--header/--no-header",
        ),
    ] = None
    na: Annotated[
        str | None,
        _option("Words for missing values in a table; by default NA, nan, ...", metavar="WORD,..."),
    ] = None
    missing: Annotated[
        Missing | None,
        _option(
            "Missing values of tables are an error, their rows are left out, or they become the "
            "median of the feature: by default an error, or the medians that a model holds."
        ),
    ] = None
    encoding: Annotated[
        str | None, _option("Of text; utf-8, or latin-1 of corpora.", metavar="NAME")
    ] = None
    zero_based: Annotated[
        bool | None,
        _option(
            "Features of svmlight files count from 0: by default from 1, or as a model knows.",
            "--zero-based/--one-based",
        ),
    ] = None
    layer: Annotated[
        str | None, _option("The layer of .h5ad to read in place of X.", metavar="NAME")
    ] = None
    raw: Annotated[bool | None, _option("Read raw of .h5ad in place of X.", "--raw/--no-raw")] = (
        None
    )

    def read(
        self, source: str, n_features: int | None = None, features: list[str] | None = None
    ) -> Data:
        """All data of a file."""
        from ..readers import read

        return read(source, n_features=n_features, features=features, **self.resolved(source))

    def read_beside(self, fitted: Data | None, test: str, labels: str | None) -> Data:
        """All test data, with labels in a file of their own or not, by the features of others."""
        width = names = None
        if fitted is not None and not fitted.is_text:
            width = fitted.X.shape[1]
            names = None if fitted.feature_names is None else fitted.feature_names.tolist()
        return replace(self, labels=labels).read(test, width, names)

    def groups(self, source: str) -> Any:
        """The group of each sample, from a file as that of --labels."""
        from ..readers.data import Options
        from ..readers.steps import read_labels

        return read_labels(source, Options(encoding=self.encoding))

    def batches(
        self,
        source: str,
        rows: int,
        n_features: int | None = None,
        features: list[str] | None = None,
        *,
        of_stdin: str = "tsv",
    ) -> Iterator[Data]:
        """The data of a file, so many rows at a time; labels may be missing."""
        from ..readers import batches

        options = self.resolved(source, of_stdin) | {"unlabelled": True}
        return batches(source, rows, n_features=n_features, features=features, **options)

    def resolved(self, source: str, of_stdin: str = "tsv") -> dict[str, Any]:
        """The options of the readers, where stdin has a format of its own."""
        from ..readers import FORMATS

        if self.format is not None and self.format not in FORMATS:
            raise typer.BadParameter(
                f"--format {self.format} is not known: use one of {', '.join(FORMATS)}."
            )
        try:
            codecs.lookup(self.encoding or "utf-8")
        except LookupError:
            raise typer.BadParameter(
                f"--encoding {self.encoding} is none that Python knows."
            ) from None
        options = dict(vars(self))
        if source == "-" and self.format is None:
            options["format"] = of_stdin
        options["drop"] = self.drop or ()
        options["na"] = None if self.na is None else self.na.split(",")
        options["sep"] = None if self.sep is None else _SEPARATORS.get(self.sep, self.sep)
        options["missing"] = "keep" if self.missing is Missing.MEDIAN else self.missing or "error"
        options |= {name: bool(options[name]) for name in ("zero_based", "raw")}
        return options

    def kept(self, source: str) -> dict[str, Any]:
        """What a model has to know of how its data were read, to read others alike."""
        names: dict[str, tuple[str, ...]] = {"svmlight": ("zero_based",), "h5ad": ("layer", "raw")}
        names |= dict.fromkeys(("csv", "parquet", "feather"), ("text",))  # whose columns have names
        of_format = names.get(self._format(source) or "", ())
        return {name: getattr(self, name) for name in of_format}

    def like(self, known: dict[str, Any], source: str) -> DataOptions:
        """The options where those that are not given are as a model knows them.

        Parameters
        ----------
        known : dict
            What `kept` returned, and the medians of the features.
        source : str
        """
        given = self.kept(source)
        if all(value is None for value in given.values()):
            given = {name: known.get(name) for name in given}
        missing = self.missing or (Missing.MEDIAN if "medians" in known else None)
        if missing is Missing.MEDIAN and "medians" not in known:
            raise ValueError("the model holds no medians: fit it with --missing median.")
        return replace(self, missing=missing, **given)

    def can_drop(self, source: str) -> bool:
        """Whether a column of the file can be left out by its name."""
        return self._format(source) not in ("npz", "npy", "h5ad")

    def _format(self, source: str) -> str | None:
        from ..readers.reading import format_of

        return self.format or (None if source == "-" else format_of(source))


_FEW = 20  # samples, of which classes may have one
_COUNTING = 8  # bytes for each character of a text while its words are counted
_SEPARATORS = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}


class Vectorizer(StrEnum):
    """What counts the words of texts."""

    COUNT = "count"
    TFIDF = "tfidf"
    HASHING = "hashing"


class Norm(StrEnum):
    """What the length of each text is measured by."""

    L2 = "l2"
    L1 = "l1"
    NONE = "none"


class Analyzer(StrEnum):
    """What n-grams are made of."""

    WORD = "word"
    CHAR = "char"
    CHAR_WB = "char_wb"


@dataclass(frozen=True)
class TextOptions:
    """How texts become features."""

    vectorizer: Annotated[
        Vectorizer, _option("Word counts, tf-idf, or counts by hash.", panel="Text")
    ] = Vectorizer.COUNT
    analyzer: Annotated[
        Analyzer,
        _option("N-grams of words, of characters, or of the characters of a word.", panel="Text"),
    ] = Analyzer.WORD
    ngrams: Annotated[
        str,
        _option(
            "Words, or words and pairs (1,2), ...; of characters 2,4.",
            panel="Text",
            metavar="MIN,MAX",
        ),
    ] = "1,1"
    min_df: Annotated[
        str, _option("Least number (2) or share (0.01) of texts with a word.", panel="Text")
    ] = "1"
    token_pattern: Annotated[
        str | None, _option("What a word is, as a regular expression.", panel="Text")
    ] = None
    stop_words: Annotated[
        str | None,
        _option(
            "Words that are left out, one a line, or those of scikit-learn.",
            panel="Text",
            metavar="FILE|english",
        ),
    ] = None
    binary: Annotated[
        bool, _option("Whether a word is there, in place of its count.", "--binary", panel="Text")
    ] = False
    norm: Annotated[Norm, _option("Of the rows of tf-idf.", panel="Text")] = Norm.L2

    def make(self) -> Any:
        """The vectorizer of scikit-learn, not fitted."""
        from ..readers import make_vectorizer

        try:
            low, high = (int(part) for part in self.ngrams.split(","))
            min_df = float(self.min_df) if "." in self.min_df else int(self.min_df)
            is_valid = 1 <= low <= high and (0 <= min_df <= 1 if "." in self.min_df else min_df > 0)
        except ValueError:
            is_valid = False
        if not is_valid:
            raise typer.BadParameter(
                f"--ngrams takes two numbers, as 1,2, and --min-df one from 1 or a share: got "
                f"{self.ngrams!r} and {self.min_df!r}."
            )
        if self.analyzer is not Analyzer.WORD and (self.token_pattern or self.stop_words):
            raise typer.BadParameter(
                "--token-pattern and --stop-words are for words: leave them out, or --analyzer."
            )
        try:
            re.compile(self.token_pattern or "")
        except re.error as error:
            raise typer.BadParameter(
                f"--token-pattern is no regular expression: {error}"
            ) from error
        try:
            return make_vectorizer(
                self.vectorizer.value,
                ngrams=(low, high),
                min_df=min_df,
                token_pattern=self.token_pattern,
                norm=None if self.norm is Norm.NONE else self.norm.value,
                binary=self.binary,
                analyzer=self.analyzer.value,
                stop_words=self._stop_words(),
            )
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error

    def _stop_words(self) -> str | list[str] | None:
        if self.stop_words in (None, "english"):
            return self.stop_words
        lines = Path(self.stop_words).read_text(encoding="utf-8-sig").splitlines()
        return [word for line in lines if (word := line.strip())]


def check_place(output: str | None, *others: str | None) -> None:
    """Raise for an output that cannot be written, before the work that leads to it.

    Parameters
    ----------
    output : str or None
        A new name, or a regular file, in a folder that exists; "-" is stdout.
    *others : str or None
        Files that the command reads or also writes, which the output would replace.
    """
    if output is None or output == "-":
        return
    folder = os.path.dirname(output)
    if folder and not os.path.isdir(folder):
        raise typer.BadParameter(f"the folder {folder!r} of the output does not exist.")
    for other in others:
        if other and other != "-" and _overwrites(output, other):
            raise typer.BadParameter(
                f"the output {output!r} would replace {other!r}, or lie in it."
            )
    if os.path.exists(output) and not os.path.isfile(output):
        raise typer.BadParameter(
            f"the output {output!r} is there, and is not a regular file: give another name."
        )
    if not os.access(folder or ".", os.W_OK):
        raise typer.BadParameter(f"no file can be written in the folder {folder or '.'!r}.")


def check_files(*paths: str | None) -> None:
    """Raise the OSError for a file that a command is to read later, and cannot."""
    for path in paths:
        if path is not None and path != "-":
            os.stat(path)
            if not os.access(path, os.R_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


def _overwrites(output: str, other: str) -> bool:
    """Whether two paths are one file, by any links, or the other a folder around the output."""
    if os.path.exists(output) and os.path.exists(other) and os.path.samefile(output, other):
        return True
    return Path(output).resolve().is_relative_to(Path(other).resolve())


def count_words(vectorizer: Any, texts: list[str], source: str) -> Any:
    """The features of the texts that a vectorizer is fitted to.

    Raises
    ------
    ValueError
        Where the memory that is free would most likely not do: Linux ends what takes more. Other
        systems swap, and do not say what is free.
    """
    from ..arrays.context import free_memory

    size, free = sum(map(len, texts)), free_memory()
    if _COUNTING * size > free and sys.platform == "linux":
        raise ValueError(
            f"{source} holds {size / 1e6:,.0f} million characters, whose words take about "
            f"{_COUNTING * size / 1e9:.1f} GB to count, and {free / 1e9:.1f} GB are free: read it "
            "in parts by --vectorizer hashing --batch-rows 10000."
        )
    return vectorizer.fit_transform(texts)


def labelled(data: Data, source: str) -> Data:
    """The data, which must have labels."""
    if data.y is None:
        raise ValueError(
            f"{source} holds no labels: name their column with --label, or a file with --labels."
        )
    warn_of_many_classes(len(set(data.y.tolist())), len(data), source, is_text=data.is_text)
    return data


def warn_of_many_classes(classes: int, samples: int, source: str, *, is_text: bool) -> None:
    """Warn where most samples have a class of their own, as where labels and texts are swapped."""
    if 2 * classes > samples > _FEW or (is_text and classes == samples > 2):
        advice = "name the column of labels by --label."
        if is_text:
            advice = "where texts stand in front of labels, say --no-header --text 1 --label 2."
        warnings.warn(
            f"{source}: there are {classes:,} classes of {samples:,} samples, which may be no "
            f"labels: {advice}",
            stacklevel=2,
        )
