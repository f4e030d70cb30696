"""The commands, and how each of them ends."""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from types import SimpleNamespace
from typing import Annotated, Any, NoReturn

import typer

import gpucenters

from .check import check
from .fit import fit
from .inspect import inspect
from .options import AsJson, Device, check_device, with_groups
from .output import console, say, show_json, show_table
from .path import path
from .permute import permute
from .predict import predict, select

FAILED = 1
INTERRUPTED = 130  # as shells count SIGINT
BROKEN_PIPE = 141  # and SIGPIPE
_NOT_WRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
_FAILURES = (ValueError, TypeError, OSError, MemoryError, RuntimeError, ImportError)

app = typer.Typer(
    help="Exact sparse center classifiers: classify with few features, and select features.",
    epilog="Results go to stdout, messages to stderr. Exit status: 0, 1 (failed), 2 (usage), 130 "
    "(interrupted) or 141 (nothing reads the output any more).",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def devices(json: AsJson = False) -> None:
    """List the devices of this machine, and why those that cannot be used cannot."""
    found = gpucenters.devices()
    if json:
        show_json([vars(device) for device in found])
    else:
        _show(found)


def demo(device: Device = "auto") -> None:
    """Fit and select on real and on large synthetic data, with the time it takes."""
    from .demonstration import run_demo

    console().print(f"gpucenters {gpucenters.__version__}\n")
    _show(gpucenters.devices())
    run_demo(device)


def _show(found: list) -> None:
    rows = [[device.name, "yes" if device.usable else "no", device.description] for device in found]
    head = {"device": "left", "usable": "left", "what it is, or why it cannot be used": "left"}
    show_table("Devices of this machine", head, rows)


def _ending(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an end, and an exit status, that Typer does not give."""

    @wraps(command)
    def run(**options: Any) -> None:
        try:
            if "device" in options:
                check_device(options["device"])
            command(**options)
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

    return run


def _drop_output() -> None:
    """Leave out what stdout still holds, which would fail again when the process ends."""
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


for command in (fit, predict, select, path, permute, inspect, devices, demo, check):
    app.command()(_ending(with_groups(command)))


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gpucenters {gpucenters.__version__}")
        raise typer.Exit


@app.callback()
def _main(
    context: typer.Context,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="Show where in the code an error came from.")
    ] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    context.obj.traceback = traceback


def run(arguments: Sequence[str]) -> int:
    """Run a command; returns the exit status.

    Errors of the library become one line on stderr, and so do its warnings.
    """
    settings = SimpleNamespace(traceback=False)

    def show_warning(message: Any, *_: Any) -> None:
        say(f"warning: {_sentence(message, arguments)}", "yellow")

    with warnings.catch_warnings():
        warnings.showwarning = show_warning  # type: ignore[assignment]
        try:
            app(list(arguments) or ["--help"], prog_name="gpucenters", obj=settings)
        except SystemExit as stop:
            return stop.code if isinstance(stop.code, int) else 0
        except _FAILURES as error:
            if settings.traceback:
                raise
            say(f"error: {_sentence(error, arguments)}", "red")
            return FAILED
    return 0


def _sentence(error: BaseException, arguments: Sequence[str]) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    # The name of a file stays as it is, whatever it looks like.
    given = {part for each in arguments for part in (each, each.partition("=")[2]) if "=" in part}
    kept = "|".join(re.escape(part) for part in given if not part.startswith("-")) or "(?!)"
    parts = re.split(f"({kept})", str(error))
    parts[::2] = map(_with_flags, parts[::2])
    return "".join(parts) or type(error).__name__


def _with_flags(text: str) -> str:
    """A sentence of the library with options of the commands for its keyword arguments."""
    commands: Any = typer.main.get_command(app)
    every = [parameter for command in commands.commands.values() for parameter in command.params]
    every = [parameter for parameter in every if parameter.opts[0].startswith("-")]
    flags = {p.name: max(p.opts, key=len) for p in every}
    others = {p.name: max(p.secondary_opts, key=len) for p in every if p.secondary_opts}

    def flag(found: re.Match[str]) -> str:
        name, value = found.groups()
        if value == "False" and name in others:
            return others[name]
        if value in (None, "True", "..."):
            return flags[name]
        # What a shell would read in another way keeps its quotes.
        return f"{flags[name]} " + (
            value.strip("'") if re.fullmatch(r"'?[\w.-]+'?", value) else value
        )

    value = r"'[^']*'|\[[^]]*\]|\.\.\.|[-\w]+(?:\.\w+)*"
    return re.sub(rf"(?<![\w./-])({'|'.join(flags)}) ?= ?({value})?", flag, text)


def stop_on_sigterm() -> None:
    """Let SIGTERM, as of ``docker stop``, end the process as an interrupt does."""

    def stop(*_: Any) -> NoReturn:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
