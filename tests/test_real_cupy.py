"""The installed CuPy, in a separate process, because the stand-in may replace it in this one.

No GPU is needed: without one its compiler still works, and our errors must say what is missing.
`make cupy` runs this with CuPy installed; GPUCENTERS_REQUIRE_CUPY makes its absence a failure.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from conftest import HERE

PYTHON = os.environ.get("REAL_CUPY_PYTHON", sys.executable)


def _run(code: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return subprocess.run(
        [PYTHON, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        env=environment | {"PYTHONPATH": str(HERE.parent)},
        cwd=HERE.parent,
        check=False,
    )


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    done = _run("import cupy; assert not hasattr(cupy, '_fake')")
    if done.returncode:
        assert not os.environ.get("GPUCENTERS_REQUIRE_CUPY"), done.stderr
        pytest.skip("CuPy is not installed here (REAL_CUPY_PYTHON can name a Python that has it)")


@pytest.mark.parametrize("card", ["sm_80", "sm_90"])
def test_the_kernels_compile(card: str) -> None:
    done = _run(f"""
from cupy.cuda import nvrtc
from gpucenters.arrays import kernels
names = {{
    "kernels.cu": (
        *("add_class_sums", "pack_lists", "unpack_values"),
        *("scaled_differences", "round_to_40_bits"),
    ),
    "lists.cu": ("class_intervals", "joint_intervals", "distance_sums"),
}}
variants = [("kernels.cu", options) for options in kernels.type_options("kernels.cu")]
for file, options in variants + [("lists.cu", o) for o in kernels.type_options("lists.cu")]:
    program = nvrtc.createProgram(kernels.source(file), file, (), ())
    try:
        # CuPy adds the last option to every compilation.
        options = (*options, *kernels.FLAGS, "-ftz=true")
        nvrtc.compileProgram(program, ("--gpu-architecture={card}", *options))
    except nvrtc.NVRTCError:
        raise SystemExit(nvrtc.getProgramLog(program))
    machine_code = nvrtc.getCUBIN(program)
    assert all(name.encode() in machine_code for name in names[file])
    print("compiled")
    for line in nvrtc.getPTX(program).decode().splitlines():
        if ".ftz" in line or "fma." in line:
            print(line)
""")
    assert done.returncode == 0, done.stderr
    # Nothing takes subnormal numbers for zero, and no multiply-add is fused.
    assert done.stdout.splitlines() == ["compiled"] * 12


def test_errors_of_memory_and_of_linear_algebra_are_as_the_code_expects() -> None:
    done = _run("""
import cupy, cupyx
from gpucenters.arrays import cuda
error = cupy.cuda.runtime.CUDARuntimeError(2)
assert isinstance(error, RuntimeError) and any(name in str(error) for name in cuda._NO_MEMORY)
assert issubclass(cupy.cuda.driver.CUDADriverError, RuntimeError)
assert issubclass(cupy.cuda.memory.OutOfMemoryError, MemoryError)
assert issubclass(cupy.linalg.LinAlgError, ValueError)
assert cupyx.geterr()["linalg"] == "ignore"
with cupyx.errstate(linalg="raise"):
    assert cupyx.geterr()["linalg"] == "raise"
""")
    assert done.returncode == 0, done.stderr


def test_without_a_device_the_error_says_so() -> None:
    done = _run("""
import cupy, numpy as np, scipy.sparse
if cupy.is_available():
    print("there is a device")
    raise SystemExit
from gpucenters import DeviceUnavailableError, L2CenterClassifier, devices
X, y = np.eye(4), [0, 1, 0, 1]
assert [d.name for d in devices()] == ["cpu", "cuda"] and not devices()[1].usable
for data in (X, scipy.sparse.csr_array(X)):
    for device in ("cuda", "cuda:1"):
        try:
            L2CenterClassifier(device=device).fit(data, y)
        except DeviceUnavailableError as error:
            print(error)
        else:
            raise SystemExit("no error")
    assert L2CenterClassifier(device="auto").fit(data, y).predict(data).tolist() == y
try:
    L2CenterClassifier().fit(X, y).to("cuda")
except DeviceUnavailableError:
    pass
""")
    assert done.returncode == 0, done.stderr
    if "there is a device" in done.stdout:
        pytest.skip("there is a device")
    assert done.stdout.count("it finds no NVIDIA driver or no CUDA device") == 4
