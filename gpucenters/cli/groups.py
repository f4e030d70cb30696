"""Options that several commands share."""

from __future__ import annotations

import errno
import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, get_type_hints

import typer

from .output import say

INTERRUPTED = 130  # as shells count SIGINT
BROKEN_PIPE = 141  # and SIGPIPE
_NOT_WRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


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
    from ..arrays.devices import resolve_backend

    try:
        resolve_backend(name, None)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _drop_output() -> None:
    """Leave out what stdout still holds, which would fail again when the process ends."""
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
