"""What each call would cost a GPU: bytes, the blocks that work on them, random accesses.

`calls` has an entry for each operation while `recording()` is in effect. A card's time follows from
them by arithmetic that is not here: `bench.gpu_model` has it.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

_TILE = 2048  # elements that one block of a comparison sort puts in order by itself

# Where rows are contiguous, one thread block reduces each, so that few long ones leave a card idle;
# elsewhere one reduces 32.
_REDUCTIONS = frozenset(
    ("sum", "prod", "max", "min", "all", "any", "mean", "argmax", "argmin", "count_nonzero")
)
_SORTS = frozenset(("sort", "argsort", "partition", "argpartition", "lexsort"))
_GATHERS = frozenset(("take", "take_along_axis", "getitem", "searchsorted"))
# The libraries of CUDA behind a function: each takes memory of its own, outside of the pool.
_LIBRARIES = {
    "matmul": "cublas",
    "dot": "cublas",
    "spmm": "cusparse",
    "cholesky": "cusolver",
    "eigh": "cusolver",
}


class Call(NamedTuple):
    """One operation.

    Attributes
    ----------
    name : str
    read, written : int
        Bytes, each element that is used once.
    launches : int
        Kernels.
    reduction : (rows, length) or None
        Of a reduction: how many results, and of how many elements each.
    blocks : int or None
        How many thread blocks share the work, where these may be too few for a card.
    random : int
        Accesses to elements anywhere in memory, beyond ``read`` and ``written``.
    span : int
        The bytes among which they are.
    hottest : int
        Atomic additions to the address that gets the most of them.
    serial : int
        Accesses that one thread makes one after the other, beyond a few.
    passes : int
        Of a sort: how often it reads and writes all keys.
    sent : int
        Bytes from page-locked memory of the host.
    workspace : int
        Bytes of temporary memory beyond arguments and results.
    kernel : tuple
        What must be compiled for it, or nothing.
    """

    name: str
    read: int = 0
    written: int = 0
    launches: int = 1
    reduction: tuple[int, int] | None = None
    blocks: int | None = None
    random: int = 0
    span: int = 0
    hottest: int = 0
    serial: int = 0
    passes: int = 0
    sent: int = 0
    workspace: int = 0
    kernel: tuple[Any, ...] = ()


calls: list[Call] | None = None


@contextlib.contextmanager
def recording() -> Iterator[list[Call]]:
    """The calls within the block."""
    global calls
    before, calls = calls, []
    try:
        yield calls
    finally:
        calls = before


def note(name: str, **costs: Any) -> None:
    """Write down a call of known costs."""
    if calls is not None:
        calls.append(Call(name, **costs))


def note_function(name: str, inputs: list[np.ndarray], outputs: list[np.ndarray]) -> None:
    """Write down a call of a function of arrays, from its name and their shapes."""
    if calls is None:
        return
    read, written = (sum(_touched(a) for a in arrays) for arrays in (inputs, outputs))
    kernel = name, *(a.dtype.char for a in (*inputs, *outputs))
    costs: dict[str, Any] = {"read": read, "written": written, "kernel": kernel}
    if name in _SORTS and inputs:
        costs |= _of_sort(name, inputs[0])
    elif name in _REDUCTIONS and inputs and outputs:
        costs |= _of_reduction(inputs[0], outputs[0])
    elif name in _GATHERS and len(inputs) > 1:
        costs |= {"read": sum(map(_touched, inputs[1:])), "span": _touched(inputs[0])}
        steps = inputs[0].size.bit_length() if name == "searchsorted" else 1
        costs |= {"random": steps * sum(a.size for a in outputs)}
    if name in _LIBRARIES:
        costs["kernel"] = ()
    calls.append(Call(name, **costs))


def libraries(found: list[Call]) -> set[str]:
    """The libraries of CUDA that calls use."""
    return {_LIBRARIES[c.name] for c in found if c.name in _LIBRARIES}


def _touched(array: np.ndarray) -> int:
    """Bytes of the different elements of an array: those that are broadcast count once."""
    used = [n for n, step in zip(array.shape, array.strides, strict=True) if step]
    return array.itemsize * math.prod(used) if array.size else 0


def _of_reduction(array: np.ndarray, result: np.ndarray) -> dict[str, Any]:
    rows = max(result.size, 1)
    length = array.size // rows
    flags = array.flags
    # (All elements of an array without gaps are reduced by all blocks, in two launches.)
    whole = rows == 1 and (flags.c_contiguous or flags.f_contiguous)
    reduction = {"reduction": (rows, length), "launches": 1 + whole}
    by_row = flags.c_contiguous and result.shape == array.shape[: result.ndim]
    return reduction | {"blocks": None if whole else rows if by_row else -(-rows // 32)}


def _of_sort(name: str, array: np.ndarray) -> dict[str, Any]:
    index = 8 if name.startswith("arg") or name == "lexsort" else 0
    size, item = array.size, array.itemsize
    if array.ndim == 1 and name != "lexsort":  # radix: a pass for each byte, and a histogram first
        passes, pair = item, item + index
        read = size * (item + passes * pair)
        written = size * passes * pair
        return {
            "read": read,
            "written": written,
            "passes": passes,
            "launches": passes + 2,
            "workspace": size * pair,
        }
    # By comparison: pairs of row and value (and index) are merged until a row is in order.
    pair = item + 8 + index
    passes = 1 + max(0, math.ceil(math.log2(max(size, 1) / _TILE)))
    moved = size * pair * passes
    costs = {"read": moved, "written": moved, "passes": passes, "launches": 2 * passes}
    return costs | {"workspace": 2 * size * pair}
