"""The command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..data import check_place
from ..output import as_json, console, safe, say, show_facts, show_table
from .outcome import MACHINE

if TYPE_CHECKING:
    from .outcome import Check, Outcome


def check(
    device: Annotated[
        str, typer.Option("--device", "-d", metavar="auto|cpu|cuda|cuda:N", help="What to check.")
    ] = "auto",
    minutes: Annotated[float, typer.Option(min=0.1, help="Time for all checks.")] = 10.0,
    json: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the findings, after each check.")
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
    check_place(json)
    from ...arrays.devices import resolve_backend
    from ...arrays.namespace import is_cupy
    from .plan import plan
    from .running import run_all

    backend = resolve_backend(device, None)
    if device == "auto":
        device = "cuda" if is_cupy(backend.xp) else "cpu"
    report = Report(device, json)
    for each, outcome in run_all(plan, device, 60 * minutes):
        report.add(each, outcome)
    report.end()
    if report.failed or not report.compared:
        raise typer.Exit(1)


class Report:
    """Findings as they come."""

    def __init__(self, device: str, path: str | None) -> None:
        self.path = path
        self.found: dict[str, Any] = {"device": device, "checks": {}}
        self.failed = self.missed = self.compared = 0

    def add(self, each: Check, outcome: Outcome) -> None:
        """Print a finding, and write all so far."""
        self.found["checks"][each.name] = outcome.as_dict()
        self.failed += bool(outcome.differences)
        self.missed += not outcome.was_run
        self.compared += outcome.was_run and each.name != MACHINE
        color = {"ok": "green", "failed": "bold red"}.get(outcome.status, "yellow")
        line = f"{each.name:24}{outcome.seconds:8.2f} s  {safe(outcome.note)}"
        console().print(f"{outcome.status:10}", style=color, end="")
        console().print(line, soft_wrap=True)
        for difference in outcome.differences:
            console().print(f"  {safe(difference)}", style="red", soft_wrap=True)
        if each.name == MACHINE:
            show_facts(outcome.figures)
        elif outcome.figures:
            _show_speeds(outcome.figures)
        if self.path is not None:
            from ..writers import opened

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
