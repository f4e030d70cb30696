"""Run attacks: ``python -m tests.attack [NAME ...] [--seed N] [--problems N] [--seconds S]``.

The problems of an attack are run in child processes, so that one which crashes or hangs is found,
and the others go on. A problem depends on its seed and number alone: ``--only NUMBER`` repeats it.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import os
import resource
import signal
import sys
import time
import traceback
import warnings
from collections import deque
from multiprocessing.connection import Connection, wait
from types import ModuleType
from typing import Any

import numpy as np

from .report import Report

# fork: a child has all modules loaded. The parent itself never fits, so it has no threads.
FORK = multiprocessing.get_context("fork")
NAMES = [
    "l2",
    "l1",
    "naive_bayes",
    "densities",
    "offsets",
    "permutations",
    "mahalanobis",
    "containers",
    "damaged",
    "interrupts",
    "streams",
    "threads",
    "budget",
    "cluster",
    "readers",
    "on_disk",
    "vectorizers",
    "gmeb",
    "blocks",
    "paths",
]


def one(attack: ModuleType, seed: int, number: int) -> Report:
    """The report of one problem; an exception that the attack does not expect is a failure."""
    report = Report()
    try:
        attack.attack(np.random.default_rng([seed, number]), report)
    except Exception:
        report.fail("exception", traceback.format_exc())
    return report


def _child(attack: ModuleType, seed: int, numbers: range, end: float, pipe: Connection) -> None:
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    memory = getattr(attack, "MEMORY", resource.RLIM_INFINITY)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    for number in numbers:
        if time.monotonic() > end:
            break
        pipe.send((number, None))
        pipe.send((number, one(attack, seed, number)))
    pipe.close()
    os._exit(0)  # without the exit handlers of the parent


class Child:
    """A process that runs some of the problems, and the number of the one that it is at."""

    def __init__(self, attack: ModuleType, seed: int, numbers: range, end: float) -> None:
        self.numbers, self.at, self.limit = numbers, None, getattr(attack, "LIMIT", 60)
        self.pipe, theirs = FORK.Pipe(duplex=False)
        self.process = FORK.Process(target=_child, args=(attack, seed, numbers, end, theirs))
        self.process.start()
        theirs.close()
        self.heard = time.monotonic()

    def hear(self, report: Report) -> bool:
        """Take a message; whether the process has ended."""
        try:
            number, found = self.pipe.recv()
        except EOFError:
            self.process.join()
            return True
        self.heard = time.monotonic()
        self.at = number if found is None else None
        if found is not None:
            report.add(found, number)
        return False

    def late(self) -> bool:
        return time.monotonic() - self.heard > self.limit

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.join()

    def rest(self) -> range:
        """The problems after the one that ended the process."""
        return range(self.numbers.stop if self.at is None else self.at + 1, self.numbers.stop)


def run(attack: ModuleType, seed: int, problems: int, seconds: float, jobs: int) -> Report:
    """All problems of an attack, ``jobs`` processes at a time."""
    report, end = Report(), time.monotonic() + seconds
    chunk = getattr(attack, "CHUNK", 200)
    queue = deque(range(a, min(a + chunk, problems)) for a in range(0, problems, chunk))
    children: list[Child] = []
    while queue or children:
        while queue and len(children) < jobs:
            if time.monotonic() > end:
                queue.clear()
                break
            children.append(Child(attack, seed, queue.popleft(), end))
        ready = wait([child.pipe for child in children], timeout=1)
        for child in list(children):
            ended = child.pipe in ready and child.hear(report)
            if not ended and child.late():
                child.kill()
                report.fail(f"no end in {child.limit} s", f"# --only {child.at}")
            elif not ended:
                continue
            elif child.process.exitcode:
                report.fail(f"process ended by {child.process.exitcode}", f"# --only {child.at}")
            children.remove(child)
            if child.at is not None and child.rest():
                queue.appendleft(child.rest())
    return report


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--problems", type=int, help="of each attack; each has its own default")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="for each attack")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--only", type=int, help="run this problem, in this process")
    parser.add_argument("--json", help="a file for the counts and examples")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    found: dict[str, Any] = {}
    for name in args.names or NAMES:
        attack = importlib.import_module(f".{name}", __package__)
        began = time.monotonic()
        if args.only is None:
            problems = attack.PROBLEMS if args.problems is None else args.problems
            report = run(attack, args.seed, problems, args.seconds, args.jobs)
        else:
            report = one(attack, args.seed, args.only)
        print(f"{name}, seed {args.seed}, {time.monotonic() - began:.0f} s\n{report}", flush=True)
        for kind, shown in report.examples.items():
            print("\n".join([f"## {name}: {kind}", *shown]), flush=True)
        found[name] = {"tried": report.tried, "failed": report.failed, "examples": report.examples}
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)
    return int(any(part["failed"] for part in found.values()))


if __name__ == "__main__":
    sys.exit(main())
