"""``gpucenters check``: whether this machine computes what it should, and how fast."""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..models import MODELS
from ..options import device_option, option
from ..output import as_json, console, safe, say, show_facts, show_table
from ..writers import check_files, opened

if TYPE_CHECKING:
    from .device import Outcome

MACHINE = "the machine"  # the check that compares nothing


def check(
    device: Annotated[str, device_option("What to check.")] = "auto",
    minutes: Annotated[float, option("No check begins later.", min=0.1)] = 10.0,
    json: Annotated[
        str | None, option("Write the findings, after each check.", metavar="FILE")
    ] = None,
) -> None:
    """Check that a device computes what the CPU does, and how fast.

    Every model is fitted to dense, CSR and CSC data of several shapes on the device and on the CPU;
    selected features, scores and predictions are compared. Bad input and too little memory are
    tried. Then fits are timed beside bare copies and sorts. With --device cpu, the CPU is compared
    with itself on one thread and in little memory.

    The most important checks come first. The exit status is 1 if anything differs, or if the time
    did not suffice to compare anything.
    """
    check_files([json], [])
    from ...arrays.backend import resolve_backend
    from ...arrays.namespace import is_cupy

    backend = resolve_backend(device, None)
    if device == "auto":
        device = "cuda" if is_cupy(backend.xp) else "cpu"
    report, end = Report(device, json), time.monotonic() + 60 * minutes
    for name, work in plan():
        report.add(name, outcome_of(work, device, end))
    report.end()
    if report.failed or not report.compared:
        raise typer.Exit(1)


def plan() -> list[tuple[str, Callable[[str], Outcome]]]:
    """The checks by their names, the most important first; each takes a device."""
    from . import agreement, device, trouble

    def of_models(shapes: tuple[agreement.Shape, ...]) -> list[tuple[str, Any]]:
        return [
            (f"{name} on {shape.name}", partial(agreement.check_model, name, shape))
            for shape in shapes
            for name in MODELS
        ]

    return [
        (MACHINE, device.check_machine),
        *of_models(agreement.FIRST),
        ("bad input", trouble.check_bad_input),
        ("out of memory", trouble.check_out_of_memory),
        ("speed, dense", trouble.check_dense_speed),
        ("speed, sparse", partial(trouble.check_sparse_speed, trouble.SPARSE)),
        ("speed, wide", partial(trouble.check_sparse_speed, trouble.WIDE)),
        *of_models(agreement.MORE),
    ]


def outcome_of(work: Callable[[str], Outcome], device: str, end: float = float("inf")) -> Outcome:
    """What comes of a check, in which an error is a difference; it does not begin after the end.

    The end is that of ``time.monotonic``.
    """
    from .device import Outcome

    start = time.monotonic()
    if start >= end:
        return Outcome(was_run=False, note="the time was over")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome = work(device)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        outcome = Outcome([f"{type(error).__name__}: {error} ({last.name}, line {last.lineno})"])
    outcome.seconds = time.monotonic() - start
    return outcome


class Report:
    """Findings as they come."""

    def __init__(self, device: str, path: str | None) -> None:
        self.path = path
        self.found: dict[str, Any] = {"device": device, "checks": {}}
        self.failed = self.missed = self.compared = 0

    def add(self, name: str, outcome: Outcome) -> None:
        """Print a finding, and write all so far."""
        self.found["checks"][name] = outcome.as_dict()
        self.failed += bool(outcome.differences)
        self.missed += not outcome.was_run
        self.compared += outcome.was_run and name != MACHINE
        color = {"ok": "green", "failed": "bold red"}.get(outcome.status, "yellow")
        line = f"{name:24}{outcome.seconds:8.2f} s  {safe(outcome.note)}"
        console().print(f"{outcome.status:10}", style=color, end="")
        console().print(line, soft_wrap=True)
        for difference in outcome.differences:
            console().print(f"  {safe(difference)}", style="red", soft_wrap=True)
        if name == MACHINE:
            show_facts(outcome.figures)
        elif outcome.figures:
            _show_speeds(outcome.figures)
        if self.path is not None:
            with opened(self.path) as file:
                file.write((as_json(self.found, indent=1) + "\n").encode())

    def end(self) -> None:
        """Print the sum."""
        if self.failed:
            found = f"{self.failed} with differences"
        else:
            found = "no difference" if self.compared else "nothing was compared"
        run = len(self.found["checks"]) - self.missed
        console().print(f"\n{run} checks on {self.found['device']}: {found}")
        if self.missed:
            say(f"{self.missed} checks were not run for lack of time: give more --minutes.")


def _show_speeds(figures: dict[str, Any]) -> None:
    rows = [
        [name, f"{row['ms']:,.2f}", f"{row['gb_s']:,.1f}"] for name, row in figures["rows"].items()
    ]
    head = {"work": "left", "ms, least of three": "right", "GB/s of X": "right"}
    show_table(f"{figures['data']}, {figures['bytes'] / 1e6:,.0f} MB", head, rows)
