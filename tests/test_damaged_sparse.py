"""Sparse matrices whose parts contradict each other are refused before native code reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from small_data import HALVES, KINDS, NORMAL, PLAIN, Y, each_kind, prediction_calls

from gpucenters import L2CenterClassifier
from gpucenters.blocks import validation
from gpucenters.blocks.validation import checked_sparse


def _lil(damage: Any) -> Any:
    Q = scipy.sparse.lil_matrix(NORMAL)
    damage(Q)
    return Q


def _changed(Q: Any, name: str, change: Any) -> Any:
    setattr(Q, name, change(getattr(Q, name)))
    return Q


FORMATS_DAMAGED = {
    "lil values": lambda: _lil(lambda Q: Q.data[0].extend([1.0] * 1000)),
    "lil columns": lambda: _lil(lambda Q: Q.rows[0].append(1)),
    "lil outside": lambda: _lil(lambda Q: Q.rows[0].__setitem__(0, 6)),
    "dia": lambda: _changed(scipy.sparse.dia_matrix(NORMAL), "data", lambda d: d[:2]),
    "bsr narrow": lambda: _changed(
        scipy.sparse.bsr_matrix(NORMAL, blocksize=(2, 2)), "data", lambda d: d[:, :, :0]
    ),
    "bsr wide": lambda: _changed(
        scipy.sparse.bsr_matrix(NORMAL, blocksize=(2, 2)), "data", lambda d: d[:, :, [0] * 5]
    ),
    "csr list": lambda: _changed(scipy.sparse.csr_matrix(NORMAL), "data", lambda d: d.tolist()),
    "csr none": lambda: _changed(scipy.sparse.csr_matrix(NORMAL), "indices", lambda d: None),
    "csr 2d": lambda: _changed(scipy.sparse.csr_matrix(NORMAL), "data", lambda d: d[:, None]),
    "coo": lambda: _changed(scipy.sparse.coo_matrix(NORMAL), "data", lambda d: d[:-1]),
}


@pytest.mark.parametrize("name", list(FORMATS_DAMAGED))
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_matrix_of_any_format_is_refused(kind: Any, name: str) -> None:
    name_of_format = name.split()[0].upper()
    message = {
        "csr list": "the data of the CSR matrix is no array",
        "csr none": "the indices of the CSR matrix is no array: None",
        "csr 2d": r"the data of the CSR matrix has shape \(240, 1\): one dimension",
    }.get(name, rf"the {name_of_format} matrix of shape \(40, 6\) is damaged")
    with pytest.raises((ValueError, TypeError), match=message):
        kind().fit(FORMATS_DAMAGED[name](), HALVES)


def _set(name: str, at: int, value: int) -> Any:
    def damage(X: Any) -> None:
        getattr(X, name)[at] = value

    return damage


def _cut(name: str) -> Any:
    def damage(X: Any) -> None:
        setattr(X, name, getattr(X, name)[:-2])

    return damage


DAMAGE = {
    "indptr falls": (_set("indptr", 2, 0), "indptr.*falls"),
    "indptr is negative": (_set("indptr", 1, -3), "indptr.*(falls|negative)"),
    "indptr starts late": (_set("indptr", 0, 1), "indptr.*from 1"),
    "indptr starts before 0": (_set("indptr", 0, -1), "indptr.*from -1"),
    "indptr ends beyond the data": (_set("indptr", -1, 10_000), "indptr.*10000"),
    "indptr jumps beyond the data": (_set("indptr", 2, 10_000), "indptr.*falls"),
    "indptr is short": (_cut("indptr"), "indptr.*shape"),
    "data are short": (_cut("data"), "indices for.*values|indptr.*stored"),
    "indices are short": (_cut("indices"), "indptr.*stored|indices for.*values"),
    "an index is negative": (_set("indices", 3, -1), "indices.*entry 3 is -1"),
    "an index is m": (_set("indices", 3, 5), "indices.*entry 3 is 5"),
    "an index is huge": (_set("indices", 3, 2**31 - 1), "indices.*entry 3 is 2147483647"),
    "the last index is bad": (_set("indices", -1, 99), "indices.*is 99"),
}


def _damaged(name: str, layout: str, backend: Any, dtype: Any = np.float64) -> Any:
    X = getattr(backend.sparse, f"{layout}_matrix")(backend.csr(PLAIN, dtype))
    if backend.name == "numpy":
        X = X.copy()
    DAMAGE[name][0](X)
    return X


@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize("damage", list(DAMAGE))
@each_kind
def test_a_damaged_csr_or_csc_matrix_is_refused_by_every_method(
    kind: Any, damage: str, layout: str, sparse_backend: Any
) -> None:
    message = f"(?i){DAMAGE[damage][1]}"
    X = _damaged(damage, layout, sparse_backend)
    with pytest.raises(ValueError, match=message):
        kind().fit(X, Y)
    model = kind().fit(sparse_backend.csr(PLAIN), Y)
    for call in [*prediction_calls(model, X), model.transform]:
        with pytest.raises(ValueError, match=message):
            call(X)
    if kind is L2CenterClassifier:
        with pytest.raises(ValueError, match=message):
            kind().partial_fit(X, Y, classes=[0, 1])


@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_an_index_out_of_range_is_found_in_int32_and_int64(layout: str, index: str) -> None:
    X = getattr(scipy.sparse, f"{layout}_array")(PLAIN)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    X.indices[4] = -(2**31)
    with pytest.raises(ValueError, match="entry 4 is -2147483648"):
        L2CenterClassifier().fit(X, Y)


@pytest.mark.parametrize(("axis", "size"), [("row", 5), ("col", 4)])
@pytest.mark.parametrize("bad", ["negative", "too large"])
@each_kind
def test_a_damaged_coo_matrix_is_refused(
    kind: Any, bad: str, axis: str, size: int, sparse_backend: Any
) -> None:
    X = sparse_backend.csr(PLAIN).tocoo().copy()
    getattr(X, axis)[3] = -1 if bad == "negative" else size
    with pytest.raises(ValueError, match=f"{axis} of the COO matrix .*entry 3"):
        kind().fit(X, Y)
    with pytest.raises(ValueError, match=f"{axis} of the COO matrix .*entry 3"):
        kind().fit(sparse_backend.csr(PLAIN), Y).predict(X)


def test_a_coo_matrix_of_unequal_parts_is_refused() -> None:
    X = scipy.sparse.coo_matrix(PLAIN)
    X.data = X.data[:-1]
    with pytest.raises(ValueError, match=r"COO matrix of shape .* differ in length"):
        L2CenterClassifier().fit(X, Y)


@pytest.mark.parametrize("bad", [-1, 2, 2**31 - 1])
def test_a_damaged_bsr_matrix_is_refused(bad: int) -> None:
    X = scipy.sparse.bsr_array(np.ones((4, 4)), blocksize=(2, 2))
    X.indices[1] = bad
    with pytest.raises(ValueError, match=f"BSR matrix .*entry 1 is {bad}"):
        L2CenterClassifier().fit(X, [0, 1, 0, 1])


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.int64, ">i4", ">i8"])
def test_a_negative_index_is_found_in_every_index_type_and_width(kind: Any) -> None:
    # As an unsigned number, -1 of a narrow type is a valid column of a wide matrix.
    for width in (100, 1000, 100_000):
        X = scipy.sparse.csr_matrix((np.ones(4), [0, 1, 2, 3], [0, 1, 2, 3, 4]), shape=(4, width))
        X.indices = np.asarray([0, 1, -1, 3], dtype=kind)
        with pytest.raises(ValueError, match=r"indices of the CSR .* entry 2 is -1"):
            L2CenterClassifier().fit(X, [0, 0, 1, 1])
        X.indices = np.asarray([0, 1, 2, 3], dtype=kind)
        assert L2CenterClassifier(k=4).fit(X, [0, 0, 1, 1]).support_.tolist() == [0, 1, 2, 3]


def test_indices_are_checked_alike_in_any_number_of_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    X = scipy.sparse.random(60, 9, 0.4, "csr", np.float64, np.random.default_rng(0))
    swapped, twice, outside = (X.copy() for _ in range(3))
    at = int(X.indptr[30])  # two entries and more are stored in this row
    swapped.indices[[at, at + 1]] = X.indices[[at + 1, at]]
    twice.indices[at + 1] = X.indices[at]
    outside.indices[at + 1] = 9
    for task, scan in ((7, 3), (10, 10), (2**20, 1)):
        monkeypatch.setattr(validation, "_HOST_TASK", task)
        monkeypatch.setattr(validation, "_HOST_SCAN", scan)
        assert checked_sparse(X).has_canonical_format
        assert not checked_sparse(swapped).has_canonical_format
        assert not checked_sparse(twice).has_canonical_format
        with pytest.raises(ValueError, match=f"entry {at + 1} is 9"):
            checked_sparse(outside)


def _coo(coords: Any) -> Any:
    matrix = scipy.sparse.coo_array(np.eye(2))
    matrix.coords = coords
    return matrix


def _dia(**parts: Any) -> Any:
    matrix = scipy.sparse.dia_array(np.eye(2))
    for name, part in parts.items():
        setattr(matrix, name, part)
    return matrix


def _lil_row(columns: Any, values: Any) -> Any:
    matrix = scipy.sparse.lil_array(np.eye(2))
    matrix.rows[0], matrix.data[0] = columns, values
    return matrix


def _dok(key: Any, value: Any = 1.0) -> Any:
    matrix = scipy.sparse.dok_array(np.eye(2))
    matrix._dict[key] = value
    return matrix


_ONES = np.asarray([0, 1])
_NOT_INTEGERS = {
    "far floats": lambda: _coo((np.asarray([-1e9, 0.0]), _ONES)),
    "NaN": lambda: _coo((_ONES, np.asarray([np.nan, 0.0]))),
    "fractions": lambda: _coo((_ONES, np.asarray([1.5, 0.0]))),
    "strings": lambda: _coo((np.asarray(["a", "b"]), _ONES)),
    "objects": lambda: _coo((np.asarray([1.5, 0], dtype=object), _ONES)),
    "offsets": lambda: _dia(offsets=np.asarray([0.5])),
}
_DAMAGED_FORMATS = {
    "COO with one coordinate": lambda: _coo((_ONES,)),
    "COO without coordinates": lambda: _coo(None),
    "LIL with a string as a column": lambda: _lil_row(["a"], [1.0]),
    "LIL with half a column": lambda: _lil_row([0.5], [1.0]),
    "LIL with a string as a value": lambda: _lil_row([0], ["x"]),
    "LIL without a row": lambda: _lil_row(None, [1.0]),
    "LIL with a number as a row": lambda: _lil_row(3, 1.0),
    "DOK with a key out of range": lambda: _dok((5, 0)),
    "DOK with a string as a key": lambda: _dok("a"),
    "DOK with half a row": lambda: _dok((0.5, 0)),
    "DOK with a string as a value": lambda: _dok((0, 1), "x"),
}


@pytest.mark.parametrize("name", list(_NOT_INTEGERS))
def test_coordinates_that_are_no_integers_are_refused(name: str) -> None:
    """SciPy's conversion of COO reads them as they are: some end the process."""
    with pytest.raises(ValueError, match="matrix must hold integers"):
        L2CenterClassifier().fit(_NOT_INTEGERS[name](), [0, 1])


