"""Drawing of curves, and tables of them for notebooks and terminals."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple
from unicodedata import east_asian_width

import numpy as np

from ..solvers.selection import warn

COLUMN = 0.08  # inches of a letter
LINE = 0.24  # inches of a line
_MOST = 40  # columns of a name
_LAST_RESORT = "Last Resort High-Efficiency"  # Matplotlib's: boxes, without a warning for each
_BAND = "_band"  # the label of the bands
_MARKERS = "osv^Dp*"
_PRESSED = 100  # the width of all centers over that of a feature which is pressed to a point
_DECADES = 3  # at most on each side of zero
_MOST_INSIDE = 10  # entries of a legend on the axes
_NAMELESS = re.compile(r"_child\d+|_nolegend_|")


# Names as they stand in a picture: whole, in a font that has them, and never as mathematics.
_WIDTH = 16  # of the longest bar
_ROWS = 24  # of a table at most
_EIGHTHS = " ▏▎▍▌▋▊▉"


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


class Artists(NamedTuple):
    """What a path is drawn with: Matplotlib's artists."""

    line: Any
    band: Any
    best: Any
    best_1se: Any


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "pictures need matplotlib: install it, or gpucenters with the extra 'plot'."
        ) from error
    return pyplot


def axes(ax: Any, names: Sequence[str] = (), beside: Sequence[str] = ()) -> Any:
    """The given axes, or new ones with room for rows of these names, and for a legend of others."""
    if ax is not None:
        return ax
    pyplot = _pyplot()
    width, height = pyplot.rcParams["figure.figsize"]
    height = max(height, 1 + LINE * len(names))
    width += COLUMN * max(0, longest(names) - 12)
    width += legend_shape(beside, 0.77 * height)[1]
    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def panels(n: int) -> Any:
    """New axes below each other, one for each of several scores."""
    pyplot = _pyplot()
    width, height = pyplot.rcParams["figure.figsize"]
    return pyplot.subplots(n, figsize=(width, height * (n + 1) / 2), layout="constrained")[1]


def numbers_of_features(ax: Any) -> None:
    """A log axis with plain numbers, also between the powers of ten where there is room."""
    from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter

    ax.set_xscale("log")
    low, high = ax.get_xlim()
    decades = np.log10(high / low)
    subs: Sequence[int] = (1, 2, 3, 4, 6, 8)
    for room, fewer in ((0.9, (1, 2, 5)), (3, (1, 3)), (5, (1,))):
        subs = fewer if decades > room else subs
    ax.xaxis.set_major_locator(LogLocator(subs=subs, numticks=50))
    ax.xaxis.set_major_formatter(EngFormatter(sep=""))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel("number of features k")


def draw_path(path: Any, ax: Any, *, scoring: str | None, name: str | None, **line: Any) -> Artists:
    """Mean scores on a log axis, a band of one standard deviation, and the choices of k."""
    ax = axes(ax)
    scoring = path.scorings[0] if scoring is None else scoring
    values = path.scores_of(scoring)
    mean, std = values.mean(axis=1), values.std(axis=1)
    (drawn,) = ax.plot(path.ks, mean, **({"label": name or path.estimator or None} | line))
    color, band = drawn.get_color(), None
    if path.n_folds > 1:
        low, high = mean - std, mean + std
        if len(path.ks) == 1:
            band = ax.vlines(path.ks, low, high, color=color, alpha=0.2, linewidth=8)
        else:
            band = ax.fill_between(path.ks, low, high, color=color, alpha=0.2, linewidth=0)
        band.set_label(_BAND)
    marks: list[Any] = []
    for rule, marker, size, face in (
        ("best", "o", 8, color),
        ("one-standard-error", "D", 5, "white"),
    ):
        k = path.choose(rule, scoring)
        height = mean[int(np.searchsorted(path.ks, k))]
        style: dict[str, Any] = {"marker": marker, "markersize": size, "color": color}
        style["markerfacecolor"] = face
        marks += ax.plot([k], [height], linestyle="none", zorder=3 + len(marks), **style)
    numbers_of_features(ax)
    ax.set_ylabel(scoring.replace("_", " "), **literal([scoring]))
    _legend(ax)
    return Artists(drawn, band, *marks)


