"""Sums and products. Most of them first sum the duplicates *of the caller's matrix*."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np
from cupy._fake import ledger, memory
from cupy._fake.counting import counter
from cupyx.scipy.sparse._base import _spbase, check_data_dtype, dense, is_scalar, issparse


def scalar(value: Any) -> Any:
    return value._host[()] if isinstance(value, cupy.ndarray) else value


class Arithmetic(_spbase):
    def _matmul(self, other: Any) -> Any:
        if is_scalar(other):
            self.sum_duplicates()
            return self._with_data(self.data * other)
        if issparse(other):
            other = other if other.format in ("csr", "csc") else other.tocsr()
            self.sum_duplicates()
            other.sum_duplicates()
            return self._like(self._scipy() @ other._scipy(), "csr")
        if not isinstance(other, cupy.ndarray):
            return NotImplemented
        if other.ndim > 2:
            raise ValueError("could not interpret dimensions")
        for array in (self.data, other):
            array._use()
        memory.take_outside("cuSPARSE")
        self.sum_duplicates()
        dtype = check_data_dtype(np.promote_types(self.dtype, other.dtype))
        # cuSPARSE reads and writes dense matrices column by column.
        host = self._scipy().astype(dtype) @ np.asfortranarray(other._host.astype(dtype))
        # (A dense operand in C order is copied first.)
        copied = 2 * other.nbytes if other.ndim == 2 and not other.flags.f_contiguous else 0
        counter.launches += 1
        ledger.note(
            "spmm",
            read=sum(a.nbytes for a in (self.data, self.indices, self.indptr)) + copied,
            written=host.nbytes,
            random=self.nnz * (1 if other.ndim == 1 else other.shape[1]),
            span=other.nbytes,
        )
        return dense(np.asfortranarray(host))

    def multiply(self, other: Any) -> Any:
        if is_scalar(other):
            self.sum_duplicates()
            dtype = np.result_type(self.dtype, scalar(other))
            return self._with_data((self.data * other).astype(check_data_dtype(dtype)))
        if not (issparse(other) or isinstance(other, cupy.ndarray)):
            raise TypeError("expected scalar, dense matrix/vector or csr matrix")
        self.sum_duplicates()
        if issparse(other):
            other = other.tocsr()
            other.sum_duplicates()
            host = self._scipy().multiply(other._scipy())
        else:
            host = self._scipy().multiply(np.atleast_2d(other._host))
        return self._like(host.tocsr(), "csr")

    def __truediv__(self, other: Any) -> Any:
        if is_scalar(other):
            wide = np.float64 if self.dtype.char in "?f" else self.dtype
            return self._with_data(self.data.astype(wide) / other)
        if isinstance(other, cupy.ndarray):
            return self.multiply(1.0 / other).tocoo()
        return NotImplemented

    def _plus(self, other: Any, sign: int) -> Any:
        if is_scalar(other):
            if scalar(other) == 0:
                return self.copy()
            raise NotImplementedError("adding a nonzero scalar to a sparse matrix is not supported")
        if isinstance(other, cupy.ndarray):
            return self.todense() + sign * other
        if not issparse(other):
            return NotImplemented
        self.sum_duplicates()
        other = other.asformat(self.format)
        other.sum_duplicates()
        return self._like(self._scipy() + sign * other._scipy(), self.format)

    def __add__(self, other: Any) -> Any:
        return self._plus(other, 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._plus(other, -1)

    def __rsub__(self, other: Any) -> Any:
        return (-self)._plus(other, 1)

    def __neg__(self) -> Any:
        return self._with_data(-self.data)

    def __abs__(self) -> Any:
        return self._with_data(abs(self.data))

    def __imul__(self, other: Any) -> Any:
        if not is_scalar(other):
            return NotImplemented
        self.data *= other
        return self

    def power(self, n: Any, dtype: Any = None) -> Any:
        data = self.data if dtype is None else self.data.astype(dtype)
        return self._with_data(data**n)

    def sqrt(self) -> Any:
        return self._with_data(cupy.sqrt(self.data))

    def log1p(self) -> Any:
        return self._with_data(cupy.log1p(self.data))

    def conj(self, copy: bool = True) -> Any:
        return self._with_data(self.data.conj())

    def count_nonzero(self, axis: int | None = None) -> Any:
        if axis is not None:
            raise NotImplementedError("the stand-in counts the whole matrix alone")
        self.sum_duplicates()
        return int(cupy.count_nonzero(self.data))

    def diagonal(self, k: int = 0) -> cupy.ndarray:
        self.sum_duplicates()
        return dense(self._scipy().diagonal(k))

    def _extreme(self, name: str, axis: int | None, explicit: bool) -> Any:
        self.sum_duplicates()
        host = getattr(self._scipy(), name)(axis=axis, explicit=explicit)
        if axis is None:
            return dense(np.asarray(host))
        host = np.atleast_2d(host.toarray())
        return self._sibling("coo")(dense(host if axis % 2 == 0 else host.T))

    def max(self, axis: int | None = None, out: Any = None, *, explicit: bool = False) -> Any:
        return self._extreme("max", axis, explicit)

    def min(self, axis: int | None = None, out: Any = None, *, explicit: bool = False) -> Any:
        return self._extreme("min", axis, explicit)
