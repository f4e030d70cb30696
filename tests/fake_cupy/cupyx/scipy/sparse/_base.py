"""What all sparse formats share; those that are matrices, and those that are arrays."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

_DATA_DTYPES = "?fdFD"


def check_data_dtype(dtype: Any) -> np.dtype[Any]:
    """CuSPARSE computes with these alone; counts in integers have to be cast."""
    dtype = np.dtype(dtype)
    if dtype.char not in _DATA_DTYPES:
        raise ValueError("Only bool, float32, float64, complex64 and complex128 are supported")
    return dtype


def dense(array: np.ndarray) -> cupy.ndarray:
    """An array that the device itself computed: no upload."""
    return cupy.ndarray._wrap(np.ascontiguousarray(array) if array.ndim == 1 else array)


def is_scalar(value: Any) -> bool:
    return np.isscalar(value) or (isinstance(value, cupy.ndarray) and value.ndim == 0)


class _spbase:
    """Base of every format; what is not overridden goes by way of CSR, as in CuPy."""

    __array_priority__ = 101
    __hash__ = None  # type: ignore[assignment]
    maxprint = 50
    format: str
    _shape: tuple[int, int]
    data: cupy.ndarray

    @property
    def device(self) -> Any:
        return self.data.device

    @property
    def shape(self) -> tuple[int, int]:
        return self._shape

    @property
    def ndim(self) -> int:
        return 2

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.data.dtype

    @property
    def nnz(self) -> int:
        return self.data.size

    size = nnz

    def _scipy(self) -> Any:
        """SciPy's object over the same memory (not counted: it is the stand-in's engine)."""
        raise NotImplementedError

    def _like(self, host: Any, format: str | None = None) -> Any:
        """A sparse object of our own kind (matrix or array) over what SciPy computed."""
        from cupyx.scipy.sparse import _classes

        kind = "array" if isinstance(self, sparray) else "matrix"
        return _classes.find(format or host.format, kind)._from_scipy(host)

    def __repr__(self) -> str:
        return (
            f"<{self.format} sparse of dtype '{self.dtype}'\n"
            f"\twith {self.nnz} stored elements and shape {self.shape}>"
        )

    def __len__(self) -> int:
        raise TypeError("sparse array length is ambiguous; use shape[0] or .nnz")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def asformat(self, format: str | None) -> Any:
        return self if format in (None, self.format) else getattr(self, f"to{format}")()

    def tocsr(self, copy: bool = False) -> Any:
        raise NotImplementedError

    def tocsc(self, copy: bool = False) -> Any:
        return self.tocsr(copy=copy).tocsc()

    def tocoo(self, copy: bool = False) -> Any:
        return self.tocsr(copy=copy).tocoo()

    def toarray(self, order: Any = None, out: Any = None) -> cupy.ndarray:
        return self.tocsr().toarray(order=order, out=out)

    def todense(self, order: Any = None, out: Any = None) -> cupy.ndarray:
        return self.toarray(order=order, out=out)

    def transpose(self, axes: Any = None, copy: bool = False) -> Any:
        return self.tocsr(copy=copy).transpose()

    @property
    def T(self) -> Any:
        return self.transpose()

    def dot(self, other: Any) -> Any:
        return self * other if np.isscalar(other) else self @ other

    def __matmul__(self, other: Any) -> Any:
        if is_scalar(other):
            raise ValueError("Scalar operands are not allowed, use '*' instead")
        return self._matmul(other)

    def __rmatmul__(self, other: Any) -> Any:
        if is_scalar(other):
            raise ValueError("Scalar operands are not allowed, use '*' instead")
        return self.T._matmul(other.T).T if hasattr(other, "T") else NotImplemented

    def _matmul(self, other: Any) -> Any:
        return self.tocsr()._matmul(other)

    def multiply(self, other: Any) -> Any:
        return self.tocsr().multiply(other)

    def __mul__(self, other: Any) -> Any:
        return self.multiply(other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self.tocsr().__truediv__(other)

    def __add__(self, other: Any) -> Any:
        return self.tocsr() + other

    def __sub__(self, other: Any) -> Any:
        return self.tocsr() - other

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> cupy.ndarray:
        """By a product with ones: in the matrix's own precision, float32 in float32."""
        if self.dtype == bool:
            carrier = self.tocsr(copy=True)
            carrier.sum_duplicates()
            return carrier.astype(np.float64).sum(axis, dtype or np.int64, out)
        rows, columns = self.shape
        if axis is None:
            return self.dot(cupy.ones(columns, dtype=self.dtype)).sum(dtype=dtype, out=out)
        if axis not in (-2, -1, 0, 1):
            raise ValueError("axis out of bounds")
        if axis % 2 == 0:
            result = self.T.dot(cupy.ones(rows, dtype=self.dtype))
        else:
            result = self.dot(cupy.ones(columns, dtype=self.dtype))
        if not isinstance(self, sparray):
            result = result.reshape((1, columns) if axis % 2 == 0 else (rows, 1))
        if out is not None:
            out[...] = result
            return out
        return result if dtype is None else result.astype(dtype, copy=False)

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None) -> cupy.ndarray:
        wide = self.astype(np.float64) if self.dtype == bool else self
        count = self.shape[0] * self.shape[1] if axis is None else self.shape[axis]
        return (wide.multiply(1.0 / count)).sum(axis, dtype, out)


class sparray:
    """``*`` is element by element, and a sum over an axis is 1-D."""


class spmatrix:
    """``*`` is the matrix product, and a sum over an axis stays 2-D."""

    def __mul__(self, other: Any) -> Any:
        return self.multiply(other) if is_scalar(other) else self._matmul(other)  # type: ignore[attr-defined]

    def __rmul__(self, other: Any) -> Any:
        return self.multiply(other) if is_scalar(other) else self.__rmatmul__(other)  # type: ignore[attr-defined]

    def getnnz(self, axis: int | None = None) -> int:
        if axis is not None:
            raise NotImplementedError("getnnz over an axis is not implemented")
        return self.nnz  # type: ignore[attr-defined]

    def getrow(self, i: int) -> Any:
        return self.tocsr()[i, :]  # type: ignore[attr-defined]

    def getcol(self, i: int) -> Any:
        return self.tocsr()[:, [i]]  # type: ignore[attr-defined]

    def get_shape(self) -> tuple[int, int]:
        return self._shape  # type: ignore[attr-defined]


def issparse(x: Any) -> bool:
    return isinstance(x, _spbase)


def isspmatrix(x: Any) -> bool:
    return isinstance(x, spmatrix)
