"""The memory budget: its sizes, its default, and which budgets are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import cupy
from small_data import PLAIN, Y, each_kind

from gpucenters import (
    L2CenterClassifier,
)
from gpucenters.arrays import context
from gpucenters.arrays.backend import HOST, backend_of
from gpucenters.arrays.context import resolve_budget


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
        monkeypatch.setattr(context, "_free", lambda _, free=free: free)
        assert resolve_budget(None, where) == expected


V2 = {"memory.max": "400", "memory.current": "300"}
V2["memory.stat"] = "anon 100\nfile 250\ninactive_file 80\nactive_file 70"
V1 = {"memory.limit_in_bytes": "400", "memory.usage_in_bytes": "300"}
V1["memory.stat"] = "inactive_file 1\ntotal_inactive_file 80\ntotal_active_file 70"
ROOM = V2 | {"memory.max": "900"}
NONE = {"memory.max": "max", "memory.current": "300", "memory.stat": ""}
NONE_V1 = {"memory.limit_in_bytes": str(2**63 - 4096), "memory.usage_in_bytes": "300"}
OUTSIDE = "12:cpu,memory:/docker/1f2\n0::/docker/1f2\n"
GROUPS = {
    "v2": ("0::/\n", {"": V2}, 250),
    "v2 of a service": ("0::/a/b.service\n", {"a/b.service": V2}, 250),
    "v2, a limit around it": ("0::/a/b\n", {"a": V2, "a/b": NONE}, 250),
    "v2, the smaller of two": ("0::/a/b\n", {"a": ROOM, "a/b": V2}, 250),
    "v2, less in the outer one": ("0::/a/b\n", {"a": V2, "a/b": ROOM}, 250),
    "v2, the path of the host": ("0::/docker/1f2\n", {"": V2}, 250),
    "v2, a path that leaves the mount": ("0::/../other\n", {"": V2}, 250),
    "v2, used up": ("0::/\n", {"": V2 | {"memory.current": "700"}}, 0),
    "v2, no statistics": ("0::/\n", {"": V2 | {"memory.stat": ""}}, 100),
    "v2, no limit": ("0::/a\n", {"": {}, "a": NONE}, 2048),
    "v2, above what the system has": ("0::/\n", {"": V2 | {"memory.max": "9999999"}}, 2048),
    "v1": (OUTSIDE, {"memory/docker/1f2": V1, "memory/docker": NONE_V1, "memory": NONE_V1}, 250),
    "v1, the path of the host": (OUTSIDE, {"memory": V1}, 250),
    "v1, a limit around it": ("4:memory:/a/b\n", {"memory/a": V1, "memory/a/b": NONE_V1}, 250),
    "v1, no limit": ("4:memory:/\n0::/\n", {"memory": NONE_V1}, 2048),
    "v1, only others": ("4:memory:/a\n", {"memory/b": V1}, 2048),
    "no groups": ("", {}, 2048),
}


@pytest.mark.parametrize("case", GROUPS)
def test_free_memory_is_what_the_limits_of_a_container_leave(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_process, groups, expected = GROUPS[case]
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text("MemTotal: 9 kB\nMemFree: 1 kB\nMemAvailable: 2 kB\n")
    (tmp_path / "proc/self/cgroup").write_text(of_process)
    for group, files in groups.items():
        (tmp_path / "sys/fs/cgroup" / group).mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (tmp_path / "sys/fs/cgroup" / group / name).write_text(content)
    monkeypatch.setattr(context, "_ROOT", tmp_path)
    assert context.free_memory() == expected
    assert resolve_budget(None, HOST) == max(1, expected // 4)


def test_a_limit_that_is_taken_away_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/\n")
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/memory.max").write_text("400\n")
    monkeypatch.setattr(context, "_ROOT", tmp_path)
    assert context.free_memory() == 400
    (tmp_path / "sys/fs/cgroup/memory.max").write_text("max\n")
    assert context.free_memory() > 2**20


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
