"""Options of commands: how they are declared, those that several share, and what they mean."""

from __future__ import annotations

import codecs
import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from ..readers import Data
    from ..readers.data import Options

_FEW = 20  # samples, of which classes may have one
#: Of the readers, which are not loaded for help.
_FORMATS = "tsv|csv|lines|svmlight|npz|npy|parquet|feather|h5ad|sentiment140|all|folder|newsgroups"
_SEPARATORS = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}


def option(help: str, *names: str, values: str = "", panel: str | None = None, **more: Any) -> Any:
    """An option of a command; with ``values``, as "error|drop", it takes no others."""
    if values:
        choices = values.split("|")

        def parse(text: str) -> str:
            if text not in choices:
                shown = ", ".join(map(repr, choices))
                raise typer.BadParameter(f"{text!r} is not one of {shown}.")
            return text

        def complete(incomplete: str) -> list[str]:
            return [value for value in choices if value.startswith(incomplete)]

        more = {"parser": parse, "autocompletion": complete, "metavar": values} | more
    return typer.Option(*names, help=help, rich_help_panel=panel, **more)


def device_option(help: str = "Where to work.", *, panel: str | None = None) -> Any:
    """The option of a device."""
    return option(help, "--device", "-d", metavar="auto|cpu|cuda|cuda:N", panel=panel)


def _check_share(value: float | None) -> float | None:
    if value is not None and not 0 < value < 1:
        raise typer.BadParameter(
            f"{value:g} leaves no samples on one side: use 0.2, as an example."
        )
    return value


def check_device(name: str) -> None:
    """Raise for a device that is unknown, or cannot be used, before any work."""
    from ..arrays.backend import resolve_backend

    try:
        resolve_backend(name, None)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _check_encoding(name: str | None) -> str | None:
    try:
        codecs.lookup(name or "utf-8")
    except LookupError:
        raise typer.BadParameter(f"--encoding {name} is none that Python knows.") from None
    return name


share_of_samples = partial(option, callback=_check_share)
DataPath = Annotated[
    str, typer.Argument(metavar="DATA", help="A file or folder of data; - is stdin.")
]
ModelPath = Annotated[str, typer.Argument(metavar="MODEL", help="A model file.")]
Device = Annotated[str, device_option()]
AsJson = Annotated[bool, option("Print JSON, for programs.", "--json")]
_of_data, _of_text = partial(option, panel="Data"), partial(option, panel="Text")


