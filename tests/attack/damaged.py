"""Damaged sparse matrices of all formats: an error that says so, or the answer for what they hold.

What a damaged matrix holds is read here by Python alone, entry by entry. A matrix without a meaning
must be refused, by a ValueError or TypeError that this library or scikit-learn's validation raises.
"""

from __future__ import annotations

import traceback
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import gpucenters
from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    SparseBernoulliNB,
    SparseMultinomialNB,
    odds_ratio,
)

from .report import Report

PROBLEMS, CHUNK, LIMIT, MEMORY = 10_000, 500, 30, 3 * 2**30
FORMATS = ["coo", "csr", "csc", "bsr", "dia", "lil", "dok"]
PARTS = {
    "coo": ["coords", "data"],
    "csr": ["data", "indices", "indptr"],
    "dia": ["data", "offsets"],
    "lil": ["rows", "data"],
    "dok": ["_dict"],
}
PARTS |= dict.fromkeys(["csc", "bsr"], PARTS["csr"])
NUMBERS = [-1, 0, 1, 2, 3, 7, 100, 10**6, 2**31 - 1, 2**31, -(2**31), 2**62, 2**63 - 1, -(2**63)]
TYPES = [*"bBhiIlLefdgF?O", ">i4", ">i8", ">f8", "S3", "M8[s]"]
ROWS = [[0, 0], [0.5], [None], (0,), [True], ["a"], [], list(range(50)), [[0]], [1, 0], [-1], None]
MODELS = [
    L2CenterClassifier(2),
    L2CenterClassifier(1, scale="std"),
    L1CenterClassifier(2),
    L1CenterClassifier(1, scale="std"),
    SparseBernoulliNB(2),
    SparseMultinomialNB(2),
    MahalanobisCenterClassifier(shrinkage=0.5),
]
LABELLED = ("fit", "statistics", "odds_ratio")
CALLS = ["fit", "fit", "predict", "transform", "decision_function", "partial_fit", "statistics"]


def _array(rng: np.random.Generator, a: Any) -> Any:
    """An array of a matrix, damaged in one way."""
    a = np.array(a)
    way = rng.integers(14)
    if way < 4 and a.size:
        value = NUMBERS[rng.integers(len(NUMBERS))]
        if rng.random() < 0.3:
            a = a.astype(rng.choice(["i8", "u4", "i1", ">i4", "f8"]))
        try:
            a.flat[rng.integers(a.size)] = value
        except OverflowError:
            a = a.astype("i8")
            a.flat[rng.integers(a.size)] = value
        return a
    return [
        lambda: a[:-1],
        lambda: np.concatenate([a, a]),
        lambda: a.astype(rng.choice(TYPES)),
        lambda: a[None],
        lambda: a[::-1],
        lambda: rng.choice([None, 3, "abc"]),
        lambda: a.tolist(),
        lambda: a.astype(float) - rng.choice([0.5, np.nan, 1e9]),
        lambda: a[:0],
        lambda: np.repeat(a, 2, axis=0)[::2],
    ][way % 10]()


def _damage(rng: np.random.Generator, A: Any) -> str:
    """Damage one part of the matrix, in place; says what was done."""
    n, m = A.shape
    if rng.random() < 0.1:
        shapes = [(n + 2, m), (n, m + 2), (n, 1), (2**31 + 1, m), (n, 2**31 + 5), (n - 1, m)]
        A._shape = [*shapes, (n, m - 1), (0, m), (-1, m), (n, 2**40)][rng.integers(10)]
        return f"A._shape = {A._shape}"
    name = str(rng.choice(PARTS[A.format]))
    if name == "_dict":
        key = [NUMBERS[rng.integers(len(NUMBERS))], int(rng.integers(2))]
        keys = [tuple(key), tuple(key[::-1]), (0.5, 0), "a", (0,), (0, 0, 0), None, (True, 0)]
        values = [1.0, "x", None, 1j, [1], np.nan, 10**400, True]
        item = keys[min(rng.integers(12), 7)], values[min(rng.integers(16), 7)]
        A._dict[item[0]] = item[1]
        return f"A._dict[{item[0]}] = {item[1]}"
    if name == "coords":
        both = list(A.coords)
        at = rng.integers(2)
        both[at] = _array(rng, both[at])
        A.coords = tuple(both) if rng.random() < 0.9 else [(both[at],), None, both][rng.integers(3)]
    elif A.format == "lil" and rng.random() < 0.8:
        at, row = rng.integers(n), ROWS[rng.integers(len(ROWS))]
        row = [NUMBERS[rng.integers(len(NUMBERS))]] if rng.random() < 0.4 else row
        row = [1.5] if name == "data" and row == [0.5] else row  # as a boolean, 0.5 is either
        getattr(A, name)[at] = row
        if rng.random() < 0.5 and isinstance(row, list):  # so that lengths agree
            other = "data" if name == "rows" else "rows"
            getattr(A, other)[at] = [1.0] * len(row) if other == "data" else list(range(len(row)))
        return f"A.{name}[{at}] = {row}; A.rows = {A.rows.tolist()}, A.data = {A.data.tolist()}"
    else:
        setattr(A, name, _array(rng, getattr(A, name)))
    return f"A.{name} = {getattr(A, name)!r}"


