"""The methods of `cupy.ndarray` that compute: most are the function of the same name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from cupy._fake.subnormal import flushing

_AS_FUNCTION = [
    "all",
    "any",
    "argmax",
    "argmin",
    "argpartition",
    "argsort",
    "cumprod",
    "cumsum",
    "diagonal",
    "max",
    "mean",
    "min",
    "nonzero",
    "prod",
    "ptp",
    "repeat",
    "round",
    "searchsorted",
    "squeeze",
    "std",
    "sum",
    "swapaxes",
    "take",
    "trace",
    "var",
    "choose",
    "dot",
    "put",
]
# These do not start a kernel, and work on an array of a device that is not the current one.
_VIEWS = ("transpose",)


def _as_function(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        import cupy

        return getattr(cupy, name)(self, *args, **kwargs)

    method.__name__ = name
    return method


def _view(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        from cupy._lowering import run

        return run(getattr(np.ndarray, name), (self, *args), kwargs, launches=False)

    method.__name__ = name
    return method


class Methods:
    __slots__ = ()
    _host: np.ndarray
    _allocation: Any

    def _run(self, function: Any, *args: Any, launches: bool = True, **kwargs: Any) -> Any:
        from cupy._lowering import run

        return run(function, (self, *args), kwargs, launches=launches)

    @property
    def T(self) -> Any:
        return self._run(np.ndarray.transpose, launches=False)

    @property
    def mT(self) -> Any:
        return self._run(np.matrix_transpose, launches=False)

    @property
    def real(self) -> Any:
        return self._run(np.real, launches=False)

    @property
    def imag(self) -> Any:
        return self._run(np.imag, launches=False)

    @property
    def flat(self) -> Any:
        return iter(self.ravel())

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Any:
        if len(shape) == 1:
            (shape,) = shape
        # NumPy's own `copy` came with 2.1.
        options = {} if copy is None else {"copy": copy}
        return self._run(np.reshape, shape, order=order, launches=False, **options)

    def ravel(self, order: str = "C") -> Any:
        return self._run(np.ravel, order=order, launches=False)

    def view(self, dtype: Any = None, type: Any = None) -> Any:
        if type is not None:
            raise NotImplementedError("the stand-in has no subclasses")
        if dtype is None:
            return self._run(np.ndarray.view, launches=False)
        if not np.dtype(dtype).isnative:
            raise TypeError(f"{dtype}: CuPy takes it, and then reads the bytes in native order")
        return self._run(np.ndarray.view, dtype, launches=False)

    def flatten(self, order: str = "C") -> Any:
        return self._run(np.ndarray.flatten, order)

    def reduced_view(self) -> Any:
        return self.reshape(-1) if self._host.flags.c_contiguous else self

    def astype(
        self,
        dtype: Any,
        order: str = "K",
        casting: str | None = None,
        subok: None = None,
        copy: bool = True,
    ) -> Any:
        if subok is not None:
            raise TypeError("subok is not supported yet")
        convert = np.ndarray.astype if self._host.dtype == dtype else flushing(np.ndarray.astype)
        return self._run(convert, dtype, order=order, casting=casting or "unsafe", copy=copy)

    def copy(self, order: str = "C") -> Any:
        """A copy on the current device, wherever the array lives: this is how it travels."""
        from cupy._fake import counting, flight, ledger, streams
        from cupy._ndarray import ndarray

        flight.use(self._allocation, streams.name())
        counting.counter.launches += 1
        ledger.note_function("copy", [self._host], [self._host])
        return ndarray._wrap(np.array(self._host, order=order, copy=True))  # type: ignore[call-overload]

    def fill(self, value: Any) -> None:
        if isinstance(value, np.ndarray):
            if value.shape != ():
                raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
            value = value.item()
        if isinstance(value, list | tuple):
            raise TypeError(f"Unsupported type {type(value)}")
        self._run(np.ndarray.fill, value)

    def conj(self) -> Any:
        return self._run(np.conj) if self._host.dtype.kind == "c" else self

    conjugate = conj

    def clip(self, min: Any = None, max: Any = None, out: Any = None) -> Any:
        import cupy

        return cupy.clip(self, min, max, out=out)

    def compress(self, condition: Any, axis: int | None = None, out: Any = None) -> Any:
        import cupy

        return cupy.compress(condition, self, axis=axis, out=out)

    def sort(self, axis: int = -1, kind: str | None = None) -> None:
        check_kind(kind)
        if self._host.ndim == 0:
            raise np.exceptions.AxisError("Sorting arrays with the rank of zero is not supported")
        if not self._host.flags.c_contiguous:
            raise NotImplementedError("Sorting non-contiguous array is not supported.")
        self._run(np.ndarray.sort, axis, kind="stable")

    def partition(self, kth: Any, axis: int = -1) -> None:
        if not self._host.flags.c_contiguous:
            raise NotImplementedError("Sorting non-contiguous array is not supported.")
        self._run(np.ndarray.partition, kth, axis)


def check_kind(kind: str | None) -> None:
    if kind is not None and kind != "stable":
        raise ValueError("kind can only be None or 'stable'")


for _name in _AS_FUNCTION:
    setattr(Methods, _name, _as_function(_name))
for _name in _VIEWS:
    setattr(Methods, _name, _view(_name))
