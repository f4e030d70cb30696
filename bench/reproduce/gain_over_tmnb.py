"""[N] Experiment 3: sparse against thresholded multinomial naive Bayes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.naive_bayes import MultinomialNB

from gpucenters import SparseMultinomialNB, thresholded_multinomial

from .data import read_texts, split, word_counts
from .experiment import Claim, Experiment, Found, Settings, percent
from .run_times import RunTimes
from .second_stages import SHARES


class GainOverTMNB(Experiment):
    """Accuracy of SMNB less that of thresholded multinomial naive Bayes with as many words."""

    name, source, seconds = "gain-over-tmnb", "[N] Experiment 3", (20, 300)
    title = "Accuracy of SMNB beyond that of thresholded naive Bayes"
    files = RunTimes.files

    def parts(self, settings: Settings) -> list[str]:
        """Data sets."""
        return [*RunTimes.SETS]

    def run(self, part: str, settings: Settings, found: Found) -> dict[str, Any]:
        """Gains: split, share."""
        texts, y = read_texts(settings.data, part, 4000 if settings.quick else None)
        X, gains = word_counts(texts), []
        for number in range(3 if settings.quick else 10):
            data = split(X, y, number)
            test = data.unscaled_test
            best = np.argsort(-thresholded_multinomial(data.unscaled, data.y_train), kind="stable")
            row = []
            for share in SHARES:
                k = max(1, int(share * X.shape[1]))
                ours = SparseMultinomialNB(k=k).fit(data.unscaled, data.y_train)
                theirs = MultinomialNB().fit(data.unscaled[:, best[:k]], data.y_train)
                row.append(
                    accuracy_score(data.y_test, ours.predict(test))
                    - accuracy_score(data.y_test, theirs.predict(test[:, best[:k]]))
                )
            gains.append(row)
        return {"gains": gains}

    def draw(self, found: Found, figure: Any) -> None:
        """Per cent against the share of words."""
        axis = figure.subplots()
        for name, row in found.items():
            gains = 100 * np.asarray(row["gains"])
            x = [100 * share for share in SHARES]
            axis.errorbar(x, gains.mean(axis=0), gains.std(axis=0), label=name, capsize=2)
        axis.axhline(0, color="k", linewidth=0.5)
        percent(axis, "words", "accuracy beyond TMNB (points), ± 1 standard deviation")
        axis.legend()

    def claims(self, found: Found) -> list[Claim]:
        """That the gain is positive."""
        means = {name: 100 * np.mean(row["gains"], axis=0) for name, row in found.items()}
        return [
            Claim(
                "SMNB is more accurate than TMNB at the same number of words",
                "by up to some tens of per cent",
                "; ".join(f"{n} {g.min():+.1f} to {g.max():+.1f} points" for n, g in means.items()),
                bool(min(g.min() for g in means.values()) > 0),
                "at 0.1 to 20% of the words",
            )
        ]
