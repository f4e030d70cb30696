"""The command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``gpucenters`` with the given arguments; returns the exit status."""
    from gpucenters import __version__

    parser = argparse.ArgumentParser(
        prog="gpucenters", description="Exact sparse l1 and l2 center classifiers."
    )
    parser.add_argument("--version", action="version", version=f"gpucenters {__version__}")
    commands = parser.add_subparsers(dest="command")
    demo = commands.add_parser("demo", help="fit and select on real and on large synthetic data")
    demo.add_argument(
        "--device", default="auto", help="cpu, cuda, cuda:N or auto (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 0
    try:
        from .demo import run_demo
    except ModuleNotFoundError as error:
        if error.name != "rich":
            raise
        parser.error("the demo prints with rich: pip install 'gpucenters[cli]'")
    return run_demo(options.device)
