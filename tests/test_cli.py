"""The command line: demo, version and help."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import gpucenters


def _run(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "gpucenters", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_demo_prints_both_data_sets() -> None:
    done = _run("demo", "--device", "cpu")
    assert done.returncode == 0, done.stderr
    for text in ("Breast cancer", "worst concave points", "200,000 documents x 100,000 words"):
        assert text in done.stdout
    # The accuracy of all informative words, which the model reaches with 500 of them.
    assert "right in 0.838" in done.stdout.replace("\n", " ")
    assert re.search(r"500\s+│ 0\.\d+\s+│ 0\.838\s+│ 500 ", done.stdout)
    assert "Traceback" not in done.stderr


def test_demo_on_an_unknown_device_says_so() -> None:
    done = _run("demo", "--device", "abacus")
    assert done.returncode == 1
    assert "unknown device 'abacus'" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (("--version",), f"gpucenters {gpucenters.__version__}\n"),
        (("--help",), "fit and select on real and on large synthetic data"),
        ((), "fit and select on real and on large synthetic data"),
        (("demo", "--help"), "cpu, cuda, cuda:N or auto"),
    ],
    ids=["version", "help", "no command", "help of the demo"],
)
def test_version_and_help_are_printed(arguments: tuple[str, ...], printed: str) -> None:
    done = _run(*arguments)
    assert done.returncode == 0
    assert printed in done.stdout
