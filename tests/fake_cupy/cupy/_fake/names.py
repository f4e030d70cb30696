"""The names that the real CuPy has, as written down by `write_names.py`."""

from __future__ import annotations

import json
from pathlib import Path

_names = json.loads((Path(__file__).parents[2] / "names.json").read_text())
VERSION: str = _names["version"]
MEMBERS: dict[str, frozenset[str]] = {k: frozenset(v) for k, v in _names["members"].items()}
SIGNATURES: dict[str, list[str]] = _names["signatures"]
UFUNCS: dict[str, str | None] = _names["ufuncs"]
