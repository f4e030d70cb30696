"""The device that is checked: what it is, data on it, and what comes of a check."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import scipy.sparse
from threadpoolctl import threadpool_info

from ...arrays import cuda
from ...arrays.backend import resolve_backend

_CACHE = "~/.cupy/kernel_cache"  # of CuPy, by default
_PACKAGES = ("gpucenters", "numpy", "scipy", "scikit-learn", "array-api-compat")


@dataclass
class Outcome:
    """What came of a check.

    Attributes
    ----------
    differences : list of str
        What is not as it should be.
    note : str
        What was done, in short.
    figures : dict
        Numbers for the report.
    seconds : float
    was_run : bool
        False where the time was over before.
    """

    differences: list[str] = field(default_factory=list)
    note: str = ""
    figures: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    was_run: bool = True

    @property
    def status(self) -> str:
        """In a word."""
        if not self.was_run:
            return "not run"
        return "failed" if self.differences else "ok"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"status": self.status} | asdict(self)


def cuda_device(device: str) -> Any:
    """The ``cupy.cuda.Device`` of a name, as "cuda" or "cuda:1"."""
    return cuda.get_device(int(device.partition(":")[2] or 0))


def on_device(X: Any, device: str) -> Any:
    """Host data, an ndarray, CSR or CSC, on a CUDA device."""
    cupy = cuda.require()
    with cuda_device(device):
        if not scipy.sparse.issparse(X):
            return cupy.asarray(X)
        import cupyx.scipy.sparse

        value = X.data if X.dtype.kind == "f" else X.data.astype(np.float64)  # it has no integers
        parts = (cupy.asarray(value), cupy.asarray(X.indices), cupy.asarray(X.indptr))
        return getattr(cupyx.scipy.sparse, f"{X.format}_matrix")(parts, shape=X.shape)


def check_machine(device: str) -> Outcome:
    """Whether the device can be used; with the versions of all that takes part."""
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
