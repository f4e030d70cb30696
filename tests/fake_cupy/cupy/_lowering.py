"""From device arrays to the NumPy arrays inside them, and back.

Everything the stand-in computes goes through `run`: it lets no host array in, checks that a kernel
would find its arrays on the current device, and turns what NumPy returns (scalars too) into device
arrays, since CuPy never returns a scalar.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from cupy._fake import counting, ledger
from cupy._ndarray import ndarray


def refuse(value: Any) -> TypeError:
    return TypeError(f"Unsupported type {type(value)}")


def lower(value: Any, seen: list[ndarray]) -> Any:
    if isinstance(value, ndarray):
        seen.append(value)
        return value._host
    if isinstance(value, np.ndarray) or getattr(value, "__module__", "").startswith("cupyx."):
        raise refuse(value)
    if type(value) in (list, tuple):
        return type(value)(lower(v, seen) for v in value)
    if type(value) is dict:
        return {k: lower(v, seen) for k, v in value.items()}
    return value


def lift(value: Any, seen: list[ndarray]) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        for source in seen:
            if value is source._host:
                return source
        array = np.asarray(value)
        for source in seen:
            if array.size and np.may_share_memory(array, source._host):
                return ndarray._wrap(array, base=source)
        return ndarray._wrap(array)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(lift(v, seen) for v in value))
    if isinstance(value, list | tuple):
        return type(value)(lift(v, seen) for v in value)
    return value


def run(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    launches: bool = True,
    name: str | None = None,
) -> Any:
    """Call a NumPy function on device arrays; `launches` is False for mere views."""
    seen: list[ndarray] = []
    lowered = lower(args, seen)
    options = lower(kwargs or {}, seen)
    if launches:
        counting.counter.launches += 1
        for array in seen:
            array._use()
    with np.errstate(all="ignore"):  # a device has no floating-point warnings
        result = lift(function(*lowered, **options), seen)
    if launches:
        _note(name or function.__name__, seen, result, kwargs or {})
    return result


def _note(name: str, seen: list[ndarray], result: Any, options: dict[str, Any]) -> None:
    """Write the call down: what is given back as it came (`astype`, `asarray`) is no work."""
    results = result if isinstance(result, list | tuple) else [result]
    outputs = [r for r in results if isinstance(r, ndarray)]
    given = options.get("out")
    if outputs and given is None and any(r is s for r in outputs for s in seen):
        return
    inputs = [a._host for a in seen if a is not given]
    if not outputs:  # in place
        outputs = seen[:1]
    ledger.note_function(name, inputs, [a._host for a in outputs])
