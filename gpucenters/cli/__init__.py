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
        The exit status: 0, 1 where the work failed, 2 for wrong usage, 130 after an interrupt.
    """
    try:
        from .app import run
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        print(
            f"gpucenters: the command line needs {error.name}, which is not installed: "
            "pip install 'gpucenters[cli]'",
            file=sys.stderr,
        )
        return 2
    return run(sys.argv[1:] if arguments is None else arguments)
