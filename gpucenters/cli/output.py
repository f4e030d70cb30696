"""What commands print: results on stdout, messages on stderr; and how options are grouped.

Strings from data (feature names, class labels, texts of errors) are printed with markup off and
with their control characters escaped, so that no file can send codes to the terminal.
"""

from __future__ import annotations

import errno
import inspect
import io
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import fields, is_dataclass
from typing import Any, get_type_hints

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

_WIDTH = 100  # of tables that do not go to a terminal
_PARTS = 10  # of a list that are shown
INTERRUPTED = 130  # as shells count SIGINT
BROKEN_PIPE = 141  # and SIGPIPE
_NOT_WRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


def safe(value: Any) -> str:
    r"""The text of a value, with what does not print escaped as in ``repr``.

    Parameters
    ----------
    value : object

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
    """Print a table.

    Parameters
    ----------
    title : str
    head : dict of str
        The justification of each column, by its name.
    rows : list of lists
        The cells, of any type.
    on_stderr : bool
        Where stdout holds something else.
    """
    table = Table(title=Text(safe(title), "bold"), title_justify="left")
    for name, justify in head.items():
        table.add_column(Text(safe(name)), justify=justify, overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*(Text(safe(cell)) for cell in row))
    console(on_stderr=on_stderr).print(table)


def show_facts(facts: dict[str, Any], *, on_stderr: bool = False) -> None:
    """Print names and values, one pair a line.

    Parameters
    ----------
    facts : dict
    on_stderr : bool
        Where stdout holds something else.
    """
    table = Table.grid(padding=(0, 2))
    for name, value in facts.items():
        table.add_row(Text(safe(name.replace("_", " ")), "bold"), Text(shown(value)))
    console(on_stderr=on_stderr).print(table)


def shown(value: Any) -> str:
    """A value as people read it: of a list or a dict the first parts.

    Parameters
    ----------
    value : object
    """
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
    """The value as JSON in ASCII, where a number that is not finite is null.

    Parameters
    ----------
    value : object
        Of dicts, sequences, arrays, numbers, strings and None.
    indent : int, optional
        As of `json.dumps`.
    """
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

    @contextmanager
    def __call__(self, name: str, *, spinner: bool = True) -> Iterator[None]:
        """The block as a stage.

        Parameters
        ----------
        name : str
        spinner : bool
            Not where the stage shows its progress itself.
        """
        start = time.perf_counter()
        with messages().status(name) if spinner else nullcontext():
            yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start

    def __str__(self) -> str:
        total = sum(self.seconds.values())
        parts = [
            f"{name} {seconds:.2f} s ({seconds / total:.0%})"
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


# Options that several commands share.


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer is to see it, with the options of its groups one by one.

    Parameters
    ----------
    command : callable
        A parameter whose type is a dataclass stands for an option for each field, and gets an
        object of it. A field whose metadata have types by name stands for as many options, and
        is a dict of those that are given.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {n: kind for n, kind in hints.items() if is_dataclass(kind)}
    parameters = []
    for given in inspect.signature(command).parameters.values():
        if given.name in groups:
            found = _options(groups[given.name])
        else:
            found = [(given.name, given.default, hints[given.name])]
        parameters += [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind
            )
            for name, default, kind in found
        ]

    def run(**given: Any) -> None:
        device = given.get("device")
        made = {name: _made(kind, given) for name, kind in groups.items()}
        try:
            if device is not None:
                check_device(device)
            command(**given, **made)
            sys.stdout.flush()
        except BrokenPipeError:
            _drop_output()
            raise typer.Exit(BROKEN_PIPE) from None
        except OSError as error:
            if error.filename is None and error.errno in _NOT_WRITTEN:
                _drop_output()
                error.filename = "standard output"
            raise
        except KeyboardInterrupt:
            say("interrupted")
            raise typer.Exit(INTERRUPTED) from None

    run.__name__ = command.__name__
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    run.__doc__ = "\n\n".join(" ".join(text.split()) for text in paragraphs)
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def _options(group: Any) -> list[tuple[str, Any, Any]]:
    """(name, default, type) of each option of a group."""
    types = get_type_hints(group, include_extras=True)
    found: list[tuple[str, Any, Any]] = []
    for each in fields(group):
        own = [(each.name, each.default, types[each.name])]
        found += [(name, None, kind) for name, kind in each.metadata.items()] or own
    return found


def _made(group: Any, given: dict[str, Any]) -> Any:
    """A group of the options that are given, which are taken out of them."""
    values: dict[str, Any] = {}
    for each in fields(group):
        if each.metadata:
            several = {name: given.pop(name) for name in each.metadata}
            values[each.name] = {name: of for name, of in several.items() if of is not None}
        else:
            values[each.name] = given.pop(each.name)
    return group(**values)


def part_of_samples(value: float | None) -> float | None:
    """A share of samples that leaves some on both sides, as the callback of an option."""
    if value is not None and not 0 < value < 1:
        raise typer.BadParameter(
            f"{value:g} leaves no samples on one side: use 0.2, as an example."
        )
    return value


def check_device(name: str) -> None:
    """Raise for a device that is unknown, or cannot be used, before any work."""
    from ..arrays.backend import resolve_backend

    try:
        resolve_backend(name, None)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _drop_output() -> None:
    """Leave out what stdout still holds, which would fail again when the process ends."""
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
