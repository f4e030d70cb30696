"""Sphinx: the reference from the docstrings, and the guide in Markdown (``make docs``)."""

from __future__ import annotations

from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

import latex2mathml.converter
from docutils.nodes import SkipNode
from sphinx.util.logging import getLogger

logger = getLogger(__name__)

project = "gpucenters"
author = "The gpucenters developers"
release = metadata.version(project)

extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "myst_parser"]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
myst_enable_extensions = ["dollarmath"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 3

# A name between single backticks is a link, and must be found: here, as no network is needed.
default_role = "py:obj"
nitpicky = True
nitpick_ignore_regex = [
    ("py:obj", r"sklearn\..*"),
    ("py:obj", r".*[a-z]_"),  # fitted attributes, which stand in the lists of the classes
]

# Types stand in the docstrings.
autodoc_typehints = "none"
numpydoc_show_class_members = False

smartquotes = False  # they make one dash of the two of an option
html_theme = "furo"
html_show_copyright = False
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_title = f"gpucenters {release}"


def _write_command_line(app: Any, config: Any) -> None:
    """The page of the commands and their options, from what ``--help`` shows."""
    import typer
    from typer.cli import get_docs_for_click

    from gpucenters.cli.app import app as commands

    command = typer.main.get_command(commands)
    text = get_docs_for_click(
        obj=command, ctx=typer.Context(command), name="gpucenters", title="Command line"
    )
    _write_page(app, "command-line", text)


def _write_lists(app: Any, config: Any) -> None:
    """The pages of all models and of all solvers."""
    import gpucenters
    from gpucenters._models import MODELS

    models = [model.class_name for model in MODELS]
    _write_page(app, "models", "# Models\n" + _list("gpucenters", models))
    text = (
        "# Solvers\n\nArrays and class codes in, centers out; scikit-learn is not needed. "
        "[The formulas](../formulas.md) are on a page of their own.\n"
    )
    solvers = [name for name in gpucenters.solvers.__all__ if name not in gpucenters.__all__]
    _write_page(app, "solvers", text + _list("gpucenters.solvers", solvers))


def _list(module: str, names: list[str]) -> str:
    lines = "\n   ".join(names)
    return f"""
```{{eval-rst}}
.. currentmodule:: {module}
.. autosummary::
   :toctree: .

   {lines}
```
"""


def _write_page(app: Any, name: str, text: str) -> None:
    folder = Path(app.srcdir, "reference", "generated")
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.md").write_text(text, encoding="utf-8")


def _is_left_out(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Whether a member of a class is inherited from scikit-learn, or the default of a field."""
    module = getattr(obj, "__module__", None) or ""
    is_default = not callable(obj) and not isinstance(obj, property | cached_property)
    return True if module.split(".")[0] == "sklearn" or is_default else None


def _write_math(writer: Any, node: Any) -> None:
    """A formula as MathML, which browsers show without a script from elsewhere."""
    # The converter has another name for each of these.
    tex = node.astext().replace("{aligned}", "{split}").replace(r"\arg", r"\operatorname{arg}")
    inline = node.tagname == "math"
    found = latex2mathml.converter.convert(tex, display="inline" if inline else "block")
    if "<mi>\\" in found:
        logger.warning("a formula has a command that is not known: %s", tex, location=node)
    writer.body.append(found if inline else f'<div class="formula">{found}</div>')
    raise SkipNode


def setup(app: Any) -> None:
    """Connect what this project adds to Sphinx."""
    app.connect("config-inited", _write_command_line)
    app.connect("config-inited", _write_lists)
    app.connect("autodoc-skip-member", _is_left_out)
    app.add_html_math_renderer("mathml", (_write_math, None), (_write_math, None))
