"""A check, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

OK, FAILED, NOT_RUN = "ok", "failed", "not run"
MACHINE = "the machine"  # the check that compares nothing


@dataclass
class Outcome:
    """What came of a check.

    Attributes
    ----------
    differences : list of str
        What is not as it should be.
    note : str
        What was done, in short.
    figures : dict
        Numbers for the report.
    seconds : float
    was_run : bool
        False where the time was over before.
    """

    differences: list[str] = field(default_factory=list)
    note: str = ""
    figures: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    was_run: bool = True

    @property
    def status(self) -> str:
        """One of the three words for it."""
        if not self.was_run:
            return NOT_RUN
        return FAILED if self.differences else OK

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"status": self.status} | asdict(self)


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
