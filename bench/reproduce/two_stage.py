"""Select k features, then train a linear SVM on them: accuracy and selection time against k."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from .data import Split
from .experiment import Found, percent
from .limits import limited
from .selectors import UNSCALED, Selector

Score = Callable[[np.ndarray, np.ndarray], float]


def compare(
    selectors: dict[str, Selector],
    data: Split,
    ks: list[int],
    score: Score,
    limit: float,
    found: Found,
) -> dict[str, Any]:
    """Accuracies and seconds of each selector on one split.

    A selector that met the limit in an earlier split gets only the k that it reached there.
    """
    train, test, y = data.train, data.test, data.y_train
    rows: dict[str, Any] = {}
    for name, select in selectors.items():
        wanted, note = _within(name, ks, found)
        selected: list[Any] = []
        if wanted:
            X = data.unscaled if name == UNSCALED else train
            outcome = limited(lambda s=select, X=X, w=wanted: _quietly(s, X, y, w), limit)
            selected, note = outcome.values, outcome.note or note
        second = limited(
            lambda s=selected: (
                score(data.y_test, second_stage(train[:, features], y).predict(test[:, features]))
                for _, _, features in s
            ),
            limit,
        )
        rows[name] = {
            "k": [k for k, _, _ in selected],
            "seconds": [seconds for _, seconds, _ in selected],
            "accuracy": second.values,
            "note": note or second.note,
        }
    return {"m": train.shape[1], "n": train.shape[0], "rows": rows}


def linear_svm() -> LinearSVC:
    """C=1, as in the papers; in primal form: the dual does not converge on unequal counts."""
    return LinearSVC(dual=False, tol=1e-2, max_iter=300)


def second_stage(X: Any, y: np.ndarray) -> LinearSVC:
    """A fitted linear SVM; one that has not converged is used as it is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return linear_svm().fit(X, y)


def _quietly(select: Selector, X: Any, y: np.ndarray, ks: list[int]) -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from select(X, y, ks)


def _within(name: str, ks: list[int], found: Found) -> tuple[list[int], str]:
    """The k that no earlier split missed, and why others are left out."""
    for earlier in found.values():
        row = earlier["rows"].get(name)
        if row and row["note"]:
            ks = [k for k in ks if k in row["k"]]
            return ks, row["note"]
    return ks, ""


# --- all splits together --------------------------------------------------------------------------


def curves(found: Found, what: str) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """For each selector the shares of the features, and means and deviations over the splits."""
    splits = list(found.values())
    drawn = {}
    for name in splits[0]["rows"]:
        # (k is the same share, not always the same number, where words differ between splits.)
        whole = min(len(s["rows"][name][what]) for s in splits)
        values = np.asarray([s["rows"][name][what][:whole] for s in splits], dtype=float)
        shares = np.asarray(splits[0]["rows"][name]["k"][:whole]) / splits[0]["m"]
        drawn[name] = shares, values.mean(axis=0), values.std(axis=0)
    return drawn


def ratio(found: Found, name: str, other: str, share: float) -> float:
    """Median over the splits of the seconds of a selector over those of another."""
    ratios = [
        at({"": split}, name, "seconds", share) / at({"": split}, other, "seconds", share)
        for split in found.values()
    ]
    return float(np.nanmedian(ratios)) if np.isfinite(ratios).any() else float("nan")


def at(found: Found, name: str, what: str, share: float) -> float:
    """A mean at about this share of the features; NaN where the limit came before."""
    shares, mean, _ = curves(found, what)[name]
    near = np.flatnonzero(np.isclose(shares, share, rtol=0.5))
    return float(mean[near[np.argmin(abs(shares[near] - share))]]) if near.size else float("nan")


def draw(found: Found, figure: Any, title: str, measure: str) -> None:
    """Accuracy and time against the share of features, with the deviation of l2-SC's accuracy."""
    figure.set_size_inches(15, 5)
    axes = figure.subplots(1, 2)
    notes = {
        name: row["note"]
        for split in found.values()
        for name, row in split["rows"].items()
        if row["note"]
    }
    for axis, what, label in zip(
        axes, ("accuracy", "seconds"), (measure, "seconds to select"), strict=True
    ):
        for number, (name, (shares, mean, deviation)) in enumerate(curves(found, what).items()):
            marked = f"{name} ({notes[name]})" if name in notes else name
            axis.plot(
                100 * shares,
                mean,
                label=marked,
                marker="osv^Dxp*hP"[number % 10],
                color=f"C{number}",
                markersize=5,
                linewidth=2 if name.endswith("-SC") else 1,
            )
            # (Those of all would hide each other: the splits are the same, and hard ones for all.)
            if what == "accuracy" and name == "l2-SC":
                axis.fill_between(
                    100 * shares,
                    mean - deviation,
                    mean + deviation,
                    alpha=0.15,
                    label="l2-SC ± 1 standard deviation",
                )
        percent(axis, "selected features", label)
    axes[1].set_yscale("log")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper", fontsize=8)
    figure.suptitle(f"{title}, {len(found)} splits")
