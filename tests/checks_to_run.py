"""Checks that end in every way, for a process of their own."""

from __future__ import annotations

import os
import time

from bench.running import Check
from gpucenters.cli.check.device import Outcome


def _crashes(device: str) -> Outcome:
    os._exit(7)


def _hangs(device: str) -> Outcome:
    time.sleep(600)
    return Outcome()


def _raises(device: str) -> Outcome:
    raise ValueError(f"nothing on {device}")


def some() -> list[Check]:
    return [
        Check("works", lambda device: Outcome(note=f"{device} {os.getpid()}")),
        Check("goes on", lambda device: Outcome(note=f"{device} {os.getpid()}")),
        Check("starts anew", lambda device: Outcome(note=f"{device} {os.getpid()}"), fresh=True),
        Check("crashes", _crashes),
        Check("raises", _raises),
        Check("hangs", _hangs, limit=0.3),
        Check("works again", lambda device: Outcome(note=device)),
    ]


def too_many() -> list[Check]:
    return [Check("hangs", _hangs), Check("works", lambda device: Outcome())]
