"""Texts as corpora publish them: Sentiment140, and the sentences of MPQA, SST-2, TREC and others.

Both are Latin-1 where nothing else is said.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from .data import Data, Options
from .errors import ReadError, counted
from .lines import text_lines
from .rows import CsvRows

_POLARITIES = {"0", "2", "4"}
_FIELDS = 6  # polarity, id, date, query, user, text
_SENTENCE = re.compile(r"(\d{1,9}) (.*)")


def tweet_batches(path: Any, rows: int, options: Options) -> Iterator[Data]:
    """Batches of Sentiment140: CSV without a header, the polarity first and the text last."""
    return _of_pairs(_tweets(path, rows, options), rows)


def sentence_batches(path: Any, rows: int, options: Options) -> Iterator[Data]:
    """Batches of an .all file: a whole number, a space, and the text."""
    return _of_pairs(_sentences(path, rows, options), rows)


def _of_pairs(pairs: Iterator[tuple[str, str]], rows: int) -> Iterator[Data]:
    while batch := list(islice(pairs, rows)):
        yield Data([text for _, text in batch], np.asarray([label for label, _ in batch]))


def _lines(path: Any, rows: int, options: Options) -> Iterator[str]:
    limit = options.limit(streamed=rows < sys.maxsize)
    return text_lines(path, options.charset("latin-1"), limit)


def _tweets(path: Any, rows: int, options: Options) -> Iterator[tuple[str, str]]:
    table = CsvRows(_lines(path, rows, options), path)
    for fields in table:
        if len(fields) != _FIELDS:
            what = f"this row has {counted(len(fields), 'field')}, not {_FIELDS}."
            raise table.error(what, min(len(fields), _FIELDS))
        if fields[0] not in _POLARITIES:
            raise table.error(f"the polarity {fields[0][:50]!r} is none of 0, 2 and 4.", 0)
        yield fields[0], fields[-1]


def _sentences(path: Any, rows: int, options: Options) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(_lines(path, rows, options), 1):
        text = line.rstrip("\r\n")
        found = _SENTENCE.fullmatch(text)
        if not found:
            what = f"{text[:20]!r} is no whole number and a space, as this line must begin."
            raise ReadError(path, what, number, 1)
        yield found.group(1), found.group(2)
