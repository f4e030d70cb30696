"""Making arrays: the uploads, and the functions that take no array."""

from __future__ import annotations

from typing import Any

import numpy as np
from cupy._fake import devices, ledger, memory, streams
from cupy._fake.counting import counter
from cupy._lowering import run
from cupy._ndarray import check_dtype, ndarray


def array(
    obj: Any,
    dtype: Any = None,
    copy: bool | None = True,
    order: str | None = "K",
    subok: bool = False,
    ndmin: int = 0,
    *,
    blocking: bool = False,
) -> ndarray:
    if subok:
        raise NotImplementedError
    order = order or "K"
    if isinstance(obj, ndarray):
        result = _from_device(obj, dtype, copy, order)
    elif isinstance(obj, list | tuple) and _holds_device_arrays(obj):
        import cupy

        result = cupy.stack([array(o, copy=None) for o in obj]).astype(
            dtype or np.result_type(*(o.dtype for o in obj if isinstance(o, ndarray))), copy=False
        )
    else:
        if copy is False:
            raise ValueError("Unable to avoid copy while creating an array as requested.")
        result = _upload(obj, dtype, order, blocking)
    if result.ndim < ndmin:
        result = result.reshape((1,) * (ndmin - result.ndim) + result.shape)
    return result


def _from_device(obj: ndarray, dtype: Any, copy: bool | None, order: str) -> ndarray:
    """The same array where that will do; an array of another device comes over to this one."""
    dtype = obj.dtype if dtype is None else check_dtype(dtype)
    same = obj._device_id == devices.current()
    kept = order in "KA" or obj.flags[f"{order}_contiguous"]
    if same and copy is not True and dtype == obj.dtype and kept:
        return obj
    if copy is False:
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    if same:
        return obj.astype(dtype, order=order)
    return obj.copy().astype(dtype, order=order, copy=False)


def _holds_device_arrays(obj: Any) -> bool:
    return any(
        isinstance(o, ndarray) or (isinstance(o, list | tuple) and _holds_device_arrays(o))
        for o in obj
    )


def _upload(obj: Any, dtype: Any, order: str, blocking: bool) -> ndarray:
    if isinstance(obj, np.ma.MaskedArray):
        raise ValueError("CuPy currently does not support masked arrays.")
    host = np.array(obj, dtype=dtype, order=order, copy=True)  # type: ignore[call-overload]
    check_dtype(host.dtype)
    host = host.astype(host.dtype.newbyteorder("="), copy=False)
    result = ndarray._wrap(host)
    if host.ndim:  # a scalar is an argument of a kernel, nothing is copied for it
        # Pinned sources go through a buffer as well (`ndarray.set` spares it), but no one waits.
        pinned = memory.pinned_buffer(obj) is not None
        counter.upload("asarray", host.nbytes, pinned=pinned)
        ledger.note("asarray", written=host.nbytes)
        streams.note("upload", host.nbytes)
        if blocking:
            counter.sync("asarray(blocking=True)")
    return result


def asarray(
    a: Any,
    dtype: Any = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    blocking: bool = False,
) -> ndarray:
    return array(a, dtype, copy, order, blocking=blocking)


asanyarray = asarray


def ascontiguousarray(a: Any, dtype: Any = None) -> ndarray:
    return _at_least_1d(array(a, dtype, None, "C"))


def asfortranarray(a: Any, dtype: Any = None) -> ndarray:
    return _at_least_1d(array(a, dtype, None, "F"))


def _at_least_1d(a: ndarray) -> ndarray:
    return a if a.ndim else a.reshape(1)


def asnumpy(
    a: Any, stream: Any = None, order: str = "C", out: Any = None, *, blocking: bool = True
) -> np.ndarray:
    if isinstance(a, ndarray):
        return a._fetch("asnumpy", stream, order, out, blocking)
    if hasattr(a, "get"):
        return a.get(stream=stream)
    return np.asarray(a, order=order)  # type: ignore[call-overload]


def from_dlpack(array: Any, *, device: Any = None, copy: bool | None = None) -> ndarray:
    if device is not None:
        raise NotImplementedError("from_dlpack() does not support device yet.")
    if not isinstance(array, ndarray):
        raise TypeError(
            "CPU arrays cannot be directly imported to CuPy. "
            "Use `cupy.array(numpy.from_dlpack(input))` instead."
        )
    return array.copy() if copy else array.view()


def _like(function: Any) -> Any:
    def make(a: ndarray, *args: Any, **kwargs: Any) -> ndarray:
        # The result belongs to the current device, wherever the model array lives.
        made = run(function, (a, *args), kwargs, launches=False)
        if function is not np.empty_like:
            counter.launches += 1
            ledger.note_function(function.__name__, [], [made._host])
        return ndarray._wrap(made._host)

    make.__name__ = function.__name__
    return make


empty_like = _like(np.empty_like)
zeros_like = _like(np.zeros_like)
ones_like = _like(np.ones_like)
full_like = _like(np.full_like)