def _shuffle(rng: np.random.Generator, A: Any) -> None:
    """Put the entries of each row (column) in any order, in place."""
    lines = np.repeat(np.arange(len(A.indptr) - 1), np.diff(A.indptr))
    order = np.lexsort((rng.random(A.nnz), lines))
    A.indices, A.data = A.indices[order], A.data[order]
    A.has_sorted_indices = A.has_canonical_format = bool(rng.random() < 0.5)  # true or not


class NoMeaning(Exception):
    """The parts of a matrix contradict each other."""


def _whole(value: Any, size: int) -> int:
    if not isinstance(value, Integral) or not 0 <= value < size:
        raise NoMeaning(f"{value!r} is no index below {size}")
    return int(value)


def _entries(A: Any) -> Any:
    """(row, column, value) of what a matrix stores."""
    n, m = A.shape
    if A.format == "dok":
        for key, value in A._dict.items():
            row, column = key
            yield row, column, value
    elif A.format == "lil":
        for row, (columns, values) in enumerate(zip(A.rows, A.data, strict=True)):
            for column, value in zip(columns, values, strict=True):
                yield row, column, value
    elif A.format == "coo":
        rows, columns = A.coords
        yield from zip(rows.tolist(), columns.tolist(), A.data.tolist(), strict=True)
    elif A.format == "dia":
        for offset, diagonal in zip(A.offsets.tolist(), A.data, strict=True):
            _whole(offset, np.inf) if offset >= 0 else _whole(-offset, np.inf)
            for column, value in enumerate(diagonal.tolist()):
                if 0 <= column - offset < n and column < m:
                    yield column - offset, column, value
    else:
        height, width = A.data.shape[1:] if A.format == "bsr" else (1, 1)
        major = m if A.format == "csc" else n // height
        if A.indptr.shape != (major + 1,) or A.indptr[0] != 0 or A.indices.ndim != 1:
            raise NoMeaning("indptr")
        if A.format != "bsr" and A.data.ndim != 1:
            raise NoMeaning("data")
        if A.format == "bsr" and (n % height or m % width):
            raise NoMeaning("blocks")
        pointers, indices, data = A.indptr.tolist(), A.indices.tolist(), A.data.tolist()
        for line in range(major):
            first, last = pointers[line], pointers[line + 1]
            if not first <= last <= len(indices) <= len(data):
                raise NoMeaning("indptr")
            for at in range(first, last):
                if A.format == "csc":
                    yield indices[at], line, data[at]
                elif A.format == "csr":
                    yield line, indices[at], data[at]
                else:
                    _whole(indices[at], m // width)
                    for i, row in enumerate(data[at]):
                        for j, value in enumerate(row):
                            yield line * height + i, indices[at] * width + j, value


def meaning(A: Any) -> np.ndarray | None:
    """The values of a matrix as float64; None where its parts contradict each other."""
    try:
        n, m = A.shape
        if not (0 < n < 10**6 and 0 < m < 10**6):
            return None
        kind = np.dtype(np.float64) if A.dtype.kind == "O" else A.dtype.newbyteorder("=")
        if kind.kind not in "biuf":
            return None
        found = np.zeros((n, m), kind)
        for row, column, value in _entries(A):
            at = _whole(row, n), _whole(column, m)
            # SciPy sums in the type of the matrix: the sum of booleans is "or".
            found[at] = np.add(found[at], np.asarray(value).astype(kind)[()], dtype=kind)
        return found.astype(np.float64)
    except (NoMeaning, AttributeError, IndexError, TypeError, ValueError, OverflowError):
        return None


def _clear(error: Exception) -> bool:
    """Whether this library, or scikit-learn's validation, raised an error on purpose."""
    ours, theirs = str(Path(gpucenters.__file__).parent), "sklearn/utils/"
    last = traceback.extract_tb(error.__traceback__)[-1]
    if not isinstance(error, ValueError | TypeError):
        return False
    raised = last.filename.startswith(ours) and last.line.startswith("raise")
    return raised or theirs in last.filename


def _outcome(model: Any, call: str, A: Any, good: Any, y: np.ndarray) -> Any:
    """What a call gives, as a dense array."""
    if call == "odds_ratio":
        return np.asarray(odds_ratio(A, y))
    if call == "fit":
        return np.asarray(model.fit(A, y).decision_function(good))
    if call == "statistics":
        return np.asarray(model.statistics(A, y).total)
    model.fit(good, y)
    if call == "partial_fit":
        return np.asarray(model.partial_fit(A, y).decision_function(good))
    found = getattr(model, call)(A)
    if sp.issparse(found):  # SciPy's own conversion does not know float16
        return (found.astype(np.float32) if found.dtype == np.float16 else found).toarray()
    return np.asarray(found)


def attack(rng: np.random.Generator, report: Report) -> None:
    n, m = 2 * int(rng.integers(2, 6)), 2 * int(rng.integers(1, 5))
    X = rng.integers(0, 4, (n, m)) * (rng.random((n, m)) < 0.6)
    X = X.astype(rng.choice(["f8", "f8", "f8", "f4", "i4", "i1", "u8", "?"]))
    y = np.arange(n) % 2
    form = FORMATS[rng.integers(len(FORMATS))]
    A = getattr(sp, f"{form}_{rng.choice(['matrix', 'array'])}")(X)
    lines = [f"A = sp.{type(A).__name__}(np.array({X.tolist()}, {X.dtype.str!r}))"]
    if form in ("csr", "csc"):
        _shuffle(rng, A)
        lines.append(f"A.indices, A.data = {A.indices!r}, {A.data!r}")
    try:
        for _ in range(rng.integers(1, 3)):
            lines.append(_damage(rng, A))
    except (ValueError, TypeError, OverflowError, IndexError, AttributeError):
        report.count("damages that SciPy or NumPy refuse")
        if len(lines) == 1:
            return
    model = MODELS[rng.integers(len(MODELS))]
    model = type(model)(**model.get_params())
    calls = CALLS[:5] if isinstance(model, L1CenterClassifier) else [*CALLS, "odds_ratio"]
    call = calls[rng.integers(len(calls))]
    lines += [f"# {model!r}.{call}(A), good = {X.astype(float).tolist()}"]
    dense, good = meaning(A), sp.csr_array(X.astype(np.float64))
    report.count(f"{form} matrices")
    try:
        labels = np.arange(A.shape[0]) % 2 if 0 < A.shape[0] < 10**6 and call in LABELLED else y
        if call == "fit" and 0 < A.shape[1] < 10**6:
            good = sp.csr_array(np.resize(X, (n, A.shape[1])).astype(np.float64))
        found = _outcome(model, call, A, good, labels)
    except MemoryError as error:
        if max(A.shape) > 10**6:
            report.count("too large for memory")
        else:
            report.fail(f"{form}: memory", *lines, f"# {error}")
        return
    except Exception as error:
        if _clear(error):
            report.count("refused")
        else:
            report.fail(
                f"{form}: unclear {type(error).__name__}", *lines, traceback.format_exc(limit=-3)
            )
        return
    if dense is None:
        report.fail(f"{form}: accepted without a meaning", *lines)
        return
    report.count("accepted")
    try:
        again = type(model)(**model.get_params())
        wanted = _outcome(again, call, dense, good.toarray() if call == "fit" else good, labels)
    except ValueError as error:
        report.fail(f"{form}: accepted where dense is refused", *lines, f"# {error}")
        return
    # Labels may differ where scores tie up to rounding: they are compared by the scores.
    size = 1e-9 * max(1.0, np.abs(dense).max(), np.abs(wanted).max(initial=0)) ** 2
    same = call == "predict" or np.allclose(found, wanted, rtol=1e-9, atol=size)
    if found.shape != wanted.shape or not same:
        report.fail(f"{form}: wrong answer", *lines, f"# {found.tolist()}", f"# {wanted.tolist()}")
