"""Brings the stand-in in for the tests of this folder, and takes it out again."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = str(Path(__file__).parent)
# array-api-compat keeps a module that was built over the `cupy` it found.
OURS = ("cupy", "cupyx", "array_api_compat.cupy")


def _taken_out() -> dict[str, object]:
    names = [n for n in sys.modules if any(n == o or n.startswith(f"{o}.") for o in OURS)]
    compat = sys.modules.get("array_api_compat")
    if compat is not None and "cupy" in vars(compat):
        del compat.cupy
    return {n: sys.modules.pop(n) for n in names}


@pytest.fixture(scope="module", autouse=True)
def stand_in(request: pytest.FixtureRequest) -> Iterator[None]:
    """The stand-in, where it is in use already, or else for this module alone."""
    used = hasattr(sys.modules.get("cupy"), "_fake")
    before = {} if used else _taken_out()
    sys.path.insert(0, HERE)
    request.module.cp = importlib.import_module("cupy")
    request.module.cupyx = importlib.import_module("cupyx")
    request.module.cs = importlib.import_module("cupyx.scipy.sparse")
    yield
    sys.path.remove(HERE)
    if not used:
        _taken_out()
        sys.modules.update(before)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def fresh(stand_in: None) -> Iterator[None]:
    fake = sys.modules["cupy"]._fake
    fake.reset()
    yield
    fake.reset()
