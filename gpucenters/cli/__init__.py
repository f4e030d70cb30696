"""The command line."""

from __future__ import annotations

import codecs
import io
import os
import re
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``gpucenters`` with the given arguments, by default those of the process.

    Parameters
    ----------
    arguments : sequence of str, optional

    Returns
    -------
    int
        The exit status: 0, 1 where the work failed, 2 for wrong usage, 130 after an interrupt,
        141 where what reads the output has ended.
    """
    _prepare_streams()
    try:
        from .app import run, stop_on_sigterm

        if arguments is not None:
            return run(arguments)
        stop_on_sigterm()
        return run(sys.argv[1:])
    except ModuleNotFoundError as error:
        missing = str(error.name).partition(".")[0]
        if missing not in ("typer", "rich"):
            raise
        print(
            f"gpucenters: the command line needs {missing}, which is not installed: "
            "pip install 'gpucenters[cli]'",
            file=sys.stderr,
        )
        return 2
    except KeyboardInterrupt:  # while modules are imported
        print("interrupted", file=sys.stderr)
        return 130


def _prepare_streams() -> None:
    """Let every label be printed, and streams that are closed fail as files do.

    What a terminal cannot show is printed as an escape. Without a stream of its own, the first file
    that is opened would get the descriptor of a closed one.
    """
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115
    if sys.stdout is None:  # what is written there is lost, and that is an error
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_ESCAPED)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """What a stream cannot encode: # for the full blocks of bars, nothing for parts of them."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].replace("█", "#")
    text = re.sub("[▉-▏]", "", text)
    return text.encode("ascii", "backslashreplace").decode(), error.end


_ESCAPED = "gpucenters.escaped"
codecs.register_error(_ESCAPED, _escaped)
