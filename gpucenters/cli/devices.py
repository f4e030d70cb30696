"""``gpucenters devices`` and ``demo``, which need no data."""

from __future__ import annotations

from typing import Annotated

import typer

import gpucenters

from .data import AsJson
from .output import console, show_json, show_table


def devices(json: AsJson = False) -> None:
    """List the devices of this machine, and why those that cannot be used cannot."""
    found = gpucenters.devices()
    if json:
        show_json([vars(device) for device in found])
    else:
        _show(found)


def demo(
    device: Annotated[
        str, typer.Option("--device", "-d", metavar="auto|cpu|cuda|cuda:N", help="Where to work.")
    ] = "auto",
) -> None:
    """Fit and select on real and on large synthetic data, with the time it takes."""
    from .demonstration import run_demo

    console().print(f"gpucenters {gpucenters.__version__}\n")
    _show(gpucenters.devices())
    run_demo(device)


def _show(found: list) -> None:
    rows = [[device.name, "yes" if device.usable else "no", device.description] for device in found]
    head = {"device": "left", "usable": "left", "what it is, or why it cannot be used": "left"}
    show_table("Devices of this machine", head, rows)
