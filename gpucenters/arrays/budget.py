"""The memory budget: workspace beyond inputs and model, a share of what memory is free."""

from __future__ import annotations

import numbers
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from . import cuda
from .backend import Backend
from .namespace import is_cupy

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
_DEFAULT_DIVISOR = 4  # the default budget is a quarter of the free memory
_ROOT = Path("/")
_NO_LIMIT = 2**62  # from which on version 1 of control groups means none
_IF_UNKNOWN = 2**30  # bytes that count as free where the system does not say what is free


def resolve_budget(budget: int | str | None, backend: Backend) -> int:
    """Workspace in bytes.

    Parameters
    ----------
    budget : int, str or None
        Bytes, or a size such as "500MB", "2GB", "1.5GiB"; None is a quarter of what is free.
    backend : Backend

    Raises
    ------
    ValueError
        If it is no positive size.
    """
    if budget is None:
        return max(_free(backend) // _DEFAULT_DIVISOR, 1)
    size: float = 0
    if isinstance(budget, numbers.Real) and not isinstance(budget, bool):
        size = int(budget) if budget % 1 == 0 else 0  # 2e9 is a whole number
    elif isinstance(budget, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", budget)
        if match and match.group(2).lower() in _UNITS:
            size = float(match.group(1)) * _UNITS[match.group(2).lower()]
    if not 1 <= size < 2**63:
        raise ValueError(
            f"memory_budget={budget!r} is not a size: use a positive number of bytes, a string "
            "such as '500MB' or '2GB', or None."
        )
    return int(size)


def _free(backend: Backend) -> int:
    return cuda.free_memory(backend.device) if is_cupy(backend.xp) else free_memory()


def free_memory() -> int:
    """Free bytes of the machine, or fewer where a control group (a container) has a limit."""
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
