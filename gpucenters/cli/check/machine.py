"""What the figures and findings are of: the machine, its card, and the versions."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from threadpoolctl import threadpool_info

from ...arrays import cuda
from ...arrays.devices import resolve_backend
from .outcome import Outcome
from .shapes import cuda_device

_CACHE = "~/.cupy/kernel_cache"  # of CuPy, by default
_PACKAGES = ("gpucenters", "numpy", "scipy", "scikit-learn", "array-api-compat")


def check_machine(device: str) -> Outcome:
    """Whether the device can be used; with the versions of all that takes part.

    Parameters
    ----------
    device : str
    """
    resolve_backend(device, None)
    found: dict[str, Any] = {
        "device": device,
        "platform": platform.platform(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }
    found |= {name: _version(name) for name in _PACKAGES}
    blas = {info["internal_api"]: info["version"] for info in threadpool_info()}
    found["libraries"] = ", ".join(f"{name} {number}" for name, number in sorted(blas.items()))
    if device != "cpu":
        found |= _card(cuda_device(device))
    return Outcome(note=str(found.get("card", found["cpu"])), figures=found)


def _cpu() -> str:
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed as a package"


def _number(version: int) -> str:
    """CUDA's version as it is written: 13000 is 13.0."""
    return f"{version // 1000}.{version % 1000 // 10}"


def _card(device: Any) -> dict[str, Any]:
    cupy = cuda.require()
    runtime = cupy.cuda.runtime
    found = runtime.getDeviceProperties(device.id)
    with device:
        free, total = runtime.memGetInfo()
    return {
        "card": cuda.device_name(device.id),
        "compute_capability": f"{found['major']}.{found['minor']}",
        "memory": f"{total / 1e9:.1f} GB, {free / 1e9:.1f} free",
        "cuda": _number(runtime.runtimeGetVersion()),
        "driver": _number(runtime.driverGetVersion()),
        "cupy": cupy.__version__,
        "compiled kernels": os.environ.get("CUPY_CACHE_DIR", os.path.expanduser(_CACHE)),
    }
