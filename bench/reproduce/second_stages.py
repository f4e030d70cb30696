"""[N] Experiment 2: selected words for several classifiers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.naive_bayes import MultinomialNB

from gpucenters import L2CenterClassifier, SparseMultinomialNB, thresholded_multinomial

from ..peers import naive_feature_selection
from .data import TEXTS, read_texts, split, word_counts
from .experiment import BesideAuthors, Claim, Found, Settings, percent
from .two_stage import linear_svm

SHARES = (0.001, 0.01, 0.05, 0.1, 0.2)


class SecondStages(BesideAuthors):
    """Selected words of MPQA for logistic regression, an SVM and multinomial naive Bayes."""

    name, source, seconds = "second-stages", "[N] Experiment 2", (20, 120)
    title = "MPQA: selected words for three second stages, ± 1 standard deviation"
    files = TEXTS["mpqa"]
    SECOND: ClassVar[dict[str, Callable[[], Any]]] = {
        "logistic": lambda: LogisticRegression(solver="liblinear"),
        "SVM": linear_svm,
        "MNB": MultinomialNB,
    }

    def parts(self, settings: Settings) -> list[str]:
        """One for each split."""
        return settings.numbered(50)

    def run(self, part: str, settings: Settings, found: Found) -> dict[str, Any]:
        """Accuracies: second stage, selector, share."""
        texts, y = read_texts(settings.data, "mpqa")
        data = split(word_counts(texts), y, int(part.split()[1]))
        m, authors = data.train.shape[1], naive_feature_selection()
        rows: dict[str, dict[str, list[float]]] = {second: {} for second in self.SECOND}
        for share in SHARES:
            k = max(1, int(share * m))
            with np.errstate(all="ignore"):
                selected = {
                    "l2-SC": L2CenterClassifier(k=k).fit(data.train, data.y_train).support_,
                    "SMNB": SparseMultinomialNB(k=k).fit(data.unscaled, data.y_train).support_,
                    "SMNB (authors)": np.flatnonzero(
                        authors(k=k).fit(data.unscaled, data.y_train).mask_
                    ),
                    "TMNB": np.argsort(-thresholded_multinomial(data.unscaled, data.y_train))[:k],
                }
            for second, make in self.SECOND.items():
                for name, columns in selected.items():
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        model = make().fit(data.train[:, columns], data.y_train)
                    right = accuracy_score(data.y_test, model.predict(data.test[:, columns]))
                    rows[second].setdefault(name, []).append(right)
        return rows

    def draw(self, found: Found, figure: Any) -> None:
        """One panel for each second stage."""
        figure.set_size_inches(14, 4)
        for axis, second in zip(figure.subplots(1, 3, sharey=True), self.SECOND, strict=True):
            for name in next(iter(found.values()))[second]:
                values = self._values(found, second, name)
                axis.errorbar(
                    [100 * share for share in SHARES],
                    values.mean(axis=0),
                    values.std(axis=0),
                    label=name,
                    capsize=2,
                )
            percent(axis, "words", "accuracy")
            axis.set_title(second)
            axis.legend()

    def claims(self, found: Found) -> list[Claim]:
        """At 10%, for each second stage."""
        claims = []
        for second in self.SECOND:
            names = next(iter(found.values()))[second]
            here = {
                n: self._values(found, second, n).mean(axis=0)[SHARES.index(0.1)] for n in names
            }
            claims.append(
                Claim(
                    f"MPQA at 10% of the words, second stage {second}: l2-SC is on a par with SMNB",
                    "on a par",
                    ", ".join(f"{name} {a:.3f}" for name, a in here.items()),
                    bool(here["l2-SC"] >= here["SMNB (authors)"] - 0.005),
                    "SMNB and TMNB select from counts that are not scaled",
                )
            )
        return claims

    @staticmethod
    def _values(found: Found, second: str, name: str) -> np.ndarray:
        return np.asarray([split[second][name] for split in found.values()])
