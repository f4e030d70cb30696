"""Pictures of curves, supports and class centers. Matplotlib is imported when they are drawn."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple
from unicodedata import east_asian_width

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..arrays.namespace import to_numpy
from ..estimators.base import check_center_classifier
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


def _checked_names(n: Any, feature_names: Any, n_features: int) -> np.ndarray | None:
    """The names that are given; raises where they, or n, the number of rows, are wrong."""
    if isinstance(n, bool) or not isinstance(n, numbers.Integral) or n < 1:
        raise ValueError(f"n={n!r} is not valid: use a number of features of at least 1.")
    names = None if feature_names is None else np.asarray(feature_names)
    if names is not None and names.shape != (n_features,):
        raise ValueError(f"feature_names has shape {names.shape}, but X has {n_features} features.")
    return names


def draw_frequency(path: Any, ax: Any, *, n: Any, feature_names: Any) -> Any:
    """How often features are selected at each k, as an image with one row a feature."""
    given = path.feature_names if feature_names is None else feature_names
    names, frequency = _checked_names(n, given, path.n_features), path.selection_frequency
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


def plot_centers(
    estimator: Any,
    n: int = 20,
    *,
    feature_names: Any = None,
    scaled: bool | None = None,
    ax: Any = None,
) -> Any:
    """Draw the class centers of the features of largest gain.

    Centers in units of X whose differences are of very different sizes have a logarithmic axis.

    Parameters
    ----------
    estimator : estimator
        A fitted model of this package, whose ``k`` limits the features, or a search for one.
    n : int, default=20
        Number of features at most.
    feature_names : array of shape (n_features,), optional
        Of the features of X, as from ``CountVectorizer.get_feature_names_out()``. By default those
        that the model has.
    scaled : bool, optional
        Whether to draw centers less the mean of those of all classes, divided by ``scale_``: the
        differences by which features are ranked. By default where ``scale_`` is of deviations.
    ax : matplotlib Axes, optional
        By default new ones, large enough for the names.

    Returns
    -------
    matplotlib Axes
        One row for each feature, the one of largest gain on top, with one point for each class.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gpucenters import L2CenterClassifier, plot_centers
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> plot_centers(L2CenterClassifier(k=5, scale="std").fit(X, y))  # doctest: +SKIP
    <Axes: ...>
    """
    estimator = getattr(estimator, "best_estimator_", estimator)  # of a search
    check_center_classifier(estimator, "plot_centers")
    check_is_fitted(estimator)
    names = _checked_names(n, feature_names, estimator.n_features_in_)
    chosen = estimator.ranking_[:n]
    position = np.searchsorted(estimator.support_, chosen)
    centers = to_numpy(estimator.centers_)[:, position]
    names = estimator.get_feature_names_out()[position] if names is None else names[chosen]
    scale = estimator.scale_
    if scaled is None:
        scaled = scale is not None and getattr(estimator, "scale", None) != "dispersion"
    if scaled:
        if scale is None:
            raise ValueError("scaled=True needs a model with scale_, as one with scale='std' has.")
        centers = (centers - centers.mean(axis=0)) / to_numpy(scale)[chosen]
    return _draw_centers(centers, names, estimator.classes_.tolist(), ax, scaled)


def _draw_centers(centers: np.ndarray, names: Any, classes: Any, ax: Any, scaled: bool) -> Any:
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
