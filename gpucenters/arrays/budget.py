"""The memory budget: workspace beyond inputs and model."""

from __future__ import annotations

import numbers
import re

from . import cuda
from .backend import Backend
from .host_memory import free_memory
from .namespace import is_cupy

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
_DEFAULT_DIVISOR = 4  # the default budget is a quarter of the free memory


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
