"""The scores of a model for every number of features, and what follows from them."""

from __future__ import annotations

import html
import json
from typing import Any, Self

import numpy as np
import scipy.sparse

from ..estimators.cross_validation import choose
from . import drawing

_FORMAT = "gpucenters.SparsityPath/1"
_BAR = 16  # letters of the longest bar
_ROWS = 24  # of a table at most, and those that the rules choose
_EIGHTHS = " ▏▎▍▌▋▊▉"


class SparsityPath:
    """Scores of a model for several numbers of features.

    What `sparsity_path` returns. With several scorings, ``scores``, ``mean``, ``std``, ``best_k``
    and ``best_k_1se`` are dicts by the names of these.

    Parameters
    ----------
    ks : array of shape (n_ks,)
        Numbers of features, ascending.
    scores : dict of arrays of shape (n_ks, n_folds)
        The test scores of each scoring; larger is better.
    n_features : int
        Number of features of X.
    estimator : str
        Name of the model.
    single : bool
        Whether there is one scoring, without a dict.
    supports : sparse array of shape (n_ks, n_features), or callable that returns it, optional
        Number of folds in which each feature enters the support at each k, less those where it
        leaves it.
    feature_names : array of shape (n_features,), optional

    Attributes
    ----------
    ks : ndarray of shape (n_ks,), int64

    Examples
    --------
    >>> from gpucenters import SparsityPath
    >>> path = SparsityPath([1, 2, 4], {"accuracy": [[0.5, 0.7], [0.8, 0.9], [0.9, 0.8]]})
    >>> path.mean, path.best_k
    (array([0.6 , 0.85, 0.85]), 2)
    >>> print(path)
    SparsityPath of 2 folds: accuracy
    k  mean   std    0.600      0.850
    1  0.600  0.100
    2  0.850  0.050  ████████████████  best, 1-SE
    4  0.850  0.050  ████████████████
    """

    def __init__(
        self,
        ks: Any,
        scores: dict[str, Any],
        *,
        n_features: int | None = None,
        estimator: str = "",
        single: bool = True,
        supports: Any = None,
        feature_names: Any = None,
    ) -> None:
        self.ks = np.asarray(ks, dtype=np.int64)
        if self.ks.ndim != 1 or self.ks.size == 0 or self.ks[0] < 1 or np.any(np.diff(self.ks) < 1):
            raise ValueError(f"ks={ks!r} is not valid: use ascending numbers of features.")
        if not isinstance(scores, dict) or not scores:
            raise ValueError("scores must be a dict of arrays by the name of the scoring.")
        self._scores = {name: np.asarray(values, dtype=float) for name, values in scores.items()}
        for name, values in self._scores.items():
            if values.ndim != 2 or values.shape[0] != len(self.ks) or values.shape[1] == 0:
                raise ValueError(
                    f"the scores {name!r} have shape {values.shape}, but there are {len(self.ks)} "
                    "ks: use an array of shape (n_ks, n_folds)."
                )
        self.n_features = int(self.ks[-1]) if n_features is None else n_features
        self.estimator = estimator
        self.feature_names = feature_names
        self._single = single and len(self._scores) == 1
        self._supports = supports

    # --- scores --------------------------------------------------------------------------------

    @property
    def scorings(self) -> list[str]:
        """The names of the scorings."""
        return list(self._scores)

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return int(next(iter(self._scores.values())).shape[1])

    def _of_each(self, make: Any) -> Any:
        found = {name: make(values) for name, values in self._scores.items()}
        return found[self.scorings[0]] if self._single else found

    @property
    def scores(self) -> Any:
        """Test scores, of shape (n_ks, n_folds)."""
        return self._of_each(lambda values: values)

    @property
    def mean(self) -> Any:
        """Mean over the folds, of shape (n_ks,)."""
        return self._of_each(lambda values: values.mean(axis=1))

    @property
    def std(self) -> Any:
        """Standard deviation over the folds, of shape (n_ks,), as in scikit-learn's searches."""
        return self._of_each(lambda values: values.std(axis=1))

    @property
    def best_k(self) -> Any:
        """The number of features of best mean score; the smallest one on a tie.

        Means that differ by rounding, 1e-12 of the largest score, are a tie.
        """
        return self._of_each(lambda values: int(self.ks[choose(values, "best")]))

    @property
    def best_k_1se(self) -> Any:
        """The smallest k whose mean is within one standard error of the best mean.

        The standard error is that of the mean over the folds at the best k: their standard
        deviation (divisor n_folds - 1) over the root of their number.
        """
        return self._of_each(lambda values: int(self.ks[choose(values, "one-standard-error")]))

    def choose(self, rule: str = "best", scoring: str | None = None) -> int:
        """The number of features that a rule chooses.

        Parameters
        ----------
        rule : {"best", "one-standard-error"}
        scoring : str, optional
            By default the first one.
        """
        return int(self.ks[choose(self.scores_of(scoring), rule)])

    def scores_of(self, scoring: str | None = None) -> np.ndarray:
        """Test scores of one scoring, of shape (n_ks, n_folds).

        Parameters
        ----------
        scoring : str, optional
            By default the first one.
        """
        name = self.scorings[0] if scoring is None else scoring
        if name not in self._scores:
            raise ValueError(f"scoring={name!r} is not among those of this path: {self.scorings}.")
        return self._scores[name]

    # --- supports ------------------------------------------------------------------------------

    def _changes(self) -> scipy.sparse.csr_array:
        if callable(self._supports):  # counted when it is first asked for
            self._supports = self._supports()
        return self._supports

    @property
    def selection_frequency(self) -> scipy.sparse.csr_array:
        """The share of folds in which each feature is selected, for each k: (n_ks, n_features)."""
        if self._supports is None:
            raise AttributeError("this path was made without supports: its folds are not known.")
        n = len(self.ks)
        below = scipy.sparse.csr_array(np.tril(np.ones((n, n), np.int32)))
        counts = scipy.sparse.csr_array(below @ self._changes())
        counts.eliminate_zeros()
        counts.sort_indices()
        counts.data = counts.data / self.n_folds
        return counts

    # --- other forms ---------------------------------------------------------------------------

    def to_frame(self) -> Any:
        """A pandas DataFrame with one row for each k: mean, std and the score of each fold.

        With several scorings the columns have the name of the scoring as their first level.
        """
        import pandas as pd

        frames = {}
        for name, values in self._scores.items():
            columns = {"mean": values.mean(axis=1), "std": values.std(axis=1)}
            columns |= {f"fold {f}": values[:, f] for f in range(values.shape[1])}
            frames[name] = pd.DataFrame(columns, index=pd.Index(self.ks, name="k"))
        return frames[self.scorings[0]] if self._single else pd.concat(frames, axis=1)

    def to_json(self, *, supports: bool = False) -> str:
        """The path as JSON.

        Parameters
        ----------
        supports : bool, default=False
            Whether to write what ``selection_frequency`` needs: a number for each feature that is
            selected in some fold, and more.
        """
        state: dict[str, Any] = {
            "format": _FORMAT,
            "estimator": self.estimator,
            "n_features": self.n_features,
            "single": self._single,
            "ks": self.ks.tolist(),
            "scores": {name: _numbers(values) for name, values in self._scores.items()},
        }
        if self.feature_names is not None and supports:
            state["feature_names"] = [str(name) for name in self.feature_names]
        if supports and self._supports is not None:
            parts = {name: getattr(self._changes(), name) for name in ("data", "indices", "indptr")}
            state["supports"] = {name: part.tolist() for name, part in parts.items()}
        return json.dumps(state, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The path that `to_json` wrote.

        Parameters
        ----------
        text : str

        Raises
        ------
        ValueError
            For text that is no path.
        """
        state = json.loads(text)
        if not isinstance(state, dict) or state.pop("format", None) != _FORMAT:
            raise ValueError(f"this is no JSON of a SparsityPath: it has no 'format': '{_FORMAT}'.")
        try:
            if "supports" in state:
                parts = (np.asarray(state["supports"][n]) for n in ("data", "indices", "indptr"))
                shape = (len(state["ks"]), state["n_features"])
                supports = scipy.sparse.csr_array(tuple(parts), shape=shape)
                supports.check_format(full_check=True)  # compiled loops trust the indices
                state["supports"] = supports
            return cls(state.pop("ks"), state.pop("scores"), **state)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"this is no JSON of a SparsityPath: {error!r}.") from error

    def plot(
        self, ax: Any = None, *, scoring: str | None = None, name: str | None = None, **line: Any
    ) -> Any:
        """Draw the scores against the number of features, as `SparsityPathDisplay` does.

        Parameters
        ----------
        ax : matplotlib Axes, or an array of one for each scoring, optional
            By default new ones. Several paths may be drawn into the same axes.
        scoring : str, optional
            By default all, each in axes of its own; in a single ``ax`` the first one.
        name : str, optional
            The label of the line. By default the name of the model.
        **line : dict
            Passed to ``ax.plot``.

        Returns
        -------
        matplotlib Axes, or an array of them for several scorings
        """
        if ax is None and scoring is None and len(self.scorings) > 1:
            ax = drawing.panels(len(self.scorings))
        if np.ndim(ax) == 0:
            return drawing.draw_path(self, ax, scoring=scoring, name=name, **line).line.axes
        for each, panel in zip(self.scorings, ax, strict=True):
            drawing.draw_path(self, panel, scoring=each, name=name, **line)
        return ax

    def plot_selection_frequency(
        self, n: int = 20, *, feature_names: Any = None, ax: Any = None
    ) -> Any:
        """Draw how often features are selected, for each number of features.

        Parameters
        ----------
        n : int, default=20
            Number of features at most: those of largest mean frequency over the ks.
        feature_names : array of shape (n_features,), optional
            By default the column names of X, or numbers where it had none.
        ax : matplotlib Axes, optional
            By default new ones.

        Returns
        -------
        matplotlib Axes
            One row for each feature, the one that is selected most on top.
        """
        return drawing.draw_frequency(self, ax, n=n, feature_names=feature_names)

    def __str__(self) -> str:
        """The path as a table with bars, for the terminal."""
        parts = []
        for scoring in self.scorings:
            rows = _table(self, scoring)
            low, high = (f"{f(row[1] for row in rows):.3f}" for f in (min, max))
            cells = [["k", "mean", "std", low + high.rjust(_BAR - len(low)), ""]]
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
            parts.append("\n".join([_title(self, scoring), *lines]))
        return "\n\n".join(parts)

    def __repr__(self) -> str:
        scorings = ", ".join(self.scorings)
        of = f" of {self.estimator}" if self.estimator else ""
        return f"<SparsityPath{of}: {len(self.ks)} ks, {self.n_folds} folds, {scorings}>"

    def _repr_html_(self) -> str:
        """The path as tables with bars, for notebooks."""
        right = ' style="text-align:right"'
        parts = []
        for scoring in self.scorings:
            rows = []
            for k, mean, std, length, marks in _table(self, scoring):
                bar = (
                    '<div style="background:currentColor;opacity:.5;height:.8em;'
                    f'width:{8 * length:.2f}em"></div>'
                )
                cells = "".join(
                    f"<td{right}>{cell}</td>" for cell in (f"{k:,}", f"{mean:.3f}", f"{std:.3f}")
                )
                weight = ' style="font-weight:bold"' if marks else ""
                rows.append(f"<tr{weight}>{cells}<td>{bar}</td><td>{marks}</td></tr>")
            head = "".join(f"<th{right}>{cell}</th>" for cell in ("k", "mean", "std"))
            title = html.escape(_title(self, scoring))
            parts.append(
                f"<details open><summary>{title}</summary><table><thead><tr>{head}<th></th>"
                "<th></th></tr></thead>"
                f"<tbody>{''.join(rows)}</tbody></table></details>"
            )
        return "<div>" + "".join(parts) + "</div>"


def _numbers(values: np.ndarray) -> list[list[float | str | None]]:
    """Scores in what JSON knows: NaN as null, infinity by name."""

    def plain(x: float) -> float | str | None:
        return x if np.isfinite(x) else None if np.isnan(x) else str(x)

    return [[plain(x) for x in row] for row in values.tolist()]


def _table(path: SparsityPath, scoring: str) -> list[tuple[int, float, float, float, str]]:
    """(k, mean, std, length of the bar from 0 to 1, marks) of each row.

    Rows are evenly spaced, and those that the rules choose.
    """
    values = path.scores_of(scoring)
    with np.errstate(invalid="ignore"):  # of infinite scores
        mean, std = values.mean(axis=1), values.std(axis=1)
    finite = np.isfinite(mean)
    low, high = (f(mean[finite]) if finite.any() else 0.0 for f in (np.min, np.max))
    lengths = np.where(finite, (mean - low) / (high - low if high > low else 1.0), 0.0)
    marks: dict[int, list[str]] = {}
    for rule, mark in (("best", "best"), ("one-standard-error", "1-SE")):
        if not np.all(np.isnan(mean)):
            marks.setdefault(path.choose(rule, scoring), []).append(mark)
    n = len(path.ks)
    spaced = np.linspace(0, n - 1, min(n, _ROWS)).round().astype(int)
    rows = np.union1d(spaced, np.searchsorted(path.ks, list(marks)).astype(int))
    return [
        (k, mean[s], std[s], lengths[s], ", ".join(marks.get(k, [])))
        for s, k in zip(rows, path.ks[rows].tolist(), strict=True)
    ]


def _title(path: SparsityPath, scoring: str) -> str:
    of = f"{path.estimator}, " if path.estimator else ""
    folds = "1 fold" if path.n_folds == 1 else f"{path.n_folds} folds"
    return f"SparsityPath of {of}{folds}: {scoring}"


def _bar(length: float) -> str:
    eighths = round(length * _BAR * 8)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()
