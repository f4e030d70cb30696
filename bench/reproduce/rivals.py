"""Ours beside what users would take: accuracy at four shares of the features, time and memory.

A method is a way to a fitted classifier on k features. Selectors come before a linear SVM, whose
time and memory are theirs too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.feature_selection import RFE, SelectKBest, chi2, f_classif, mutual_info_classif
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.neighbors import NearestCentroid

from gpucenters import L1CenterClassifier, L2CenterClassifier, SparseMultinomialNB

from ..peers import naive_feature_selection
from .data import TEXTS, Split, read_genes, read_texts, split, word_counts
from .experiment import Claim, Experiment, Found, Settings
from .limits import limited, timed
from .two_stage import linear_svm, second_stage

Fit = Callable[[Any, np.ndarray, int], Any]  # something with predict(X)
ALL = "NearestCentroid (all features)"
SHARES = (0.001, 0.01, 0.05, 0.1)


class OnColumns:
    """A model on some of the columns."""

    def __init__(self, columns: np.ndarray, model: Any) -> None:
        self.columns, self.model = columns, model

    def predict(self, X: Any) -> Any:
        """Classes of rows."""
        return self.model.predict(X[:, self.columns])


def _svm(support: Callable[[Any, np.ndarray, int], np.ndarray]) -> Fit:
    def fit(X: Any, y: np.ndarray, k: int) -> OnColumns:
        columns = support(X, y, k)
        return OnColumns(columns, second_stage(X[:, columns], y))

    return fit


def _k_best(score: Any) -> Fit:
    return _svm(lambda X, y, k: SelectKBest(score, k=k).fit(X, y).get_support(indices=True))


def _mutual_information(X: Any, y: np.ndarray) -> np.ndarray:
    # (Of text: of whether a word is there; its estimate for real values makes X dense.)
    X = (X > 0).astype(int) if hasattr(X, "nnz") else X
    return mutual_info_classif(X, y, discrete_features=hasattr(X, "nnz"), random_state=0)


def _shrunken(X: Any, y: np.ndarray, k: int) -> Any:
    """The shrinkage that leaves about k features, by bisection."""
    X = X.toarray() if hasattr(X, "toarray") else X
    low, high, kept = 0.0, 64.0, None
    for _ in range(12):
        middle = (low + high) / 2
        model = NearestCentroid(shrink_threshold=middle).fit(X, y)
        left = np.count_nonzero(np.ptp(model.centroids_, axis=0) > 1e-12)
        kept = model if left and (kept is None or left >= k) else kept
        low, high = (middle, high) if left > k else (low, middle)
    return kept


def _l1_logistic(X: Any, y: np.ndarray, k: int) -> OnColumns:
    """The first penalty on a path that leaves k coefficients; an SVM on the largest k."""
    for C in 2.0 ** np.arange(-14, 8):
        w = LogisticRegression(C=C, l1_ratio=1, solver="liblinear").fit(X, y).coef_.ravel()
        if np.count_nonzero(w) >= k:
            break
    columns = np.argsort(-np.abs(w), kind="stable")[:k]
    return OnColumns(columns, second_stage(X[:, columns], y))


def _rfe(X: Any, y: np.ndarray, k: int) -> Any:
    model = linear_svm()
    return RFE(model, n_features_to_select=k, step=0.3).fit(X, y)


def _authors(X: Any, y: np.ndarray, k: int) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.flatnonzero(naive_feature_selection()(k=k).fit(X, y).mask_)


def _abess(X: Any, y: np.ndarray, k: int) -> Any:
    from abess import LogisticRegression as BestSubset

    return BestSubset(support_size=k).fit(X, y)


def _skglm(X: Any, y: np.ndarray, k: int) -> OnColumns:
    from skglm import SparseLogisticRegression

    X = X.tocsc() if hasattr(X, "tocsc") else X
    at_zero = np.max(np.abs(X.T @ (0.5 - y))) / len(y)  # where the first coefficient enters
    model = SparseLogisticRegression(warm_start=True, max_epochs=200)
    for step in range(1, 16):
        model.set_params(alpha=at_zero * 2.0**-step).fit(X, y)
        if np.count_nonzero(model.coef_) >= k:
            break
    columns = np.argsort(-np.abs(model.coef_.ravel()), kind="stable")[:k]
    return OnColumns(columns, second_stage(X[:, columns], y))


def _model(kind: Any, X: Any, y: np.ndarray, k: int) -> Any:
    return kind(k=k).fit(X, y)


OURS: dict[str, Fit] = {
    "l2-SC": partial(_model, L2CenterClassifier),
    "l2-SC + SVM": _svm(lambda X, y, k: L2CenterClassifier(k=k).fit(X, y).support_),
    "l1-SC": partial(_model, L1CenterClassifier),
    "SMNB": partial(_model, SparseMultinomialNB),
    "SMNB + SVM": _svm(lambda X, y, k: SparseMultinomialNB(k=k).fit(X, y).support_),
}
THEIRS: dict[str, Fit] = {
    ALL: lambda X, y, k: NearestCentroid().fit(X, y),
    "NearestCentroid (shrunken)": _shrunken,
    "chi2 + SVM": _k_best(chi2),
    "F test + SVM": _k_best(f_classif),
    "mutual information + SVM": _k_best(_mutual_information),
    "l1-logistic + SVM": _l1_logistic,
    "LinearSVC-RFE": _rfe,
    "NFS (authors) + SVM": _svm(_authors),
    "abess, logistic": _abess,
    "skglm, l1-logistic + SVM": _skglm,
}


class PeersTable(Experiment):
    """One data set, one row for each method."""

    source = "peers"

    def __init__(self, name: str, text: bool, seconds: tuple[float, float]) -> None:
        self.set, self.text, self.seconds, self.name = name, text, seconds, f"peers-{name}"
        self.files = TEXTS.get(name, (f"{name}.npz",))

    def parts(self, settings: Settings) -> list[str]:
        """One for each method."""
        return [*OURS, *THEIRS]

    def run(self, part: str, settings: Settings, found: Found) -> dict[str, Any]:
        """Accuracies, seconds and megabytes of one method, over the splits."""
        if self.text:
            texts, y = read_texts(settings.data, self.set, 4000 if settings.quick else None)
            X = word_counts(texts)
        else:
            X, y = read_genes(settings.data, self.set)
        rows, note, shares = [], "", list(SHARES)
        for number in range(1 if settings.quick else 5):
            data = split(X, y, number, positive=not self.text)
            outcome = limited(
                lambda data=data, shares=shares: self._fits(part, data, shares),
                settings.limit,
            )
            note = note or outcome.note
            shares = shares[: len(outcome.values)]
            rows.append({"values": outcome.values, "peak_mb": outcome.peak_mb})
        values = np.asarray([row["values"][: len(shares)] for row in rows])
        peaks = [row["peak_mb"] for row in rows if row["peak_mb"] is not None]
        return {
            "share": shares,
            "accuracy": values[:, :, 0].mean(axis=0).tolist() if shares else [],
            "seconds": np.median(values[:, :, 1], axis=0).tolist() if shares else [],
            "peak_mb": max(peaks, default=None),
            "note": note,
        }

    def _fits(self, part: str, data: Split, shares: list[float]) -> Iterator[tuple[float, float]]:
        """(Accuracy, seconds to fit) for each share."""
        fit, score = (OURS | THEIRS)[part], accuracy_score if self.text else balanced_accuracy_score
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for share in shares:
                k = max(1, int(share * data.train.shape[1]))
                seconds, model = timed(lambda k=k: fit(data.train, data.y_train, k))
                predicted = np.asarray(model.predict(data.test)).ravel()
                yield score(data.y_test, predicted), seconds

    def draw(self, found: Found, figure: Any) -> None:
        """Accuracy against seconds at 10% or the largest share reached, and the whole table."""
        figure.set_size_inches(15, 6)
        axis, table = figure.subplots(1, 2)
        for number, (name, row) in enumerate(found.items(), start=1):
            if row["accuracy"]:
                at = row["seconds"][-1], row["accuracy"][-1]
                axis.plot(*at, "o", color="C0" if name in OURS else "C1", ms=9)
                # Names would lie over each other; the table has them.
                above = 5 if number % 2 else -12
                axis.annotate(
                    number, at, xytext=(0, above), textcoords="offset points", ha="center"
                )
        axis.set(
            xscale="log", xlabel="seconds", ylabel="accuracy" if self.text else "balanced accuracy"
        )
        axis.set_title(f"{self.set}: at the largest share (10%) that the method reached")
        axis.grid(alpha=0.3)
        for color, name in (("C0", "of gpucenters"), ("C1", "others")):
            axis.plot([], [], "o", color=color, ms=9, label=name)
        axis.legend()
        table.axis("off")
        cells = [
            [f"{number} {name}", *_cells(row)]
            for number, (name, row) in enumerate(found.items(), start=1)
        ]
        head = ["", *(f"{share:.1%}" for share in SHARES), "s", "MB", ""]
        widths = [0.36, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.2]
        shown = len(head) if any(row[-1] for row in cells) else len(head) - 1  # the notes
        drawn = table.table(
            [row[:shown] for row in cells],
            colLabels=head[:shown],
            loc="center",
            colWidths=widths[:shown],
            cellLoc="right",
        )
        for row in range(1, len(cells) + 1):
            drawn[row, 0].get_text().set_horizontalalignment("left")
        drawn.auto_set_font_size(False)
        drawn.set_fontsize(9)
        drawn.scale(1, 1.4)

    def claims(self, found: Found) -> list[Claim]:
        """A row for each method, after what is best."""
        reached = {
            n: row["accuracy"][-1]
            for n, row in found.items()
            if len(row["accuracy"]) == len(SHARES) and n != ALL
        }
        best = max(reached, key=reached.__getitem__)
        ours = max((n for n in reached if n in OURS), key=reached.__getitem__)
        measure = "accuracy" if self.text else "balanced accuracy"
        claims = [
            Claim(
                f"{self.set}: ours beside the best peer at 10%, {measure}",
                "",
                f"{ours} {reached[ours]:.3f}, best {best} {reached[best]:.3f}",
                None,
                "" if best in OURS else f"ours loses by {reached[best] - reached[ours]:.3f}",
            )
        ]
        for name, row in found.items():
            *accuracies, seconds, memory, note = _cells(row)
            says = f"{self.set}: {name}, at 0.1 / 1 / 5 / 10%"
            here = f"{' / '.join(accuracies)}; {seconds} s, {memory} MB"
            claims.append(Claim(says, "", here, None, note))
        return claims


def _cells(row: dict[str, Any]) -> list[str]:
    accuracies = [f"{a:.3f}" for a in row["accuracy"]]
    accuracies += ["-"] * (len(SHARES) - len(accuracies))
    seconds = f"{row['seconds'][-1]:.3g}" if row["seconds"] else "-"
    memory = "-" if row["peak_mb"] is None else f"{row['peak_mb']:.0f}"
    return [*accuracies, seconds, memory, row["note"][:40]]
