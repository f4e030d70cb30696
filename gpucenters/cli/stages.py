"""The stages of a command, and their times."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from typing import Any

from .output import messages


class Stages:
    """The seconds that each stage takes; a terminal shows which one is under way."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str, *, spinner: bool = True) -> Iterator[None]:
        """The block as a stage.

        Parameters
        ----------
        name : str
        spinner : bool
            Not where the stage shows its progress itself.
        """
        start = time.perf_counter()
        with messages().status(name) if spinner else nullcontext():
            yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start

    def __str__(self) -> str:
        total = sum(self.seconds.values())
        parts = [
            f"{name} {seconds:.2f} s ({seconds / total:.0%})"
            for name, seconds in self.seconds.items()
        ]
        return ", ".join(parts)


@contextmanager
def progress_of(model: Any) -> Iterator[None]:
    """Progress bars of a model's own, on a terminal, and nothing else of what it prints."""
    model.set_params(verbose=sys.stderr.isatty())
    try:
        with redirect_stdout(io.StringIO()):
            yield
    finally:
        model.set_params(verbose=False)
