"""Names of devices: what the ``device`` parameter means, and which devices this machine has."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from . import cuda
from .backend import HOST, Backend, backend_of
from .cuda import DeviceUnavailableError
from .namespace import cupy_namespace, is_cupy, is_sparse

__all__ = ["DeviceInfo", "DeviceUnavailableError", "devices", "resolve_backend"]


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