@dataclass(frozen=True)
class DataOptions:
    """How a file is read."""

    format: Annotated[
        str | None,
        _of_data(
            f"Where the name does not say it: {_FORMATS.replace('|', ', ')}.",
            values=_FORMATS,
            metavar="NAME",
        ),
    ] = None
    label: Annotated[
        str | None, _of_data("The column of labels.", "--label", "-l", metavar="NAME")
    ] = None
    labels: Annotated[str | None, _of_data("Labels in a file of their own.", metavar="FILE")] = None
    text: Annotated[str | None, _of_data("The column of texts.", metavar="NAME")] = None
    id: Annotated[
        str | None,
        _of_data(
            "The column of names of samples, which is no feature; of folders: file.", metavar="NAME"
        ),
    ] = None
    drop: Annotated[
        list[str] | None,
        _of_data("A column that is no feature; may be given more than once.", metavar="NAME"),
    ] = None
    sep: Annotated[
        str | None, _of_data("What separates the fields of a table: ';', tab, ...", metavar="CHAR")
    ] = None
    decimal: Annotated[
        str, _of_data("The decimal point of the numbers of a table.", metavar="CHAR")
    ] = "."
    header: Annotated[
        bool | None,
        _of_data(
            "Whether the first row of a table names the columns; else these are 1, 2, ...",
            "--header/--no-header",
        ),
    ] = None
    na: Annotated[
        str | None,
        _of_data(
            "Words for missing values in a table; by default NA, nan, ...", metavar="WORD,..."
        ),
    ] = None
    missing: Annotated[
        str | None,
        _of_data(
            "Missing values of tables are an error, their rows are left out, or they become the "
            "median of the feature: by default an error, or the medians that a model holds.",
            values="error|drop|median",
        ),
    ] = None
    encoding: Annotated[
        str | None,
        _of_data(
            "Of text; utf-8, or latin-1 of corpora.", metavar="NAME", callback=_check_encoding
        ),
    ] = None
    zero_based: Annotated[
        bool | None,
        _of_data(
            "Features of svmlight files count from 0: by default from 1, or as a model knows.",
            "--zero-based/--one-based",
        ),
    ] = None
    layer: Annotated[
        str | None, _of_data("The layer of .h5ad to read in place of X.", metavar="NAME")
    ] = None
    raw: Annotated[bool | None, _of_data("Read raw of .h5ad in place of X.", "--raw/--no-raw")] = (
        None
    )

    def read(
        self, source: str, n_features: int | None = None, features: list[str] | None = None
    ) -> Data:
        """All data of a file."""
        from ..readers import read

        return read(source, n_features=n_features, features=features, **self.of_readers(source))

    def read_labelled(self, source: str, fitted: Data | None = None) -> Data:
        """All data of a file, which must have labels; the columns are those of other data."""
        from ..readers import ReadError

        width = names = None
        if fitted is not None and not fitted.is_text:
            width = fitted.X.shape[1]
            names = None if fitted.feature_names is None else fitted.feature_names.tolist()
        data = self.read(source, width, names)
        if data.y is None:
            what = "it holds no labels: name their column with --label, or a file with --labels."
            raise ReadError(source, what)
        warn_of_many_classes(len(set(data.y.tolist())), len(data), source, is_text=data.is_text)
        return data

    def groups(self, source: str) -> Any:
        """The group of each sample, from a file as that of --labels."""
        from ..readers.batching import read_labels
        from ..readers.data import Options

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

        options = self.of_readers(source, of_stdin) | {"unlabelled": True}
        return batches(source, rows, n_features=n_features, features=features, **options)

    def of_readers(self, source: str, of_stdin: str = "tsv") -> dict[str, Any]:
        """The options of the readers, where stdin has a format of its own."""
        options = dict(vars(self))
        if source == "-" and self.format is None:
            options["format"] = of_stdin
        options["drop"] = self.drop or ()
        options["na"] = None if self.na is None else self.na.split(",")
        options["sep"] = None if self.sep is None else _SEPARATORS.get(self.sep, self.sep)
        options["missing"] = "keep" if self.missing == "median" else self.missing or "error"
        return options | {name: bool(options[name]) for name in ("zero_based", "raw")}

    def remembered(self, source: str) -> dict[str, Any]:
        """What a model has to know of how its data were read, to read others alike."""
        names = () if source == "-" and self.format is None else self._format(source).remembered
        return {name: getattr(self, name) for name in names}

    def completed(self, known: dict[str, Any], source: str) -> DataOptions:
        """The options where those that are not given are as a model knows them.

        Parameters
        ----------
        known : dict
            What `remembered` returned, and the medians of the features.
        source : str
        """
        given = self.remembered(source)
        if all(value is None for value in given.values()):
            given = {name: known.get(name) for name in given}
            text = given.get("text")
            if text and (
                (self.header is False and not text.isdecimal())  # columns are numbered
                or (self._format(source).may_be_bare and not self._has_column(source, text))
            ):
                given = {}
        missing = self.missing or ("median" if "medians" in known else None)
        if missing == "median" and "medians" not in known:
            raise ValueError("the model holds no medians: fit it with --missing median.")
        return replace(self, missing=missing, **given)

    def _has_column(self, source: str, name: str) -> bool:
        """Whether the first line of a table names a column; not looked up on stdin."""
        from ..readers.tables import first_fields

        return source != "-" and name in first_fields(source, self._resolved(source))

    def can_drop(self, source: str) -> bool:
        """Whether a column of the file can be left out by its name."""
        return "drop" in self._format(source).options

    def _resolved(self, source: str) -> Options:
        from ..readers.data import Options

        return Options(**self.of_readers(source))

    def _format(self, source: str) -> Any:
        from ..readers.reading import BY_NAME, format_of

        return BY_NAME[format_of(source, self._resolved(source))]


