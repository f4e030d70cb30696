"""Texts in a folder for each class, a file for each text: as those of IMDB and of 20 Newsgroups."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from .columns import label_fault
from .data import Data, Options
from .errors import ReadError
from .lines import text_lines, too_large

_WITHOUT_LABELS = "unsup"  # of IMDB


def folder_batches(path: Any, rows: int, options: Options) -> Iterator[Data]:
    """Batches of the texts, class by class, in the order of their names."""
    if options.id not in (None, "file"):
        raise ReadError(
            path, f"the name of a text is that of its file: id='file', not {options.id!r}."
        )
    limit = options.limit(streamed=rows < sys.maxsize)
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
