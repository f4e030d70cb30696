"""What a new GPU must do right, the most telling first, and then all of ``gpucenters check``.

Some ten minutes, most of them for the compilation of kernels. Findings are printed and written as
they come: a machine may be taken away.
"""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse

from gpucenters import (
    L1CenterClassifier,
    L2CenterClassifier,
    MahalanobisCenterClassifier,
    SparseBernoulliNB,
)
from gpucenters.arrays import cuda, functions, kernels, schedule, uploads
from gpucenters.arrays.backend import resolve_backend
from gpucenters.arrays.context import Context
from gpucenters.arrays.linalg import factorised
from gpucenters.blocks.convert import as_block
from gpucenters.blocks.samples import make_samples
from gpucenters.cli.check import Report
from gpucenters.cli.check import plan as full_plan
from gpucenters.cli.check.agreement import CONTAINERS, Case, compare
from gpucenters.cli.check.device import Outcome, check_machine, cuda_device, on_device
from gpucenters.cli.check.trouble import check_bad_input, check_out_of_memory
from gpucenters.reductions.class_sums import RawSums, add_class_sums

from .running import Check, run_all

SUITE = tuple(f"tests/test_{name}.py" for name in ("kernels", "l2", "l1", "selection"))
WIDE = 1_600_000, 12_000_000, 23  # rows, columns, stored values of a row
STREAMED = 4_000, 500
MEDIANS = 301, 400
FULL = 3_000, 400
ROWS = 1_000, 16_000  # of two predictions
TIES = 1_000, 100_000, 3_000_000  # keys
SLOW = 2_048, 20  # a square matrix, multiplied by itself so often between two chunks
LEFT = 8, 64, 512  # MiB of a card that is full
_MOST_WAITS = 10  # of a prediction


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the bench can be told."""
    parser.add_argument("--device", default="cuda", help="cuda or cuda:N")
    parser.add_argument("--minutes", type=float, default=10.0, help="time for all checks")


def run(options: argparse.Namespace) -> None:
    """Run the checks; DeviceUnavailableError where there is no device."""
    report, end = Report(options.device, options.json), time.monotonic() + 60 * options.minutes
    cuda.require()
    with patch.dict(os.environ, CUPY_ACCELERATORS=""):  # right first, without CUB
        _add(report, plan, options.device, end)
    _add(report, _rest, options.device, end)
    report.end()
    if report.failed:
        raise SystemExit(1)


def _add(report: Report, make: Callable[[], list[Check]], device: str, end: float) -> None:
    for check, outcome in run_all(make, device, end - time.monotonic()):
        report.add(check.name, outcome)


def plan() -> list[Check]:
    """The first checks, in the order in which they run."""
    return [
        Check("the machine", check_machine, limit=120),
        Check("class sums", check_class_sums, limit=300),
        Check("the suite", check_suite, limit=240),
        Check("l2, 12M columns", check_wide, limit=240),
        Check("streams", check_streams),
        Check("factorisations", check_factorisations),
        Check("medians", check_medians, limit=240),
        Check("out of memory", check_out_of_memory),
        Check("a full card", check_full_card, fresh=True),
        Check("waits", check_waits),
        Check("ties", check_ties),
        Check("special values", check_special_values),
    ]


def _rest() -> list[Check]:
    known = {check.name for check in plan()}
    # Some compile a kernel or two more, in ten seconds and more.
    return [Check(name, work, limit=120) for name, work in full_plan() if name not in known]


def check_class_sums(device: str) -> Outcome:
    """All variants of the kernel of class sums beside NumPy; empty rows, and one of all columns.

    Sums of integers must be exact.
    """
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (500, 300)) * (rng.random((500, 1)) < 0.7)
    X[0] = X[-1] = 0
    X[30] = 1
    y, outcome, backend = rng.integers(0, 3, 500), Outcome(), resolve_backend(device, None)
    weights = {"none": None, "counts": rng.integers(0, 4, 500) * 1.0, "any": rng.random(500)}
    cases = itertools.product(
        ("csr", "csc"), ("int32", "int64"), ("bool", "float32", "float64"), weights, (False, True)
    )
    for layout, index, value, weight, has_square in cases:
        host, w = getattr(scipy.sparse, f"{layout}_array")(X.astype(value)), weights[weight]
        with backend.current():
            block = as_block(_of_types(host, index, device), backend)
            samples = make_samples(y, 500, backend, n_classes=3, sample_weight=w)
            square = backend.zeros((3, 300)) if has_square else None
            sums = RawSums(backend.zeros((3, 300)), square, backend.zeros(3))
            add_class_sums(block, samples, sums, Context.of(backend))
        true = (np.eye(3)[y] * (1.0 if w is None else w[:, None])).T @ X  # of squares, too
        case = f"{layout} {index} {value}, weights: {weight}"
        close = 1e-13 if weight == "any" else 0
        outcome.differences += [
            f"{case}: {difference}"
            for what, found, expected in (
                ("sums", sums.total, true),
                ("squares", square, true),
                ("sums of squares", sums.sum_of_squares, true.sum(axis=1)),
            )
            if found is not None
            for difference in compare(what, expected, found, close=close)
        ]
    outcome.note = "CSR, CSC; int32, int64; bool, float32, float64; weights; squares"
    return outcome


def _of_types(host: Any, index: str, device: str) -> Any:
    """A cupyx matrix whose arrays keep their types."""
    import cupyx.scipy.sparse

    cupy = cuda.require()
    with cuda_device(device):
        kind = getattr(cupyx.scipy.sparse, f"{host.format}_matrix")
        parts = [cupy.asarray(a) for a in (host.data, host.indices, host.indptr)]
        made = kind(tuple(parts), shape=host.shape)
        made.indices, made.indptr = made.indices.astype(index), made.indptr.astype(index)
        return made


def check_suite(device: str) -> Outcome:
    """The suite's tests of kernels, l2, l1 and selection, with CUDA required."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *SUITE]
    done = subprocess.run(
        [*command, "-k", "cupy or kernel"],
        env=os.environ | {"GPUCENTERS_REQUIRE_CUDA": "1"},
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = (done.stdout + done.stderr).splitlines() or ["no output"]
    return Outcome(lines[-12:] if done.returncode else [], note=lines[-1])


def check_wide(device: str) -> Outcome:
    """L2 on so many columns beside the CPU, with the time between two events."""
    n, m, stored = WIDE
    rng, step = np.random.default_rng(0), m // stored
    indices = (np.arange(stored) * step + rng.integers(0, step, (n, stored))).astype(np.int32)
    indptr = np.arange(0, n * stored + 1, stored, dtype=np.int32)
    values = rng.integers(1, 4, n * stored).astype(np.float32)
    X = scipy.sparse.csr_array((values, indices.ravel(), indptr), shape=(n, m))
    y, there = rng.integers(0, 2, n), on_device(X, device)
    model = L2CenterClassifier(k=max(1, m // 1000))
    expected, found = model.fit(X, y), L2CenterClassifier(k=model.k).fit(there, y)
    outcome = Outcome(Case(expected, found, X, there).of_support(), note=f"{n:,} x {m:,} CSR")
    outcome.differences += compare("objective", expected.objective_, found.objective_)
    outcome.differences += compare("scores", expected.scores_, found.scores_)
    cupy, ms = cuda.require(), []
    with cuda_device(device):
        for _ in range(7):
            first, last = cupy.cuda.Event(), cupy.cuda.Event()
            first.record()
            L2CenterClassifier().fit(there, y)
            last.record()
            last.synchronize()
            ms.append(max(cupy.cuda.get_elapsed_time(first, last), 1e-6))
    size = sum(a.nbytes for a in (X.data, X.indices, X.indptr))
    rows = {"l2 fit, between events": {"ms": min(ms), "gb_s": size / min(ms) / 1e6}}
    outcome.figures = {"data": outcome.note, "bytes": size, "rows": rows}
    return outcome


def check_streams(device: str) -> Outcome:
    """Host data in small chunks, with slow work queued before each, beside resident data."""
    rng = np.random.default_rng(1)
    X, y = rng.poisson(1.0, STREAMED).astype(np.float32), rng.integers(0, 3, STREAMED[0])
    outcome, send, sent = Outcome(), uploads.Upload.send, []

    def slow(self: Any, *arrays: Any) -> Any:
        found, cupy = send(self, *arrays), cuda.require()
        matrix = cupy.ones((SLOW[0], SLOW[0]))
        for _ in range(SLOW[1]):
            matrix @ matrix
        sent.append(1)
        return found

    for kind, (name, make) in itertools.product(
        (L2CenterClassifier, L1CenterClassifier), CONTAINERS.items()
    ):
        expected = kind().fit(on_device(make(X), device), y)
        with (
            patch.object(uploads.Upload, "send", slow),
            patch.object(schedule, "UPLOAD_BYTES", 2**18),
        ):
            found = kind(device=device).fit(make(X), y)
        differences = compare("scores", expected.scores_, found.scores_, close=1e-13)
        outcome.differences += [f"{kind.__name__}, {name}: {d}" for d in differences]
    outcome.note = f"{len(sent)} chunks"
    if len(sent) < 12:
        outcome.differences.append("too few chunks were sent")
    return outcome


def check_factorisations(device: str) -> Outcome:
    """Systems of definite and indefinite matrices; Cholesky's factorisation raises for these."""
    rng, backend, outcome = np.random.default_rng(2), resolve_backend(device, None), Outcome()
    for size, lowest in itertools.product((3, 200), (1.0, -1.0)):
        basis = np.linalg.qr(rng.standard_normal((size, size)))[0]
        matrix = (basis * np.linspace(lowest, 5.0, size)) @ basis.T
        matrix, b = (matrix + matrix.T) / 2, rng.standard_normal(size)
        with backend.current():
            there = backend.asarray(matrix)
            x = factorised(there, backend)(backend.asarray(b))
            raised = False
            try:
                backend.xp.linalg.cholesky(there)
            except ValueError:
                raised = True
        case = f"{size} x {size}, eigenvalues from {lowest:g}"
        if raised != (lowest < 0):
            outcome.differences.append(f"{case}: Cholesky {'raises' if raised else 'is silent'}")
        outcome.differences += [f"{case}: {d}" for d in compare("products", b, matrix @ x.get())]
    outcome.note = "definite and indefinite matrices"
    return outcome


def check_medians(device: str) -> Outcome:
    """L1 of two and three classes, with weights and without, beside the CPU."""
    rng, outcome = np.random.default_rng(3), Outcome()
    n, m = MEDIANS
    X = rng.standard_normal((n, m)) * (rng.random((n, m)) < rng.random(m))
    weights = {"none": None, "counts": rng.integers(0, 4, n), "any": rng.random(n)}
    for classes, dtype, (name, make), weight in itertools.product(
        (2, 3), ("float32", "float64"), CONTAINERS.items(), weights
    ):
        data, y = make(X.astype(dtype)), np.arange(n) % classes
        expected = L1CenterClassifier(device="cpu").fit(data, y, weights[weight])
        found = L1CenterClassifier().fit(on_device(data, device), y, weights[weight])
        differences = compare("medians", expected.centers_, found.centers_, close=1e-15)
        differences += compare("scores", expected.scores_, found.scores_)
        case = f"{classes} classes, {name} {dtype}, weights: {weight}"
        outcome.differences += [f"{case}: {d}" for d in differences]
    outcome.note = "2 and 3 classes"
    return outcome


def check_full_card(device: str) -> Outcome:
    """Fits on a card of which others hold nearly all: right, or a MemoryError."""
    rng, outcome, notes = np.random.default_rng(4), Outcome(), []
    X, y = rng.poisson(1.0, FULL).astype(np.float32), np.arange(FULL[0]) % 2
    kinds = L2CenterClassifier, L1CenterClassifier, MahalanobisCenterClassifier
    expected = {kind: kind(k=20, device="cpu").fit(X, y).scores_ for kind in kinds}
    for left in (*LEFT, None):
        with _filled(device, left):
            for kind, (name, make) in itertools.product(kinds, CONTAINERS.items()):
                case = f"{kind.__name__}, {name}, {left} MiB left"
                try:
                    found = kind(k=20, device=device).fit(make(X), y)
                except MemoryError as error:
                    notes.append(f"{left} MiB: {str(error)[:60]}")
                    if left is None:
                        outcome.differences.append(f"{case}: {error}")
                else:
                    differences = compare("scores", expected[kind], found.scores_)
                    outcome.differences += [f"{case}: {d}" for d in differences]
    outcome.note = "; ".join(dict.fromkeys(notes)) or "memory was never short"
    return outcome


@contextmanager
def _filled(device: str, left: int | None) -> Iterator[None]:
    """All memory but so many MiB taken outside of CuPy's pool; None: nothing is taken."""
    runtime, held = cuda.require().cuda.runtime, []
    cuda.free_blocks(cuda_device(device))
    with cuda_device(device):
        free = runtime.memGetInfo()[0]
        if left is not None and free > left << 20:
            held.append(runtime.malloc(free - (left << 20)))
        try:
            yield
        finally:
            for pointer in held:
                runtime.free(pointer)


def check_waits(device: str) -> Outcome:
    """How often predictions wait for the device: no more often for more rows."""
    rng, outcome, notes = np.random.default_rng(5), Outcome(), []
    X, y = rng.poisson(1.0, (ROWS[1], 300)).astype(np.float32), np.arange(ROWS[1]) % 2
    for kind, (name, make) in itertools.product(
        (L2CenterClassifier, L1CenterClassifier, SparseBernoulliNB), CONTAINERS.items()
    ):
        if name == "CSC":
            continue  # its rows are made first
        few, many = (on_device(make(part), device) for part in (X[: ROWS[0]], X))
        model = kind(k=30).fit(many, y)
        model.predict(few)
        counts = [_waits_of(model.predict, rows) for rows in (few, many)]
        notes.append(f"{kind.__name__}, {name}: {counts[1]}")
        if counts[1] > max(counts[0], _MOST_WAITS):
            outcome.differences.append(f"{notes[-1]} waits, and {counts[0]} for fewer rows")
    outcome.note = "; ".join(notes)
    return outcome


def _waits_of(work: Callable[[Any], Any], rows: Any) -> int:
    from cupy._core import syncdetect

    with patch.object(syncdetect, "_declare_synchronize") as declared:
        work(rows)
    return declared.call_count


def check_ties(device: str) -> Outcome:
    """The k largest of keys of which many are equal, beside a sort on the CPU."""
    rng, backend, outcome = np.random.default_rng(6), resolve_backend(device, None), Outcome()
    for m, levels in itertools.product(TIES, (2, 50, 10**9)):
        key = rng.integers(0, levels, m) / 3.0
        for k in sorted({1, m // 100, m // 2, m - 7}):
            with backend.current():
                found = functions.top_k(backend.asarray(key), k).get()
            if not np.array_equal(found, np.sort(np.argsort(-key, kind="stable")[:k])):
                outcome.differences.append(f"{k:,} of {m:,} keys of {levels:,} values are others")
    outcome.note = f"up to {max(TIES):,} keys"
    return outcome


def check_special_values(device: str) -> Outcome:
    """Subnormal values and signed zeros in the kernels; NaN and infinity are errors."""
    few = np.asarray([0.0, -0.0, 1e-45, -1e-45, 1e-40, -1e-40, 1.17e-38, 2.0, -3e38], np.float32)
    values = np.random.default_rng(7).permutation(np.tile(few, 50))
    outcome, backend, m = Outcome(), resolve_backend(device, None), values.size
    row = scipy.sparse.csr_array((values, np.arange(m), [0, m]), shape=(1, m))
    with backend.current():
        block, sums = as_block(on_device(row, device), backend), RawSums(backend.zeros((1, m)))
        add_class_sums(block, make_samples([0], 1, backend), sums, Context.of(backend))
        column = backend.asarray(values[:, None])
        codes = backend.zeros(m, backend.xp.int32)
        keys = backend.xp.sort(kernels.pack_lists(column, codes, 1))
        ordered = kernels.unpack_values(keys).get()
    found = sums.total.get()[0]
    if not np.array_equal(found, values.astype(np.float64)):
        outcome.differences.append(f"sums of {values[found != values][:3].tolist()} are others")
    if not np.array_equal(ordered, np.sort(values)) or np.signbit(ordered[ordered == 0]).any():
        outcome.differences.append("sorted values are others")
    outcome.differences += check_bad_input(device).differences
    outcome.note = "subnormal, signed zeros, NaN, infinity"
    return outcome
