"""Labels in a file of their own, beside the data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .arrays import check_labels, mapped
from .columns import label_fault
from .data import Data, Options
from .errors import ReadError, counted
from .lines import text_lines


def with_labels(batches: Iterator[Data], path: Any, options: Options) -> Iterator[Data]:
    """The batches with the labels beside them."""
    labels, start = read_labels(options.labels, options), 0
    held = counted(len(labels), "label")
    for batch in batches:
        stop = start + len(batch)
        if stop > len(labels):
            break
        yield replace(batch, y=labels[start:stop])
        start = stop
    else:
        if start == len(labels):
            return
        rows = counted(start, "row")
        raise ReadError(options.labels, f"has {held} for {rows} of {path}.")
    raise ReadError(options.labels, f"has {held}, and {path} has more rows.")


def read_labels(path: Any, options: Options) -> np.ndarray:
    """The labels of a .npy file, or of a text with one a line."""
    if str(path).endswith(".npy"):
        labels = mapped(path)
        check_labels(path, labels)
        return np.array(labels)
    found: list[str] = []
    for line in text_lines(path, options.charset(), options.limit()):
        label = line.rstrip("\r\n")
        if fault := label_fault(label):
            raise ReadError(path, fault, len(found) + 1, 1)
        found.append(label)
    if not found:
        raise ReadError(path, "there is no label.", 1, 1)
    return np.asarray(found)
