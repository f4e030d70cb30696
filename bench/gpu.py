"""Fits on a CUDA device, resident and streamed, beside the bare operations that bound them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy.sparse

from gpucenters import L1CenterClassifier, L2CenterClassifier
from gpucenters.arrays import cuda
from gpucenters.arrays.backend import backend_of
from gpucenters.arrays.context import Context
from gpucenters.blocks.convert import as_block
from gpucenters.blocks.samples import make_samples
from gpucenters.reductions.class_sums import RawSums, add_class_sums

from . import gpu_model
from .arguments import rounds
from .shapes import SHAPES, Shape, labels, normal
from .timing import alternate, machine

GPU_SHAPES = SHAPES | {
    f"square-{k}": Shape(
        f"20,000 samples x 20,000 features, {k} classes, dense",
        lambda part=1: normal(20_000, 20_000 // part),
        k,
    )
    for k in (2, 10)
}
Rows = dict[str, Callable[[], Any]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the bench can be told."""
    parser.add_argument("shapes", nargs="*", choices=[*GPU_SHAPES, "all"], default="all")
    about = "estimate what a card takes, without one"
    parser.add_argument("--model", action="store_true", help=about)
    about = "of the data that are made for an estimate: one of so many parts"
    parser.add_argument("--part", type=int, default=32, help=about)
    gpu_model.add_arguments(parser)
    parser.add_argument("--estimates", help="what --model --json wrote, to print beside the times")
    parser.add_argument("--no-cpu", dest="cpu", action="store_false", help="leave the CPU out")
    rounds(parser, 7)


def run(options: argparse.Namespace) -> None:
    """Bench the shapes that were asked for; DeviceUnavailableError where there is no device."""
    names = list(GPU_SHAPES) if "all" in options.shapes else options.shapes
    if options.model:
        gpu_model.use_stand_in()
        found = {name: model(name, options) for name in names}
        if options.json:
            Path(options.json).write_text(json.dumps(found, indent=1) + "\n")
        return
    cupy = cuda.require()
    results: dict[str, Any] = {"machine": machine(), "device": _device(cupy)}
    print("  ".join(f"{key} {value}" for key, value in results["device"].items()))
    results["copy_gb_s"] = _copy_rate(cupy, options.repeat)
    print(f"copy on the device: {results['copy_gb_s']:.0f} GB/s (bytes read and written)")
    results["shapes"] = {}
    estimates = json.loads(Path(options.estimates).read_text()) if options.estimates else {}
    for name in names:
        shape = GPU_SHAPES[name]
        results["shapes"][name] = bench(
            *(name, shape.make(), options, shape.classes), estimates.get(name, {})
        )
        cupy.get_default_memory_pool().free_all_blocks()
        if options.json:  # after each: a machine may be taken away
            Path(options.json).write_text(json.dumps(results, indent=1) + "\n")


