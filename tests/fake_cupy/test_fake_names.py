"""The stand-in under array-api-compat, and its names beside those of the real CuPy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
cp = cupyx = cs = None  # set by the fixture `stand_in`


def test_array_api_compat():
    compat = pytest.importorskip("array_api_compat")
    x = cp.asarray([[3.0, 1.0], [2.0, 4.0]])
    xp = compat.array_namespace(x)
    assert xp.__name__ == "array_api_compat.cupy" and compat.is_cupy_array(x)
    assert compat.device(x) == cp.cuda.Device(0)
    assert type(compat.to_device(x, "cpu")) is np.ndarray
    i = xp.argsort(x, axis=1)
    assert xp.take_along_axis(x, i, axis=1).tolist() == xp.sort(x, axis=1).tolist()
    assert xp.take(x, xp.asarray([1]), axis=0).tolist() == [[2, 4]]
    assert xp.cumulative_sum(x, axis=0).tolist() == [[3, 1], [5, 5]]
    assert xp.astype(x, xp.int64).dtype == xp.int64
    assert bool(xp.all(xp.isfinite(x))) and not bool(xp.any(x < 0))
    assert xp.where(x > 2, x, 0.0).tolist() == [[3, 0], [0, 4]]
    assert xp.searchsorted(xp.asarray([1.0, 2.0]), xp.asarray([1.5])).tolist() == [1]
    assert xp.concat([x, x]).shape == xp.reshape(xp.stack([x, x]), (4, 2)).shape
    assert xp.unique_values(xp.asarray([2, 1, 2])).tolist() == [1, 2]
    assert xp.unique_inverse(xp.asarray([2, 1, 2])).inverse_indices.tolist() == [1, 0, 1]
    assert xp.unique_counts(xp.asarray([2, 1, 2])).counts.tolist() == [1, 2]
    assert xp.nonzero(x[0] > 2)[0].tolist() == [0]
    assert xp.permute_dims(x, (1, 0)).tolist() == xp.matrix_transpose(x).tolist()
    values, vectors = xp.linalg.eigh(x + x.T)
    assert values.shape == (2,) and xp.matmul(vectors, vectors.T).shape == (2, 2)
    assert xp.clip(x, 2.0, 3.0).tolist() == [[3, 2], [2, 3]]
    assert xp.std(x, correction=1).shape == xp.max(x).shape == ()
    assert xp.zeros(2, device=compat.device(x)).dtype == xp.float64
    assert xp.__array_namespace_info__().default_device() == cp.cuda.Device(0)


def _public(owner):
    return {n for n in dir(owner) if not n.startswith("_") and n != "annotations"}


def _offered():
    modules = {
        "cupy": cp,
        "cupy.cuda": cp.cuda,
        "cupy.cuda.device": cp.cuda.device,
        "cupy.cuda.memory": cp.cuda.memory,
        "cupy.cuda.pinned_memory": cp.cuda.pinned_memory,
        "cupy.cuda.runtime": cp.cuda.runtime,
        "cupy.cuda.stream": cp.cuda.stream,
        "cupy.fft": cp.fft,
        "cupy.linalg": cp.linalg,
        "cupy.random": cp.random,
        "cupyx": cupyx,
        "cupyx.scipy": cupyx.scipy,
        "cupyx.scipy.sparse": cs,
    }
    found = {}
    for path, module in modules.items():
        found[path] = {
            name
            for name in _public(module)
            # A submodule is there once it is imported; typing and the like are not offered.
            if getattr(getattr(module, name), "__name__", "") != f"{path}.{name}"
            and name not in ("Any", "Callable", "Sequence", "itertools")
        }
    classes = {
        "cupy.ndarray": cp.ndarray,
        "cupy.ufunc": cp.ufunc,
        "cupy.cuda.Device": cp.cuda.Device,
        "cupy.cuda.Event": cp.cuda.Event,
        "cupy.cuda.MemoryPool": cp.cuda.MemoryPool,
        "cupy.cuda.Stream": cp.cuda.Stream,
        "cupyx.scipy.sparse.csr_matrix": cs.csr_matrix,
        "cupyx.scipy.sparse.csc_array": cs.csc_array,
        "cupyx.scipy.sparse.coo_matrix": cs.coo_matrix,
    }
    return found | {path: _public(owner) for path, owner in classes.items()}


def test_no_name_that_the_recorded_cupy_lacks():
    from cupy._fake.names import MEMBERS

    for path, names in _offered().items():
        assert names <= MEMBERS[path], f"{path}: {sorted(names - MEMBERS[path])}"
    assert not hasattr(cp.ndarray, "__index__") and "__index__" not in MEMBERS["cupy.ndarray"]
    assert not hasattr(cp.ndarray, "__array_namespace__")


def test_no_name_that_the_installed_cupy_lacks():
    """Against a real wheel: in this environment, or in that of REAL_CUPY_PYTHON."""
    python = os.environ.get("REAL_CUPY_PYTHON", sys.executable)
    script = (
        "import sys, json, importlib\n"
        "wanted, missing = json.load(sys.stdin), []\n"
        "for path, names in wanted.items():\n"
        "    try:\n"
        "        owner = importlib.import_module(path)\n"
        "    except ImportError:\n"
        "        module, name = path.rsplit('.', 1)\n"
        "        owner = getattr(importlib.import_module(module), name)\n"
        "    missing += [f'{path}.{n}' for n in names if not hasattr(owner, n)]\n"
        "print(json.dumps(missing))\n"
    )
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}

    def run(code, text=""):
        return subprocess.run(
            [python, "-W", "ignore", "-c", code],
            input=text,
            capture_output=True,
            text=True,
            env=environment,
            cwd=HERE.parent.parent,
            check=False,
        )

    if run("import cupy; assert not hasattr(cupy, '_fake')").returncode:
        pytest.skip("CuPy is not installed here (REAL_CUPY_PYTHON can name a Python that has it)")
    done = run(script, json.dumps({k: sorted(v) for k, v in _offered().items()}))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []
