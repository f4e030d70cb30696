"""The memory budget: its sizes, its default, and which budgets are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import cupy
from small_data import PLAIN, Y, each_kind

from gpucenters import (
    L2CenterClassifier,
)
from gpucenters.arrays import budget
from gpucenters.arrays.backend import HOST, backend_of
from gpucenters.arrays.budget import resolve_budget


@pytest.mark.parametrize(
    ("size", "expected"), [("2GB", 2 * 10**9), ("1.5 GiB", 3 * 2**29), (100, 100), ("7", 7)]
)
def test_a_budget_is_a_number_of_bytes_or_a_size_with_a_unit(size: Any, expected: int) -> None:
    assert resolve_budget(size, HOST) == expected


@pytest.mark.parametrize("where", [HOST, backend_of(cupy.zeros(1))], ids=str)
def test_default_budget_is_a_quarter_of_the_free_memory(
    where: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 2**20 < resolve_budget(None, where) < 2**50
    for free, expected in ((4_000_000_003, 1_000_000_000), (2, 1), (0, 1)):
        monkeypatch.setattr(budget, "_free", lambda _, free=free: free)
        assert resolve_budget(None, where) == expected


@pytest.mark.parametrize("size", [0, -1, True, 1.5, "much", "0MB", "-2GB", "2 parsecs", ""])
def test_an_invalid_budget_is_refused(size: Any) -> None:
    with pytest.raises(ValueError, match=f"memory_budget={size!r} is not a size"):
        resolve_budget(size, HOST)


BAD_BUDGETS = [0, -1, "lots", "", "-1MB", "0", "5 parsecs", True, 1.5, np.nan, [1]]


@pytest.mark.parametrize("budget", BAD_BUDGETS, ids=repr)
@each_kind
def test_fit_refuses_an_invalid_budget(kind: Any, budget: Any) -> None:
    with pytest.raises(ValueError, match=r"memory_budget=.*is not a size"):
        kind(memory_budget=budget).fit(PLAIN, Y)


@pytest.mark.parametrize("budget", BAD_BUDGETS, ids=repr)
def test_partial_fit_refuses_an_invalid_budget_at_the_first_batch(budget: Any) -> None:
    with pytest.raises(ValueError, match=r"memory_budget=.*is not a size"):
        L2CenterClassifier(memory_budget=budget).partial_fit(PLAIN, Y, classes=[0, 1])


def test_fit_accepts_a_whole_number_of_bytes_as_a_float() -> None:
    assert resolve_budget(2e9, HOST) == 2 * 10**9
    assert L2CenterClassifier(memory_budget=2e9).fit(PLAIN, Y).support_.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("budget", [0.5, "0.1b", float("inf"), float("nan"), True], ids=repr)
def test_fit_refuses_a_budget_below_one_byte_or_without_end(budget: Any) -> None:
    with pytest.raises(ValueError, match=r"memory_budget=.*is not a size"):
        L2CenterClassifier(memory_budget=budget).fit(PLAIN, Y)
