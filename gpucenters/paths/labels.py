"""Names as they stand in a picture: whole, in a font that has them, and never as mathematics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any
from unicodedata import east_asian_width

from ..solvers.selection import warn

COLUMN = 0.08  # inches of a letter
LINE = 0.24  # inches of a line
_MOST = 40  # columns of a name
_LAST_RESORT = "Last Resort High-Efficiency"  # Matplotlib's: boxes, without a warning for each


def columns(text: str) -> int:
    """How many letters wide a text is; a Chinese character is as wide as two."""
    return sum(1 + (east_asian_width(letter) in "WF") for letter in text)


def longest(texts: Iterable[str]) -> int:
    """The columns of the longest text."""
    return max(map(columns, texts), default=0)


def short(name: Any) -> str:
    """A name on one line; of a long one, its beginning and its end."""
    text = " ".join(str(name).split())
    if columns(text) <= _MOST:
        return text
    half = _MOST // 2 * len(text) // columns(text)
    return f"{text[:half]}…{text[-half:]}"


def literal(texts: Iterable[str]) -> dict[str, Any]:
    """Properties of Matplotlib's texts by which names appear letter by letter.

    Where the chosen font lacks letters, those of another installed font are taken; where no font
    has them, a warning says what to install.
    """
    from matplotlib import font_manager, get_cachedir, rcParams

    style: dict[str, Any] = {"parse_math": False, "usetex": False}
    families = list(rcParams["font.family"])
    missing = {ord(x) for text in texts for x in text if not x.isspace()}
    for family in families:
        path = font_manager.findfont(font_manager.FontProperties(family=[family]))
        missing -= _letters(str(path))
    if not missing:
        return style
    fonts = {f.name: f.fname for f in font_manager.fontManager.ttflist}
    last = [_LAST_RESORT] * (fonts.pop(_LAST_RESORT, None) is not None)
    while missing:
        best = max(fonts, key=lambda name: len(missing & _letters(fonts[name])))
        if not missing & _letters(fonts[best]):
            letters = "".join(map(chr, sorted(missing)[:10]))
            warn(
                f"no installed font has the letters {letters}: they are drawn as boxes. Install "
                "one that has them, as Noto (fonts-noto-cjk of Debian for Chinese, Japanese and "
                f"Korean), and remove Matplotlib's list of fonts, {get_cachedir()}/fontlist*.json."
            )
            break
        families.append(best)
        missing -= _letters(fonts[best])
    return style | {"fontfamily": families + last}


@cache
def _letters(path: str) -> frozenset[int]:
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(path).get_charmap())


def legend_shape(names: Sequence[str], height: float) -> tuple[int, float]:
    """(columns, width) of a legend of names beside axes of that height, in inches."""
    n = math.ceil(len(names) / max(4, int(height / LINE) - 1))
    return n, n * (0.5 + COLUMN * longest(names))


def legend(
    ax: Any,
    handles: list[Any],
    names: list[str],
    style: dict[str, Any],
    room: float,
    **options: Any,
) -> None:
    """A legend of names: beside the axes where it is within ``room`` of their width, else on them.

    Only figures with a layout engine make room beside axes.
    """
    size = ax.bbox.size / ax.figure.dpi
    options["ncols"], width = legend_shape(names, size[1])
    if ax.figure.get_layout_engine() is not None and width <= room * size[0]:
        options |= {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
    # (Matplotlib leaves out names that begin with "_", if it is told them here.)
    drawn = ax.legend(handles, [""] * len(names), **options)
    for text, name in zip(drawn.get_texts(), names, strict=True):
        text.set(text=name, **style)
