"""Where arrays live: a library, its device and its dtypes; and which one work is done in."""

from __future__ import annotations

import importlib
import re
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import array_api_compat
import array_api_compat.numpy as numpy_namespace
import numpy as np

from . import cuda
from .cached import cached_property
from .cuda import DeviceUnavailableError
from .namespace import (
    array_namespace,
    cupy_namespace,
    is_cuda_sparse,
    is_cupy,
    is_numpy,
    is_numpy_or_cupy,
    is_sparse,
    to_numpy,
)
from .typing import Array, Device, Namespace

__all__ = ["DeviceInfo", "DeviceUnavailableError", "devices", "resolve_backend"]


@dataclass(frozen=True)
class Backend:
    """Where arrays live: a namespace of the array API and one of its devices."""

    xp: Namespace
    device: Device

    def __hash__(self) -> int:
        return hash((self.xp.__name__, str(self.device)))

    def __str__(self) -> str:
        name = self.xp.__name__.removeprefix("array_api_compat.")
        return name if is_numpy(self.xp) else f"{name} on {self.device}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore_backend, self.state()

    def state(self) -> tuple[str, Any]:
        """The names of library and device, for pickles: a module cannot be pickled."""
        return self.xp.__name__, self.device.id if is_cupy(self.xp) else self.device

    @cached_property
    def is_numpy_or_cupy(self) -> bool:
        """Whether the code that NumPy and CuPy share runs here, sparse matrices included."""
        return is_numpy_or_cupy(self.xp)

    @cached_property
    def sync_is_expensive(self) -> bool:
        """Whether reading a number on the host waits for all work queued on the device."""
        return is_cupy(self.xp)

    def current(self) -> AbstractContextManager[Any]:
        """A context in which kernels run on this device, and lack of memory is a MemoryError.

        On the host it silences floating-point warnings: NaN and overflow are found in the results,
        and become errors that name the feature.
        """
        if is_cupy(self.xp):
            return cuda.current(self.device)
        return np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore")

    def free_blocks(self) -> None:
        """On CUDA, give back the memory that is kept for later arrays, before a second try."""
        if is_cupy(self.xp):
            cuda.free_blocks(self.device)

    def move(self, x: Array) -> Array:
        """``x`` on this backend: itself if it is here already, else a copy."""
        if backend_of(x) == self:
            return x
        if is_cupy(self.xp) and is_cupy(array_namespace(x)):
            return array_api_compat.to_device(x, self.device)
        if is_numpy(self.xp):
            return to_numpy(x)
        return self.asarray(to_numpy(x))

    def zeros(self, shape: int | tuple[int, ...], dtype: Any = None) -> Array:
        """Zeros, float64 by default."""
        xp = self.xp
        return xp.zeros(shape, dtype=xp.float64 if dtype is None else dtype, device=self.device)

    def asarray(self, values: Any, dtype: Any = None) -> Array:
        """Host values (numbers, lists, NumPy arrays) as an array on this backend."""
        if not self.is_numpy_or_cupy:
            # Others have float types of their own for lists, and share the memory of a NumPy array
            # or refuse it (read-only, other byte orders).
            given = np.asarray(values)
            values = np.array(given, dtype=given.dtype.newbyteorder("="), order="C")
            dtype = getattr(self.xp, values.dtype.name, None) if dtype is None else dtype
        return self.xp.asarray(values, dtype=dtype, device=self.device)

    def arange(self, size: int) -> Array:
        """The integers 0..size-1, int64."""
        return self.xp.arange(size, dtype=self.xp.int64, device=self.device)


def _restore_backend(name: str, device: Any) -> Backend:
    if name == numpy_namespace.__name__:
        return HOST
    if name == "array_api_compat.cupy":
        cuda.require()
        return Backend(cupy_namespace(), cuda.get_device(device))
    return Backend(importlib.import_module(name), device)


def restore_or_host(state: tuple[str, Any]) -> Backend:
    """The backend of a pickle's ``(name, device)``, or the host where CUDA cannot be used."""
    try:
        return _restore_backend(*state)
    except cuda.DeviceUnavailableError:
        return HOST


#: NumPy on the host.
HOST = Backend(numpy_namespace, "cpu")


def backend_of(x: Any) -> Backend:
    """The backend of ``x``; NumPy's for host data of no array library."""
    if type(x) is np.ndarray:  # small problems ask often
        return HOST
    xp = array_namespace(x)
    if xp is numpy_namespace:
        return HOST
    return Backend(xp, array_api_compat.device(x.data if is_cuda_sparse(x) else x))


# Names of devices: what the ``device`` parameter means, and which devices this machine has.


def resolve_backend(device: str | None, x: Any) -> Backend:
    """The backend for the work on ``x``.

    Parameters
    ----------
    device : str or None
        None follows ``x``. "cpu" is NumPy. "cuda" or "cuda:1" is that CUDA device. "auto" is CUDA
        where it can be used, else the CPU.
    x : array, sparse matrix or host data

    Raises
    ------
    ValueError
        For any other name.
    DeviceUnavailableError
        If CUDA was asked for by name and cannot be used.
    """
    if device is None:
        backend = backend_of(x)
        if is_cupy(backend.xp):
            cuda.require()
        if is_sparse(x) and not backend.is_numpy_or_cupy:
            raise TypeError(f"sparse matrices of {backend} are not supported.")
        return backend
    if device == "cpu":
        return HOST
    if device == "auto":
        if cuda.device_count() == 0:
            return HOST
        device = "cuda"
    match = re.fullmatch(r"cuda(?::(\d+))?", device) if isinstance(device, str) else None
    if match is None:
        raise ValueError(
            f"unknown device {device!r}: use None (follow X), 'cpu', 'cuda', 'cuda:N' or 'auto'."
        )
    index = match.group(1)
    if index is None:
        here = backend_of(x)
        if is_cupy(here.xp):
            return here
    cuda.require()
    return Backend(cupy_namespace(), cuda.get_device(int(index or 0)))


@dataclass(frozen=True)
class DeviceInfo:
    """One line of `devices`.

    Attributes
    ----------
    name : str
        What the ``device`` parameter takes: "cpu", "cuda:0", ...
    usable : bool
    description : str
        The card's name, or why the device cannot be used.
    """

    name: str
    usable: bool
    description: str

    def __str__(self) -> str:
        return f"{self.name:8} {'usable' if self.usable else 'not usable':11} {self.description}"


def devices() -> list[DeviceInfo]:
    """The devices of this machine: which can be used, and why the others cannot.

    Returns
    -------
    list of DeviceInfo
        The CPU first, then every CUDA device; where CUDA cannot be used, one entry "cuda" whose
        description is the reason.

    Examples
    --------
    >>> from gpucenters import devices
    >>> devices()[0].name
    'cpu'
    """
    found = [DeviceInfo("cpu", True, "NumPy on the host")]
    _, reason = cuda.probe()
    if reason:
        found.append(DeviceInfo("cuda", False, reason))
    for index in range(cuda.device_count()):
        found.append(DeviceInfo(f"cuda:{index}", True, cuda.device_name(index)))
    return found
