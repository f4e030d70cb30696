"""Write `names.json`: the public names of the CuPy that is installed.

The stand-in offers no name that is not in that file, so that code walked on a machine without a GPU
cannot lean on something that the real library lacks. Run it with the real CuPy importable (no GPU
is needed): ``python write_names.py``.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from pathlib import Path
from typing import Any

MODULES = (
    "cupy",
    "cupy.cuda",
    "cupy.cuda.device",
    "cupy.cuda.memory",
    "cupy.cuda.pinned_memory",
    "cupy.cuda.runtime",
    "cupy.cuda.stream",
    "cupy.fft",
    "cupy.linalg",
    "cupy.random",
    "cupyx",
    "cupyx.scipy",
    "cupyx.scipy.sparse",
    "cupyx.scipy.special",
)
CLASSES = (
    "cupy.ndarray",
    "cupy.ufunc",
    "cupy.cuda.Device",
    "cupy.cuda.Event",
    "cupy.cuda.ExternalStream",
    "cupy.cuda.MemoryPool",
    "cupy.cuda.PinnedMemoryPool",
    "cupy.cuda.Stream",
    "cupyx.scipy.sparse.coo_array",
    "cupyx.scipy.sparse.coo_matrix",
    "cupyx.scipy.sparse.csc_array",
    "cupyx.scipy.sparse.csc_matrix",
    "cupyx.scipy.sparse.csr_array",
    "cupyx.scipy.sparse.csr_matrix",
    "cupyx.scipy.sparse.spmatrix",
)
SIGNATURES = ("cupy", "cupy.fft", "cupy.linalg")
HERE = Path(__file__).parent


def public(owner: Any) -> list[str]:
    return sorted(name for name in dir(owner) if not name.startswith("_"))


def parameters(function: Any) -> list[str] | None:
    """The names of a function's parameters; None where they cannot be read or are open-ended."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in found):
        return None
    return [p.name for p in found]


def layout(value: Any, depth: int = 2) -> str:
    """JSON with one line for each list, so that a new CuPy shows as a readable change."""
    if depth == 0 or not isinstance(value, dict):
        return json.dumps(value)
    lines = (f"{json.dumps(k)}: {layout(value[k], depth - 1)}" for k in sorted(value))
    return "{\n" + ",\n".join(lines) + "\n}"


def main() -> None:
    # The stand-in lies beside this script, and would be found first.
    sys.path[:] = [p for p in sys.path if Path(p or ".").resolve() != HERE.resolve()]
    import cupy

    if hasattr(cupy, "_fake"):
        raise SystemExit("this wants the real CuPy")
    members: dict[str, list[str]] = {}
    for path in MODULES:
        members[path] = public(importlib.import_module(path))
    for path in CLASSES:
        module, name = path.rsplit(".", 1)
        owner = getattr(importlib.import_module(module), name)
        # An attribute with underscores counts for a class: `__index__` is what CuPy lacks.
        members[path] = sorted(
            n
            for n in dir(owner)
            if not n.startswith("_") or (n.startswith("__") and n.endswith("__"))
        )
    signatures: dict[str, list[str]] = {}
    ufuncs: dict[str, str | None] = {}
    for path in SIGNATURES:
        module = importlib.import_module(path)
        for name in members[path]:
            value = getattr(module, name)
            if isinstance(value, cupy.ufunc):
                # The kind of scatter behind `ufunc.at`; None where there is no `at`.
                ufuncs[name] = value._scatter_op
            elif callable(value) and not isinstance(value, type):
                found = parameters(value)
                if found is not None:
                    signatures[f"{path}.{name}"] = found
    names = {
        "version": cupy.__version__,
        "members": members,
        "signatures": signatures,
        "ufuncs": ufuncs,
    }
    (HERE / "names.json").write_text(layout(names) + "\n")


if __name__ == "__main__":
    main()
