"""CSR and CSC: their state, their order, and their conversions."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np
import scipy.sparse as sp
from cupy._fake import flight, ledger, streams
from cupy._fake.counting import counter
from cupyx.scipy.sparse import _classes
from cupyx.scipy.sparse._arithmetic import Arithmetic
from cupyx.scipy.sparse._base import check_data_dtype, dense, sparray
from cupyx.scipy.sparse._index import Indexing
from cupyx.scipy.sparse._initial import compressed_parts


class Compressed(Indexing, Arithmetic):
    _major: int  # the axis that indptr runs along

    def __init__(
        self,
        arg1: Any,
        shape: tuple[int, int] | None = None,
        dtype: Any = None,
        copy: bool = False,
        *,
        maxprint: int | None = None,
    ) -> None:
        parts = compressed_parts(type(self), arg1, shape, dtype, copy)
        copy = copy and not parts.copied
        self.data = parts.data.astype(check_data_dtype(dtype or parts.data.dtype), copy=copy)
        self.indices = parts.indices.astype(parts.index_dtype, copy=copy)
        self.indptr = parts.indptr.astype(parts.index_dtype, copy=copy)
        if parts.shape is None:
            counter.sync("shape from indices")
            lengths = len(self.indptr) - 1, int(self.indices._host.max()) + 1
            self._shape = self._swap(*lengths)
        else:
            self._shape = (int(parts.shape[0]), int(parts.shape[1]))
        major = self._shape[self._major]
        if len(self.indptr) != major + 1:
            raise ValueError(f"index pointer size ({len(self.indptr)}) should be ({major + 1})")
        self._forget_order()

    @classmethod
    def _from_parts(
        cls, data: Any, indices: Any, indptr: Any, shape: Any, order: Any = None
    ) -> Any:
        """Made by the device itself: nothing to check, nothing to wait for."""
        self = cls.__new__(cls)
        self.data, self.indices, self.indptr = data, indices, indptr
        self._shape = (int(shape[0]), int(shape[1]))
        self._forget_order()
        if order is not None:
            self._sorted, self._canonical = order._sorted, order._canonical
        return self

    @classmethod
    def _from_scipy(cls, host: Any, index_dtype: Any = None) -> Any:
        host = host.asformat(cls.format)
        check_data_dtype(host.dtype)
        index_dtype = index_dtype or host.indices.dtype
        return cls._from_parts(
            dense(host.data),
            dense(host.indices.astype(index_dtype)),
            dense(host.indptr.astype(index_dtype)),
            host.shape,
        )

    @classmethod
    def _sibling(cls, format: str) -> Any:
        return _classes.find(format, "array" if issubclass(cls, sparray) else "matrix")

    def _scipy(self) -> Any:
        # Indices are copied: SciPy sorts in place, and that would reach the caller's arrays.
        kind = {"csr": sp.csr_array, "csc": sp.csc_array}[self.format]
        for part in (self.data, self.indices, self.indptr):
            flight.use(part._allocation, streams.name())
        arrays = self.data._host, self.indices._host.copy(), self.indptr._host.copy()
        return kind(arrays, shape=self._shape)

    def _swap(self, a: Any, b: Any) -> tuple[Any, Any]:
        return (a, b) if self._major == 0 else (b, a)

    def get(self, stream: Any = None) -> Any:
        kind = getattr(sp, f"{self.format}_{'array' if isinstance(self, sparray) else 'matrix'}")
        arrays = tuple(a.get(stream) for a in (self.data, self.indices, self.indptr))
        return kind(arrays, shape=self._shape)

    # The order of the indices: found out when asked for, which makes the host wait, and kept.

    def _forget_order(self) -> None:
        self._sorted: bool | None = None
        self._canonical: bool | None = None

    def _steps(self) -> np.ndarray:
        """Differences of neighbouring indices within a row."""
        indptr, indices = self.indptr._host, self.indices._host
        rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
        return np.diff(indices.astype(np.int64))[rows[1:] == rows[:-1]]

    def _note_check(self) -> None:
        """One thread looks at all entries of a row."""
        counter.launches += 1
        longest = int(np.diff(self.indptr._host).max(initial=0))
        ledger.note("check of order", read=self.indices.nbytes, serial=longest)

    @property
    def has_sorted_indices(self) -> bool:
        if self.data.size == 0:
            self._sorted = True
        elif self._sorted is None:
            counter.sync("has_sorted_indices")
            self._note_check()
            self._sorted = bool((self._steps() >= 0).all())
        return bool(self._sorted)

    @has_sorted_indices.setter
    def has_sorted_indices(self, value: bool) -> None:
        self._sorted = bool(value)

    @property
    def has_canonical_format(self) -> bool:
        if self.data.size == 0:
            self._sorted = self._canonical = True
        elif self._sorted is False:
            self._canonical = False
        elif self._canonical is None:
            counter.sync("has_canonical_format")
            self._note_check()
            self._canonical = bool((self._steps() > 0).all())
            self._sorted = self._canonical or self._sorted
        return bool(self._canonical)

    @has_canonical_format.setter
    def has_canonical_format(self, value: bool) -> None:
        self._canonical = bool(value)
        if value:
            self._sorted = True

    def _become(self, host: Any) -> None:
        dtype = self.indices.dtype
        self.data = dense(host.data)
        self.indices, self.indptr = (dense(a.astype(dtype)) for a in (host.indices, host.indptr))

    def sum_duplicates(self) -> None:
        """In place; the arrays are new ones, those that the matrix was made of stay."""
        if self.has_canonical_format:
            return
        counter.sync("sum_duplicates")
        self._note_sort()
        host = self._scipy().copy()
        host.sum_duplicates()
        self._become(host)
        self.has_canonical_format = True

    def _note_sort(self) -> None:
        """Pairs of row and column are sorted by comparison."""
        counter.launches += 1
        ledger.note_function("lexsort", [self.indices._host], [self.data._host])

    def sort_indices(self) -> None:
        if self.has_sorted_indices:
            return
        self._note_sort()
        host = self._scipy().copy()
        host.sort_indices()
        self._become(host)
        self._sorted, self._canonical = True, None

    def sorted_indices(self) -> Any:
        result = self.copy()
        result.sort_indices()
        return result

    def eliminate_zeros(self) -> None:
        counter.sync("eliminate_zeros")
        host = self._scipy().copy()
        host.eliminate_zeros()
        self._become(host)

    # Conversions.

    def copy(self) -> Any:
        parts = (a.copy() for a in (self.data, self.indices, self.indptr))
        return self._from_parts(*parts, self._shape, self)

    def _with_data(self, data: cupy.ndarray) -> Any:
        return self._from_parts(data, self.indices.copy(), self.indptr.copy(), self._shape, self)

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        dtype = check_data_dtype(dtype)
        if dtype == self.dtype and not copy:
            return self
        return self._with_data(self.data.astype(dtype))

    def toarray(self, order: Any = None, out: Any = None) -> cupy.ndarray:
        if out is not None:
            raise NotImplementedError
        counter.sync("toarray")
        self._note_sort()  # of a copy, whatever it says of its order
        counter.launches += 1
        found = dense(self._scipy().toarray(order=order))
        ledger.note("toarray", read=self.data.nbytes + self.indices.nbytes, written=found.nbytes)
        return found

    def _converted(self, format: str, copy: bool) -> Any:
        if format == self.format:
            return self.copy() if copy else self
        host = self._scipy().asformat(format)
        result = self._sibling(format)._from_scipy(host, self.indices.dtype)
        if format != "coo":
            result.has_sorted_indices = True
        return result

    def tocsr(self, copy: bool = False) -> Any:
        return self._converted("csr", copy)

    def tocsc(self, copy: bool = False) -> Any:
        return self._converted("csc", copy)

    def tocoo(self, copy: bool = False) -> Any:
        return self._converted("coo", copy)

    def transpose(self, axes: Any = None, copy: bool = False) -> Any:
        """The other format over the same arrays."""
        parts = self.data, self.indices, self.indptr
        other = self._sibling({"csr": "csc", "csc": "csr"}[self.format])
        return other._from_parts(*(a.copy() if copy else a for a in parts), self._shape[::-1], self)
