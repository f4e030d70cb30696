"""Checks of X: of its structure, before native code reads it, and of its values."""

from __future__ import annotations

import copy
import math
import numbers
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, TypeAlias

import numpy as np

from ..arrays.backend import HOST
from ..arrays.functions import stores_twice
from ..arrays.inputs import CSROnDisk, OnDisk, open_on_disk, refuse_on_disk
from ..arrays.namespace import array_namespace, is_array, is_host_sparse, is_numpy, to_numpy
from ..arrays.schedule import ranges, run
from ..arrays.typing import NumPyOrCuPy as Array
from ..arrays.typing import SparseMatrix
from .transforms import ValueTransform

LARGEST_SQUARABLE = 1e154  # the square of anything larger may overflow float64
_HOST_SCAN = 2**18  # indices that are checked in one go on the host
_HOST_TASK = 2**23  # that one thread checks at least: below it threads take longer to start
_DEVICE_SCAN = 2**25  # and on a device

Place: TypeAlias = tuple[int, int]  # of a value in X: its row and its feature


def check_dense(X: Array) -> None:
    """Raise unless X is a two-dimensional array of real numbers with samples and features."""
    xp = array_namespace(X)
    _check_shape(X.shape, "array")
    if is_numpy(xp):
        _check_kind(X.dtype)
    elif xp.isdtype(X.dtype, "complex floating"):
        raise ValueError(f"Complex data not supported: X holds {X.dtype}.")


def checked_on_disk(X: Any, who: str, budget: int) -> OnDisk | CSROnDisk:
    """X on disk, for its rows to be read within a budget, after a check of its structure.

    Raises
    ------
    TypeError
        For CSC, and for CSR with duplicates.
    """
    found = open_on_disk(X, "X", who, budget)
    _check_shape(found.shape, "array")
    if found.dtype.kind not in "biuf":
        raise TypeError(f"X must hold real numbers, got an array of {found.dtype}.")
    if isinstance(found, CSROnDisk):
        _, ascending = _check_compressed(found, *found.shape)
        if not ascending and stores_twice(found.indices, found.indptr, found.shape[1], HOST):
            refuse_on_disk(X, "X", f"X stores entries twice, and so {who}")
    return found


def _check_shape(shape: tuple[int, ...], what: str) -> None:
    if len(shape) != 2:
        raise ValueError(
            f"Expected 2D {what}, got {len(shape)}D {what} instead. Reshape your data either using "
            "array.reshape(-1, 1) if it has a single feature or array.reshape(1, -1) if it is a "
            "single sample."
        )
    for size, what in zip(shape, ("sample", "feature"), strict=True):
        if size < 1:
            raise ValueError(
                f"Found array with {size} {what}(s) (shape={tuple(shape)}) while a minimum of 1 is "
                "required."
            )


def _check_kind(dtype: np.dtype) -> None:
    if dtype.kind == "c":
        raise ValueError(f"Complex data not supported: X holds {dtype}.")
    if dtype.kind not in "biufO":
        raise TypeError(f"X must hold real numbers, got an array of {dtype}.")


