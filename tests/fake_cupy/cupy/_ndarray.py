"""`cupy.ndarray`: a NumPy array behind CuPy's manners.

It is a wrapper and no subclass, so that nothing of NumPy works on it by accident.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from cupy import _indexing
from cupy._fake import devices, flight, memory, streams
from cupy._methods import Methods
from cupy._operators import Operators
from cupy._transfers import Transfers

_DTYPES = "?bhilqBHILQefdFD"
_COMPARISONS = frozenset(
    ("greater", "greater_equal", "less", "less_equal", "equal", "not_equal"),
)


def check_dtype(dtype: Any) -> np.dtype[Any]:
    """Numbers alone live on a device: no strings, no objects, no dates."""
    dtype = np.dtype(dtype)
    if dtype.char not in _DTYPES:
        raise ValueError(f"Unsupported dtype {dtype}")
    return dtype


class Flags:
    def __init__(self, array: ndarray) -> None:
        self.c_contiguous = array._host.flags.c_contiguous
        self.f_contiguous = array._host.flags.f_contiguous
        self.owndata = array.base is None
        self.fnc = self.f_contiguous and not self.c_contiguous
        self.forc = self.f_contiguous or self.c_contiguous

    def __getitem__(self, name: str) -> bool:
        return getattr(self, name.lower())


class MemoryPointer:
    """As much of `cupy.ndarray.data` as tells two arrays' memory apart."""

    def __init__(self, array: ndarray) -> None:
        self.ptr = array._host.__array_interface__["data"][0]
        self.device_id = array._device_id
        self.device = array.device


class ndarray(Transfers, Methods, Operators):
    __slots__ = ("__weakref__", "_allocation", "_device_id", "_host", "base")
    __array_priority__ = 100

    def __init__(
        self,
        shape: Any,
        dtype: Any = float,
        memptr: None = None,
        strides: None = None,
        order: str = "C",
    ) -> None:
        if memptr is not None or strides is not None:
            raise NotImplementedError("the stand-in has no raw memory")
        self._own(np.empty(shape, check_dtype(dtype), order or "C"), None)  # type: ignore[call-overload]

    @classmethod
    def _wrap(
        cls, host: np.ndarray, base: ndarray | None = None, device_id: int | None = None
    ) -> ndarray:
        self = cls.__new__(cls)
        self._own(host, base, device_id)
        return self

    def _own(self, host: np.ndarray, base: ndarray | None, device_id: int | None = None) -> None:
        check_dtype(host.dtype)
        self._host = host
        if base is None:
            self.base = None
            self._device_id = devices.current() if device_id is None else device_id
            self._allocation = memory.Allocation(host.nbytes, self._device_id)
        else:
            self.base = base if base.base is None else base.base
            self._device_id = base._device_id
            self._allocation = base._allocation

    def _use(self, stream: Any = None) -> None:
        """A kernel, on the current device, reads this or writes to it."""
        devices.require_current(self._device_id)
        flight.use(self._allocation, streams.name(stream))

    # What is known on the host, without asking the device.

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._host.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self._host.shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        self._host = _reshaped(self._host, shape)

    @property
    def strides(self) -> tuple[int, ...]:
        return self._host.strides

    @property
    def size(self) -> int:
        return self._host.size

    @property
    def ndim(self) -> int:
        return self._host.ndim

    @property
    def nbytes(self) -> int:
        return self._host.nbytes

    @property
    def itemsize(self) -> int:
        return self._host.itemsize

    @property
    def flags(self) -> Flags:
        return Flags(self)

    @property
    def device(self) -> Any:
        from cupy.cuda.device import Device

        return Device(self._device_id)

    @property
    def data(self) -> MemoryPointer:
        return MemoryPointer(self)

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __copy__(self) -> ndarray:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> ndarray:
        return self.copy()

    # Elements.

    def __getitem__(self, key: Any) -> ndarray:
        return _indexing.getitem(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        _indexing.setitem(self, key, value)

    def __iter__(self) -> Iterator[ndarray]:
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self)))

    def scatter_add(self, slices: Any, value: Any) -> None:
        _indexing.scatter(self, slices, value, "add")

    def scatter_max(self, slices: Any, value: Any) -> None:
        _indexing.scatter(self, slices, value, "max")

    def scatter_min(self, slices: Any, value: Any) -> None:
        _indexing.scatter(self, slices, value, "min")

    # NumPy's functions hand over to CuPy's.

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        import cupy

        own = getattr(cupy, ufunc.__name__, None)
        if own is None or method not in ("__call__", "outer", "at", "reduce", "accumulate"):
            return NotImplemented
        if "out" in kwargs:
            (kwargs["out"],) = kwargs["out"]
        if ufunc.__name__ in _COMPARISONS:
            # NumPy hands its own scalars over as arrays here (numpy/numpy#12142), and so CuPy
            # takes a host array of one element in a comparison that NumPy started.
            inputs = tuple(
                x.item() if isinstance(x, np.ndarray) and x.size == 1 else x for x in inputs
            )
        return (own if method == "__call__" else getattr(own, method))(*inputs, **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        import cupy

        owner: Any = cupy
        for part in func.__module__.split(".")[1:]:
            owner = getattr(owner, part, None)
        own = getattr(owner, func.__name__, None)
        if own is None or not all(issubclass(t, ndarray | np.ndarray) for t in types):
            return NotImplemented
        return own(*args, **kwargs)

    # DLPack: device memory, which NumPy cannot read (2 is kDLCUDA, 1 is kDLCPU).

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self._device_id

    def __dlpack__(
        self, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        if dl_device is None or dl_device[0] != 1:
            raise BufferError("the stand-in has no device memory to export")
        if copy is False:
            raise ValueError("copy=False cannot be honoured from device to host")
        return self._fetch("dlpack").__dlpack__(max_version=max_version)


def _reshaped(host: np.ndarray, shape: Any) -> np.ndarray:
    view = host.reshape(shape)
    if host.size and not np.may_share_memory(view, host):
        raise AttributeError(
            "Incompatible shape for in-place modification. "
            "Use `.reshape()` to make a copy with the desired shape."
        )
    return view


ndarray.__module__ = "cupy"
