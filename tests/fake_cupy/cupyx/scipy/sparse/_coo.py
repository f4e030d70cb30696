"""Coordinates: a format to come from and to go to, computing is done in CSR."""

from __future__ import annotations

from typing import Any

import cupy
import scipy.sparse as sp
from cupy._fake.counting import counter
from cupyx.scipy.sparse import _classes
from cupyx.scipy.sparse._base import (
    _spbase,
    check_data_dtype,
    dense,
    issparse,
    sparray,
    spmatrix,
)
from cupyx.scipy.sparse._initial import is_shape


class _coo_base(_spbase):
    format = "coo"

    def __init__(
        self,
        arg1: Any,
        shape: tuple[int, int] | None = None,
        dtype: Any = None,
        copy: bool = False,
        *,
        maxprint: int | None = None,
    ) -> None:
        self.has_canonical_format = False
        if issparse(arg1):
            source = arg1.tocoo()
            data, row, col, shape = source.data, source.row, source.col, shape or arg1.shape
        elif sp.issparse(arg1):
            host = arg1.tocoo()
            data, row, col = (cupy.array(a) for a in (host.data, host.row, host.col))
            shape = shape or host.shape
        elif is_shape(arg1):
            data = cupy.zeros(0, dtype=dtype or float)
            row, col, shape = cupy.zeros(0, dtype="i"), cupy.zeros(0, dtype="i"), arg1
        elif isinstance(arg1, tuple):
            data, (row, col) = arg1
            if not all(isinstance(a, cupy.ndarray) and a.ndim == 1 for a in (data, row, col)):
                raise ValueError("row, column, and data arrays must be 1-D cupy arrays")
            if not len(data) == len(row) == len(col):
                raise ValueError("row, column, and data array must all be the same length")
            counter.sync("coo_matrix bounds")
            if shape is None:
                shape = (int(row._host.max()) + 1, int(col._host.max()) + 1)
        elif isinstance(arg1, cupy.ndarray):
            counter.sync("coo_matrix from dense")
            host = sp.coo_array(arg1._host)
            data, row, col = dense(host.data), dense(host.row), dense(host.col)
            shape = shape or host.shape
        else:
            raise ValueError("Unsupported initializer format")
        self.data = data.astype(check_data_dtype(dtype or data.dtype), copy=copy)
        index = "i" if max(shape) < 2**31 else "q"
        self.row, self.col = (a.astype(index, copy=copy) for a in (row, col))
        self._shape = (int(shape[0]), int(shape[1]))

    @classmethod
    def _from_scipy(cls, host: Any, index_dtype: Any = None) -> Any:
        host = host.tocoo()
        return cls((dense(host.data), (dense(host.row), dense(host.col))), shape=host.shape)

    def _scipy(self) -> Any:
        return sp.coo_array((self.data._host, (self.row._host, self.col._host)), shape=self._shape)

    def get(self, stream: Any = None) -> Any:
        data, row, col = (a.get(stream) for a in (self.data, self.row, self.col))
        kind = sp.coo_array if isinstance(self, sparray) else sp.coo_matrix
        return kind((data, (row, col)), shape=self._shape)

    def sum_duplicates(self) -> None:
        counter.sync("sum_duplicates")
        host = self._scipy().copy()
        host.sum_duplicates()
        self.data, self.row, self.col = dense(host.data), dense(host.row), dense(host.col)
        self.has_canonical_format = True

    def copy(self) -> Any:
        return type(self)(self, copy=True)

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        return type(self)(self, dtype=dtype, copy=copy)

    def tocoo(self, copy: bool = False) -> Any:
        return self.copy() if copy else self

    def tocsr(self, copy: bool = False) -> Any:
        """Sorted and without duplicates."""
        counter.sync("coo to csr")
        kind = "array" if isinstance(self, sparray) else "matrix"
        result = _classes.find("csr", kind)._from_scipy(self._scipy().tocsr(), self.row.dtype)
        result.has_canonical_format = True
        return result

    def transpose(self, axes: Any = None, copy: bool = False) -> Any:
        return type(self)((self.data, (self.col, self.row)), shape=self._shape[::-1], copy=copy)


class coo_matrix(spmatrix, _coo_base):
    pass


class coo_array(_coo_base, sparray):
    pass


def isspmatrix_coo(x: Any) -> bool:
    return isinstance(x, coo_matrix)
