"""The functions in which CuPy differs from NumPy: what they accept, and what they wait for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from cupy._creation import asarray
from cupy._fake import memory
from cupy._fake.counting import counter
from cupy._lowering import refuse, run
from cupy._methods import check_kind
from cupy._ndarray import ndarray


def require(*arrays: Any) -> None:
    for array in arrays:
        if not isinstance(array, ndarray):
            raise refuse(array)


def sort(a: ndarray, axis: int | None = -1, kind: str | None = None) -> ndarray:
    require(a)
    result = a.flatten() if axis is None else a.copy()
    result.sort(-1 if axis is None else axis, kind)
    return result


def argsort(a: ndarray, axis: int | None = -1, kind: str | None = None) -> ndarray:
    require(a)
    check_kind(kind)
    a = a if a.ndim else a.reshape(1)
    return run(np.argsort, (a, axis), {"kind": "stable"})


def lexsort(keys: ndarray) -> ndarray:
    """Takes one array of keys alone, no tuple of arrays."""
    if keys.ndim > 2:
        raise NotImplementedError("Keys with the rank of three or more is not supported in lexsort")
    if keys.ndim == 1:
        return asarray(0, dtype=np.intp)
    return run(np.lexsort, (keys,))


def partition(a: ndarray, kth: int, axis: int | None = -1) -> ndarray:
    """A sort, or near the start of a long array a kernel whose threads do not wait for each other.

    What such a race leaves is not known: here two neighbours have changed places.
    """
    require(a)
    result = run(np.partition, (a, kth, axis))
    if a.ndim == 1 and 0 <= kth < 512 and len(a) // 64 >= max(32, 1 << kth.bit_length()) + 128:
        result._host[[kth, kth + 1]] = result._host[[kth + 1, kth]]
    return result


def argpartition(a: ndarray, kth: Any, axis: int | None = -1) -> ndarray:
    require(a)
    return run(np.argpartition, (a, kth, axis))


def searchsorted(a: ndarray, v: Any, side: str = "left", sorter: ndarray | None = None) -> ndarray:
    if not isinstance(a, ndarray):
        raise NotImplementedError("Only int or ndarray are supported for a")
    if not isinstance(v, ndarray):
        if not isinstance(v, int | float | complex):
            raise NotImplementedError("Only python scalars or ndarrays are supported for v")
        v = asarray(v)
    if a.ndim != 1:
        depth = "object too deep for desired" if a.ndim > 1 else "object of too small depth for"
        raise ValueError(f"{depth} array")
    if sorter is not None:
        if sorter.dtype.kind not in "iu":
            raise TypeError("sorter must be of integer type")
        if sorter.size != a.size:
            raise ValueError("sorter.size must equal a.size")
    return run(np.searchsorted, (a, v, side, sorter))


def take(a: ndarray, indices: Any, axis: int | None = None, out: ndarray | None = None) -> ndarray:
    """Uploads host indices, and wraps what is out of bounds."""
    require(a)
    if not (isinstance(indices, ndarray) or np.isscalar(indices)):
        indices = asarray(indices, dtype=int)
    if out is not None and out.dtype != a.dtype:
        raise TypeError("Output dtype mismatch")
    return run(np.take, (a, indices, axis), {"out": out, "mode": "wrap"})


def take_along_axis(a: ndarray, indices: ndarray, axis: int | None) -> ndarray:
    require(a, indices)
    if indices.dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    if axis is None:
        a, axis = a.ravel(), 0
    if a.ndim != indices.ndim:
        raise ValueError("`indices` and `a` must have the same number of dimensions")
    return run(
        lambda x, i: np.take_along_axis(x, i % max(x.shape[axis], 1), axis),
        (a, indices),
        name="take_along_axis",
    )


def compress(
    condition: Any, a: ndarray, axis: int | None = None, out: ndarray | None = None
) -> ndarray:
    if np.isscalar(condition):
        raise ValueError("condition must be a 1-d array")
    if not isinstance(condition, ndarray):
        condition = asarray(condition, dtype=int)
    counter.sync("compress")
    return run(np.compress, (condition, a, axis), {"out": out})


def put(a: ndarray, indices: Any, values: Any, mode: str = "wrap") -> None:
    require(a)
    if mode == "raise":
        counter.sync("put")
    run(np.put, (a, asarray(indices), asarray(values, dtype=a.dtype)), {"mode": mode})


def where(condition: ndarray, x: Any = None, y: Any = None) -> Any:
    require(condition)
    if (x is None) != (y is None):
        raise ValueError("Must provide both 'x' and 'y' or neither.")
    if x is None:
        return nonzero(condition)
    return run(np.where, (condition, x, y))


def nonzero(a: ndarray) -> tuple[ndarray, ...]:
    require(a)
    if a.ndim == 0:
        raise ValueError(
            "Calling nonzero on 0d arrays is not allowed. "
            "Use cp.atleast_1d(scalar).nonzero() instead."
        )
    if a.size:
        counter.sync("nonzero")
    return run(np.nonzero, (a,))


def bincount(x: ndarray, weights: ndarray | None = None, minlength: int | None = None) -> ndarray:
    """Waits twice: once to see that nothing is negative, once for the size of the result."""
    require(x, *(() if weights is None else (weights,)))
    if x.ndim != 1:
        depth = "object too deep for desired" if x.ndim > 1 else "object of too small depth for"
        raise ValueError(f"{depth} array")
    if x.dtype.kind == "f":
        raise TypeError("x must be int array")
    if weights is not None and x.shape != weights.shape:
        raise ValueError("The weights and list don't have the same length.")
    if x.size == 0:
        return run(np.zeros, (int(minlength or 0), np.intp))
    counter.sync("bincount")
    if (x._host < 0).any():
        raise ValueError("The first argument of bincount must be non-negative")
    counter.sync("bincount")
    return run(
        lambda i, w: np.bincount(i.astype(np.intp), w, int(minlength or 0)),
        (x, weights),
        name="bincount",
    )


def repeat(a: ndarray, repeats: Any, axis: int | None = None) -> ndarray:
    require(a)
    if isinstance(repeats, np.ndarray):
        raise TypeError("'repeats' does not accept numpy.ndarray; convert with cupy.array() first")
    if isinstance(repeats, ndarray):
        counter.sync("repeat")
    return run(np.repeat, (a, repeats, axis))


def concatenate(
    tup: Sequence[ndarray],
    axis: int | None = 0,
    out: ndarray | None = None,
    *,
    dtype: Any = None,
    casting: Any = "same_kind",
) -> ndarray:
    tup = list(tup)
    if not all(isinstance(a, ndarray) for a in tup):
        raise TypeError("Only cupy arrays can be concatenated")
    options = {"axis": axis, "out": out, "dtype": dtype, "casting": casting}
    return run(np.concatenate, (tup,), options)


def isin(
    element: ndarray, test_elements: ndarray, assume_unique: bool = False, invert: bool = False
) -> ndarray:
    require(element, test_elements)
    return run(np.isin, (element, test_elements), {"invert": invert})


def in1d(ar1: ndarray, ar2: ndarray, assume_unique: bool = False, invert: bool = False) -> ndarray:
    return isin(ar1, ar2, invert=invert).ravel()


def clip(a: ndarray, a_min: Any, a_max: Any, out: ndarray | None = None) -> ndarray:
    require(a)
    if a_min is None and a_max is None:
        raise ValueError("array_clip: must set either max or min")
    return run(np.clip, (a, a_min, a_max), {"out": out})


def matmul(*args: Any, out: ndarray | None = None, dtype: Any = None) -> ndarray:
    require(*args)
    memory.take_outside("cuBLAS")
    return run(np.matmul, args, {"out": out, "dtype": dtype})


def copyto(dst: ndarray, src: Any, casting: Any = "same_kind", where: Any = None) -> None:
    require(dst)
    options = {"casting": casting} | ({} if where is None else {"where": where})
    run(np.copyto, (dst, src), options)


def copy(a: ndarray, order: str = "K") -> ndarray:
    require(a)
    return a.copy(order)


def round(a: ndarray, decimals: int = 0, out: ndarray | None = None) -> ndarray:
    require(a)
    return run(np.round, (a, decimals), {"out": out})


def get_array_module(*args: Any) -> Any:
    """The module `cupy` where one of the arguments lives on a device, else NumPy."""
    import cupy
    from cupyx.scipy.sparse import issparse

    return cupy if any(isinstance(a, ndarray) or issparse(a) for a in args) else np


def fuse(*args: Any, **kwargs: Any) -> Any:
    """Fusing kernels changes speed alone."""
    return args[0] if args and callable(args[0]) else (lambda function: function)
