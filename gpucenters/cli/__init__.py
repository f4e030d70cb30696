"""The command line."""

from __future__ import annotations

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
    try:
        from .app import run, stop_on_sigterm
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
    if arguments is not None:
        return run(arguments)
    stop_on_sigterm()
    return run(sys.argv[1:])
