"""All checks, the most important first."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ..models import MODELS
from .agreement import check_model
from .machine import check_machine
from .outcome import MACHINE, Check
from .shapes import FIRST, MORE, Shape
from .speeds import check_dense_speed, check_sparse_speed, check_wide_speed
from .trouble import check_bad_input, check_out_of_memory


def plan() -> list[Check]:
    """The checks, in the order in which they run."""
    first = [Check(MACHINE, check_machine, limit=120.0)]  # CuPy may take long to start
    models = [check for shape in FIRST for check in _of_models(shape)]
    # Most kernels are compiled for the first model, some of them in ten seconds and more.
    models[0] = replace(models[0], limit=300.0)
    return (
        first
        + models
        + [Check("bad input", check_bad_input), Check("out of memory", check_out_of_memory)]
        + [Check("speed, dense", check_dense_speed), Check("speed, sparse", check_sparse_speed)]
        + [Check("speed, wide", check_wide_speed)]
        + [check for shape in MORE for check in _of_models(shape)]
    )


def _of_models(shape: Shape) -> list[Check]:
    return [Check(f"{name} on {shape.name}", partial(check_model, name, shape)) for name in MODELS]
