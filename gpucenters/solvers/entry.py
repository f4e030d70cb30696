"""From arrays and class codes to a solution: the body that the public functions share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..arrays.context import Context, run_with_oom_retry
from ..arrays.devices import resolve_backend
from ..blocks.block import Block
from ..blocks.convert import as_block
from ..blocks.samples import Samples, check_every_class, make_samples

Result = TypeVar("Result")


def solve_from_data(
    solve: Callable[[Block, Samples, Context], Result],
    X: Any,
    y: Any,
    n_classes: int | None,
    sample_weight: Any,
    device: str | None,
    memory_budget: int | str | None,
) -> Result:
    """``solve(block, samples, context)`` of labelled data, in chunks that fit into memory.

    The parameters are those of the public functions, as `l2_centers`.
    """

    def task(ctx: Context) -> Result:
        block = as_block(X, ctx.backend)
        n = block.shape[0]
        samples = make_samples(y, n, ctx.backend, n_classes=n_classes, sample_weight=sample_weight)
        check_every_class(samples)
        return solve(block, samples, ctx)

    return run_with_oom_retry(task, resolve_backend(device, X), memory_budget)
