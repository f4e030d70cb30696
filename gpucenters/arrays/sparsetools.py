"""SciPy's compiled sparse loops, in place and on buffers of our own.

They release the GIL, where ``numpy.repeat`` and ``numpy.add.at`` hold it, and they add to arrays
that exist, where SciPy's public products allocate new ones. They are private, so this is the one
file that calls them. Each is run once at import on a small case with a known answer; `AVAILABLE`
says whether all answers were right. Where they were not, the implementation for NumPy and CuPy is
used.

Index arrays are not checked here: the caller has checked the matrix.
"""

from __future__ import annotations

import numpy as np

try:
    from scipy.sparse import _sparsetools as tools
except ImportError:
    tools = None

_ONE = np.ones(1)


def add_at(target: np.ndarray, index: np.ndarray, values: np.ndarray) -> None:
    """``target[index[j]] += values[j]`` in order; ``values`` of the target's type."""
    # A CSC matrix of one column whose entries are the values, times the number one.
    ends = np.asarray([0, index.shape[0]], dtype=index.dtype)
    one = _ONE.astype(target.dtype)
    tools.csc_matvec(target.shape[0], 1, ends, index, values, one, target)


def scale_rows(
    offsets: np.ndarray, indices: np.ndarray, values: np.ndarray, factors: np.ndarray
) -> None:
    """Multiply the entries of each row by the row's factor, in place (of the values' type)."""
    width = np.iinfo(
        indices.dtype
    ).max  # (the loop takes the number of columns, and reads no index)
    tools.csr_scale_rows(factors.shape[0], width, offsets, indices, values, factors)


def repeat_per_row(
    per_row: np.ndarray, offsets: np.ndarray, indices: np.ndarray, out: np.ndarray
) -> None:
    """Each row's value once for each entry of the row, into ``out`` (of the same type).

    ``indices`` are the entries' columns, or any others of the type of ``offsets``.
    """
    out.fill(1)
    scale_rows(offsets, indices, out, per_row)


def row_dots(
    offsets: np.ndarray, positions: np.ndarray, x: np.ndarray, y: np.ndarray, out: np.ndarray
) -> None:
    """Add to ``out`` the sum of x * y over the entries of each row; ``positions`` are 0, 1, ..."""
    # A product of a matrix, whose column numbers are the positions, with the vector y.
    tools.csr_matvec(out.shape[0], y.shape[0], offsets, positions, x, y, out)


def add_product(
    offsets: np.ndarray, indices: np.ndarray, values: np.ndarray, coef: np.ndarray, out: np.ndarray
) -> None:
    """``out += rows @ coef`` for the rows of a CSR matrix; coef (m, q), out (n, q), contiguous."""
    (m, q), rows = coef.shape, out.shape[0]
    if q == 1:
        tools.csr_matvec(rows, m, offsets, indices, values, coef[:, 0], out[:, 0])
    else:
        tools.csr_matvecs(rows, m, q, offsets, indices, values, coef.ravel(), out.ravel())


def count_distinct(offsets: np.ndarray, indices: np.ndarray, size: int) -> int:
    """How many indices the rows store, those that a row stores more than once counted once.

    All below ``size``, in any order. A table of ``size`` numbers says which row met an index last.
    """
    # A bound of SciPy's for products, exact for that of the identity matrix and these rows.
    ends = np.arange(offsets.shape[0], dtype=offsets.dtype)
    return int(tools.csr_matmat_maxnnz(len(ends) - 1, size, ends, ends[:-1], offsets, indices))


def take_rows(
    rows: np.ndarray,
    offsets: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    taken: tuple[np.ndarray, np.ndarray],
) -> None:
    """The entries of some rows, in their order, into two arrays: of ``indices``, and of ``values``.

    ``rows`` are of the type of ``offsets`` and ``indices``.
    """
    tools.csr_row_index(rows.shape[0], rows, offsets, indices, values, *taken)


