"""Checks in a process of their own, which may hang or crash."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from gpucenters.cli.check import outcome_of
from gpucenters.cli.check.device import Outcome


@dataclass(frozen=True)
class Check:
    """A check.

    Attributes
    ----------
    name : str
    work : callable
        It takes the name of a device.
    limit : float
        Seconds after which it counts as hanging.
    fresh : bool
        Whether it needs a process in which nothing has used the device yet.
    """

    name: str
    work: Callable[[str], Outcome]
    limit: float = 90.0
    fresh: bool = False


def run_all(
    make: Callable[[], list[Check]], device: str, seconds: float
) -> Iterator[tuple[Check, Outcome]]:
    """Run the checks one after the other, each within its limit and all within so many seconds.

    One process works on all of them; a check that hangs or crashes takes it along, and the next
    ones get a new one, as does each that asks for it.

    Parameters
    ----------
    make : callable
        It gives the checks, in each process anew.
    device : str
    seconds : float
    """
    end, worker = time.monotonic() + seconds, _Worker(device, make)
    try:
        for number, check in enumerate(make()):
            left = end - time.monotonic()
            if left <= 0:
                yield check, Outcome(was_run=False, note="the time was over")
                continue
            if check.fresh:
                worker.stop()
            yield check, worker.run(number, min(check.limit, left), is_last=left < check.limit)
    finally:
        worker.stop()


class _Worker:
    """A process that runs checks by their numbers."""

    def __init__(self, device: str, make: Callable[[], list[Check]]) -> None:
        self.task = device, make
        self._process: Any = None

    def run(self, number: int, limit: float, *, is_last: bool) -> Outcome:
        """Run one check; ``is_last`` says that the limit is what is left of all time."""
        if self._process is None:
            self._start()
        start = time.monotonic()
        try:
            self._end.send(number)
            if self._end.poll(limit):
                outcome: Outcome = self._end.recv()
                return outcome
        except (EOFError, OSError):
            self._process.join()
            code = self._process.exitcode
            self.stop()
            return Outcome(
                [f"the process ended with code {code}"], seconds=time.monotonic() - start
            )
        self.stop()
        if is_last:
            return Outcome(was_run=False, note="the time was over", seconds=limit)
        return Outcome([f"no result after {limit:.0f} s"], seconds=limit)

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
        self._end, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, *self.task), daemon=True)
        self._process.start()
        other.close()

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._end.close()
            self._process = None


def _serve(end: Connection, device: str, make: Callable[[], list[Check]]) -> None:
    checks = make()
    while True:
        try:
            number = end.recv()
        except (EOFError, KeyboardInterrupt):
            return
        end.send(outcome_of(checks[number].work, device))