def _legend(ax: Any) -> None:
    """The names of the lines, and the meaning of the marks once for all."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    # (Matplotlib hides what begins with "_", as a name may, and names what has none so.)
    handles = [line for line in ax.lines if not _NAMELESS.fullmatch(str(line.get_label()))]
    handles += [each for each in ax.get_legend_handles_labels()[0] if each not in handles]
    names = [short(each.get_label()) for each in handles]
    if any(each.get_label() == _BAND for each in ax.collections):
        handles.append(Patch(color="gray", alpha=0.2, linewidth=0))
        names.append("± 1 standard deviation")
    for marker, face, name in (("o", "gray", "best k"), ("D", "white", "one-standard-error rule")):
        style: dict[str, Any] = {"marker": marker, "color": "gray", "markerfacecolor": face}
        handles.append(Line2D([], [], linestyle="none", **style))
        names.append(name)
    legend(ax, handles, names, literal(names), 0.5 if len(names) > _MOST_INSIDE else 0.0)


def draw_frequency(path: Any, ax: Any, *, n: int, feature_names: Any) -> Any:
    """How often features are selected at each k, as an image with one row a feature."""
    frequency = path.selection_frequency
    names = path.feature_names if feature_names is None else np.asarray(feature_names)
    if names is not None and names.shape != (path.n_features,):
        raise ValueError(
            f"feature_names has shape {names.shape}, but X has {path.n_features} features."
        )
    # Those that are selected most often and soonest: by the mean over the ks.
    total = np.asarray(frequency.sum(axis=0)).ravel()
    chosen = np.argsort(-total, kind="stable")[:n]
    shares = frequency[:, chosen].toarray().T
    rows = [short(name) for name in (chosen if names is None else names[chosen])]
    ax, ks = axes(ax, rows), path.ks.astype(float)
    inner = np.sqrt(ks[1:] * ks[:-1])  # cells of a log axis meet halfway
    ratio = inner[-1] / ks[-1] if len(ks) > 1 else 0.5
    first = ks[0] ** 2 / inner[0] if len(ks) > 1 else ks[0] / 2
    edges = np.concatenate([[first], inner, [ks[-1] / ratio]])
    sides = np.arange(len(rows) + 1) - 0.5
    image = ax.pcolormesh(edges, sides, shares, vmin=0, vmax=1, cmap="Blues")
    numbers_of_features(ax)
    ax.invert_yaxis()
    ax.set_yticks(np.arange(len(rows)), rows, **literal(rows))
    if names is None:
        ax.set_ylabel("feature")
    ax.figure.colorbar(image, ax=ax, label="share of folds that select it")
    return ax


def draw_centers(centers: np.ndarray, names: Any, classes: Any, ax: Any, *, scaled: bool) -> Any:
    """The centers of each class (K, d), with one row a feature."""
    names, classes = [short(name) for name in names], [short(label) for label in classes]
    room, rows = np.inf if ax is None else 0.5, np.arange(len(names))
    ax = axes(ax, names, classes)
    from matplotlib import colormaps, rcParams

    style = literal([*names, *classes])
    low, high = centers.min(axis=0), centers.max(axis=0)
    ax.hlines(rows, low, high, color="0.8", zorder=1)
    cycle, drawn = rcParams["axes.prop_cycle"].by_key().get("color", []), []
    few = len(classes) <= len(set(cycle))
    for c in range(len(classes)):
        color = f"C{c}" if few else colormaps["turbo"](c / (len(classes) - 1))
        marker = "o" if few else _MARKERS[c % len(_MARKERS)]  # near colors have other shapes
        drawn.append(ax.scatter(centers[c], rows, color=[color], marker=marker, zorder=2))
    width, spread = high.max() - low.min(), high - low
    if not scaled and np.any((spread > 0) & (spread < width / _PRESSED)):
        if low.min() > 0:
            ax.set_xscale("log")
        else:
            least = max(spread[spread > 0].min(), width / 10**_DECADES)
            ax.set_xscale("symlog", linthresh=least)
    ax.set_yticks(rows, names, **style)
    ax.invert_yaxis()
    ax.set_xlabel("class center" + " - mean, in units of scale_" * scaled)
    legend(ax, drawn, classes, style, room, title="class")
    return ax


# A sparsity path as text and as HTML.


def _chosen(path: Any, scoring: str) -> dict[int, str]:
    """The marks of the numbers of features that the rules choose."""
    marks: dict[int, list[str]] = {}
    if np.all(np.isnan(path.scores_of(scoring).mean(axis=1))):
        return {}
    for rule, mark in (("best", "best"), ("one-standard-error", "1-SE")):
        marks.setdefault(path.choose(rule, scoring), []).append(mark)
    return {k: ", ".join(found) for k, found in marks.items()}


def _shown(path: Any, marked: dict[int, str]) -> list[int]:
    """The rows of a table: evenly spaced, and those that are marked."""
    n = len(path.ks)
    rows = set(np.linspace(0, n - 1, min(n, _ROWS)).round().astype(int).tolist())
    return sorted(rows | {int(np.searchsorted(path.ks, k)) for k in marked})


def _table(path: Any, scoring: str) -> list[tuple[int, float, float, float, str]]:
    """(k, mean, std, length of the bar from 0 to 1, marks) of each row."""
    values = path.scores_of(scoring)
    with np.errstate(invalid="ignore"):  # of infinite scores
        mean, std = values.mean(axis=1), values.std(axis=1)
    finite = np.isfinite(mean)
    low, high = (f(mean[finite]) if finite.any() else 0.0 for f in (np.min, np.max))
    lengths = np.where(finite, (mean - low) / (high - low if high > low else 1.0), 0.0)
    marks = _chosen(path, scoring)
    return [
        (int(path.ks[s]), mean[s], std[s], lengths[s], marks.get(int(path.ks[s]), ""))
        for s in _shown(path, marks)
    ]


def _title(path: Any, scoring: str) -> str:
    of = f"{path.estimator}, " if path.estimator else ""
    folds = "1 fold" if path.n_folds == 1 else f"{path.n_folds} folds"
    return f"SparsityPath of {of}{folds}: {scoring}"


def _bar(length: float) -> str:
    eighths = round(length * _WIDTH * 8)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def as_text(path: Any) -> str:
    """The path as a table with bars, for the terminal."""
    parts = []
    for scoring in path.scorings:
        rows = _table(path, scoring)
        low, high = (f"{f(row[1] for row in rows):.3f}" for f in (min, max))
        cells = [["k", "mean", "std", low + high.rjust(_WIDTH - len(low)), ""]]
        for k, mean, std, length, marks in rows:
            cells.append([f"{k:,}", f"{mean:.3f}", f"{std:.3f}", _bar(length), marks])
        widths = [max(len(row[i]) for row in cells) for i in range(5)]
        lines = [
            "  ".join(
                cell.rjust(w) if i < 3 else cell.ljust(w)
                for i, (cell, w) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in cells
        ]
        parts.append("\n".join([_title(path, scoring), *lines]))
    return "\n\n".join(parts)


def as_html(path: Any) -> str:
    """The path as tables with bars, for notebooks."""
    right = ' style="text-align:right"'
    parts = []
    for scoring in path.scorings:
        rows = []
        for k, mean, std, length, marks in _table(path, scoring):
            bar = (
                '<div style="background:currentColor;opacity:.5;height:.8em;'
                f'width:{8 * length:.2f}em"></div>'
            )
            cells = "".join(
                f"<td{right}>{cell}</td>" for cell in (f"{k:,}", f"{mean:.3f}", f"{std:.3f}")
            )
            weight = ' style="font-weight:bold"' if marks else ""
            rows.append(f"<tr{weight}>{cells}<td>{bar}</td><td>{marks}</td></tr>")
        head = (
            f"<tr><th{right}>k</th><th{right}>mean</th><th{right}>std</th><th></th><th></th></tr>"
        )
        title = html.escape(_title(path, scoring))
        parts.append(
            f"<details open><summary>{title}</summary><table><thead>{head}</thead>"
            f"<tbody>{''.join(rows)}</tbody></table></details>"
        )
    return "<div>" + "".join(parts) + "</div>"
