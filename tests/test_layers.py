"""What the import linter cannot see: constants that bring NumPy or a schedule into the solvers."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

import numpy as np
import pytest

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
