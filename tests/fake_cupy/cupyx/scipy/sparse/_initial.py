"""The three arrays of a compressed matrix, from everything that its constructor takes."""

from __future__ import annotations

from typing import Any, NamedTuple

import cupy
import numpy as np
import scipy.sparse as sp
from cupy._fake.counting import counter
from cupyx.scipy.sparse._base import dense, issparse

_INT32_MAX = np.iinfo(np.int32).max


class Parts(NamedTuple):
    data: cupy.ndarray
    indices: cupy.ndarray
    indptr: cupy.ndarray
    index_dtype: np.dtype[Any]
    shape: tuple[int, int] | None
    copied: bool


def is_shape(value: Any) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) == 2
        and all(isinstance(v, int | np.integer) for v in value)
    )


def compressed_parts(
    kind: Any, source: Any, shape: tuple[int, int] | None, dtype: Any, copy: bool
) -> Parts:
    if issparse(source):
        same = source.asformat(kind.format)
        return _whole(same, shape or source.shape, same is not source)
    if is_shape(source):
        major = source[kind._major]
        index_dtype = np.dtype(np.int32 if max(source) <= _INT32_MAX else np.int64)
        data, indices = np.zeros(0, dtype or np.float64), np.zeros(0, index_dtype)
        indptr = np.zeros(major + 1, index_dtype)
        return Parts(dense(data), dense(indices), dense(indptr), index_dtype, source, True)
    if sp.issparse(source):
        # The index type is SciPy's; data of another type than cuSPARSE's is refused afterwards.
        host = source.asformat(kind.format)
        arrays = [cupy.array(a) for a in (host.data, host.indices, host.indptr)]
        return Parts(*arrays, host.indices.dtype, shape or source.shape, True)
    if isinstance(source, tuple) and len(source) == 2:
        coo = kind._sibling("coo")(source, shape=shape, dtype=dtype, copy=copy)
        return _whole(coo.asformat(kind.format), coo.shape, True)
    if isinstance(source, tuple) and len(source) == 3:
        return _triplet(*source, shape, kind.__name__)
    if isinstance(source, cupy.ndarray):
        if source.ndim > 2:
            raise ValueError("expected dimension <= 2 array or matrix")
        counter.sync(f"{kind.__name__} from dense")
        host = sp.csr_array(np.atleast_2d(source._host)).asformat(kind.format)
        arrays = [dense(a) for a in (host.data, host.indices, host.indptr)]
        return Parts(*arrays, np.dtype(np.int32), shape or host.shape, True)
    raise ValueError("Unsupported initializer format")


def _whole(source: Any, shape: tuple[int, int], copied: bool) -> Parts:
    index_dtype = source.indices.dtype
    return Parts(source.data, source.indices, source.indptr, index_dtype, shape, copied)


def _triplet(data: Any, indices: Any, indptr: Any, shape: Any, name: str) -> Parts:
    if not all(isinstance(a, cupy.ndarray) and a.ndim == 1 for a in (data, indices, indptr)):
        raise ValueError("data, indices, and indptr must be 1-D cupy arrays")
    if len(data) != len(indices):
        raise ValueError("indices and data should have the same size")
    if indptr.size:
        counter.sync(f"{name} from triplet")
        first, stored = int(indptr._host[0]), int(indptr._host[-1])
        if first != 0:
            raise ValueError(f"index pointer should start with 0 (got {first})")
        if stored > data.size:
            raise ValueError(
                f"last index pointer ({stored}) exceeds the size of data/indices ({data.size})"
            )
        data, indices = data[:stored], indices[:stored]
    return Parts(data, indices, indptr, _index_dtype(indices, indptr, shape), shape, False)


def _index_dtype(indices: cupy.ndarray, indptr: cupy.ndarray, shape: Any) -> np.dtype[Any]:
    """int32 where all values fit, which costs a look at them if they come as int64."""
    if shape is not None and max(shape) > _INT32_MAX:
        return np.dtype(np.int64)
    for array in (indices, indptr):
        if not np.can_cast(array.dtype, np.int32) and array.size:
            counter.sync("index dtype from contents")
            if int(array._host.max()) > _INT32_MAX or int(array._host.min()) < -_INT32_MAX - 1:
                return np.dtype(np.int64)
    return np.dtype(np.int32)
