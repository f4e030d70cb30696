"""The package loads lazily, and nobody sees it."""

from __future__ import annotations

import inspect
import pickle
import re
import subprocess
import sys
from typing import Any

import pytest

import gpucenters
import gpucenters.multiclass
import gpucenters.solvers
from gpucenters import _public
from gpucenters._models import MODELS, found


def test_each_public_name_is_imported_and_each_model_is_public() -> None:
    assert {model.class_name for model in MODELS} < {*gpucenters.__all__}
    imported = {name for name in vars(_public) if not re.fullmatch("__(?!version).*__", name)}
    assert {*gpucenters.__all__} == imported
    for name in imported:
        assert getattr(gpucenters, name) is getattr(_public, name)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.class_name)
def test_each_attribute_and_method_of_a_model_says_what_it_is(model: Any) -> None:
    for name, member in inspect.getmembers(found(model.kind)):
        if not name.startswith("_") and (callable(member) or isinstance(member, property)):
            said = inspect.getdoc(member)
            assert said, name
            assert said != inspect.getdoc(type(member)), name


def test_names_are_there_for_star_imports_dir_and_pickles() -> None:
    namespace: dict[str, object] = {}
    exec("from gpucenters import *", namespace)
    for name in gpucenters.__all__:
        assert namespace[name] is getattr(gpucenters, name)
    assert {*gpucenters.__all__, "solvers", "estimators"} <= set(dir(gpucenters))
    kind = gpucenters.L2CenterClassifier
    assert pickle.loads(pickle.dumps(kind)) is kind


@pytest.mark.parametrize(
    "module", [gpucenters, gpucenters.multiclass, gpucenters.solvers], ids=lambda m: m.__name__
)
def test_docstrings_have_an_entry_for_each_parameter_in_the_order_of_the_signature(
    module: Any,
) -> None:
    for name in module.__all__:
        documented = getattr(module, name)
        doc = inspect.getdoc(documented) if callable(documented) else None
        found = re.search(r"\nParameters\n-+\n(.+?)(\n\n|$)", doc or "", re.DOTALL)
        if found:
            entries = [line for line in found[1].split("\n") if line[0] != " "]
            names = [n.strip(" *") for e in entries for n in e.split(" : ")[0].split(",")]
            assert names == list(inspect.signature(documented).parameters), name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'gpucenters' has no attribute 'L3CenterClassifier'"):
        _ = gpucenters.L3CenterClassifier  # type: ignore[attr-defined]


def test_subpackages_need_no_import_of_their_own_and_help_loads_no_library() -> None:
    code = """
import sys
import gpucenters
from gpucenters.cli import main
codes = [main([]), main(["--help"]), main(["--version"]), main(["fit", "--help"])]
heavy = {"numpy", "scipy", "sklearn", "joblib", "matplotlib", "pandas", "cupy"}
found = heavy & {name.partition(".")[0] for name in sys.modules}
gpucenters.solvers.l2_centers
print(codes, found, file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == "[0, 0, 0, 0] set()\n"
    assert f"gpucenters {gpucenters.__version__}\n" in done.stdout
    assert "Classify with few features" not in done.stderr
