"""Malformed files of all formats: an error that names the place, the same for each way to read.

A file is read whole, in batches, and compressed: the outcomes must be equal, errors among them.
"""

from __future__ import annotations

import gzip
import tempfile
import traceback
import warnings
from pathlib import Path

import numpy as np
from malformed import NOT_OF_LINES, SEEDS, TABLES, malformed, outcome, place, seed

from gpucenters.readers import batches, read

from .report import Report

PROBLEMS, LIMIT, MEMORY = 10_000, 30, 3 * 2**30
NAMES = [*SEEDS, *TABLES]


def attack(rng: np.random.Generator, report: Report) -> None:
    name = NAMES[rng.integers(len(NAMES))]
    content = malformed(rng, seed(name))
    with tempfile.TemporaryDirectory() as folder:
        path = place(Path(folder), name, content)
        try:
            warnings.filterwarnings("ignore", ".*has no name, as an index")
            found = outcome(read, path, max_bytes=2**24)
            again = outcome(batches, path, int(rng.integers(1, 4)), max_bytes=2**24)
            is_text = not name.endswith((*NOT_OF_LINES, "gz"))
            if is_text:
                place(Path(folder), name, gzip.compress(content))
            packed = outcome(read, path, max_bytes=2**24) if is_text else found
        except Exception:
            report.fail(f"{name}: no ReadError", repr(content), traceback.format_exc(limit=-3))
            return
    kind = "refused" if isinstance(found[0], str) else "read"
    report.count(f"{name}: {kind}")
    try:
        if kind == "read" or name not in TABLES or not isinstance(again[0], str):
            # What other libraries refuse first depends on how much they read.
            np.testing.assert_equal(again, found)
        np.testing.assert_equal(packed, found)
    except AssertionError:
        report.fail(f"{name}: another outcome", repr(content), found, again, packed)
    if kind == "refused" and not name.endswith(NOT_OF_LINES) and None in found:
        report.fail(f"{name}: no place", repr(content), found)
