"""The examples of the README and of the guide run, and print what their comments say."""

from __future__ import annotations

import contextlib
import gzip
import importlib
import io
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from anndata import AnnData
from conftest import HERE
from sklearn.utils.fixes import parse_version

from gpucenters._models import MODELS
from gpucenters.cli import main

README = HERE.parent / "README.md"
DOCS = HERE.parent / "docs"
PAGES = [README, DOCS / "index.md", *sorted(DOCS.glob("guide/*.md"))]
BLOCKS = {
    page: re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    for page in PAGES
}
#: A line of a shell.
COMMAND = re.compile(r"^(?:\$ )?gpucenters ((?:fit|predict|inspect|select|path) .*)$", re.MULTILINE)
DISPATCHES = parse_version(sklearn.__version__) >= parse_version("1.8")
#: What is printed, in a comment behind it.
PROMISE = re.compile(r"print\(.*\)\s+# ([\[(\d].*|True|False)$", re.MULTILINE)


def _examples() -> list[object]:
    """A block of the README stands alone; those of a page of the guide go on from each other."""
    alone = [pytest.param([block], id=f"README-{i}") for i, block in enumerate(BLOCKS[README])]
    guide = {page.stem: BLOCKS[page] for page in PAGES[1:] if BLOCKS[page]}
    return alone + [pytest.param(blocks, id=name) for name, blocks in guide.items()]


@pytest.mark.parametrize("blocks", _examples())
def test_an_example_prints_what_its_comments_say(blocks: list[str]) -> None:
    names: dict[str, object] = {}
    for block in blocks:
        if "array_api_dispatch" in block and not DISPATCHES:
            pytest.skip(
                "LogisticRegression takes arrays of other libraries from scikit-learn 1.8 on"
            )
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, "example", "exec"), names)
        # Of each number in the comment, two decimals are compared.
        said = _rounded(printed.getvalue()).splitlines()
        for promise in PROMISE.findall(block):
            assert _rounded(promise) in said


def _rounded(text: str) -> str:
    return re.sub(r"(\d\.\d\d)\d+", r"\1", text)


def test_dispatch_is_switched_on_as_scikit_learn_wants_it() -> None:
    # conftest.py sets the variable for all tests, so that running the block does not show it.
    dispatching = [b for blocks in BLOCKS.values() for b in blocks if "array_api_dispatch" in b]
    assert dispatching
    for block in dispatching:
        assert block.index('os.environ["SCIPY_ARRAY_API"] = "1"') < block.index("import cupy")


def test_the_readme_has_examples() -> None:
    assert len(BLOCKS[README]) >= 3


@pytest.mark.parametrize("page", [README, DOCS / "guide" / "command-line.md"], ids=lambda p: p.stem)
@pytest.mark.filterwarnings("ignore:k")  # there are fewer
def test_the_commands_of_the_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"good\ta fine film {i}\nbad\ta dull story {i}\n" for i in range(20)]
    with gzip.open("reviews.tsv.gz", "wt") as file:
        file.writelines(lines)
    Path("new.txt").write_text("a fine story\n")
    rng = np.random.default_rng(0)
    X, labels = rng.poisson(3, (40, 12)), np.asarray(["a", "b"])[np.arange(40) % 2]
    frame = pd.DataFrame(X).add_prefix("f").assign(**{"class": labels})
    frame.rename_axis("sample").to_csv("samples.csv")
    frame[[f"f{i}" for i in reversed(range(12))]].rename_axis("sample").to_csv("new.csv")
    (frame["f0"] / 2).to_frame().assign(**{"class": labels}).to_csv(
        "german.csv", sep=";", decimal=",", index=False
    )
    obs = pd.DataFrame({"type": labels}, index=[f"cell {i}" for i in range(40)])
    AnnData(X.astype(float), obs=obs, layers={"counts": X}).write_h5ad("cells.h5ad")
    commands = COMMAND.findall(page.read_text(encoding="utf-8"))
    assert len(commands) >= 4
    for command in commands:
        assert main(shlex.split(command)) == 0, command


@pytest.mark.parametrize(
    "package", ["", ".anndata", ".dask", ".multiclass", ".readers", ".statistics"]
)
def test_the_reference_has_each_public_name(package: str) -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in DOCS.glob("reference/*.md"))
    lists = re.findall(r"currentmodule:: gpucenters([.a-z]*)\n(.*?)```", pages, re.DOTALL)
    listed = {(of, name) for of, lines in lists for name in re.findall(r"^   (\w+)$", lines, re.M)}
    listed |= {("", model.class_name) for model in MODELS}  # by docs/conf.py
    names = {*importlib.import_module(f"gpucenters{package}").__all__} - {"__version__"}
    # A name of two packages has one page.
    assert [name for name in names if not {(package, name), ("", name)} & listed] == []
