"""Arguments that several benches share."""

from __future__ import annotations

import argparse
import os


def rounds(parser: argparse.ArgumentParser, default: int) -> None:
    """How often each row is timed."""
    parser.add_argument("--repeat", type=int, default=default, help="rounds, alternating")


def device_and_rounds(parser: argparse.ArgumentParser) -> None:
    """The device of the fits, too."""
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:N or auto")
    rounds(parser, 5)


def folder(parser: argparse.ArgumentParser) -> None:
    """Where the real data are."""
    default = os.environ.get("GPUCENTERS_DATA", "../shared/data")
    parser.add_argument("--data", default=default, help="folder of the data sets")