def add_rows(x: np.ndarray, labels: np.ndarray, factors: np.ndarray, out: np.ndarray) -> None:
    """``out[labels[j]] += factors[j] * x[j]`` in order, for rows of C-contiguous matrices."""
    (n, width), ends = x.shape, np.arange(x.shape[0] + 1, dtype=labels.dtype)
    rows = out.shape[0]
    # A CSC matrix with one entry in each column.
    if width == 1:
        tools.csc_matvec(rows, n, ends, labels, factors, x[:, 0], out[:, 0])
    else:
        tools.csc_matvecs(rows, n, width, ends, labels, factors, x.ravel(), out.ravel())


def subtract_rows(table: np.ndarray, labels: np.ndarray, out: np.ndarray) -> None:
    """``out[j] -= table[labels[j]]`` in place, for rows of C-contiguous matrices."""
    n = out.shape[0]
    offsets, minus = np.arange(n + 1, dtype=labels.dtype), np.full(n, -1.0)
    add_product(offsets, labels, minus, table, out)


def _answers_are_right(kind: type[np.signedinteger]) -> bool:
    """Run each loop on a matrix with duplicates and an empty row."""
    offsets, indices = np.asarray([0, 3, 3, 4], kind), np.asarray([1, 0, 1, 2], kind)
    values, factors = np.asarray([1.0, 2.0, 4.0, 8.0]), np.asarray([3.0, 5.0, 7.0])
    scattered, counted = np.asarray([0.5, 0.0, 0.0]), np.zeros(3, np.int64)
    add_at(scattered, indices, values)
    add_at(counted, indices, np.asarray([1, 1, 1, 1]))
    scaled = values.copy()
    scale_rows(offsets, indices, scaled, factors)
    repeated, keys = np.empty(4), np.empty(4, np.int32)
    repeat_per_row(factors, offsets, indices, repeated)
    repeat_per_row(np.asarray([3, 5, 7], np.int32), offsets, indices, keys)
    dots = np.asarray([1.0, 0.0, 0.0])
    row_dots(offsets, np.arange(4, dtype=kind), values, values, dots)
    one, two = np.ones((3, 1)), np.zeros((3, 2))
    add_product(offsets, indices, values, np.asarray([[1.0], [10.0], [100.0]]), one)
    add_product(offsets, indices, values, np.asarray([[1.0, 2], [10, 20], [100, 200]]), two)
    labels, rows = np.asarray([2, 0, 2], kind), np.asarray([[1.0, 2.0], [4.0, 8.0], [16.0, 32.0]])
    summed, single, less = np.zeros((3, 2)), np.zeros((3, 1)), np.zeros((3, 2))
    add_rows(rows, labels, factors, summed)
    add_rows(np.ascontiguousarray(rows[:, :1]), labels, factors, single)
    subtract_rows(rows, labels, less)
    taken = np.empty(4, kind), np.empty(4)
    take_rows(np.asarray([2, 1, 0], kind), offsets, indices, values, taken)
    found: list[np.ndarray] = [scattered, counted, scaled, repeated, keys, dots, one[:, 0], *two.T]
    found += [*summed.T, single[:, 0], *less.T, *taken]
    sums: list[list[float]] = [[2.5, 5, 8], [1, 2, 1]]
    per_row: list[list[float]] = [[3, 6, 12, 56], [3, 3, 3, 7], [3, 3, 3, 7], [22, 0, 64]]
    products: list[list[float]] = [[53, 1, 801], [52, 0, 800], [104, 0, 1600]]
    by_label: list[list[float]] = [[20, 0, 115], [40, 0, 230], [20, 0, 115]]
    less_label: list[list[float]] = [[-16, -1, -16], [-32, -2, -32]]
    in_order: list[list[float]] = [[2, 1, 0, 1], [8, 1, 2, 4]]
    expected = [*sums, *per_row, *products, *by_label, *less_label, *in_order]
    same = (np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
    return count_distinct(offsets, indices, 3) == 3 and all(same)


def check() -> bool:
    """Whether the loops exist and give the known answers, for both types of indices."""
    try:
        return all(_answers_are_right(kind) for kind in (np.int32, np.int64))
    except Exception:  # whatever a changed binding raises, the common lines are used instead
        return False


#: Whether these functions can be used.
AVAILABLE = check()
