"""The context of a call: retries with less, halves, grids of columns, shares of threads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from conftest import BACKENDS

from gpucenters.arrays import context, schedule
from gpucenters.arrays.backend import HOST, backend_of
from gpucenters.arrays.context import Context, TooLargeError, run_with_oom_retry


def _device_context() -> Context:
    return Context.of(backend_of(BACKENDS["cupy"].array([0.0])))


@pytest.mark.parametrize("most", [1, 2, 3, 5])
@pytest.mark.parametrize("threads", [1, 3])
def test_halves_are_in_the_order_of_the_ranges(threads: int, most: int) -> None:
    def task(start: int, stop: int) -> list[int]:
        if stop - start > most:
            raise MemoryError
        return list(range(start, stop))

    ctx = replace(Context.of(HOST), threads=threads)
    cuts = [(0, 11), (11, 12), (12, 20)]
    found = list(ctx.map_halving(task, cuts, label="", too_large="too large"))
    assert [i for part in found for i in part] == list(range(20))
    assert max(map(len, found)) <= most
    most = 0
    with pytest.raises(MemoryError, match="too large"):
        list(ctx.map_halving(task, cuts, label="", too_large="too large"))


def test_a_smaller_context_has_an_eighth_of_chunk_and_budget() -> None:
    ctx = replace(_device_context(), chunk=schedule.CUDA_CHUNK, budget=8000)
    smaller = ctx.smaller()
    assert smaller is not None
    assert (8 * smaller.chunk, smaller.budget, smaller.limit) == (ctx.chunk, 1000, ctx.limit)
    assert replace(ctx, budget=3).smaller().budget == 1
    assert replace(ctx, chunk=schedule.LEAST_CUDA_CHUNK).smaller() is None
    assert Context.of(HOST).smaller() is None


@pytest.mark.parametrize("rows", [1, 4, 10**9])
def test_sums_over_columns_read_no_more_than_a_chunk_at_once(rows: int) -> None:
    ctx, x, widths = replace(Context.of(HOST), chunk=100), np.arange(250.0), []

    def task(part: slice) -> Any:
        widths.append(part.stop - part.start)
        return x[part].sum()

    assert ctx.sum_columns(task, 250, rows) == x.sum()
    assert max(widths) == max(1, 100 // rows)


def test_threads_that_work_on_many_values_share_the_budget() -> None:
    ctx = replace(Context.of(HOST), threads=4, budget=1000)
    many, few = (ctx.shared_by_threads(context._WORTH_THREADS - less) for less in (0, 1))
    assert (many.threads, many.budget) == (4, 250)
    assert (few.threads, few.budget) == (1, 1000)
    assert replace(ctx, budget=3).shared_by_threads(2**40).budget == 1


def test_what_is_too_large_for_any_chunk_is_not_tried_again() -> None:
    backend, tries = _device_context().backend, []

    def task(ctx: Context) -> None:
        tries.append(ctx.chunk)
        raise error("too large")

    for error, once in ((TooLargeError, True), (MemoryError, False)):
        tries.clear()
        with pytest.raises(error, match="too large"):
            run_with_oom_retry(task, backend, None)
        assert (len(tries) == 1) == once
