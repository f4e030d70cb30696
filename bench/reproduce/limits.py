"""Work in a child process, with a time limit that holds in compiled code too."""

from __future__ import annotations

import ctypes
import multiprocessing
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ..timing import resident


@dataclass
class Outcome:
    """What came before the end, and how it ended."""

    values: list[Any] = field(default_factory=list)
    note: str = ""  # "over the limit", the error, or nothing
    peak_mb: float | None = None  # memory beyond what the process had before


def limited(work: Callable[[], Iterable[Any]], seconds: float | None = None) -> Outcome:
    """Collect what ``work`` yields in a fork, which is killed after ``seconds``.

    The fork has the data without a copy. The process that calls this should have fitted nothing
    itself: threads of OpenMP do not outlive a fork.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def child() -> None:
        if sys.platform == "linux":  # so that no fork of a fork outlives an interrupt
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        before = resident()
        try:
            for value in work():
                sender.send(("value", value))
        except Exception as error:
            sender.send(("error", f"{type(error).__name__}: {str(error)[:80]}"))
            return
        unit = 1 if sys.platform == "darwin" else 1024
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        sender.send(("end", None if before is None else (most - before) / 1e6))

    process = context.Process(target=child)
    with warnings.catch_warnings():
        # Python 3.12 warns of the idle threads of BLAS.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    sender.close()
    outcome, start = Outcome(), time.monotonic()
    try:
        while True:
            if seconds is not None and not receiver.poll(
                max(0.0, start + seconds - time.monotonic())
            ):
                outcome.note = "over the limit"
                break
            kind, value = receiver.recv()
            if kind == "value":
                outcome.values.append(value)
                continue
            if kind == "error":
                outcome.note = value
            else:
                outcome.peak_mb = value
            break
    except EOFError:
        outcome.note = "ended by the system"  # most often for want of memory
    finally:
        process.kill()
        process.join()
    return outcome


def timed(work: Callable[[], Any], most: float = 0.2) -> tuple[float, Any]:
    """Seconds and result: the least of some rounds where they are short."""
    least, spent, rounds = float("inf"), 0.0, 0
    while not rounds or (spent < most and rounds < 25):
        start = time.perf_counter()
        result = work()
        took = time.perf_counter() - start
        least, spent, rounds = min(least, took), spent + took, rounds + 1
    return least, result
