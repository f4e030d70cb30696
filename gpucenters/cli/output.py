"""What commands print: results on stdout, messages on stderr.

Strings from data (feature names, class labels, texts of errors) are printed with markup off and
with their control characters escaped, so that no file can send codes to the terminal.
"""

from __future__ import annotations

import io
import json
import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

_WIDTH = 100  # of tables that do not go to a terminal
_PARTS = 10  # of a list that are shown


def safe(value: Any) -> str:
    r"""The text of a value, with what does not print escaped as in ``repr``.

    Examples
    --------
    >>> from gpucenters.cli.output import safe
    >>> print(safe("na\u00efve\x1b[2J\n"))
    naïve\x1b[2J\n
    """
    text = str(value)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Raise the error, in whose handler this is called, for the command to end by."""
        raise


def console(*, on_stderr: bool = False) -> Console:
    """The console of results."""
    width = None if (sys.stderr if on_stderr else sys.stdout).isatty() else _WIDTH
    return _Console(stderr=on_stderr, width=width, markup=False, highlight=False, emoji=False)


def messages() -> Console:
    """The console of messages."""
    return _Console(stderr=True, soft_wrap=True, markup=False, highlight=False, emoji=False)


def say(message: Any, style: str = "") -> None:
    """Print one line on stderr."""
    messages().print(Text(safe(" ".join(str(message).split())), style))


def show_table(
    title: str, head: dict[str, str], rows: list[list[Any]], *, on_stderr: bool = False
) -> None:
    """Print a table; the head has the justification of each column, by its name."""
    table = Table(title=Text(safe(title), "bold"), title_justify="left")
    for name, justify in head.items():
        table.add_column(Text(safe(name)), justify=justify, overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*(Text(safe(cell)) for cell in row))
    console(on_stderr=on_stderr).print(table)


def show_facts(facts: dict[str, Any], *, on_stderr: bool = False) -> None:
    """Print names and values, one pair a line."""
    table = Table.grid(padding=(0, 2))
    for name, value in facts.items():
        table.add_row(Text(safe(name.replace("_", " ")), "bold"), Text(shown(value)))
    console(on_stderr=on_stderr).print(table)


def shown(value: Any) -> str:
    """A value as people read it: of a list or a dict the first parts."""
    if isinstance(value, float):
        return f"{value:,.6g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, dict):
        value = [f"{safe(name)}: {shown(each)}" for name, each in value.items()]
    if isinstance(value, list):
        more = f" and {len(value) - _PARTS:,} more" if len(value) > _PARTS else ""
        return ", ".join(map(safe, value[:_PARTS])) + more
    return safe(value)


def show_json(value: Any) -> None:
    """Print a value as JSON on stdout, on one line."""
    print(as_json(value))


def as_json(value: Any, indent: int | None = None) -> str:
    """The value as JSON in ASCII, where a number that is not finite is null."""
    return json.dumps(_plain(value), allow_nan=False, indent=indent)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if hasattr(value, "tolist"):  # arrays and scalars of NumPy
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | None) else str(value)


class Stages:
    """The seconds that each stage takes; a terminal shows which one is under way."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._shown: dict[str, str] = {}

    @contextmanager
    def __call__(self, name: str, *, by: str = "", spinner: bool = True) -> Iterator[None]:
        """The block as a stage, which people see with what does it.

        It has no spinner where it shows its progress itself.
        """
        start = time.perf_counter()
        self._shown[name] = f"{name} by {by}" if by else name
        with messages().status(self._shown[name]) if spinner else nullcontext():
            yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start

    def __str__(self) -> str:
        total = sum(self.seconds.values())
        parts = [
            f"{self._shown[name]} {seconds:.2f} s ({seconds / total:.0%})"
            for name, seconds in self.seconds.items()
        ]
        return ", ".join(parts)


@contextmanager
def progress_of(model: Any) -> Iterator[None]:
    """Progress bars of a model's own, on a terminal, and nothing else of what it prints."""
    model.set_params(verbose=sys.stderr.isatty())
    try:
        with redirect_stdout(io.StringIO()):
            yield
    finally:
        model.set_params(verbose=False)
