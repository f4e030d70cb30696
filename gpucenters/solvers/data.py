"""From arrays of users to what solvers read: blocks, samples and exposures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..arrays.backend import resolve_backend
from ..arrays.context import Context, run_with_oom_retry
from ..arrays.typing import Array
from ..blocks import Block
from ..blocks.convert import as_block
from ..blocks.samples import Samples, make_samples, raise_without_weight
from ..reductions.products import product

Result = TypeVar("Result")


# From arrays and class codes to a solution: the body that the public functions share.


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
        raise_without_weight(samples.count)
        return solve(block, samples, ctx)

    return run_with_oom_retry(task, resolve_backend(device, X), memory_budget)


# Exposures of rows: totals that are read off X, and given ones, checked against it.


def row_totals(block: Block, ctx: Context) -> Array:
    """The sum of each row over all features: (n,)."""
    backend, m = block.backend, block.shape[1]
    ones = backend.zeros((m, 1)) + 1.0
    return product(block, backend.arange(m), backend.zeros(m), ones, ctx)[:, 0]


def exposed_samples(
    block: Block, samples: Samples, kind: str, given: Any, ctx: Context, *, squares: bool
) -> Samples:
    """The samples with their exposures, where the sums of a model need them.

    Parameters
    ----------
    block : Block
    samples : Samples
    kind : {"total", "unit", "given"}
    given : array of shape (n,), of any library, or None
    ctx : Context
    squares : bool
        Whether squares are divided by the exposures.

    Raises
    ------
    ValueError
        For exposures that are no such numbers, and for a row of counts without exposure.
    """
    if kind == "given":
        samples, xp = samples.with_exposure(given), block.backend.xp
        if samples.exposure is not None:
            exposure, weights = block.backend.asarray(samples.exposure), samples.backend_weights
            if weights is not None:  # what is left out needs none
                exposure = xp.where(weights > 0, exposure, xp.ones_like(exposure))
            require_exposure(block, exposure, ctx)
        return samples
    if kind == "unit" or not squares:
        return samples
    totals = row_totals(block, ctx)
    if not bool(block.backend.xp.all(block.backend.xp.isfinite(totals))):
        block.check_finite(False, ctx)
    return samples.with_exposure(totals)


def require_exposure(block: Block, exposure: Array, ctx: Context) -> None:
    """Raise a ValueError for a row without exposure that has counts.

    Parameters
    ----------
    block : Block
    exposure : array of shape (n,)
    ctx : Context
    """
    xp = block.backend.xp
    if not bool(xp.any(exposure == 0)):
        return
    bad = xp.nonzero((exposure == 0) & (row_totals(block, ctx) > 0))[0]
    if bad.shape[0]:
        raise ValueError(
            f"the exposure of row {int(bad[0])} is 0, but X has counts there. Leave the row out, "
            "or give it an exposure above 0."
        )
