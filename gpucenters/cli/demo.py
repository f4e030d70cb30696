"""``gpucenters demo``."""

from __future__ import annotations

from typing import Annotated

import typer


def demo(
    device: Annotated[
        str, typer.Option("--device", "-d", metavar="auto|cpu|cuda|cuda:N", help="Where to work.")
    ] = "auto",
) -> None:
    """Fit and select on real and on large synthetic data, with the time it takes."""
    from .demonstration import run_demo

    run_demo(device)
