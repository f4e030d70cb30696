"""What the import linter cannot see: constants of solvers, and private members across packages."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections import defaultdict, namedtuple
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from sklearn.base import BaseEstimator

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


ROOT = Path(gpucenters.__file__).parent
#: Modules at the top that every package may import.
SHARED = {"_docstrings", "_models", "_public"}
#: Private names of scikit-learn's and Python's own classes.
FOREIGN = {*dir(BaseEstimator), *dir(namedtuple("_", ""))}


def _is_private(name: str) -> bool:
    return re.match("_[^_]", name) is not None and name not in FOREIGN


def _defined(node: ast.AST) -> str:
    """The name that a node defines or assigns, or that of the attribute of self that it sets."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.name
    if not isinstance(getattr(node, "ctx", None), ast.Store):
        return ""
    if isinstance(node, ast.Attribute):
        return node.attr if getattr(node.value, "id", "") in ("self", "cls") else ""
    return getattr(node, "id", "")


def _imported(node: ast.ImportFrom, package: tuple[str, ...]) -> Iterator[list[str]]:
    """The paths inside gpucenters that a statement imports in a package."""
    module = (node.module or "").split(".") if node.module else []
    if node.level:
        module = [*package[: len(package) + 1 - node.level], *module]
    elif module[0] == "gpucenters":
        module = module[1:]
    else:
        return
    yield from ([*module, name.name] for name in node.names)


def test_no_package_uses_a_private_member_or_module_of_another() -> None:
    trees = {path.relative_to(ROOT): ast.parse(path.read_text()) for path in ROOT.rglob("*.py")}
    members, known = defaultdict(set), set()  # of the classes of each package; all names of ours
    for path, tree in trees.items():
        for node in ast.walk(tree):
            known.add(_defined(node))
            if isinstance(node, ast.ClassDef):
                parts = (x for part in node.body for x in (part, *ast.iter_child_nodes(part)))
                members[path.parts[0]].update(map(_defined, parts))
            elif isinstance(node, ast.Attribute):
                members[path.parts[0]].add(_defined(node))
    used = []
    for path, tree in trees.items():
        own = path.parts[0]
        for node in ast.walk(tree):
            private: set[str] = set()
            if isinstance(node, ast.Attribute) and node.attr not in members[own]:
                private = {node.attr} & known
            elif isinstance(node, ast.ImportFrom):
                imported = _imported(node, path.parts[:-1])
                private = {x for names in imported if names[0] != own for x in names} - SHARED
            used += [f"{path}:{node.lineno}: {name}" for name in private if _is_private(name)]
    assert used == []
