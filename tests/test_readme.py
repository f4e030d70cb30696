"""The examples of the README run and print what their comments say."""

from __future__ import annotations

import contextlib
import io
import re

import pytest
import sklearn
from conftest import HERE
from sklearn.utils.fixes import parse_version

README = HERE.parent / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_readme_example_prints_what_its_comments_say(block: str) -> None:
    if "array_api_dispatch" in block and parse_version(sklearn.__version__) < parse_version("1.8"):
        pytest.skip("LogisticRegression takes arrays of other libraries from scikit-learn 1.8 on")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block, "README.md", "exec"), {})
    # Each value in the comment of a print is printed, with two decimals.
    said = re.sub(r"(\d\.\d\d)\d+", r"\1", printed.getvalue()).splitlines()
    for promise in re.findall(r"print\(.*\)\s+# ([\[\d].*)$", block, re.MULTILINE):
        assert promise in said


def test_dispatch_is_switched_on_as_scikit_learn_wants_it() -> None:
    # conftest.py sets the variable for all tests, so that running the block does not show it.
    dispatching = [block for block in BLOCKS if "array_api_dispatch" in block]
    assert dispatching
    for block in dispatching:
        assert block.index('os.environ["SCIPY_ARRAY_API"] = "1"') < block.index("import cupy")


def test_the_readme_has_examples() -> None:
    assert len(BLOCKS) >= 3