def checked_sparse(X: SparseMatrix) -> SparseMatrix:
    """X as CSR or CSC, after its structure was checked. The caller's matrix is not changed.

    Its ``has_canonical_format`` is what the indices show: the caller's flags may be out of date.
    """
    _check_shape(X.shape, "sparse array")
    _check_parts(X)
    if X.dtype.kind == "O":
        X = _of_floats(X)
    if X.format == "dia" and is_host_sparse(X):
        X = _within(X)
    _check_kind(X.dtype)
    if X.format == "coo":
        for index, size, name in ((X.row, X.shape[0], "row"), (X.col, X.shape[1], "col")):
            _check_indices(index, size, f"{name} of the COO matrix")
    elif X.format == "bsr":
        rows, columns = X.data.shape[1:]
        _check_compressed(X, X.shape[0] // rows, X.shape[1] // columns)
    if X.format not in ("csr", "csc"):
        with _conversion(X):
            X = X.tocsr()
    n, m = X.shape
    stored, ascending = _check_compressed(X, *((n, m) if X.format == "csr" else (m, n)))
    X = copy.copy(X)  # a matrix object of our own on the same arrays
    X.data, X.indices = X.data[:stored], X.indices[:stored]
    X.has_canonical_format = ascending
    return X


#: The arrays of each format, those of indices first, and the number of these.
_PARTS = {
    "coo": (("row", "col", "data"), 2),
    "dia": (("offsets", "data"), 1),
    "lil": (("rows", "data"), 0),
    "csr": (("indices", "indptr", "data"), 2),
}
_PARTS |= dict.fromkeys(("csc", "bsr"), _PARTS["csr"])


def _check_parts(X: SparseMatrix) -> None:
    """Raise unless the arrays that a sparse format consists of are arrays, and fit together.

    They can be set to anything, and the compiled routines that convert formats do not check them.
    """
    form, (n, m) = X.format, X.shape
    names, n_indices = _PARTS.get(form, ((), 0))
    for number, name in enumerate(names):
        with _conversion(X):
            part = getattr(X, name)
        if not is_array(part):
            raise TypeError(f"the {name} of the {form.upper()} matrix is no array: {part!r}.")
        if number < n_indices and part.dtype.kind not in "iu":
            raise ValueError(
                f"the {name} of the {form.upper()} matrix must hold integers, got {part.dtype}."
            )
    if form == "coo":
        fits = X.row.ndim == 1 and X.row.shape == X.col.shape == X.data.shape
    elif form == "dia":
        fits = X.data.ndim == 2 and X.offsets.shape == X.data.shape[:1]
    elif form == "lil":
        fits = X.rows.shape == X.data.shape == (n,) and all(
            isinstance(columns, list)
            and isinstance(values, list)
            and len(columns) == len(values)
            and all(_is_index(c, m) for c in columns)
            for columns, values in zip(X.rows, X.data, strict=True)
        )
    elif form == "bsr":
        fits = X.data.ndim == 3 and all(
            size > 0 and whole % size == 0
            for size, whole in zip(X.data.shape[1:], X.shape, strict=True)
        )
    elif form == "dok":
        fits = all(
            isinstance(key, tuple) and len(key) == 2 and all(map(_is_index, key, (n, m)))
            for key in X.keys()  # noqa: SIM118 (iterating over the matrix gives its rows)
        )
    else:
        fits = True  # CSR and CSC have a check of their own
    if not fits:
        what = f"its {', '.join(names)} differ in length or do not" if names else "its keys do not"
        raise ValueError(
            f"the {form.upper()} matrix of shape {X.shape} is damaged: {what} fit its shape."
        )


def _of_floats(X: SparseMatrix) -> SparseMatrix:
    """A matrix of numbers that are Python objects as one of float64."""
    with _conversion(X):
        if X.format in ("lil", "dok"):
            return X.astype(np.float64)
        # The others sum duplicates in their own astype, by indices that were not checked yet.
        X = copy.copy(X)
        X.data = X.data.astype(np.float64)
        return X


def _within(X: SparseMatrix) -> SparseMatrix:
    """A DIA matrix without the diagonals that lie outside of it.

    They hold no values, but SciPy's conversions read and write beyond their arrays for some.
    """
    n, m = X.shape
    inside = (X.offsets < m) & (X.offsets > -n)
    X = copy.copy(X)
    X.data, X.offsets = X.data[inside], X.offsets[inside].astype(np.int64)
    return X


@contextmanager
def _conversion(X: SparseMatrix) -> Iterator[None]:
    """Turn what SciPy raises for a damaged matrix into an error that says so."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise ValueError(
            f"the {X.format.upper()} matrix of shape {X.shape} is damaged, and SciPy cannot "
            f"convert it: {error}"
        ) from error


def _is_index(value: Any, size: int) -> bool:
    """Whether a value is an integer from 0 to size - 1."""
    return isinstance(value, numbers.Integral) and 0 <= value < size  # type: ignore[operator]


def _check_compressed(X: SparseMatrix, major: int, minor: int) -> tuple[int, bool]:
    """Raise for a damaged matrix.

    Returns how many entries it stores, and whether its indices ascend without duplicates.
    """
    xp = array_namespace(X.data)
    name = X.format.upper()
    if X.indptr.shape != (major + 1,):
        raise ValueError(
            f"the indptr of the {name} matrix has shape {X.indptr.shape}, expected {(major + 1,)}."
        )
    for part, what in ((X.data, "data"), (X.indices, "indices")):
        if part.ndim != (3 if what == "data" and X.format == "bsr" else 1):
            raise ValueError(
                f"the {what} of the {name} matrix has shape {part.shape}: one dimension."
            )
    if X.indices.shape[0] > X.data.shape[0]:
        raise ValueError(
            f"the {name} matrix has {X.indices.shape[0]} indices for {X.data.shape[0]} values."
        )
    falls = X.indptr[1:] < X.indptr[:-1]
    # One read for all: on a device each read waits.
    facts = [xp.astype(fact, xp.int64) for fact in (X.indptr[0], X.indptr[-1], xp.any(falls))]
    first, last, fall = to_numpy(xp.stack(facts)).tolist()
    if first != 0 or last > X.indices.shape[0]:
        raise ValueError(
            f"the indptr of the {name} matrix is damaged: it runs from {first} to {last} over "
            f"{X.indices.shape[0]} stored values."
        )
    if fall:
        raise ValueError(
            f"the indptr of the {name} matrix is damaged: it falls after position "
            f"{int(xp.argmax(falls))}."
        )
    indices = X.indices if X.indices.shape[0] == last else X.indices[:last]
    return last, _check_indices(indices, minor, f"indices of the {name} matrix", X.indptr)


def _check_indices(index: Array, size: int, name: str, starts: Array | None = None) -> bool:
    """Raise for an index outside 0..size-1.

    Returns whether the indices ascend, without duplicates, between ``starts`` (None: not looked
    at). Both are seen in one read of memory.
    """
    if not is_numpy(array_namespace(index)):
        return _check_on_device(index, size, name, starts)
    # As an unsigned integer a negative index is large, so that one pass finds both kinds.
    kind = index.dtype
    two_passes = isinstance(index, OnDisk) or (
        kind.kind == "i" and (size > 2 ** (8 * kind.itemsize - 1) or not kind.isnative)
    )
    seen = index.view(f"u{kind.itemsize}") if kind.kind == "i" and not two_passes else index

    def scan(cut: tuple[int, int]) -> tuple[bool, bool]:
        outside, ascends, falls = False, True, np.empty(_HOST_SCAN, np.bool)
        for left, right in ranges(cut[1] - cut[0], _HOST_SCAN):
            left, right = cut[0] + left, cut[0] + right
            part = seen[left:right]
            outside |= int(part.max()) >= size or (two_passes and int(part.min()) < 0)
            if starts is not None:
                ascends = ascends and _ascends(index, starts, left, right, falls)
        return outside, ascends

    parts = min(8, max(1, index.shape[0] // _HOST_TASK))
    found = list(run(scan, ranges(index.shape[0], max(1, -(-index.shape[0] // parts))), HOST))
    if any(outside for outside, _ in found):
        _raise_outside(index, size, name)
    return all(ascends for _, ascends in found)


def _check_on_device(index: Array, size: int, name: str, starts: Array | None) -> bool:
    """`_check_indices` with one read of all results: each read waits for the device."""
    xp, stored = array_namespace(index), index.shape[0]
    if stored == 0:
        return True
    begins = xp.zeros(stored + 1, dtype=xp.bool)
    if starts is not None:
        begins[starts] = True
    facts = []
    for left, right in ranges(stored, _DEVICE_SCAN):
        part, before = index[left:right], index[max(left - 1, 0) : right - 1]
        falls = (index[max(left, 1) : right] <= before) & ~begins[max(left, 1) : right]
        facts += [xp.astype(f, xp.int64) for f in (xp.min(part), xp.max(part), xp.any(falls))]
    found = to_numpy(xp.stack(facts)).reshape(-1, 3)
    if found[:, 0].min() < 0 or found[:, 1].max() >= size:
        _raise_outside(index, size, name)
    return not found[:, 2].any()


def _raise_outside(index: Array, size: int, name: str) -> None:
    for left, right in ranges(index.shape[0], _DEVICE_SCAN):
        part = index[left:right]
        bad = array_namespace(part).nonzero((part < 0) | (part >= size))[0]
        if bad.shape[0]:
            at, value = int(bad[0]), int(part[int(bad[0])])
            raise ValueError(
                f"the {name} are damaged: entry {left + at} is {value}, outside 0..{size - 1}."
            )


def _ascends(
    index: np.ndarray, starts: np.ndarray, left: int, right: int, falls: np.ndarray
) -> bool:
    """Whether each of index[left:right] is above the one before it, if that is of its row."""
    left = max(left, 1)
    falls = falls[: right - left]
    np.less_equal(index[left:right], index[left - 1 : right - 1], out=falls)
    bounds = np.asarray([left, right], dtype=starts.dtype)
    first, last = np.searchsorted(starts, bounds)
    falls[(starts[first:last] - bounds[0]).astype(np.intp, copy=False)] = False
    return not falls.any()


# --- values ----------------------------------------------------------------------------------


def check_values(
    values: Array,
    squares: bool,
    transform: ValueTransform | None,
    place: Callable[[tuple[int, ...]], Place],
) -> None:
    """Raise a ValueError for the first of some values of X that is bad.

    Bad is what is not finite or, if ``squares``, too large to be squared, and what the transform
    refuses. ``place`` says where in X the value at a position is.
    """
    at = _first_bad(values, squares)
    if at is not None:
        value, (row, feature) = float(values[at]), place(at)
        where = f"in feature {feature} (first in row {row})"
        if math.isnan(value):
            raise ValueError(f"Input X contains NaN {where}. Impute or drop missing values first.")
        if math.isinf(value):
            raise ValueError(f"Input X contains infinity {where}.")
        raise ValueError(
            f"Input X contains {value!r} {where}: its square, or a sum of squares, overflows "
            "float64. Rescale the feature."
        )
    if transform is not None and (at := _first_bad(transform(values), False)) is not None:
        row, feature = place(at)
        why = transform.why_not(float(values[at]))
        raise ValueError(f"{why} in feature {feature} (first in row {row}).")


def _first_bad(values: Array, squares: bool) -> tuple[int, ...] | None:
    xp = array_namespace(values)
    values = xp.astype(values, xp.float64)
    good = xp.abs(values) <= LARGEST_SQUARABLE if squares else xp.isfinite(values)
    if bool(xp.all(good)):
        return None
    return tuple(int(i[0]) for i in xp.nonzero(~good))


def raise_overflow(finite: Array) -> NoReturn:
    """Raise the ValueError for the first feature whose sums are not ``finite``: (m,), bool."""
    xp = array_namespace(finite)
    feature = int(xp.argmin(xp.astype(finite, xp.int64)))  # 0 where all are
    raise ValueError(
        f"the values of feature {feature} are too large: their sums overflow float64. "
        "Rescale the feature."
    )


def as_float64(part: Array, first_row: int, columns: Iterable[int]) -> np.ndarray:
    """Objects as float64.

    Raises
    ------
    TypeError, ValueError
        That name the feature and the row of the first object that is no number.
    """
    objects = to_numpy(part)
    try:
        return objects.astype("float64")
    except (TypeError, ValueError, OverflowError) as error:
        for row, line in enumerate(objects):
            for column, value in zip(columns, line, strict=True):
                try:
                    float(value)
                except OverflowError:
                    raise ValueError(
                        f"X holds a number in feature {column}, row {first_row + row}, that "
                        "float64 cannot hold."
                    ) from error
                except (TypeError, ValueError):
                    raise type(error)(
                        f"X holds {value!r} in feature {column}, row {first_row + row}, which is "
                        "no number: argument must be a string or a number that float() takes."
                    ) from error
        raise
