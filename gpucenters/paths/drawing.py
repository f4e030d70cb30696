"""The lines and marks of pictures of sparsity paths. Matplotlib is imported when one is drawn."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Artists(NamedTuple):
    """What a path is drawn with: Matplotlib's artists."""

    line: Any
    band: Any
    best: Any
    best_1se: Any


def axes(ax: Any) -> Any:
    """The given axes, or new ones."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "pictures need matplotlib: install it, or gpucenters with the extra 'plot'."
        ) from error
    return pyplot.subplots()[1] if ax is None else ax


def draw_path(path: Any, ax: Any, *, scoring: str | None, name: str | None, **line: Any) -> Artists:
    """Mean scores on a log axis, a band of one standard deviation, and the choices of k."""
    ax = axes(ax)
    scoring = path.scorings[0] if scoring is None else scoring
    values = path.scores_of(scoring)
    mean, std = values.mean(axis=1), values.std(axis=1)
    (drawn,) = ax.plot(path.ks, mean, **({"label": name or path.estimator or None} | line))
    color, band = drawn.get_color(), None
    if path.n_folds > 1:
        band = ax.fill_between(path.ks, mean - std, mean + std, color=color, alpha=0.2, linewidth=0)
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
    ax.set_xscale("log")
    ax.set_xlabel("number of features k")
    ax.set_ylabel(scoring.replace("_", " "))
    _legend(ax)
    return Artists(drawn, band, *marks)


def _legend(ax: Any) -> None:
    """The names of the lines, and the meaning of the marks once for all."""
    from matplotlib.lines import Line2D

    handles, labels = ax.get_legend_handles_labels()
    for marker, face, label in (("o", "gray", "best k"), ("D", "white", "one-standard-error rule")):
        style: dict[str, Any] = {"marker": marker, "color": "gray", "markerfacecolor": face}
        handles.append(Line2D([], [], linestyle="none", **style))
        labels.append(label)
    ax.legend(handles, labels, loc="best")


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
    ax, ks = axes(ax), path.ks.astype(float)
    inner = np.sqrt(ks[1:] * ks[:-1])  # cells of a log axis meet halfway
    ratio = inner[-1] / ks[-1] if len(ks) > 1 else 0.5
    first = ks[0] ** 2 / inner[0] if len(ks) > 1 else ks[0] / 2
    edges = np.concatenate([[first], inner, [ks[-1] / ratio]])
    rows = np.arange(len(chosen) + 1) - 0.5
    image = ax.pcolormesh(edges, rows, shares, vmin=0, vmax=1, cmap="Blues")
    ax.set_xscale("log")
    ax.invert_yaxis()
    shown = chosen if names is None else names[chosen]
    ax.set_yticks(np.arange(len(chosen)), [str(name) for name in shown])
    ax.set_xlabel("number of features k")
    if names is None:
        ax.set_ylabel("feature")
    ax.figure.colorbar(image, ax=ax, label="share of folds that select it")
    return ax