@dataclass(frozen=True)
class TestOptions:
    """Data that the model is not fitted to."""

    test: Annotated[str | None, option("Held-out data, for the accuracy.", metavar="FILE")] = None
    test_labels: Annotated[
        str | None, option("Labels of --test in a file of their own.", metavar="FILE")
    ] = None

    def files(self) -> list[str | None]:
        """The files that are read; raises for labels of nothing."""
        if self.test_labels is not None and self.test is None:
            raise typer.BadParameter("--test-labels are those of --test: name that file too.")
        return [self.test, self.test_labels]

    def read(self, reading: DataOptions, fitted: Data | None) -> Data | None:
        """These data, where there are some, by the columns of those that are fitted."""
        if self.test is None:
            return None
        return replace(reading, labels=self.test_labels).read_labelled(self.test, fitted)


@dataclass(frozen=True)
class TextOptions:
    """How texts become features."""

    vectorizer: Annotated[
        str, _of_text("Word counts, tf-idf, or counts by hash.", values="count|tfidf|hashing")
    ] = "count"
    analyzer: Annotated[
        str,
        _of_text(
            "N-grams of words, of characters, or of the characters of a word.",
            values="word|char|char_wb",
        ),
    ] = "word"
    ngrams: Annotated[
        str, _of_text("Words, or words and pairs (1,2), ...; of characters 2,4.", metavar="MIN,MAX")
    ] = "1,1"
    min_df: Annotated[str, _of_text("Least number (2) or share (0.01) of texts with a word.")] = "1"
    token_pattern: Annotated[str | None, _of_text("What a word is, as a regular expression.")] = (
        None
    )
    stop_words: Annotated[
        str | None,
        _of_text(
            "Words that are left out, one a line, or those of scikit-learn.",
            metavar="FILE|english",
        ),
    ] = None
    binary: Annotated[
        bool, _of_text("Whether a word is there, in place of its count.", "--binary")
    ] = False
    norm: Annotated[str, _of_text("Of the rows of tf-idf.", values="l2|l1|none")] = "l2"

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
        if self.analyzer != "word" and (self.token_pattern or self.stop_words):
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
                self.vectorizer,
                ngrams=(low, high),
                min_df=min_df,
                token_pattern=self.token_pattern,
                norm=None if self.norm == "none" else self.norm,
                binary=self.binary,
                analyzer=self.analyzer,
                stop_words=self._stop_words(),
            )
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error

    def _stop_words(self) -> str | list[str] | None:
        if self.stop_words in (None, "english"):
            return self.stop_words
        lines = Path(self.stop_words).read_text(encoding="utf-8-sig").splitlines()
        return [word for line in lines if (word := line.strip())]


def warn_of_many_classes(classes: int, samples: int, source: str, *, is_text: bool) -> None:
    """Warn where most samples have a class of their own, as where labels and texts are swapped."""
    from ..readers import ReadError

    if 2 * classes > samples > _FEW or (is_text and classes == samples > 2):
        advice = "name the column of labels by --label."
        if is_text:
            advice = "where texts stand in front of labels, say --no-header --text 1 --label 2."
        what = f"there are {classes:,} classes of {samples:,} samples, which may be no labels:"
        warnings.warn(f"{ReadError(source, what)} {advice}", stacklevel=2)


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer is to see it, with the options of its groups one by one.

    A parameter whose type is a dataclass is a group: an option for each field. A field whose
    metadata have types by name stands for as many options, and is a dict of those that are given.
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    found: list[tuple[str, Any, Any]] = []
    for given in inspect.signature(command).parameters.values():
        if given.name in groups:
            found += _options_of(groups[given.name])
        else:
            found.append((given.name, given.default, hints[given.name]))

    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = _made(group, given)
        command(**given)

    run.__name__ = command.__name__
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    run.__doc__ = "\n\n".join(" ".join(text.split()) for text in paragraphs)
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=of)
            for name, default, of in found
        ]
    )
    run.__annotations__ = {name: of for name, _, of in found}
    return run


def _options_of(group: Any) -> Iterator[tuple[str, Any, Any]]:
    """(name, default, type) of each option of a group."""
    types = get_type_hints(group, include_extras=True)
    for each in fields(group):
        if each.metadata:
            yield from ((name, None, kind) for name, kind in each.metadata.items())
        else:
            yield each.name, each.default, types[each.name]


def _made(group: Any, given: dict[str, Any]) -> Any:
    """A group of the options that are given, which are taken out of them."""
    values = {}
    for each in fields(group):
        if each.metadata:
            several = {name: given.pop(name) for name in each.metadata}
            values[each.name] = {name: of for name, of in several.items() if of is not None}
        else:
            values[each.name] = given.pop(each.name)
    return group(**values)
