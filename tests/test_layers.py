"""What the import linter cannot see: constants that bring NumPy or a schedule into the solvers."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import gpucenters.blocks
import gpucenters.solvers
import gpucenters.statistics
from gpucenters.arrays.backend import Backend


def _modules(package: ModuleType) -> list[ModuleType]:
    names = [name for _, name, _ in pkgutil.iter_modules(package.__path__)]
    return [importlib.import_module(f"{package.__name__}.{name}") for name in names]


@pytest.mark.parametrize("package", [gpucenters.solvers, gpucenters.statistics])
def test_no_module_holds_a_backend_or_a_namespace(package: ModuleType) -> None:
    for module in _modules(package):
        for name, value in vars(module).items():
            assert not isinstance(value, Backend), f"{module.__name__}.{name}"
            assert value is not np and not hasattr(value, "__array_namespace_info__"), (
                f"{module.__name__}.{name}"
            )


@pytest.mark.parametrize("package", [gpucenters.solvers, gpucenters.statistics])
def test_no_module_asks_which_kind_of_block_it_has(package: ModuleType) -> None:
    for module in _modules(package):
        source = Path(str(module.__file__)).read_text()
        assert "DenseBlock" not in source and "SparseBlock" not in source
        assert not re.search(r"isinstance\(\w*block", source), module.__name__