@pytest.mark.parametrize(
    ("offset", "kind"),
    [(o, np.int64) for o in (4, -4, 2**32, 2**32 - 1, 1 - 2**32)]
    + [(2**32 - 1, np.uint32), (2**32 - 1, np.uint64), (2**64 - 1, np.uint64)],
)
def test_a_diagonal_outside_a_dia_matrix_holds_no_values(offset: int, kind: Any) -> None:
    """SciPy's conversions take such an offset for another one, or write beyond their arrays."""
    X = scipy.sparse.dia_matrix(np.diag([5.0, 6.0, 7.0, 8.0]))
    X.data = np.asarray([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
    X.offsets = np.asarray([offset, 0], dtype=kind)
    found = L2CenterClassifier().fit(X, [0, 1, 0, 1])
    expected = L2CenterClassifier().fit(np.diag([5.0, 6.0, 7.0, 8.0]), [0, 1, 0, 1])
    np.testing.assert_array_equal(found.centers_, expected.centers_)


@pytest.mark.parametrize("layout", ["csr", "csc", "bsr"])
@pytest.mark.parametrize("bad", [7, 10**6])
def test_a_damaged_matrix_of_objects_is_refused(bad: int, layout: str) -> None:
    """SciPy sums duplicates in ``astype``, by indices that nothing has checked."""
    X = getattr(scipy.sparse, f"{layout}_matrix")(np.eye(4))
    X.data = X.data.astype(object)
    X.indptr[2] = bad
    with pytest.raises(ValueError, match=r"indptr of the .S. matrix is damaged"):
        L2CenterClassifier().fit(X, [0, 1, 0, 1])


@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_parts_of_other_dimensions_are_named(layout: str) -> None:
    X = getattr(scipy.sparse, f"{layout}_array")(PLAIN)
    X._shape = (-1, 4)
    with pytest.raises(ValueError, match=r"Found array with -1 sample\(s\)"):
        L2CenterClassifier().fit(X, Y)
    X = getattr(scipy.sparse, f"{layout}_array")(PLAIN)
    X.indices = np.asarray(3)
    with pytest.raises(ValueError, match=r"indices of the CS. matrix has shape \(\)"):
        L2CenterClassifier().fit(X, Y)
    X = getattr(scipy.sparse, f"{layout}_matrix")(PLAIN)
    X.data = X.data.astype(object)[None]
    with pytest.raises(ValueError, match=r"data of the CS. matrix has shape \(1, \d+\)"):
        L2CenterClassifier().fit(X, Y)


@pytest.mark.parametrize("name", list(_DAMAGED_FORMATS))
def test_damaged_matrices_of_other_formats_are_named_so(name: str) -> None:
    form = name.split()[0]
    with pytest.raises(ValueError, match=rf"the {form} matrix of shape \(2, 2\) is damaged"):
        L2CenterClassifier().fit(_DAMAGED_FORMATS[name](), [0, 1])