def model(name: str, options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Estimates of each fit of a shape, printed and returned."""
    shape = GPU_SHAPES[name]
    X, card = shape.make(options.part), gpu_model.card_of(options)
    y, found = labels(X.shape[0], "int", shape.classes), {}
    print(f"\n{name} ({shape.about}): estimate in ms")
    with gpu_model.parts_of_chunks(options.part):
        rows = _resident(_on_device(X), y, max(1, X.shape[1] // 1000)) | _streamed(X, y)
        for row, work in rows.items():
            found[row] = gpu_model.estimate(work, card, options.part, shape.classes)
            gpu_model.show(row, found[row])
    size = sum(part.nbytes for part in _parts(X)) * options.part
    ratio = found["streamed l2 fit"].seconds * card.upload / size
    print(f"streamed l2 fit / pinned upload of {size / 1e6:,.0f} MB{ratio:12.2f}")
    return {row: asdict(estimate) for row, estimate in found.items()}


def _parts(X: Any) -> list[np.ndarray]:
    return [X.data, X.indices, X.indptr] if scipy.sparse.issparse(X) else [X]


def bench(
    name: str,
    X: Any,
    options: argparse.Namespace,
    classes: int = 2,
    estimates: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """Time one shape; returns seconds by row, and rates. Prints its ``estimates`` beside them."""
    cupy = cuda.require()
    n, m = X.shape
    y = labels(n, "int", classes)
    parts = _parts(X)
    size = sum(part.nbytes for part in parts)
    there = _on_device(X)
    print(f"\n{name}: {n:,} x {m:,}, {size / 1e6:,.0f} MB")
    rows = _resident(there, y, max(1, m // 1000)) | _bare(there, y) | _streamed(X, y)
    rows |= _transfers(parts)
    found = alternate({row: _waiting(work) for row, work in rows.items()}, options.repeat)
    if options.cpu:
        on_cpu = {
            "cpu l2 fit": lambda: L2CenterClassifier().fit(X, y),
            "cpu l1 fit": lambda: L1CenterClassifier().fit(X, y),
        }
        found |= alternate(on_cpu, min(2, options.repeat))
    result: dict[str, Any] = {"bytes": size, "rows": {}}
    for row, t in found.items():
        rate = size / t.median / 1e9 if "upload" in row or "streamed" in row else None
        result["rows"][row] = {"median": t.median, "min": t.least, "gb_s": rate, "note": t.note}
        shown = "" if rate is None else f"{rate:9.1f} GB/s"
        if row in estimates:
            shown += f"  estimate {1e3 * estimates[row]['seconds']:.3f} ms"
        print(f"{row:44}{1e3 * t.median:12.3f} ms{1e3 * t.least:12.3f} ms{shown}  {t.note}")
    for ratio, (over, under) in _RATIOS.items():
        if over in found and under in found:
            result[ratio] = found[over].median / found[under].median
            print(f"{ratio:44}{result[ratio]:12.2f}")
    del there, rows
    cupy.get_default_memory_pool().free_all_blocks()
    return result


_RATIOS = {
    "class sums / bare add.at": ("class sums", "bare add.at on the same keys"),
    "l1 fit / bare radix sort": ("l1 fit", "bare radix sort of as many uint64 keys"),
    "streamed l2 fit / pinned upload": ("streamed l2 fit", "upload, pinned"),
}


def _device(cupy: Any) -> dict[str, Any]:
    found = cupy.cuda.runtime.getDeviceProperties(0)
    name = found["name"]
    return {
        "name": name.decode() if isinstance(name, bytes) else name,
        "memory_gb": round(found["totalGlobalMem"] / 1e9, 1),
        "cuda": cupy.cuda.runtime.runtimeGetVersion(),
        "driver": cupy.cuda.runtime.driverGetVersion(),
        "cupy": cupy.__version__,
    }


def _waiting(work: Callable[[], Any]) -> Callable[[], None]:
    """The work, and the wait until the device has done it."""

    def waited() -> None:
        work()
        cuda.require().cuda.Device().synchronize()

    return waited


def _copy_rate(cupy: Any, repeat: int, size: int = 2**30) -> float:
    source, target = (cupy.zeros(size, dtype=cupy.uint8) for _ in range(2))

    def copy() -> None:
        target[...] = source

    return 2 * size / alternate({"copy": _waiting(copy)}, repeat)["copy"].median / 1e9


def _on_device(X: Any) -> Any:
    cupy = cuda.require()
    if not scipy.sparse.issparse(X):
        return cupy.asarray(X)
    import cupyx.scipy.sparse

    parts = (cupy.asarray(X.data), cupy.asarray(X.indices), cupy.asarray(X.indptr))
    return cupyx.scipy.sparse.csr_matrix(parts, shape=X.shape)


def _resident(X: Any, y: np.ndarray, k: int) -> Rows:
    l2, l1 = L2CenterClassifier().fit(X, y), L1CenterClassifier(k=1).fit(X, y)
    backend = backend_of(X)
    block = as_block(X, backend)
    samples = make_samples(y, X.shape[0], backend)
    rows: Rows = {
        "l2 fit": lambda: L2CenterClassifier().fit(X, y),
        f"l2 fit, k={k}": lambda: L2CenterClassifier(k=k).fit(X, y),
        'l2 fit, scale="std"': lambda: L2CenterClassifier(scale="std").fit(X, y),
        "l1 fit": lambda: L1CenterClassifier().fit(X, y),
        "l2 predict": lambda: l2.predict(X),
        "l1 predict, k=1": lambda: l1.predict(X),
    }
    if hasattr(X, "indptr"):
        k = samples.n_classes
        total, squares = backend.zeros((k, X.shape[1])), backend.zeros(k)
        sums, ctx = RawSums(total, sum_of_squares=squares), Context.of(backend)
        rows["class sums"] = lambda: add_class_sums(block, samples, sums, ctx)
    return rows


def _bare(X: Any, y: np.ndarray) -> Rows:
    """The least that the device must do for as many values."""
    cupy = cuda.require()
    if not hasattr(X, "indptr"):
        # (Far from any order: multiples of an odd number, modulo 2**64.)
        keys = cupy.arange(X.size, dtype=cupy.uint64) * cupy.uint64(0x9E3779B97F4A7C15)
        return {"bare radix sort of as many uint64 keys": lambda: cupy.sort(keys)}
    # (It reads 16 bytes an entry, keys given; the class sums read 8 and make the keys.)
    codes = np.repeat(y, np.diff(X.indptr.get()))
    keys = cupy.asarray(codes) * X.shape[1] + X.indices
    sums, values = cupy.zeros(2 * X.shape[1]), X.data.astype(cupy.float64)
    return {"bare add.at on the same keys": lambda: cupy.add.at(sums, keys, values)}


def _streamed(X: Any, y: np.ndarray) -> Rows:
    return {
        "streamed l2 fit": lambda: L2CenterClassifier(device="cuda").fit(X, y),
        "streamed l1 fit": lambda: L1CenterClassifier(device="cuda").fit(X, y),
    }


def _transfers(parts: list[np.ndarray]) -> Rows:
    """The same bytes from the host to the device, at once."""
    import cupyx

    cupy = cuda.require()
    there = [cupy.empty(part.shape, dtype=part.dtype) for part in parts]
    pinned = [cupyx.empty_pinned(part.shape, part.dtype) for part in parts]
    for copy, part in zip(pinned, parts, strict=True):
        copy[...] = part

    def send(sources: list[np.ndarray]) -> None:
        for target, source in zip(there, sources, strict=True):
            target.set(source)

    return {"upload, pageable": lambda: send(parts), "upload, pinned": lambda: send(pinned)}
