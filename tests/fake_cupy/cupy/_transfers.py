"""Between device and host: all that makes a `cupy.ndarray` wait or copies into it."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
from cupy._fake import flight, ledger, memory, streams
from cupy._fake.counting import counter


class Transfers:
    __slots__ = ()
    _host: np.ndarray
    _allocation: Any
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    size: int
    nbytes: int
    flags: Any

    def get(
        self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True
    ) -> np.ndarray:
        return self._fetch("get", stream, order, out, blocking)

    def _fetch(
        self,
        reason: str,
        stream: Any = None,
        order: str = "C",
        out: np.ndarray | None = None,
        blocking: bool = True,
    ) -> np.ndarray:
        flight.use(self._allocation, streams.name(stream))
        if out is not None:
            if not isinstance(out, np.ndarray):
                raise TypeError("Only numpy.ndarray can be obtained from cupy.ndarray")
            if out.dtype != self.dtype:
                raise TypeError(f"{out.dtype} array cannot be obtained from {self.dtype} array")
            if out.shape != self.shape:
                raise ValueError(
                    f"Shape mismatch. Expected shape: {self.shape}, actual shape: {out.shape}"
                )
            out[...] = self._host
        else:
            if order.upper() == "A":
                order = "F" if self.flags.fnc else "C"
            out = np.array(self._host, order=order, copy=True)  # type: ignore[call-overload]
            if self.size == 0:
                return out  # nothing to wait for
        ledger.note("get", read=self.nbytes)
        if blocking:
            counter.wait(reason)
            flight.synchronize(streams.name(stream))
        streams.note("download", self.nbytes, stream)
        return out

    def set(self, arr: np.ndarray, stream: Any = None) -> None:
        if not isinstance(arr, np.ndarray):
            raise TypeError("Only numpy.ndarray can be set to cupy.ndarray")
        if arr.dtype != self.dtype:
            raise TypeError(f"{arr.dtype} array cannot be set to {self.dtype} array")
        if arr.shape != self.shape:
            raise ValueError(f"Shape mismatch. Old shape: {self.shape}, new shape: {arr.shape}")
        if not self.flags.forc:
            raise RuntimeError("Cannot set to non-contiguous array")
        pinned = memory.pinned_buffer(arr)
        counter.upload("set", arr.nbytes, pinned=pinned is not None)
        streams.note("upload", arr.nbytes, stream)
        ledger.note("set", sent=arr.nbytes if pinned is not None else 0)
        copy = flight.overwrite(self._allocation, streams.name(stream))
        if pinned is not None:
            if not all(map(flight.is_over, pinned.copies)):
                flight.faults.append("page-locked memory is written while being copied")
            pinned.copies.append(copy)
        self._host[...] = arr

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. "
            "Please use `.get()` to construct a NumPy array explicitly."
        )

    def item(self, *args: Any) -> Any:
        return self._fetch("item").item(*args)

    def tolist(self) -> Any:
        return self._fetch("tolist").tolist()

    def tobytes(self, order: str = "C") -> bytes:
        return self._fetch("tobytes").tobytes(order)  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        if self.size > 1:
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. "
                "Use a.any() or a.all()"
            )
        return bool(self._fetch("bool"))

    def __int__(self) -> int:
        return int(self._fetch("int"))

    def __float__(self) -> float:
        return float(self._fetch("float"))

    def __complex__(self) -> complex:
        return complex(self._fetch("complex"))

    # CuPy has no `__index__`: an array is not taken for an index or a length without asking.

    def __bytes__(self) -> bytes:
        return bytes(self._fetch("bytes"))

    def __repr__(self) -> str:
        return repr(self._fetch("repr"))

    def __str__(self) -> str:
        return str(self._fetch("str"))

    def __format__(self, spec: str) -> str:
        return format(self._fetch("format"), spec)

    def __reduce__(self) -> tuple[Any, ...]:
        from cupy import array

        return array, (self._fetch("pickle"),)

    def dumps(self) -> bytes:
        return pickle.dumps(self, -1)
