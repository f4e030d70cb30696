"""Places (a library and one of its devices), their names, and the one explicit move."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import array_api_compat
import array_api_compat.numpy as numpy_namespace
import numpy as np

from . import cuda
from .cuda import DeviceUnavailableError
from .namespace import (
    array_namespace,
    cupy_namespace,
    in_family,
    is_cuda_sparse,
    is_cupy,
    is_numpy,
    is_sparse,
    to_numpy,
)
from .typing import Array, Device, Namespace

__all__ = [
    "HOST",
    "DeviceInfo",
    "DeviceUnavailableError",
    "Place",
    "devices",
    "place_of",
    "resolve_place",
]


@dataclass(frozen=True)
class Place:
    """Where arrays live: a namespace of the array API and one of its devices.

    ``halvings`` says how often the chunks of work there were halved, for want of memory; it is no
    part of what the place is.
    """

    xp: Namespace
    device: Device
    halvings: int = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place) and self.xp is other.xp and self.device == other.device

    def __hash__(self) -> int:
        return hash((self.xp.__name__, str(self.device)))

    def __str__(self) -> str:
        name = self.xp.__name__.removeprefix("array_api_compat.")
        return name if is_numpy(self.xp) else f"{name} on {self.device}"

    def __reduce__(self) -> tuple[Any, ...]:
        # Modules cannot be pickled; a fitted model can.
        index = self.device.id if is_cupy(self.xp) else self.device
        return _restore_place, (self.xp.__name__, index)

    @property
    def family(self) -> bool:
        """Whether this place shares the numpy-and-cupy code, sparse matrices included."""
        return in_family(self.xp)

    @property
    def stalls(self) -> bool:
        """Whether to read a number from here makes the host wait for all that is queued."""
        return is_cupy(self.xp)

    def current(self) -> AbstractContextManager[Any]:
        """A context in which this place's device is the one that kernels run on.

        On the host it silences floating-point warnings: NaN and overflow are looked for in the
        results, and become errors that name the feature.
        """
        if is_cupy(self.xp):
            return cuda.current(self.device)
        return np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore")

    def move(self, x: Array) -> Array:
        """``x`` here: itself if it is here already, else a copy. The only move there is."""
        if place_of(x) == self:
            return x
        if is_cupy(self.xp) and is_cupy(array_namespace(x)):
            return array_api_compat.to_device(x, self.device)
        if is_numpy(self.xp):
            return to_numpy(x)
        return self.asarray(to_numpy(x))

    def zeros(self, shape: int | tuple[int, ...], dtype: Any = None) -> Array:
        """Zeros here, float64 unless told."""
        xp = self.xp
        return xp.zeros(shape, dtype=xp.float64 if dtype is None else dtype, device=self.device)

    def asarray(self, values: Any, dtype: Any = None) -> Array:
        """Host values (numbers, lists, NumPy arrays) as an array here."""
        if dtype is None and isinstance(values, np.ndarray) and not self.family:
            # Other libraries may take values one by one, and then not know the type.
            dtype = getattr(self.xp, values.dtype.name, None)
        return self.xp.asarray(values, dtype=dtype, device=self.device)


def _restore_place(name: str, device: Any) -> Place:
    if name == numpy_namespace.__name__:
        return HOST
    if name == "array_api_compat.cupy":
        return Place(cupy_namespace(), cuda.get_device(device))
    import importlib

    return Place(importlib.import_module(name), device)


#: NumPy on the host.
HOST = Place(numpy_namespace, "cpu")


def place_of(x: Any) -> Place:
    """Where ``x`` lives; host data of no array library count as NumPy's."""
    xp = array_namespace(x)
    if is_numpy(xp):
        return HOST
    return Place(xp, array_api_compat.device(x.data if is_cuda_sparse(x) else x))


def resolve_place(device: str | None, x: Any) -> Place:
    """Where the work on ``x`` is to be done.

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
        place = place_of(x)
        if is_cupy(place.xp):
            cuda.require()
        if is_sparse(x) and not place.family:
            raise TypeError(f"sparse matrices of {place} are not supported.")
        return place
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
        here = place_of(x)
        if is_cupy(here.xp):
            return here
    return Place(_cupy_or_raise(), cuda.get_device(int(index or 0)))


def _cupy_or_raise() -> Namespace:
    cuda.require()
    return cupy_namespace()


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
