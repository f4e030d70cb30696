"""The versions in the image are those that pyproject.toml admits."""

from __future__ import annotations

import re
import tomllib

import pytest
from conftest import HERE
from packaging.requirements import Requirement

TOP = HERE.parent
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
WANTED = {
    "build": PROJECT["build-system"]["requires"],
    "cpu": [
        *PROJECT["project"]["dependencies"],
        *(of for extra in ("cli", "plot", "tables", "anndata") for of in EXTRAS[extra]),
    ],
    "cuda12": EXTRAS["cuda12"],
    "cuda13": EXTRAS["cuda13"],
}


def _pins(name: str) -> dict[str, str]:
    text = (TOP / "docker" / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    return dict(re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE))


@pytest.mark.parametrize("name", WANTED)
def test_each_requirement_of_the_image_is_pinned_to_a_version_it_admits(name: str) -> None:
    pins = _pins(name)
    for requirement in map(Requirement, WANTED[name]):
        assert requirement.name in pins, f"{requirement}: run `make locks`"
        assert requirement.specifier.contains(pins[requirement.name]), requirement


def test_cuda_brings_no_second_version_of_a_package() -> None:
    assert not _pins("cpu").keys() & (_pins("cuda12").keys() | _pins("cuda13").keys())


def test_the_python_of_the_image_is_one_that_the_locks_are_for() -> None:
    python = re.search(r"python:(\d+\.\d+)-", (TOP / "docker" / "Dockerfile").read_text())
    assert python
    assert f"--python-version {python[1]} " in (TOP / "Makefile").read_text()
