"""Texts as corpora publish them.

Sentiment140, and the sentences of MPQA, SST-2, TREC and others, are Latin-1 where nothing else is
said. IMDB and 20 Newsgroups have a folder for each class, and a file for each text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from .data import Data, Options, ReadError, counted, label_fault
from .lines import CsvRows, text_lines, too_large

_WITHOUT_LABELS = "unsup"  # of IMDB
_POLARITIES = {"0", "2", "4"}
_FIELDS = 6  # polarity, id, date, query, user, text
_SENTENCE = re.compile(r"(\d{1,9}) (.*)")


def tweet_batches(path: Any, rows: int, options: Options) -> Iterator[Data]:
    """Batches of Sentiment140: CSV without a header, the polarity first and the text last."""
    lines = text_lines(path, options.charset("latin-1"), options.limit(rows))
    return _of_pairs(_tweets(CsvRows(lines, path, ",")), rows)


def sentence_batches(path: Any, rows: int, options: Options) -> Iterator[Data]:
    """Batches of an .all file: a whole number, a space, and the text."""
    lines = text_lines(path, options.charset("latin-1"), options.limit(rows))
    return _of_pairs(_sentences(lines, path), rows)


def _of_pairs(pairs: Iterator[tuple[str, str]], rows: int) -> Iterator[Data]:
    while batch := list(islice(pairs, rows)):
        yield Data([text for _, text in batch], np.asarray([label for label, _ in batch]))


def _tweets(table: CsvRows) -> Iterator[tuple[str, str]]:
    for fields in table:
        if len(fields) != _FIELDS:
            what = f"this row has {counted(len(fields), 'field')}, not {_FIELDS}."
            raise table.error(what, min(len(fields), _FIELDS))
        if fields[0] not in _POLARITIES:
            raise table.error(f"the polarity {fields[0][:50]!r} is none of 0, 2 and 4.", 0)
        yield fields[0], fields[-1]


def _sentences(lines: Iterator[str], path: Any) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(lines, 1):
        text = line.rstrip("\r\n")
        found = _SENTENCE.fullmatch(text)
        if not found:
            what = f"{text[:20]!r} is no whole number and a space, as this line must begin."
            raise ReadError(path, what, number, 1)
        yield found.group(1), found.group(2)


def folder_batches(path: Any, rows: int, options: Options) -> Iterator[Data]:
    """Batches of the texts, class by class, in the order of their names."""
    if options.id not in (None, "file"):
        raise ReadError(
            path, f"the name of a text is that of its file: id='file', not {options.id!r}."
        )
    limit = options.limit(rows)
    read = _article if options.format == "newsgroups" else _text
    files, size = _files(path), 0
    while batch := list(islice(files, rows)):
        texts = []
        for _, file in batch:
            texts.append(read(file, options, limit))
            size += len(texts[-1])
            if size > limit:
                raise too_large(file, limit)
        ids = [str(file.relative_to(path)) for _, file in batch] if options.id else None
        yield Data(texts, np.asarray([label for label, _ in batch]), ids=ids)


def _files(path: Any) -> Iterator[tuple[str, Path]]:
    """(class, file) of each text."""
    for folder in _shown(Path(path)):
        if not folder.is_dir():
            raise ReadError(folder, "is a file beside the folders of the classes.")
        if folder.name == _WITHOUT_LABELS:
            continue
        if fault := label_fault(folder.name):
            raise ReadError(folder, fault)
        for file in _shown(folder):
            if file.is_dir():
                what = "is a folder in that of a class. Name the folder that holds those of the"
                raise ReadError(file, f"{what} classes, such as aclImdb/train.")
            yield folder.name, file


def _shown(folder: Path) -> list[Path]:
    return sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))


def _text(file: Path, options: Options, limit: float) -> str:
    return "".join(text_lines(file, options.charset(), limit)).removesuffix("\n")


def _article(file: Path, options: Options, limit: float) -> str:
    """The text of an article, without its header, which ends with an empty line."""
    lines = list(text_lines(file, options.charset("latin-1"), limit))
    ends = [number for number, line in enumerate(lines) if not line.strip()]
    if not ends:
        raise ReadError(file, "no empty line ends the header.", len(lines) or 1, 1)
    return "".join(lines[ends[0] + 1 :]).removesuffix("\n")
