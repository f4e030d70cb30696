"""Detection of CUDA at its first use; the result, or the reason of a failure, is cached.

Nothing here imports CuPy before somebody asks for a device by name or hands in a CuPy array.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import ModuleType
from typing import Any

_OLDEST = 14, 1
# What the errors of CUDA and of its libraries say where memory is short. (In some of them a handle
# for which there is no room is "not initialized".)
_NO_MEMORY = (
    "cudaErrorMemoryAllocation",
    "CUDA_ERROR_OUT_OF_MEMORY",
    "_STATUS_ALLOC_FAILED",
    "_STATUS_NOT_INITIALIZED",
    "CUSPARSE_STATUS_INSUFFICIENT_RESOURCES",
)


class DeviceUnavailableError(RuntimeError):
    """A device was asked for by name and cannot be used; the message says why."""


@lru_cache(maxsize=1)
def probe() -> tuple[ModuleType | None, str]:
    """Find out whether CUDA can be used.

    Returns
    -------
    cupy : module or None
        CuPy, if it is installed and a tiny sparse product ran on a device.
    reason : str
        Why not, where ``cupy`` is None.
    """
    if importlib.util.find_spec("cupy") is None:
        return None, (
            "CuPy is not installed. Install the extra that matches the CUDA of your driver: "
            "pip install 'gpucenters[cuda13]' or 'gpucenters[cuda12]'"
        )
    try:
        cupy = importlib.import_module("cupy")
    except Exception as error:  # a broken installation raises nearly anything
        return None, f"CuPy is installed but cannot be imported: {error}"
    try:
        if not cupy.is_available():
            return None, (
                f"CuPy {cupy.__version__} is installed, but it finds no NVIDIA driver or no "
                "CUDA device (check nvidia-smi; in Docker, start with --gpus all)"
            )
        if tuple(map(int, cupy.__version__.split(".")[:2])) < _OLDEST:
            return None, (
                f"CuPy {cupy.__version__} is installed, and CuPy "
                f"{'.'.join(map(str, _OLDEST))} or later is needed: before it whole numbers cannot "
                "be added in place, and sorts that run out of memory go unnoticed"
            )
        sparse = importlib.import_module("cupyx.scipy.sparse")
        # cupyx imports without cuSPARSE and fails at its first use: so use it once.
        one = cupy.ones(1)
        product = sparse.csr_matrix(cupy.ones((1, 1))) @ one
        if float(product[0]) != 1.0:
            return None, "CuPy gave a wrong product on the device"
    except Exception as error:
        return None, f"CuPy is installed, but a first product on the device failed: {error}"
    return cupy, ""


def require() -> ModuleType:
    """CuPy, or a DeviceUnavailableError that says why not."""
    cupy, reason = probe()
    if cupy is None:
        raise DeviceUnavailableError(f"CUDA cannot be used: {reason}.")
    return cupy


def device_count() -> int:
    """Number of CUDA devices; 0 where CUDA cannot be used."""
    cupy, _ = probe()
    return 0 if cupy is None else int(cupy.cuda.runtime.getDeviceCount())


def device_name(index: int) -> str:
    """The card's own name."""
    name = require().cuda.runtime.getDeviceProperties(index)["name"]
    return name.decode() if isinstance(name, bytes) else str(name)


def get_device(index: int) -> Any:
    """The ``cupy.cuda.Device`` of that number."""
    cupy = require()
    count = device_count()
    if index >= count:
        raise DeviceUnavailableError(
            f"device 'cuda:{index}' does not exist: this machine has {count} CUDA "
            f"device{'s' if count != 1 else ''}, numbered from 0."
        )
    return cupy.cuda.Device(index)


@contextmanager
def current(device: Any) -> Iterator[None]:
    """Make ``device`` current: CuPy launches every kernel on the current device.

    Lack of memory is a MemoryError here: handles of libraries, modules and streams are allocated
    outside of CuPy's pool, and their errors are RuntimeErrors. A factorisation that fails raises
    LinAlgError, where by default CuPy gives an array of unspecified values.
    """
    cupyx = importlib.import_module("cupyx")
    try:
        with device, cupyx.errstate(linalg="raise"):
            yield
    except RuntimeError as error:
        if not any(name in str(error) for name in _NO_MEMORY):
            raise
        raise MemoryError(
            f"CUDA has no memory left ({error}): free some, or set a smaller memory_budget."
        ) from error


def free_blocks(device: Any) -> None:
    """Give back what CuPy's memory pool keeps for later arrays, for allocations outside of it."""
    with device:
        require().get_default_memory_pool().free_all_blocks()


def free_memory(device: Any) -> int:
    """Bytes that can still be allocated on ``device``, within the limit of CuPy's memory pool."""
    cupy = require()
    with device:
        pool = cupy.get_default_memory_pool()
        free = int(cupy.cuda.runtime.memGetInfo()[0]) + int(pool.free_bytes())
        limit = int(pool.get_limit())
        return min(free, max(limit - int(pool.used_bytes()), 0)) if limit else free
