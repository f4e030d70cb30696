"""The models of the package, for the lists of tests."""

from __future__ import annotations

from typing import Any

from gpucenters._models import MODELS, found

EVERY = [found(model.kind) for model in MODELS]


def others(models: list[Any], attribute: str = "with_k", **parameters: Any) -> list[Any]:
    """One of each kind with such an attribute that none of these models is."""
    there = {type(model) for model in models}
    kinds = [kind for kind in EVERY if kind not in there and hasattr(kind, attribute)]
    return [kind(**parameters) for kind in kinds]
