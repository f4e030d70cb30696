"""What an attack found: counts per kind, and the first failing problems of each kind."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

SHOWN = 3  # examples of each kind


@dataclass
class Report:
    """Counts of what was tried and of what failed, and some of the failing problems."""

    tried: Counter = field(default_factory=Counter)
    failed: Counter = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def count(self, kind: str, times: int = 1) -> None:
        self.tried[kind] += times

    def fail(self, kind: str, *problem: object) -> None:
        """Count a failure; ``problem`` says how to see it again, as lines of Python."""
        self.failed[kind] += 1
        self.examples.setdefault(kind, ["\n".join(map(str, problem))])  # one of each problem

    def add(self, other: Report, number: int) -> None:
        """Add the report of problem ``number``."""
        self.tried += other.tried
        self.failed += other.failed
        for kind, shown in other.examples.items():
            mine = self.examples.setdefault(kind, [])
            mine += [f"# --only {number}\n{text}" for text in shown][: SHOWN - len(mine)]

    def __str__(self) -> str:
        lines = [f"  {n:>9,}  {kind}" for kind, n in sorted(self.tried.items())]
        lines += [f"  {n:>9,}  FAILED: {kind}" for kind, n in sorted(self.failed.items())]
        return "\n".join(lines)
