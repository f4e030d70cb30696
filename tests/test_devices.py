"""Devices: lazy probing, names, error messages, and moves between them."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from conftest import BACKENDS, HERE, cupy
from small_data import PLAIN, Y, each_kind, fit_plain, prediction_calls

from gpucenters import (
    DeviceUnavailableError,
    L1CenterClassifier,
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    devices,
)
from gpucenters.arrays.backend import HOST, backend_of, resolve_backend

fake = getattr(cupy, "_fake", None)
MODELS = [L2CenterClassifier(k=2), L1CenterClassifier(k=2), L2CenterClassifier(k=2, scale="std")]
X = np.random.default_rng(0).poisson(1.0, (30, 5)).astype(np.float64)
y = np.arange(30) % 3


def _python(code: str, **environment: str) -> str:
    """Run code in a fresh interpreter without the stand-in; its output."""
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | environment
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=clean, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_work_on_host_data_never_imports_cupy() -> None:
    # The stand-in is on the path, so that an import of cupy would succeed.
    code = """
import sys
import numpy as np, scipy.sparse
import gpucenters
X = np.eye(4); y = [0, 1, 0, 1]
for container in (X, scipy.sparse.csr_array(X)):
    for kind in (gpucenters.L2CenterClassifier, gpucenters.L1CenterClassifier):
        model = kind(k=1, scale="std", device="cpu").fit(container, y)
        model.predict(container), model.transform(container), model.score(container, y)
assert not [name for name in sys.modules if name.startswith("cupy")]
"""
    _python(code, PYTHONPATH=str(HERE / "fake_cupy"))


def test_cuda_without_cupy_names_the_extra() -> None:
    code = """
import importlib.util
if importlib.util.find_spec("cupy") is not None:
    raise SystemExit(print("has cupy"))
import gpucenters
cpu, cuda = gpucenters.devices()
assert cpu.usable and not cuda.usable
try:
    gpucenters.L2CenterClassifier(device="cuda").fit([[0.0], [1.0]], [0, 1])
except gpucenters.DeviceUnavailableError as error:
    print(error)
