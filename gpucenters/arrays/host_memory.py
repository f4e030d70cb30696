"""The free memory of the machine, or of the control group (the container) of the process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_ROOT = Path("/")
_NO_LIMIT = 2**62  # from which on version 1 of control groups means none
_IF_UNKNOWN = 2**30  # bytes that count as free where the system does not say what is free


def free_memory() -> int:
    """Bytes that are free: those of the system, or fewer where a control group has a limit."""
    return max(0, min([_of_system(), *(_of_group(*names) for names in _groups(_ROOT))]))


def _of_system() -> int:
    for line in _lines(_ROOT / "proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return _IF_UNKNOWN


@cache
def _groups(root: Path) -> list[tuple[Path, Path, Path, str]]:
    """(limit, usage, statistics, prefix of their names) of the groups around the process.

    They are those that have a limit when it is first asked for.
    """
    return [
        (group / limit, group / usage, group / "memory.stat", prefix)
        for group, limit, usage, prefix in _all_groups(root)
        if _limit(group / limit) < _NO_LIMIT
    ]


def _all_groups(root: Path) -> Iterator[tuple[Path, str, str, str]]:
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):  # version 1
            group = root / "sys/fs/cgroup/memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_")
        elif not controllers:  # version 2
            group, names = root / "sys/fs/cgroup", ("memory.max", "memory.current", "")
        else:
            continue
        # In a container, the path may be that outside, and what is mounted the group itself.
        for part in ("", *path.strip("/").split("/")):
            group /= part
            yield group, *names


def _of_group(limit: Path, usage: Path, statistics: Path, prefix: str) -> int:
    """What a limit leaves; pages of files make room for others."""
    left = _limit(limit) - sum(map(int, _lines(usage)))
    sizes = dict(line.split() for line in _lines(statistics))
    return left + sum(int(sizes.get(f"{prefix}{k}_file", 0)) for k in ("active", "inactive"))


def _limit(file: Path) -> int:
    found = [int(line) for line in _lines(file) if line.isdecimal()]  # no number: "max"
    return min([*found, _NO_LIMIT])


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []
