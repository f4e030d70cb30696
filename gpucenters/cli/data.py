"""The data of a command: read, and made into features where they are texts."""

from __future__ import annotations

import codecs
import errno
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
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
    encoding: Annotated[
        str | None, _option("Of text; utf-8, or latin-1 of corpora.", metavar="NAME")
    ] = None
    zero_based: Annotated[
        bool, _option("Features of svmlight files count from 0.", "--zero-based")
    ] = False

    def read(self, source: str, n_features: int | None = None) -> Data:
        """All data of a file."""
        from ..readers import read

        return read(source, n_features=n_features, **self.resolved(source, "tsv"))

    def groups(self, source: str) -> Any:
        """The group of each sample, from a file as that of --labels."""
        from ..readers.data import Options
        from ..readers.labels import read_labels

        return read_labels(source, Options(encoding=self.encoding))

    def batches(
        self, source: str, rows: int, n_features: int | None = None, *, of_stdin: str = "tsv"
    ) -> Iterator[Data]:
        """The data of a file, so many rows at a time."""
        from ..readers import batches

        return batches(source, rows, n_features=n_features, **self.resolved(source, of_stdin))

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
        return options


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


def labelled(data: Data, source: str) -> Data:
    """The data, which must have labels."""
    if data.y is None:
        raise ValueError(
            f"{source} holds no labels: name their column with --label, or a file with --labels."
        )
    return data