model = gpucenters.L2CenterClassifier(device="auto").fit([[0.0], [1.0]], [0, 1])
assert str(model._fitted.backend) == "numpy"
"""
    said = _python(code)
    if "has cupy" in said:
        pytest.skip("CuPy is installed in this environment")
    assert "CuPy is not installed" in said
    assert "gpucenters[cuda13]" in said


@pytest.mark.skipif(fake is None, reason="a real device does not come and go")
def test_cupy_without_a_device_gives_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpucenters.arrays import cuda

    monkeypatch.setattr(cupy, "is_available", lambda: False)
    cuda.probe.cache_clear()
    try:
        with pytest.raises(DeviceUnavailableError, match="no NVIDIA driver or no CUDA device"):
            resolve_backend("cuda", X)
        assert resolve_backend("auto", X) == HOST
        assert [d.usable for d in devices()] == [True, False]
    finally:
        monkeypatch.undo()
        cuda.probe.cache_clear()


@pytest.mark.skipif(fake is None, reason="a real CuPy has the version it has")
@pytest.mark.parametrize("version", ["13.6.0", "14.0.1"])
def test_an_old_cupy_is_refused_with_the_version_needed(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gpucenters.arrays import cuda

    monkeypatch.setattr(cupy, "__version__", version)
    cuda.probe.cache_clear()
    try:
        with pytest.raises(DeviceUnavailableError, match=r"CuPy 14\.1 or later"):
            L2CenterClassifier(memory_budget="1GB").fit(cupy.asarray(X), y)
        with pytest.raises(DeviceUnavailableError, match=rf"{version} is .* CuPy 14\.1 or later"):
            resolve_backend("cuda", X)
        for new in ("14.1.0", "14.2.0rc1", "15.0.0b1"):
            monkeypatch.setattr(cupy, "__version__", new)
            cuda.probe.cache_clear()
            assert cuda.probe() == (cupy, "")
    finally:
        monkeypatch.undo()
        cuda.probe.cache_clear()


def test_devices_lists_what_is_usable() -> None:
    found = devices()
    assert [d.name for d in found[:2]] == ["cpu", "cuda:0"]
    assert all(d.usable for d in found)
    assert "cuda:0" in str(found[1])


def test_a_missing_device_is_refused_with_its_name() -> None:
    with pytest.raises(DeviceUnavailableError, match=r"'cuda:99' does not exist"):
        resolve_backend("cuda:99", X)


@pytest.mark.parametrize("name", ["gpu", "CUDA", "cuda:", "cuda:-1", "", 0])
def test_fit_refuses_an_unknown_device(name: Any) -> None:
    with pytest.raises(ValueError, match="unknown device"):
        L2CenterClassifier(device=name).fit(X, y)


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_a_device_moves_the_work_and_outputs_come_back_beside_X(device: str, model: Any) -> None:
    expected = type(model)(**model.get_params()).fit(X, y)
    moved = type(model)(**model.get_params()).set_params(device=device)
    for name in ("numpy", "cupy"):
        backend = BACKENDS[name]
        for container in backend.containers(X):
            moved.fit(container, y)
            there = BACKENDS["cupy" if device == "cuda" else "numpy"]
            there.check(moved.scores_)
            there.check(moved.centers_)
            np.testing.assert_array_equal(moved.support_, expected.support_)
            backend.check(moved.predict(container))
            np.testing.assert_array_equal(
                backend.host(moved.predict(container)), expected.predict(X)
            )
            np.testing.assert_allclose(
                backend.host(moved.decision_function(container)),
                expected.decision_function(X),
                rtol=1e-12,
                atol=1e-12,
            )


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_to_moves_a_fitted_model_and_back(model: Any, backend: Any) -> None:
    there = backend.array(X)
    fitted = type(model)(**model.get_params()).fit(there, y)
    on_cuda = fitted.to("cuda")
    assert on_cuda.device == "cuda"
    assert fitted.device is None
    BACKENDS["cupy"].check(on_cuda.scores_)
    back = on_cuda.to("cpu")
    BACKENDS["numpy"].check(back.scores_)
    for copy, container in ((on_cuda, BACKENDS["cupy"].array(X)), (back, X), (on_cuda, X)):
        np.testing.assert_array_equal(np.asarray(copy.support_), fitted.support_)
        codes = copy.predict(container)
        codes = codes.get() if hasattr(codes, "get") else codes
        np.testing.assert_array_equal(codes, backend.host(fitted.predict(there)))
    if isinstance(model, L2CenterClassifier):
        # The statistics move with the model, so that the stream continues on the other device.
        twice = back.partial_fit(X, y)
        np.testing.assert_allclose(twice.centers_, type(model)(k=2).fit(X, y).centers_)


def test_another_namespace_at_predict_is_an_error_that_names_the_way(backend: Any) -> None:
    model = L2CenterClassifier().fit(backend.array(X), y)
    for name, other in BACKENDS.items():
        if name != backend.name:
            for method in ("predict", "decision_function", "transform", "predict_proba"):
                with pytest.raises(ValueError, match=r"must use the same namespace.*to\(device\)"):
                    getattr(model, method)(other.array(X))


def test_models_of_every_namespace_can_be_pickled(backend: Any) -> None:
    model = L2CenterClassifier(k=2, scale="std").fit(backend.array(X), y)
    copy = pickle.loads(pickle.dumps(model))
    backend.check(copy.scores_)
    np.testing.assert_array_equal(
        backend.host(copy.predict(backend.array(X))), backend.host(model.predict(backend.array(X)))
    )


@pytest.mark.skipif(fake is None, reason="sets the number of devices")
def test_fits_on_a_second_device_stay_there() -> None:
    fake.set_device_count(2)
    try:
        model = L2CenterClassifier(k=2, device="cuda:1").fit(X, y)
        assert model.scores_.device.id == 1
        assert backend_of(model.predict(X)) == HOST
        with cupy.cuda.Device(1):
            there = cupy.asarray(X)
        np.testing.assert_array_equal(model.predict(there).get(), model.predict(X))
        assert L1CenterClassifier(k=2).fit(there, y).centers_.device.id == 1
        with cupy.cuda.Device(1):
            sparse = [
                getattr(BACKENDS["cupy"].sparse, f"{f}_matrix")(there) for f in ("csr", "csc")
            ]
        for data in (there, *sparse):
            for kind in (L2CenterClassifier, L1CenterClassifier, MahalanobisCenterClassifier):
                for device, where in ((None, 1), ("cuda", 1), ("cuda:1", 1), ("cuda:0", 0)):
                    found = kind(k=2, device=device).fit(data, y)
                    assert found.scores_.device.id == where
                    predicted = found.predict(data)
                    assert predicted.device.id == 1
                    np.testing.assert_array_equal(predicted.get(), kind(k=2).fit(X, y).predict(X))
                    chosen = found.transform(data)
                    chosen = chosen.toarray() if hasattr(chosen, "toarray") else chosen
                    np.testing.assert_allclose(
                        chosen.get(), kind(k=2).fit(X, y).transform(X), rtol=1e-9, atol=1e-12
                    )
        assert model.to("cuda:0").scores_.device.id == 0
        for moved in (model.to("cuda"), model.to("auto"), model.to("cpu").to("cuda:1")):
            assert moved.scores_.device.id == 1  # "cuda" keeps the device of a model on CUDA
    finally:
        fake.set_device_count(1)


@pytest.mark.parametrize("device", ["gpu", "CPU", "cuda:", "cuda:x", "cuda:-1", "", 0], ids=repr)
@each_kind
def test_fit_and_to_refuse_an_unknown_device(kind: Any, device: Any) -> None:
    for call in (lambda: kind(device=device).fit(PLAIN, Y), lambda: fit_plain(kind()).to(device)):
        with pytest.raises(ValueError, match=f"unknown device {device!r}.*'cuda:N'"):
            call()


@each_kind
def test_fit_and_to_refuse_a_device_that_does_not_exist(kind: Any) -> None:
    for call in (
        lambda: kind(device="cuda:99").fit(PLAIN, Y),
        lambda: fit_plain(kind()).to("cuda:99"),
    ):
        with pytest.raises(DeviceUnavailableError, match=r"'cuda:99' does not exist.*CUDA device"):
            call()


@each_kind
def test_to_refuses_none(kind: Any) -> None:
    with pytest.raises(ValueError, match="name of a device"):
        fit_plain(kind()).to(None)


def test_both_models_without_cupy_name_the_extra() -> None:
    program = """if True:
        import importlib.util
        find = importlib.util.find_spec  # CuPy looks as if it were not installed:
        importlib.util.find_spec = lambda name, *rest: None if name == "cupy" else find(name, *rest)
        from gpucenters import DeviceUnavailableError, L1CenterClassifier, L2CenterClassifier
        X, y = [[0.0], [1.0]], [0, 1]
        for kind in (L1CenterClassifier, L2CenterClassifier):
            assert kind(device="auto").fit(X, y).predict(X).tolist() == y
            for call in (kind(device="cuda").fit, lambda X, y: kind().fit(X, y).to("cuda:0")):
                try:
                    call(X, y)
                except DeviceUnavailableError as error:
                    assert isinstance(error, RuntimeError)
                    print(error)
        """
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 4
    for line in lines:
        assert "CuPy is not installed" in line
        assert "gpucenters[cuda12]" in line and "gpucenters[cuda13]" in line


@pytest.mark.parametrize("other", list(BACKENDS))
@each_kind
def test_every_method_refuses_x_of_another_namespace(kind: Any, other: str, backend: Any) -> None:
    if other == backend.name:
        other = "numpy" if backend.name != "numpy" else "cupy"
    X = BACKENDS[other].array(PLAIN)
    model = fit_plain(kind(), backend)
    calls = [*prediction_calls(model, X), model.transform, lambda X: model.score(X, Y)]
    if kind is L2CenterClassifier:
        calls.append(lambda X: model.partial_fit(X, Y))
    for call in calls:
        with pytest.raises(ValueError, match=r"(?s)must use the same namespace.*to\(device\)"):
            call(X)


@each_kind
def test_every_method_refuses_sparse_x_of_another_namespace(kind: Any, backend: Any) -> None:
    other = BACKENDS["numpy" if backend.name == "cupy" else "cupy"]
    model = fit_plain(kind(), backend)
    for X in (other.csr(PLAIN), other.csc(PLAIN)):
        for call in [*prediction_calls(model, X), model.transform]:
            with pytest.raises(ValueError, match=r"(?s)must use the same namespace.*to\(device\)"):
                call(X)
