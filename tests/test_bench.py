"""The bench runs: what it prints and writes, not how fast anything is."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import HERE

ROOT = HERE.parent


def _bench(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "bench", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_fit_prints_a_table_and_writes_json(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    printed = _bench("fit", "genes", "--repeat", "1", "--labels", "str", "--json", str(path))
    assert "NearestCentroid(manhattan).fit" in printed
    written = json.loads(path.read_text())
    assert written["shapes"]["genes"]["l1 fit"]["median"] > 0
    assert written["machine"]["versions"]["numpy"] == np.__version__


def test_the_shapes_are_as_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    from bench import shapes

    X = shapes.zipf_text(50, 1000, 12, 1.07)
    assert X.shape == (50, 1000) and X.dtype == np.float32
    assert X.sum() == 600 and X.has_canonical_format
    assert shapes.cells(30, 40).shape == (30, 40)
    assert shapes.normal(3, 4).dtype == np.float32
    for kind, values in (("int", {0, 1}), ("str", {"neg", "pos"}), ("object", {"neg", "pos"})):
        assert set(shapes.labels(100, kind).tolist()) == values


def test_a_full_covariance_beside_its_peers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    from bench import mahalanobis, shapes

    small = {
        "dense": lambda: shapes.normal(60, 4),
        "text": lambda: shapes.zipf_text(60, 9, 3, 1.0),
    }
    monkeypatch.setattr(mahalanobis, "SHAPES", small)
    path = tmp_path / "figures.json"
    mahalanobis.run(argparse.Namespace(device="cpu", repeat=1, json=str(path)))
    assert "LinearDiscriminantAnalysis(lsqr)" in capsys.readouterr().out
    found = json.loads(path.read_text())["shapes"]
    assert all(row["median"] > 0 for rows in found.values() for row in rows.values())
