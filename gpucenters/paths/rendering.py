"""A sparsity path as text and as HTML."""

from __future__ import annotations

import html
from typing import Any

import numpy as np

_WIDTH = 16  # of the longest bar
_ROWS = 24  # of a table at most
_EIGHTHS = " ▏▎▍▌▋▊▉"


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
