"""``gpucenters check``: it passes where all is right, and finds what is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from conftest import cupy
from stand_in import STAND_IN

import gpucenters
from gpucenters.cli import check, main
from gpucenters.cli.check import agreement, outcome_of, plan, trouble
from gpucenters.cli.check.agreement import FIRST, MORE, Shape
from gpucenters.cli.check.device import Outcome, check_machine
from gpucenters.cli.models import MODELS

DEVICES = ["cpu", "cuda"]


def _small() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    return rng.poisson(1 + (y[:, None] == np.arange(8) % 3), (60, 8)).astype(np.float32), y


SMALL = Shape("small", _small)


def test_every_model_meets_every_shape_after_the_machine() -> None:
    names = [name for name, _ in plan()]
    assert names[0] == "the machine"
    assert {f"{model} on {shape.name}" for model in MODELS for shape in FIRST + MORE} < set(names)
    assert len(names) == len(set(names))


@pytest.mark.parametrize("shape", FIRST + MORE, ids=lambda shape: shape.name)
def test_shapes_are_of_values_that_every_model_takes(shape: Shape) -> None:
    X, y = shape.make()
    assert X.min() >= 0 and np.all(np.isfinite(X)) and X.shape[0] == len(y)
    assert X[X > 0].min() >= np.finfo(np.float32).tiny
    assert len(np.unique(y)) >= 2


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_that_is_right_has_no_difference(name: str, device: str) -> None:
    outcome = outcome_of(lambda where: agreement.check_model(name, SMALL, where), device)
    assert outcome.status == "ok", outcome.differences
    assert outcome.note == "dense, CSR, CSC" and outcome.seconds > 0


def _of_other_data(change: Any) -> Any:
    """What fits the models on a device, with data that are not quite the same there."""

    def fitted(model: Any, X: Any, y: np.ndarray, device: str) -> Iterator[tuple[str, Any, Any]]:
        other, labels = change(X.copy() if hasattr(X, "copy") else X, y.copy())
        yield "altered", gpucenters.L2CenterClassifier().fit(other, labels), X

    return fitted


def _reversed(X: Any, y: np.ndarray) -> Any:
    return X[:, ::-1], y


def _nudged(X: Any, y: np.ndarray) -> Any:
    X = X.astype(np.float64)
    X[0, 0] += 1e-4
    return X, y


@pytest.mark.parametrize(
    ("change", "found"),
    [(_reversed, "selected features are others"), (_nudged, "objective are")],
)
def test_a_model_that_is_wrong_is_found(
    change: Any, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agreement, "_fitted", _of_other_data(change))
    monkeypatch.setattr(agreement, "CONTAINERS", {"dense": np.asarray})
    differences = agreement.check_model("l2", SMALL, "cpu").differences
    assert any(found in difference for difference in differences), differences


@pytest.mark.parametrize(
    ("method", "found"),
    [
        ("predict", "predictions are others"),
        ("decision_function", "decision values are"),
        ("predict_proba", "probabilities are"),
        ("transform", "transform gives other columns"),
    ],
)
def test_a_method_that_is_wrong_is_found(
    method: str, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = gpucenters.L2CenterClassifier
    right = getattr(kind, method)

    def wrong(self: Any, X: Any) -> Any:
        values = right(self, X)
        return values if self.memory_budget is None else np.roll(values, 1, axis=0)

    monkeypatch.setattr(kind, method, wrong)  # of the model that has a small budget
    monkeypatch.setattr(agreement, "CONTAINERS", {"dense": np.asarray})
    differences = agreement.check_model("l2", SMALL, "cpu").differences
    assert any(found in difference for difference in differences), differences


def test_a_file_or_a_batch_that_is_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = _small()
    kind, other = (
        gpucenters.L2CenterClassifier,
        gpucenters.L2CenterClassifier().fit(X + y[:, None], y),
    )
    monkeypatch.setattr(agreement, "CONTAINERS", {"dense": np.asarray})
    monkeypatch.setattr(gpucenters, "load", lambda file, device: other)
    right = kind.partial_fit

    def wrong(self: Any, X: Any, y: Any, classes: Any) -> Any:
        return right(self, X + 1e-3 * X[:, :1], y, classes)

    monkeypatch.setattr(kind, "partial_fit", wrong)
    found = agreement.check_model("l2", SMALL, "cpu").differences
    assert [difference.split(": ")[1] for difference in found] == [
        "saved and loaded on the CPU", "fitted in two batches",
    ]  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
def test_bad_input_has_the_error_of_the_cpu(device: str) -> None:
    outcome = outcome_of(trouble.check_bad_input, device)
    assert outcome.status == "ok", outcome.differences


def test_input_that_is_taken_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        trouble, "_BAD", {"nothing": lambda device, place: None if device == "cuda" else 1 / 0}
    )
    found = trouble.check_bad_input("cuda").differences
    assert found[0] == "nothing, from the host: no error for ZeroDivisionError: division by zero"
    monkeypatch.setattr(trouble, "_BAD", {"nothing": lambda device, place: None})
    assert trouble.check_bad_input("cpu").differences == [
        "nothing, from the host: no error for no error"
    ]


@pytest.mark.parametrize("device", DEVICES)
def test_memory_that_runs_out_changes_no_fit(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = trouble._data
    monkeypatch.setattr(trouble, "_data", lambda n=300, m=200: data(min(n, 600), min(m, 300)))
    monkeypatch.setattr(trouble, "_POOL", 2**20)
    outcome = outcome_of(trouble.check_out_of_memory, device)
    assert outcome.status == "ok", outcome.differences
    assert device == "cpu" or cupy.get_default_memory_pool().get_limit() == 0


@pytest.mark.parametrize("device", DEVICES)
def test_speeds_are_of_fits_and_bare_operations(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trouble, "DENSE", (50, 20))
    for work, bare in (
        (trouble.check_dense_speed, "copy of X"),
        (
            partial(trouble.check_sparse_speed, (60, 40, 5)),
            "product of X with two class indicators",
        ),
    ):
        outcome = outcome_of(work, device)
        assert outcome.status == "ok", outcome.differences
        rows = outcome.figures["rows"]
        assert {bare, "l2 fit"} < set(rows)
        assert ("l2 fit from the host" in rows) == (device == "cuda")
        assert all(np.isfinite(row["ms"]) and row["ms"] > 0 for row in rows.values())


@pytest.mark.parametrize("device", DEVICES)
def test_the_machine_is_described_with_versions(device: str) -> None:
    figures = check_machine(device).figures
    assert figures["numpy"] == np.__version__
    assert ("card" in figures) == (device == "cuda")
    if device == "cuda" and STAND_IN:
        assert figures["card"] == "Fake CUDA device" and figures["cuda"] == "13.0"
        assert figures["compiled kernels"]


def test_an_error_in_a_check_is_a_difference() -> None:
    outcome = outcome_of(lambda device: 1 / 0, "cpu")
    assert outcome.status == "failed"
    assert outcome.differences[0].startswith("ZeroDivisionError: division by zero (<lambda>, line")


@pytest.mark.parametrize("differs", [False, True])
def test_findings_are_printed_and_written_as_they_come(
    differs: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "found.json"
    rows = {"copy": {"ms": 1.0, "gb_s": 2.0}}
    outcomes = [
        ("the machine", Outcome(figures={"card": "a\x1bcard"})),
        ("l2 on words", Outcome(["CSR: \x1b[2Jother"] if differs else [], note="dense")),
        ("speed", Outcome(figures={"data": "10 x 10", "bytes": 100, "rows": rows})),
        ("late", Outcome()),
    ]
    written = []

    def work(outcome: Outcome, device: str) -> Outcome:
        assert device == "cpu"
        written.append(path.exists() and len(json.loads(path.read_text())["checks"]))
        if outcome.figures.get("data"):  # the last for which there is time
            monkeypatch.setattr(check, "time", SimpleNamespace(monotonic=lambda: start + 30))
        return outcome

    start = 1e9
    monkeypatch.setattr(check, "time", SimpleNamespace(monotonic=lambda: start))
    monkeypatch.setattr(check, "plan", lambda: [(n, partial(work, o)) for n, o in outcomes])
    code = main(["check", "--device", "cpu", "--minutes", "0.5", "--json", str(path)])
    printed = capsys.readouterr()
    assert code == int(differs)
    assert written == [False, 1, 2]
    assert json.loads(path.read_text())["checks"]["late"]["status"] == "not run"
    assert "\x1b" not in printed.out and r"a\x1bcard" in printed.out and "copy" in printed.out
    assert ("3 checks on cpu: " + ("1 with diff" if differs else "no difference")) in printed.out
    assert "1 checks were not run for lack of time" in printed.err


@pytest.mark.parametrize("machine", [False, True])
def test_checks_that_compared_nothing_fail(
    machine: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes = {"the machine": Outcome(was_run=machine), "l2 on words": Outcome(was_run=False)}
    monkeypatch.setattr(check, "plan", lambda: [(n, lambda _, o=o: o) for n, o in outcomes.items()])
    assert main(["check", "--device", "cpu"]) == 1
    printed = capsys.readouterr()
    assert f"{int(machine)} checks on cpu: nothing was compared" in printed.out
    assert "give more --minutes" in printed.err


def test_a_device_that_cannot_be_used_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--device", "cuda:99"]) == 1
    assert "cuda:99" in capsys.readouterr().err
