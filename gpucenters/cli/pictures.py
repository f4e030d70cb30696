"""Pictures that commands draw."""

from __future__ import annotations

from typing import Any

import typer


def figure_of(plot: str) -> Any:
    """Where to draw; raises before the work where no picture can be drawn.

    Parameters
    ----------
    plot : str
        The name of the picture.

    Returns
    -------
    matplotlib Figure
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise typer.BadParameter(
            "--plot needs matplotlib: pip install 'gpucenters[plot]'."
        ) from None
    figure = Figure(dpi=150, layout="constrained")
    if _kind(plot) not in figure.canvas.get_supported_filetypes():
        raise typer.BadParameter(f"{plot!r} is no name of a picture: use .png, .svg or .pdf.")
    return figure


def write_figure(figure: Any, plot: str) -> None:
    """Write a picture, whole or not at all."""
    from .writers import opened

    with opened(plot) as file:
        figure.savefig(file, format=_kind(plot))


def _kind(plot: str) -> str:
    return plot.rpartition(".")[2].lower()
