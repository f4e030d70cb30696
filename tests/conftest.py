"""Every numerical test runs under every namespace there is, in one run."""

from __future__ import annotations

import os

# Read by SciPy when it is first imported; without it scikit-learn's array API checks skip.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import array_api_compat.numpy
import array_api_strict
import numpy as np
import pytest
import scipy.sparse

HERE = Path(__file__).parent
DATA = Path(os.environ.get("GPUCENTERS_DATA", HERE.parent.parent / "shared" / "data"))

# The stand-in is a package that is put on the path, and attacks have a target: no tests to collect.
collect_ignore_glob = ["fake_cupy/cupy/*", "fake_cupy/cupyx/*", "first_fit.py", "attack/*"]


def _load_cupy() -> Any:
    """CuPy where a GPU can be used, else the stand-in with its manners."""
    from gpucenters.arrays import cuda

    if cuda.probe()[0] is None:
        if os.environ.get("GPUCENTERS_REQUIRE_CUDA"):
            pytest.exit(f"CUDA is required: {cuda.probe()[1]}", returncode=1)
        for name in [n for n in sys.modules if n.split(".")[0] in ("cupy", "cupyx")]:
            del sys.modules[name]
        sys.path.insert(0, str(HERE / "fake_cupy"))
        importlib.invalidate_caches()
        cuda.probe.cache_clear()
    return importlib.import_module("cupy")


cupy = _load_cupy()
import cupyx.scipy.sparse  # noqa: E402


@dataclass(frozen=True)
class Backend:
    """One namespace, and the ways between it and NumPy."""

    name: str
    xp: Any
    device: Any
    sparse: Any = None  # the library's sparse module, if it has one

    def __str__(self) -> str:
        return self.name

    def array(self, values: Any, dtype: Any = None) -> Any:
        """Host values as an array of this backend (NumPy: read-only, to catch mutation)."""
        host = np.array(values, dtype=dtype)
        if self.name == "numpy":
            host.flags.writeable = False
            return host
        if self.name == "cupy":
            return self.xp.asarray(host, device=self.device)
        # (array-api-strict may go through a list on its other device, and lose the type.)
        kind = getattr(self.xp, host.dtype.name, None)
        return self.xp.asarray(host, dtype=kind, device=self.device)

    def csr(self, values: Any, dtype: Any = None) -> Any:
        return self._compressed(scipy.sparse.csr_array, "csr_matrix", values, dtype)

    def csc(self, values: Any, dtype: Any = None) -> Any:
        return self._compressed(scipy.sparse.csc_matrix, "csc_matrix", values, dtype)

    def _compressed(self, host_kind: Any, name: str, values: Any, dtype: Any) -> Any:
        matrix = host_kind(np.array(values, dtype=dtype))
        if self.name == "numpy":
            for part in (matrix.data, matrix.indices, matrix.indptr):
                part.flags.writeable = False
            return matrix
        if matrix.dtype.kind in "iu":  # cupyx has no integer matrices
            matrix = matrix.astype(np.float64)
        return getattr(self.sparse, name)(matrix)

    def containers(self, values: Any, dtypes: tuple[Any, ...] = (np.float64,)) -> list[Any]:
        """The same values as each kind of container and type that this backend has."""
        found = []
        for dtype in dtypes:
            found.append(self.array(values, dtype))
            if self.sparse is not None:
                found += [self.csr(values, dtype), self.csc(values, dtype)]
        return found

    def host(self, x: Any) -> np.ndarray:
        """``x``, which must live here, as NumPy."""
        self.check(x)
        if self.name == "numpy":
            return x
        if self.name == "cupy":
            return x.get()
        if self.name == "torch":
            return x.numpy()
        return np.asarray(self.xp.asarray(x, device=self.xp.Device("CPU_DEVICE")))

    def assert_same(self, found: Any, expected: Any) -> None:
        """Assert that two arrays that live here hold the same bits.

        On a GPU to rounding: there additions to one number come in any order.
        """
        found, expected = self.host(found), self.host(expected)
        if self.name == "cupy" and not hasattr(cupy, "_fake"):
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)
        else:
            np.testing.assert_array_equal(found, expected)

    def check(self, x: Any) -> None:
        """Assert that ``x`` is an array of this library on this device."""
        assert array_api_compat.array_namespace(x) is self.xp
        assert array_api_compat.device(x) == self.device


def _backends() -> dict[str, Backend]:
    compat_cupy = array_api_compat.array_namespace(cupy.zeros(1))
    found = {
        "numpy": Backend("numpy", array_api_compat.numpy, "cpu", scipy.sparse),
        "array_api_strict": Backend(
            "array_api_strict", array_api_strict, array_api_strict.Device("device1")
        ),
        "cupy": Backend("cupy", compat_cupy, cupy.cuda.Device(0), cupyx.scipy.sparse),
    }
    if find_spec("torch"):  # on the CPU; `make torch` installs it
        import torch

        compat_torch = array_api_compat.array_namespace(torch.zeros(1))
        found["torch"] = Backend("torch", compat_torch, torch.device("cpu"))
    return found


BACKENDS = _backends()


@pytest.fixture(params=list(BACKENDS))
def backend(request: pytest.FixtureRequest) -> Backend:
    """Each namespace there is."""
    return BACKENDS[request.param]


@pytest.fixture(params=[n for n, b in BACKENDS.items() if b.sparse is not None])
def sparse_backend(request: pytest.FixtureRequest) -> Backend:
    """Each namespace that has sparse matrices."""
    return BACKENDS[request.param]


@pytest.fixture(autouse=True)
def _nothing_raced() -> Iterator[None]:
    yield
    faults = getattr(cupy, "_fake", None) and cupy._fake.faults.copy()
    if faults:
        cupy._fake.faults.clear()
    assert not faults


@pytest.fixture
def on_host() -> Backend:
    """NumPy alone, for tests of what only the host has."""
    return BACKENDS["numpy"]


@pytest.fixture
def data_dir() -> Path:
    """The folder of real data sets."""
    if not DATA.is_dir():
        pytest.skip(f"no data sets at {DATA}: set GPUCENTERS_DATA")
    return DATA


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A client of a cluster of two workers in this process."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client
