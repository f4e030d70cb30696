"""Which class belongs to a format: asked for late, since the formats make one another."""

from __future__ import annotations

import importlib
from typing import Any


def find(format: str, kind: str) -> Any:
    return getattr(importlib.import_module("cupyx.scipy.sparse"), f"{format}_{kind}")
